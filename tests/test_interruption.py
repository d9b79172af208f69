"""Ctrl-C and SIGTERM: one sentence, an exit code, and a run that goes on to the same result."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import pcsim
from pcsim import store
from pcsim.backends.continuous import Continuous
from pcsim.backends.discrete import Discrete
from pcsim.cli import main
from pcsim.interruption import Interruption, TerminationRequest

CONFIG = """
[network]
sizes = [64, 5, 10]
[schedule]
T = 3
gamma = 0.2
init = "carry"
[learning]
alpha = 2e-2
batch = 2
epochs = 2
[data]
name = "digits"
limit = 8
limit_test = 20
[record]
every = 1
trajectories = {trajectories}
[run]
backend = "{backend}"
"""
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Write two configurations; return a function that calls the command line in their folder."""
    for backend in ("continuous", "discrete"):
        text = CONFIG.format(backend=backend, trajectories=str(backend == "continuous").lower())
        if backend == "discrete":
            text = text.split("[record]")[0] + text[text.index("[run]") :]
        (tmp_path / f"{backend}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    # A shell may have started us with SIGINT ignored, and Brian2 has a handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", *arguments])
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), capsys.readouterr().err
        return 0, capsys.readouterr().err

    yield run
    signal.signal(signal.SIGINT, before)


def same(one, other):
    assert set(one.variables) == set(other.variables)
    for name in [*one.variables, *one.coords]:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def signals_itself(monkeypatch, kind, method, at, number):
    """Send this process a signal in the middle of a call."""
    original, calls = getattr(kind, method), []

    def calling(self, *arguments, **options):
        calls.append(1)
        if len(calls) == at:
            os.kill(os.getpid(), number)
        return original(self, *arguments, **options)

    monkeypatch.setattr(kind, method, calling)


@pytest.mark.parametrize("number", CODES)
@pytest.mark.parametrize(
    ("backend", "kind", "method"),
    [("continuous", Continuous, "advance"), ("discrete", Discrete, "batch")],
)
def test_a_run_stops_between_steps_and_goes_on(
    call, tmp_path, monkeypatch, backend, kind, method, number
):
    assert call("run", f"{backend}.toml", "-o", "whole.h5")[0] == 0
    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        signals_itself(patch, kind, method, 6, number)
        code, err = call("run", f"{backend}.toml", "-o", "a.h5")
    assert code == CODES[number]
    assert err.startswith("interrupted: after ")
    assert err.endswith("the same command goes on from a.h5.checkpoint\n")
    assert len(err.splitlines()) == 1
    assert signal.getsignal(number) is before
    assert (tmp_path / "a.h5.checkpoint").exists()
    assert not (tmp_path / "a.h5").exists()
    taken = []
    original = getattr(kind, method)

    def counted(self, *arguments, **options):
        taken.append(1)
        return original(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(kind, method, counted)
        assert call("run", f"{backend}.toml", "-o", "a.h5")[0] == 0
    total = 24 if backend == "continuous" else 8
    assert len(taken) == total - 6, "it went on behind the step that was under way"
    same(store.load(tmp_path / "a.h5"), store.load(tmp_path / "whole.h5"))
    if backend == "continuous":
        own, whole = (store.load(tmp_path / f"{n}.trajectories.h5") for n in ("a", "whole"))
        same(own, whole)


@pytest.mark.parametrize("number", CODES)
def test_check_sweep_and_experiment_end_in_one_sentence(call, tmp_path, monkeypatch, number):
    sweep = (
        tmp_path / "discrete.toml"
    ).read_text() + '[sweep.axes]\n"learning.alpha" = [1e-3, 1e-2]\n'
    (tmp_path / "sweep.toml").write_text(sweep)
    for arguments, kind, method, words in (
        (
            ("check", "continuous.toml", "-o", "c.h5", "--set", "record.trajectories=false"),
            Continuous,
            "advance",
            "of 7 rows; the same command goes on",
        ),
        (("sweep", "sweep.toml"), Discrete, "batch", "points are safe"),
    ):
        with monkeypatch.context() as patch:
            signals_itself(patch, kind, method, 3, number)
            code, err = call(*arguments)
        assert code == CODES[number], arguments
        assert words in err
        assert len(err.splitlines()) == 1

    def stopped(out):
        os.kill(os.getpid(), number)
        time.sleep(5)

    monkeypatch.setattr("pcsim.experiments.devices.study.main", stopped)
    code, err = call("experiment", "devices", "-o", "studies")
    assert code == CODES[number]
    how = "SIGTERM" if number == signal.SIGTERM else "Ctrl-C"
    assert f"experiment was stopped by {how}" in err


def raised(*numbers):
    """Send this process signals while interruptions are kept back; return what comes of it."""
    with Interruption() as stop:
        for number in numbers:
            os.kill(os.getpid(), number)
        assert stop.requested == numbers[0]
        stop.check()


def test_a_second_signal_stops_at_once_and_ignored_ones_stay_ignored(call):
    with pytest.raises(KeyboardInterrupt):
        raised(signal.SIGINT)
    with pytest.raises(TerminationRequest):
        raised(signal.SIGTERM)
    with pytest.raises(TerminationRequest):
        raised(signal.SIGINT, signal.SIGTERM)  # else `check` would raise what came first
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interruption() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested is None
    finally:
        signal.signal(signal.SIGTERM, before)


MOMENTS = {
    "half a row": """
        def torn(self, rows):
            if self.rows == 9:
                self._file.seek(0, 2)
                self._file.write(bytes(self.dtype.itemsize // 2))
                os.kill(os.getpid(), signal.SIGKILL)
            append(self, rows)
        append, Journal.append = Journal.append, torn
        """,
    "half a checkpoint": """
        def torn(path, image):
            if ".checkpoint" in str(path) or len(calls) == 9:
                path.write_bytes(bytes(image)[: len(image) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            calls.append(1)
            write_new(path, image)
        calls, write_new, files.write_new = [], files.write_new, torn
        """,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_it_writes(call, tmp_path, moment):
    """SIGKILL with half of something on the disk, a checkpoint at every step before: it goes on."""
    assert call("run", "continuous.toml", "-o", "whole.h5")[0] == 0
    code = f"""
        import os, signal, sys
        from pcsim.runner import checkpoint
        from pcsim.cli import main
        from pcsim.store import files
        from pcsim.store.journal import Journal
        {MOMENTS[moment].strip()}
        checkpoint.SECONDS = -1
        sys.argv = ["pcsim", "run", "continuous.toml", "-o", "a.h5"]
        main()
        """
    folder = str(Path(pcsim.__file__).parents[1])
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": folder}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    killed = subprocess.run(
        command, capture_output=True, cwd=tmp_path, env=environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (tmp_path / "a.h5.checkpoint").exists()
    assert (tmp_path / "a.trajectories.h5.partial").exists()
    recorded = store.load(tmp_path / "a.trajectories.h5", partial=True)
    assert 3 <= len(recorded["time"]) <= 10, "control: it was killed in the middle"
    assert call("run", "continuous.toml", "-o", "a.h5")[0] == 0
    for name in ("{}.h5", "{}.trajectories.h5"):
        same(store.load(tmp_path / name.format("a")), store.load(tmp_path / name.format("whole")))
