"""The command line: exit codes, one sentence per error, and a run that survives Ctrl-C."""

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import pcsim
from pcsim import store
from pcsim.cli import demo, experiment, main
from pcsim.errors import ConfigError, InterruptedRunError
from pcsim.runner import checkpoint

CONFIG = """
[network]
sizes = [64, 8, 10]
[schedule]
T = 4
gamma = 0.3
[learning]
optimizer = "adam"
alpha = 5e-3
batch = 50
epochs = 4
[data]
limit = 200
[run]
seeds = [0, 1]
dtype = "float64"
"""
ENTRY = "from pcsim.cli import main; main()"
# A real signal at a known moment: while the third epoch is under way. A shell may have started us
# with SIGINT ignored, which would be inherited.
INTERRUPT = """
import os, signal
from pcsim.backends.discrete import Discrete
from pcsim.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
original = Discrete.batch
def batch(self, clamps):
    original(self, clamps)
    if self.batches == 10:
        os.kill(os.getpid(), signal.SIGINT)
Discrete.batch = batch
main()
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Be in an empty folder with one configuration, as a user would."""
    (tmp_path / "small.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    # a child in another folder must import the same source
    monkeypatch.setenv("PYTHONPATH", str(Path(pcsim.__file__).parents[1]))
    return tmp_path


@pytest.fixture
def call(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command line in this process; return exit code, stdout and stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["/usr/bin/pcsim", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        return int(code or 0), *capsys.readouterr()

    return run


def child(*arguments: str, code: str = ENTRY) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def refused(answer: tuple[int, str, str], words: str) -> None:
    code, out, err = answer
    assert code == 2
    assert "stored in" not in out
    assert err.startswith("error: ")
    assert len(err.splitlines()) == 1
    assert re.search(words, err), err


def test_run_writes_the_result_and_prints_a_table(folder, call):
    code, out, err = call("run", "small.toml")
    assert (code, err) == (0, "")
    result = store.load(folder / "out" / "small.h5")
    accuracy = 100 * result["accuracy"]
    assert "ipc on digits: test accuracy, %" in out
    for number in (accuracy.mean(), accuracy.min(), accuracy.max()):
        assert f"{number:.4g}" in out
    assert f"{accuracy.std(ddof=1):.3g}" in out
    assert "stored in out/small.h5" in out
    assert result.attrs["command_line"] == "pcsim run small.toml"
    assert not checkpoint.path_for(folder / "out" / "small.h5").exists()


def test_a_result_is_not_replaced_unless_told(folder, call):
    path = folder / "a.h5"
    assert call("run", "small.toml", "--out", "a.h5")[0] == 0
    before = path.read_bytes()
    again = call("run", "small.toml", "-o", "a.h5", "--set", "learning.epochs=1")
    refused(again, r"a\.h5: there is a result already; give another name, or --overwrite")
    assert path.read_bytes() == before
    replace = ("--set", "learning.epochs=1", "--overwrite")
    assert call("run", "small.toml", "-o", "a.h5", *replace)[0] == 0
    assert store.load(path)["test_accuracy"].shape == (2, 1)


@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
def test_grid_cells_are_rows(call, folder):
    changes = ("--set", "grid.alpha=[1e-3, 5e-3]", "--set", "grid.gamma=[0.25]")
    code, out, _ = call("run", "small.toml", *changes)
    assert code == 0
    values = 100 * store.load(folder / "out/small.h5")["accuracy"]
    rows = [re.split(r"\s*│\s*", line.strip("│ ")) for line in out.splitlines() if "│" in line]
    assert [row[:3] for row in rows] == [
        ["0.001", "0.25", f"{values[0, 0].mean():.4g}"],
        ["0.005", "0.25", f"{values[1, 0].mean():.4g}"],
    ]


@pytest.mark.parametrize("change", ["learning.alpha=1e30", "data.mode=generative"])
def test_other_ends_of_a_run_are_no_errors(call, change):
    """Divergence in all replicas, and a mode without accuracy, under warnings as errors."""
    sizes = "network.sizes=[8, 64]" if "generative" in change else "run.dtype=float32"
    code, out, err = call("run", "small.toml", "--set", change, "--set", sizes)
    assert (code, err) == (0 if "generative" in change else 4, "")
    assert ("energy per sample" in out) == ("generative" in change)
    assert ("2 of 2 replicas diverged" in out) == ("generative" not in change)


@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
def test_one_diverged_replica_is_said_and_is_no_failure(call, folder):
    changes = ("--set", "grid.alpha=[1e-3, 1e30]", "--set", "run.dtype=float32")
    code, out, _ = call("run", "small.toml", *changes)
    assert code == 0
    assert "2 of 4 replicas diverged" in out


@pytest.mark.filterwarnings("ignore:will blow up")
@pytest.mark.parametrize("kind", ["continuous", "automatic"])
@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
def test_other_runs_that_diverge_do_not_end_well(call, kind):
    changes = ["learning.optimizer=sgd", "learning.alpha=1e6", "data.limit=50", "run.seeds=[0]"]
    if kind == "automatic":
        changes += ["run.automatic=true", "learning.batch=0", "convergence.max_steps=300"]
    else:
        changes += ["run.backend=continuous", "learning.epochs=1"]
    code, out, _ = call("run", "small.toml", *(p for c in changes for p in ("--set", c)))
    assert code == 4
    assert "1 of 1 replicas diverged" in out


def test_exit_codes_are_documented(call):
    _, out, _ = call("--help")
    text = re.sub(r"[\s│]+", " ", out)
    words = (
        "1 a bad data file",
        "2 refused",
        "3 trains with loss or fails",
        "4 stored, but every replica",
    )
    assert all(word in text for word in words)


@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
def test_automatic_run_prints_its_outcome(call, folder):
    changes = ["run.automatic=true", "learning.batch=0", "learning.optimizer=sgd", "data.limit=20"]
    changes += ["learning.alpha=0.05", "learning.reduction=mean", "convergence.max_steps=60"]
    arguments = [part for change in changes for part in ("--set", change)]
    code, out, _ = call("run", "small.toml", *arguments)
    assert code == 0
    result = store.load(folder / "out/small.h5")
    assert out.count("descending") == 2
    assert f"{result['energy'][1, -1]:.4g}" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "none.toml"], r"none\.toml: there is no such file"),
        (["run", "small.toml", "--set", "learning.alpha=-1"], r"learning\.alpha: must be greater"),
        (["run", "small.toml", "--set", "learning.alpha"], "write it as section.field=value"),
        (["run", "small.toml", "--set", "data.name=digit"], r"did you mean 'digits'"),
        (["run", "small.toml", "--set", "network.sizes=[3, 10]"], r"network\.sizes: the data has"),
        (["run", "small.toml", "--set", "run.device=abacus"], r"run\.device: 'abacus' cannot"),
        (["experiment", "nonsense"], "experiment: there is no 'nonsense'; choose one of "),
    ],
)
@pytest.mark.filterwarnings("ignore::pcsim.meaning.LeftOutWarning")
def test_what_a_user_can_get_wrong_is_one_sentence(call, arguments, words):
    refused(call(*arguments), words)


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("run", "[out/CONFIG.h5]"),
        ("sweep", "a [sweep] section"),
        ("check", "[the embedded digits]"),
    ],
)
def test_brackets_in_a_help_text_are_shown(call, verb, words):
    code, out, _ = call(verb, "--help")
    assert code == 0
    assert words in re.sub(r"[\s│]+", " ", out)  # the table may break a line


