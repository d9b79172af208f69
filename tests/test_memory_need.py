"""What a run needs is told before: as large as measured, and refused where it does not fit."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pcsim import config
from pcsim.errors import ConfigError
from pcsim.native.compiler import SHORT, Library
from pcsim.run import run
from pcsim.runner import available_memory, memory_need
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Task
from pcsim.runner.tensor_memory import TensorMemory

BASE = {
    "network": {"sizes": [64, 256, 256, 10]},
    "schedule": {"T": 2},
    "learning": {"batch": 16},
    "data": {"limit": 32, "limit_test": 50},
}
CASES = {
    "ideal": {"hardware": {"chips": 96}, "run": {"backend": "continuous"}},
    "ecram_li": {"hardware": {"chips": 10, "preset": "ecram_li"}, "run": {"backend": "continuous"}},
    "ecram_li, compiled": {
        "hardware": {"chips": 10, "preset": "ecram_li"},
        "run": {"backend": "continuous", "engine": "native"},
    },
}
LARGE = BASE | {
    "network": {"sizes": [64, 2048, 2048, 10]},
    "hardware": {"chips": 64, "preset": "ecram_li"},
}
MEASURED = """
import json, re, sys, warnings
from pathlib import Path
from pcsim import config
from pcsim.run import run

def status(name):
    return 1024 * int(re.search(rf"{name}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

warnings.simplefilter("ignore")
small = json.loads(sys.argv[1])
small["hardware"] = small["hardware"] | {"chips": 1}
run(config.parse(small))  # whatever is imported and compiled at the first run
before = status("VmRSS")
run(config.parse(json.loads(sys.argv[1])), Path(sys.argv[2]))
print(status("VmHWM") - before)
"""
LIMITED = """
import re, resource, sys
from pathlib import Path
from pcsim.cli import main

def status(name):
    return 1024 * int(re.search(rf"{name}:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

import pcsim.backends.continuous, pcsim.plots, pcsim.run
bound = status("VmSize") + (2 << 30)
resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
before = status("VmRSS")
try:
    main()
except SystemExit as end:
    print(end.code, status("VmHWM") - before)
"""
linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")


def need_of(data, steps=0):
    settings = config.parse(data)
    network = settings.network.build()
    task = Task.load(settings, network)
    return memory_need.memory_need(settings, network, Replicas.of(settings), task, steps)


@linux
@pytest.mark.parametrize("case", CASES)
def test_prediction_and_measured_peak(case, tmp_path):
    data = BASE | CASES[case]
    arguments = [sys.executable, "-c", MEASURED, json.dumps(data), str(tmp_path / "a.h5")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    measured, predicted = int(done.stdout), need_of(data).bytes
    assert measured > 5e7
    assert 0.5 < predicted / measured < 2


def test_need_grows_with_all_that_takes_room():
    base = BASE | {"hardware": {"chips": 16}}
    need = need_of(base).bytes
    assert need_of(base | {"hardware": {"chips": 32}}).bytes == pytest.approx(2 * need, rel=0.1)
    assert need_of(base | {"hardware": {"chips": 16, "preset": "ecram_li"}}).bytes > 10 * need
    assert need_of(base | {"run": {"dtype": "float64"}}).bytes > 1.5 * need
    assert need_of(base | {"learning": {"batch": 16, "optimizer": "adam"}}).bytes > 2 * need
    assert need_of(base | {"learning": {"batch": 0}, "data": {}}).bytes > 2 * need


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
def test_need_is_that_of_the_engine_that_will_be_taken(backend, monkeypatch):
    def need(engine, steps):
        return need_of(LARGE | {"run": {"backend": backend, "engine": engine}}, steps).bytes

    assert need("native", 1) == need("auto", SHORT) < 0.8 * need("torch", SHORT)
    assert need("auto", SHORT - 1) == need("torch", SHORT), "too short to be compiled"
    monkeypatch.setattr(memory_need, "library", lambda source: Library(None, "no C compiler"))
    assert need("auto", SHORT) == need("torch", SHORT)


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
def test_what_does_not_fit_is_refused_before_anything_is_made(backend, monkeypatch):
    data = LARGE | {"run": {"backend": backend}}
    monkeypatch.setattr(memory_need, "available_memory", lambda device: 8e9)
    for module in ("pcsim.runner.training", "pcsim.runner.chip_run"):
        monkeypatch.setattr(f"{module}.initial_parameters", lambda *_: pytest.fail("allocated"))
    with pytest.raises(ConfigError) as caught:
        run(config.parse(data))
    text = str(caught.value)
    most = need_of(data).most(8e9)
    assert 1 < most < 64
    assert f"at most hardware.chips = {most} would fit" in text
    assert "but 8 GB are available" in text
    assert "\n" not in text
    fits = need_of(data | {"hardware": {"chips": most, "preset": "ecram_li"}}).bytes
    assert (
        fits <= 8e9 < need_of(data | {"hardware": {"chips": most + 1, "preset": "ecram_li"}}).bytes
    )


def test_not_even_one(monkeypatch):
    monkeypatch.setattr(memory_need, "available_memory", lambda device: 1e6)
    with pytest.raises(ConfigError, match=r"not even one replica would fit"):
        run(config.parse(LARGE))


def test_large_needs_are_announced(monkeypatch):
    monkeypatch.setattr(memory_need, "LARGE", 1e8)
    monkeypatch.setattr(memory_need, "available_memory", lambda device: 8e9)
    settings = config.parse(BASE | {"hardware": {"chips": 96}})
    network = settings.network.build()
    task = Task.load(settings, network)
    with pytest.warns(memory_need.MemoryNeedWarning, match=r"needs about 0\.\d+ GB .* of 8 GB"):
        memory_need.check(settings, network, Replicas.of(settings), task)


def test_small_runs_say_nothing(monkeypatch):
    monkeypatch.setattr(memory_need, "available_memory", lambda device: 0.0)
    run(config.parse(BASE | {"network": {"sizes": [64, 4, 10]}}))


@linux
def test_command_line_under_a_limit_of_addresses(tmp_path):
    file = tmp_path / "large.toml"
    file.write_text(
        "network.sizes = [64, 2048, 2048, 10]\nhardware.chips = 64\n"
        'hardware.preset = "ecram_li"\ndata.limit = 32\nlearning.batch = 16\n'
    )
    arguments = [sys.executable, "-c", LIMITED, "run", str(file), "-o", str(tmp_path / "a.h5")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    code, grown = done.stdout.split()[-2:]
    assert code == "2"
    assert int(grown) < 1e8
    assert done.stderr.startswith("error: memory: 64 replicas")
    assert len(done.stderr.strip().splitlines()) == 1


def test_groups_of_processes_bound_what_is_available(tmp_path):
    me = tmp_path / "cgroup"
    me.write_text("0::/a/b\n")
    for name, limit in (("a", "1000000"), ("a/b", "max")):
        folder = tmp_path / "root" / name
        folder.mkdir(parents=True)
        (folder / "memory.max").write_text(limit)
        (folder / "memory.current").write_text("300000")
        (folder / "memory.stat").write_text("anon 1\ninactive_file 50000\n")
    assert available_memory._of_groups(tmp_path / "root", me) == [750000.0]
    me.write_text("5:cpu:/x\n4:memory:/a\n")
    old = tmp_path / "root" / "memory" / "a"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("1000")
    (old / "memory.usage_in_bytes").write_text("400")
    assert available_memory._of_groups(tmp_path / "root", me) == [600.0]


def test_tensors_are_counted():
    given = torch.zeros(100)
    with TensorMemory(ignored=(given,), smallest=10) as memory:
        kept = given + 1
        (kept * 2).sum()
        torch.zeros(9)
        assert memory.live() == 400
        assert memory.peak == 800
        del kept
        assert memory.live() == 0
