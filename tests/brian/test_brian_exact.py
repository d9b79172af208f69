"""The calls of the backend, one after the other; `tests/conformance` has the steps themselves."""

import pytest
import torch
import trajectories as tr

from pcsim.backends.brian import BrianBackend, build
from pcsim.circuit import Circuit, Conductances
from pcsim.network import Network

LIMIT = 1e-12
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
LAGS = {"tau_inter": 0.2, "tau_apical": 0.3, "look_inter": 0.1, "look_apical": 0.05}
CIRCUITS = {
    "lags": {"kind": "dendritic", "conductances": GENERAL, **LAGS},
    "late": {"kind": "error_units", "tau_err": 0.3, "delay_err": 0.2},
}
SIZES = [3, 4, 2]


def setting(**circuit):
    return Circuit(**{"tau_w": 5.0, **circuit})


@pytest.mark.parametrize("kind", CIRCUITS)
def test_a_stream_of_separate_calls(kind):
    """The label is let go and clamped again; states carry over between calls of `advance`."""
    network = Network.mlp([4, 5, 4, 3], "tanh")
    pair = tr.Pair.of(network, setting(**CIRCUITS[kind]))
    for sample in range(2):
        data = tr.clamps(network, "supervised", 2, sample)
        pair.both(lambda engine, data=data: engine.load([None, *data[1:]]))
        pair.advance(20)
        pair.both(lambda engine, data=data: engine.load([data[0][:1], *data[1:]]))
        if sample == 1:
            pair.both(lambda engine: engine.feedforward())
        pair.advance(30)
    assert pair.brian.time == pytest.approx(10.0)
    found = pair.differences()
    assert max(found.values()) <= LIMIT, found


def test_recall_from_a_part():
    network = Network.mlp(SIZES, "tanh", prior=0.0)
    pair = tr.Pair.of(network, setting(), mode="associative")
    mask = torch.tensor([True, False]).view(1, 1, 2)
    for sample in range(2):
        data = tr.clamps(network, "associative", 2, sample)
        pair.both(lambda engine, data=data: engine.load(data, mask))
        pair.both(lambda engine: engine.feedforward())
        pair.advance(100)
    found = pair.differences()
    assert max(found.values()) <= LIMIT, found
    assert float((pair.brian.states()["x0"] - data[0])[..., 1].abs().min()) > 0, "it moved"


def test_nothing_global_is_touched():
    import brian2

    before = brian2.defaultclock.dt, brian2.prefs.codegen.target, brian2.get_device()
    network = Network.mlp(SIZES, "tanh")
    brian = BrianBackend(network, tr.parameters(network, 1), setting(), dt=tr.DT)
    brian.load(tr.clamps(network, "supervised", 1))
    brian.advance(3)
    assert (brian2.defaultclock.dt, brian2.prefs.codegen.target, brian2.get_device()) == before
    params = tr.parameters(network, 1)
    start = params.flat.clone()
    build(network, setting(), params, codeobj_class=brian.parts.layers[0].codeobj_class)
    assert torch.equal(params.flat, start), "initial weights are read, not moved"
