"""The spiking circuit through every verb, on the digits, by torch and by Brian2."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pcsim import cli, config, run, store
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Spiking
from pcsim.continuous.settled import Settled
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.runner.chip_run import ChipRun

CONFIG = """
[network]
sizes = [64, 12, 10]
[circuit]
kind = "spiking"
tau_x = "10 ms"
tau_err = "0.6 ms"
tau_s = "5 ms"
tau_w = {tau_w}
q = {q}
qe = 0.1
[solver]
dt = 5e-4
[stream]
t_pres = {t_pres}
[schedule]
init = "carry"
[learning]
batch = {batch}
epochs = 1
[data]
name = "digits"
limit = {limit}
limit_test = 60
[run]
backend = "{backend}"
dtype = "float64"
seeds = [1, 2]
"""
SMALL = {"tau_w": 1.0, "q": 0.2, "t_pres": 0.01, "batch": 1, "limit": 6, "backend": "continuous"}
CIRCUIT = Spiking(tau_x=0.01, tau_err=0.002, tau_s=0.005, tau_w=0.5)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(ChipRun, "warn", lambda self: None)  # of errors that ring


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Return a function that runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")

    def typed(*arguments):
        monkeypatch.setattr(sys, "argv", ["pcsim", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return int(end.value.code or 0), *capsys.readouterr()

    return typed


def written(folder, name="spiking", more="", **fields):
    path = folder / f"{name}.toml"
    path.write_text(CONFIG.format(**SMALL | fields) + more)
    return str(path)


def loaded(folder, **fields):
    return config.load(folder / written(folder, **fields))


def test_both_engines_give_the_same_run(tmp_path):
    ours, theirs = (run(loaded(tmp_path, backend=name)) for name in ("continuous", "brian"))
    assert set(ours.variables) == set(theirs.variables)
    assert ours["sender"].tolist() == theirs["sender"].tolist() == ["soma1", "soma2", "apical0"]
    for name, variable in ours.variables.items():
        assert variable.dims == theirs.variables[name].dims
        if variable.values.dtype.kind in "iu":
            assert np.array_equal(variable.values, theirs[name]), name
        elif variable.values.dtype.kind == "f":
            assert np.allclose(variable.values, theirs[name], atol=1e-11, equal_nan=True), name
    assert ours["events.soma2"].shape == (2, 64)
    last = ours["events"][:, -1]
    for k, sender in enumerate(ours["sender"]):
        assert np.array_equal(last[:, k], ours[f"events.{sender}"].mean(1)), sender
    assert (np.diff(ours["events"], axis=1) >= 0).all()
    assert (last > 5).all()


def test_events_are_told_per_sample_and_fewer_are_sent_in_larger_steps(tmp_path):
    alone, side_by_side = (run(loaded(tmp_path, batch=b, limit=6)) for b in (1, 6))
    assert "events" in side_by_side.variables
    per_presentation = alone["events"][:, -1] / 6
    assert np.allclose(side_by_side["events"][:, -1], per_presentation, rtol=0.7)
    coarse = run(loaded(tmp_path, q=0.8))
    assert (coarse["events"][:, -1, 0] < 0.6 * alone["events"][:, -1, 0]).all()


@pytest.mark.parametrize("backend", ["continuous", "brian"])
def test_run_and_report(call, tmp_path, backend):
    code, out, err = call("run", written(tmp_path, backend=backend), "--out", "one.h5")
    assert (code, err) == (0, "")
    assert "spiking" in out
    assert store.load(tmp_path / "one.h5")["events"].shape[2] == 3
    code, out, err = call("report", "one.h5")
    assert (code, err) == (0, "")
    page = (tmp_path / "one.html").read_text()
    assert "spiking" in page
    assert "Somas send rates down" in page


def test_check_says_that_it_trains(call, tmp_path):
    """Trained for a second of a chip's time it does; with steps above every rate it does not."""
    path = Path(written(tmp_path, t_pres=0.03, limit=480, batch=8))
    path.write_text(path.read_text().replace("tau_w = 1.0\n", ""))  # searched
    code, out, _ = call("check", str(path), "--seeds", "3", "--set", "circuit.q=0.1")
    assert code == 0, out
    assert "iPC trains on ideal" in out
    flags = ("--seeds", "3", "--no-twins", "--overwrite")
    code, out, _ = call("check", str(path), "--set", "circuit.q=4.0", *flags)
    assert code != 0
    assert "no verdict" in out, "the ideal chip sends nothing either"


@pytest.mark.parametrize("backend", ["continuous", "brian"])
def test_sweep_and_report(call, tmp_path, backend):
    axes = '[sweep.axes]\n"circuit.q" = [0.1, 0.4]\n'
    path = written(tmp_path, "study", axes, backend=backend)
    code, _, err = call("sweep", path)
    assert code == 0, err
    merged = store.load(tmp_path / "out" / "study.sweep" / "sweep.h5")
    assert merged["circuit.q"].tolist() == [0.1, 0.4]
    assert merged["events"].shape[-1] == 3
    assert (merged["events"][0, ..., -1, 0] > merged["events"][1, ..., -1, 0]).all()
    code, _, err = call("report", "out/study.sweep/sweep.h5")
    assert (code, err) == (0, "")