def test_experiments_that_exist_are_named(call):
    _, _, err = call("experiment", "nonsense")
    assert all(name in err for name in experiment.names())


@pytest.mark.slow
def test_debug_shows_the_traceback(folder, call):
    (folder / "bad.toml").write_text("network.sizes = [64, 0]")
    refused(call("run", "bad.toml"), r"bad\.toml: network\.sizes\.1: must be greater")
    loud = child("--debug", "run", "bad.toml")
    assert loud.returncode == 1
    assert loud.stderr.startswith("Traceback")
    assert "ConfigError: bad.toml: network.sizes.1: must be greater" in loud.stderr


def test_debug_may_stand_anywhere(folder, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pcsim", "run", "none.toml", "--debug"])
    with pytest.raises(ConfigError, match="no such file"):
        main()


def test_system_errors_are_sentences_too(call, monkeypatch):
    def full(*args: object, **kwargs: object) -> None:
        raise MemoryError("64 GiB wanted")

    monkeypatch.setattr(import_module("pcsim.run"), "run", full)
    refused(call("run", "small.toml"), "MemoryError: 64 GiB wanted")


def test_damaged_checkpoint_is_one_sentence(folder, call, monkeypatch):
    out = folder / "a.h5"

    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rich.progress.Progress.update", stop)
        code, _, err = call("run", "small.toml", "-o", "a.h5")
    assert code == 130
    kept = checkpoint.path_for(out)
    whole = kept.read_bytes()
    for size in (len(whole) // 2, 100, 0):
        kept.write_bytes(whole[:size])
        code, _, err = call("run", "small.toml", "-o", "a.h5")
        assert code == 2
        assert len(err.splitlines()) == 1
        assert re.search(r"a\.h5\.checkpoint: is (damaged|not an HDF5 file)", err)
    assert not out.exists()


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_done_and_the_same_command_goes_on(folder, call):
    arguments = ("run", "small.toml", "-o", "a.h5")
    stopped = child(*arguments, code=INTERRUPT)
    assert stopped.returncode == 130
    assert stopped.stderr == (
        "interrupted: after 2 of 4 epochs; the same command goes on from a.h5.checkpoint\n"
    )
    assert sorted(p.name for p in folder.iterdir()) == ["a.h5.checkpoint", "small.toml"]
    resumed = child(*arguments)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert not (folder / "a.h5.checkpoint").exists()
    assert call("run", "small.toml", "-o", "b.h5")[0] == 0
    one, other = store.load(folder / "a.h5"), store.load(folder / "b.h5")
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_debug_does_not_lose_an_interrupted_run(folder, monkeypatch):
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rich.progress.Progress.update", stop)
    monkeypatch.setattr(sys, "argv", ["pcsim", "--debug", "run", "small.toml", "-o", "a.h5"])
    with pytest.raises(InterruptedRunError, match="after 1 of 4"):
        main()
    assert (folder / "a.h5.checkpoint").exists()


@pytest.mark.slow
def test_demo_goes_from_chips_to_a_report(folder, call, monkeypatch):
    monkeypatch.setattr(demo, "SIZES", {"chips": 2, "limit": 64, "seeds": 2})
    code, out, err = call("demo")
    assert code == 0, err
    made = folder / "out/demo"
    noisy = store.load(made / "check_noisy_6bit.h5")
    assert noisy["accuracy"].shape == (3, 2)
    assert noisy["twin.BP_on_the_array.this_chip"].shape == (3, 2)
    assert (made / "check_ecram_li.png").read_bytes().startswith(b"\x89PNG")
    assert store.load(made / "phase.sweep/sweep.h5")["accuracy"].shape == (4, 4, 1, 4)
    page = (made / "report.html").read_text(encoding="utf-8")
    for word in ("noisy_6bit", "ecram_li", "phase", "compare"):
        assert word in page
    assert "the noisy 6-bit chip" in out
    assert "report.html" in out
    difference = re.search(r"differ by (\S+) at most", out)
    assert difference
    assert float(difference[1]) < 1e-12
    kept = {p: p.stat().st_mtime_ns for p in made.rglob("*")}
    monkeypatch.setattr(demo, "_check", stop_at_folder)
    with pytest.raises(ZeroDivisionError, match="out/demo-2"):
        main()  # may be repeated, in a folder of its own
    assert kept == {p: p.stat().st_mtime_ns for p in made.rglob("*")}


def stop_at_folder(name: str, out: Path, *args: object, **kwargs: object) -> None:
    raise ZeroDivisionError(out)


def test_version(call):
    assert call("--version") == (0, f"pcsim {pcsim.__version__}\n", "")
