"""C++ standalone: built once, streamed, exact; Brian2's device is as it was; refusals."""

import brian2
import numpy as np
import pytest
import torch
import trajectories as tr
from brian2.devices.device import previous_devices

from pcsim import config, run
from pcsim.backends.brian import BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Categorical
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network

LIMIT = 1e-12
SIZES = [4, 5, 4, 3]
LAGS = Circuit(
    kind="dendritic",
    conductances=Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3),
    tau_inter=0.2,
    tau_apical=0.3,
    look_inter=0.1,
    look_apical=0.05,
    inhibition=0.9,
    inter_rate=0.8,
    transport="kolen_pollack",
    weight_decay=0.1,
    tau_w=5.0,
)


def surroundings():
    """Everything global that a build could change."""
    preferences = {name: str(brian2.prefs[name]) for name in brian2.prefs.keys()}  # noqa: SIM118
    return brian2.get_device(), list(previous_devices), brian2.defaultclock.dt, preferences


@pytest.mark.parametrize(
    ("circuit", "hidden", "fused"),
    [(Circuit(tau_w=5.0), Categorical(), False), (LAGS, None, True)],
    ids=["synapses, categorical", "fused, dendritic"],
)
def test_exact(circuit, hidden, fused, tmp_path):
    """Two chips, labels let go and clamped, forward passes and resets: 510 steps in all."""
    network, before = Network.mlp(SIZES, "tanh", hidden=hidden), surroundings()
    params = tr.parameters(network, 2)
    chips = BrianBackend(
        network, params, circuit, dt=tr.DT, target="standalone", dense=fused, folder=tmp_path
    )
    assert surroundings() == before
    own = Parameters(network, params.flat.clone())
    exact = Continuous(network, own, circuit, dt=tr.DT, fast=False)
    for part in range(3):  # the second and third part find states and weights as they were left
        for engine in (chips, exact):
            data = tr.clamps(network, "supervised", 2, part)
            engine.load([None, *data[1:]])
            if part != 1:
                engine.feedforward()
            engine.advance(50)
            engine.load(data)
            if part == 2:
                engine.zero_states()
            engine.advance(120)
        assert chips.steps == exact.steps
        expected, seen = exact.flow.states(), chips.states()
        assert expected.keys() == seen.keys()
        for name, state in expected.items():
            assert float((state - seen[name]).abs().max()) < LIMIT, name
        assert float((exact.flow.theta().flat - chips.theta().flat).abs().max()) < LIMIT
        torch.testing.assert_close(chips.flow.energy_by_node(), exact.flow.energy_by_node())
    assert float((chips.theta().flat - params.flat).abs().max()) > 0.1, "control: it has learned"
    chips.feedforward()  # with no step after it: by Python instead of C++
    exact.feedforward()
    for name, state in exact.flow.moving().items():
        assert float((state - chips.flow.moving()[name]).abs().max()) < LIMIT, name
    assert surroundings() == before
    assert (tmp_path / "main").exists()


def test_digits_learn_the_same():
    """`pcsim run` by streaming: same accuracy, same weights as the continuous backend."""
    fields = {
        "network": {"sizes": [64, 12, 10]},
        "schedule": {"T": 6, "gamma": 0.3, "init": "ff"},
        "learning": {"alpha": 2e-2, "batch": 1, "epochs": 2},
        "data": {"name": "digits", "limit": 300},
        "stream": {"t_settle": 0.3, "tau_label": 0.2},
        "run": {"dtype": "float64"},
        "record": {"every": 210},
    }
    results = {}
    for backend in ("brian", "continuous"):
        more = {"run": {"backend": backend, "dtype": "float64", "seeds": [0]}}
        if backend == "brian":
            more["brian"] = {"target": "standalone"}
        results[backend] = run(config.parse(fields | more))
    ours, theirs = results["brian"], results["continuous"]
    assert float(np.abs(ours["parameters"] - theirs["parameters"]).max()) < 1e-9
    np.testing.assert_array_equal(ours["test_accuracy"], theirs["test_accuracy"])
    assert float(theirs["accuracy"][0]) > 0.6, "control: it learned (chance is 0.1)"
    np.testing.assert_array_equal(ours.coords["time"], theirs.coords["time"])
    for name in ("energy", "error_rms", "weight_change"):
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-9, err_msg=name)


def small(**options):
    network = Network.mlp([3, 4, 2], "tanh")
    params = tr.parameters(network, 1)
    return BrianBackend(
        network, params, Circuit(tau_w=1.0), dt=tr.DT, target="standalone", **options
    )


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match=r"no 'make' on the path.*install a compiler"):
        small()


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UnsupportedError, match=r"brian.folder.*cannot be written"):
        small(folder=tmp_path / "file" / "build")


def test_what_does_not_compile(monkeypatch, tmp_path):
    """The device is put back after a failure too."""
    monkeypatch.setenv("CXX", "false")
    before = surroundings()
    with pytest.raises(UnsupportedError, match=r"could not be compiled.*target 'numpy'"):
        small(folder=tmp_path)
    assert surroundings() == before
