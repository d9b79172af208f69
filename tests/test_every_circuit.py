"""Every circuit there is goes through run, sweep, compare, check and report, on both engines."""

import sys

import pytest

from pcsim import cli, store
from pcsim.circuit import KINDS

NEEDED = {
    "error_units": "tau_err = 0.1",
    "sacramento": "conductances = { g_som = 0.5 }",
    "spiking": "tau_err = 0.1\ntau_s = 0.5",
}
CONFIG = """
[network]
sizes = [64, 5, 10]
bias = false
[circuit]
kind = "{kind}"
{needed}
[schedule]
init = "carry"
[solver]
dt = 0.05
[stream]
t_pres = 0.2
[learning]
alpha = 1e-3
batch = 1
epochs = 1
[data]
name = "digits"
limit = 6
limit_test = 10
validation = 1
[run]
backend = "{backend}"
dtype = "float64"
seeds = [0, 1, 2]
"""
AXES = '[sweep.axes]\n"learning.alpha" = [1e-3, 2e-3]\n'


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def typed(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return typed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_verb(call, tmp_path, kind):
    for backend in ("continuous", "brian"):
        text = CONFIG.format(kind=kind, needed=NEEDED.get(kind, ""), backend=backend)
        (tmp_path / f"{backend}.toml").write_text(text)
        (tmp_path / f"{backend}_sweep.toml").write_text(text + AXES)
        code, out, err = call("run", f"{backend}.toml", "--out", f"{backend}.h5")
        assert code == 0, err
        assert kind in out
        code, _, err = call("sweep", f"{backend}_sweep.toml")
        assert code == 0, err
        folder = tmp_path / "out" / f"{backend}_sweep.sweep"
        assert store.load(folder / "sweep.h5")["learning.alpha"].tolist() == [1e-3, 2e-3]
        code, _, err = call("report", f"{backend}.h5")
        assert code == 0, err
        assert kind in (tmp_path / f"{backend}.html").read_text()
        flags = ("--no-twins", "--no-search", "--out", f"check_{backend}.h5")
        code, out, err = call("check", f"{backend}.toml", *flags)
        assert code in (0, 3, 4), err
        assert "stored in" in out
    code, _, err = call("compare", "continuous.h5", "brian.h5", "--out", "gap.h5")
    assert code == 0, err
    assert (store.load(tmp_path / "gap.h5")["gap"] == 0).all(), "engines agree to round-off"