def test_compare_engines_and_circuits(call, tmp_path):
    torch_run, brian_run = (written(tmp_path, b, backend=b) for b in ("continuous", "brian"))
    code, _, err = call("compare", torch_run, brian_run, "--out", "engines.h5")
    assert (code, err) == (0, "")
    assert (store.load(tmp_path / "engines.h5")["gap"] == 0).all()
    ode = written(tmp_path, "ode").replace(".toml", "")
    text = (tmp_path / "ode.toml").read_text()
    for line in ("tau_s", "q =", "qe ="):
        text = "\n".join(row for row in text.splitlines() if not row.startswith(line))
    (tmp_path / "ode.toml").write_text(text.replace('"spiking"', '"error_units"'))
    code, _, err = call("compare", torch_run, f"{ode}.toml", "--out", "circuits.h5")
    assert (code, err) == (0, "")
    code, _, err = call("report", "circuits.h5")
    assert (code, err) == (0, "")


def test_equations_tell_the_events(call, tmp_path):
    code, out, _ = call("equations", written(tmp_path))
    assert code == 0
    for line in (
        "k_soma = floor((r - r_hat)/q + 0.5) : 1",
        "# event spike, if abs(k_soma) > 0.5: r_hat += q*k_soma",
        "# at event spike: mu_post += w*q*k_soma_pre",
        "# at event apical: fb_pre += w*qe*k_apical_post",
        "# q = 0.2",
    ):
        assert line in out


def test_the_read_out_depends_on_nothing_before_it():
    """Its first answer and a later one to the same inputs are one and the same."""
    network = Network.mlp([3, 5, 4, 2], "tanh")
    params = initial_parameters(network, [0, 1], torch.float64)
    fine = CIRCUIT.model_copy(update={"q": 1e-3, "qe": 1e-3})
    inputs = torch.as_tensor(np.random.default_rng(2).normal(0, 1, (5, 3)))
    for circuit, least, most in ((fine, 0.0, 0.005), (CIRCUIT, 0.01, 0.5)):
        twin = Continuous(network, Parameters(network, params.flat.clone()), circuit, dt=2.5e-4)
        read = Settled(twin)
        first = read([params.flat], inputs)
        other = read([params.flat], 2 * inputs)
        assert torch.equal(read([params.flat], inputs), first)
        assert float((first - other).abs().max()) > 0.05
        off = float((first - outputs(network, params, inputs)).abs().max())
        assert least <= off < most, "coarse steps are heard in the answer"


def test_chips_that_stop_send_nothing():
    """Of two chips one is stopped: its states, beliefs and counts stay, the other goes on."""
    network = Network.mlp([3, 5, 2], "tanh")
    made = [
        Continuous(network, initial_parameters(network, [0, 1], torch.float64), CIRCUIT, dt=2.5e-4)
        for _ in range(2)
    ]
    rng = np.random.default_rng(4)
    clamps = [torch.as_tensor(rng.normal(0, 1, (2, 1, n))) for n in (2, 3)]
    for engine in made:
        engine.load([clamps[0], None, clamps[1]])
        engine.advance(50)
    made[0].stop(torch.tensor([True, False]))
    before = {n: t.clone() for n, t in (made[0].flow.states() | made[0].flow.events()).items()}
    for engine in made:
        engine.advance(50)
    after, free = (engine.flow.states() | engine.flow.events() for engine in made)
    for name, value in after.items():
        assert torch.equal(value[0], before[name][0]), name
        assert torch.equal(value[1], free[name][1]), name
    assert not torch.equal(free["soma1"][0], before["soma1"][0]), "control"


def test_noise_of_somas_changes_events(tmp_path):
    """White noise acts on the somas as in other circuits; without it nothing differs."""
    base = loaded(tmp_path)
    noisy = config.changed(base, {"circuit": {"sigma_x": 0.5}, "solver": {"name": "maruyama"}})
    quiet = config.changed(base, {"solver": {"name": "maruyama"}})
    a, b, c = run(base), run(quiet), run(noisy)
    assert np.array_equal(a["parameters"], b["parameters"])
    assert not np.array_equal(a["events.soma1"], c["events.soma1"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"solver": {"name": "heun"}}, "solver.name 'heun': events are sent once per time step"),
        ({"solver": {"dt": 0.001}}, "solver.dt: must be no longer than"),
        ({"hardware": {"preset": "ecram_li"}}, "hardware effects are not available"),
        ({"network": {"convention": "post"}}, "network.convention 'post'"),
        ({"run": {"backend": "brian"}, "learning": {"batch": 2}}, "one sample at a time"),
        ({"run": {"backend": "brian"}, "brian": {"target": "standalone"}}, "'standalone'"),
        ({"run": {"backend": "brian"}, "brian": {"products": True}}, "brian.products"),
    ],
    ids=str,
)
def test_refusals(tmp_path, changes, words):
    with pytest.raises((ConfigError, UnsupportedError)) as error:
        run(config.changed(loaded(tmp_path), changes))
    assert words in str(error.value)
