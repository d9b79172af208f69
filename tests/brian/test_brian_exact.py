"""Brian2 takes the very Euler steps of the continuous backend: every state, weight and bias."""

import shutil

import pytest
import torch
import trajectories as tr
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pcsim.backends.brian import RECORD, BrianBackend, build
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Gaussian
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network

LIMIT = 1e-12
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
LAGS = {"tau_inter": 0.2, "tau_apical": 0.3, "look_inter": 0.1, "look_apical": 0.05}
CIRCUITS = {
    "algebraic": {},
    "error_units": {"kind": "error_units", "tau_err": 0.3},
    "dendritic": {"kind": "dendritic", "conductances": GENERAL},
    "lags": {
        "kind": "dendritic",
        "conductances": GENERAL,
        "inhibition": 0.9,
        "inter_rate": 0.8,
        **LAGS,
    },
}
SIZES = [3, 4, 2]
UNEQUAL = torch.tensor([1.0, 1.3], dtype=torch.float64).view(2, 1, 1)
"""τ_x of two chips."""


def setting(**circuit):
    return Circuit(**{"tau_w": 5.0, **circuit})


def compared(network, circuit, mode="supervised", steps=500, **more):
    """Run both over a switch of samples with carry-over; return the differences by name."""
    pair = tr.Pair.of(network, circuit, mode=mode, **more)
    chips = pair.brian.chips
    pair.both(lambda engine: engine.load(tr.clamps(network, mode, chips)))
    pair.both(lambda engine: engine.feedforward())
    start = pair.brian.theta().flat
    pair.advance(steps, {steps // 2: tr.clamps(network, mode, chips, 1)})
    assert float(pair.brian.states()["x1"].abs().max()) < 10, "control: nothing blew up"
    if mode != "free":
        moved = (pair.brian.theta().flat - start).abs().max()
        assert float(moved) > 0.02, "control: weights have moved"
    theirs, ours = pair.continuous.flow.theta().flat, pair.brian.theta().flat
    assert float((theirs - ours).abs().max()) <= LIMIT
    states, known = pair.brian.states(), pair.continuous.flow.states()
    assert states.keys() == known.keys()
    for name, state in known.items():
        assert float((state - states[name]).abs().max()) <= LIMIT, name
    return pair.differences()


def exact(*arguments, **options):
    found = compared(*arguments, **options)
    assert max(found.values()) <= LIMIT, found
    return found


@pytest.mark.parametrize("transport", ["shared", "random", "kolen_pollack"])
@pytest.mark.parametrize("mode", ["supervised", "generative", "free"])
@pytest.mark.parametrize("kind", CIRCUITS)
def test_trajectories(kind, mode, transport):
    """Two chips with different weights, feedback and τ_x; decay where it matters."""
    network = Network.mlp(SIZES, "tanh", prior=0.2 if mode == "generative" else None)
    circuit = setting(transport=transport, weight_decay=0.1, **CIRCUITS[kind])
    found = exact(network, circuit, mode, tau_x=[UNEQUAL] * 3, seeds=[3, 8])
    expected = {"x1", "err1", "w1", "b1"}
    if circuit.kind == "dendritic":
        expected |= {"apical1", "inter1", "w_inter0", "b_inter0"}
    if transport != "shared":
        expected |= {"w_fb0"}
    assert expected <= found.keys()


@pytest.mark.parametrize("f", ["identity", "sigmoid", "relu", "leaky_relu"])
def test_nonlinearities(f):
    exact(Network.mlp(SIZES, f, f_input=True), setting(), "generative", chips=1)


@pytest.mark.parametrize(
    "circuit",
    [
        {"kind": "error_units", "tau_err": 0.3, "look_err": 0.2},
        {"kind": "dendritic"},
        {"kind": "dendritic", "inter_learned": False, "tau_inter": 0.2},
        {"kind": "dendritic", "conductances": Conductances(g_lk=0.2), "tau_apical": 0.2},
    ],
    ids=["error look-ahead", "unit conductances", "interneurons read W", "apical lag"],
)
def test_more_circuits(circuit):
    exact(Network.mlp([4, 3, 4, 2], "tanh"), setting(**circuit), scale=0.5)


@pytest.mark.parametrize("kind", ["algebraic", "dendritic"])
def test_flat_prior_and_no_biases(kind):
    exact(Network.mlp(SIZES, "tanh", bias=False), setting(kind=kind), "generative", chips=1)


@pytest.mark.parametrize("kind", ["algebraic", "error_units"])
def test_precision(kind):
    network = Network.mlp(SIZES, "tanh", output=Gaussian((0.5, 2.0)), hidden=Gaussian(1.5))
    exact(network, setting(**CIRCUITS[kind]), chips=1)


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # one example takes a second: shrinking would take minutes
    suppress_health_check=list(HealthCheck),
)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    f=st.sampled_from(["identity", "tanh", "sigmoid", "relu", "leaky_relu"]),
    kind=st.sampled_from(list(CIRCUITS)),
    mode=st.sampled_from(["supervised", "generative", "free"]),
    bias=st.booleans(),
    chips=st.integers(1, 3),
)
def test_random_networks(sizes, f, kind, mode, bias, chips):
    prior = 0.1 if mode == "generative" else None
    network = Network.mlp(sizes, f, bias=bias, prior=prior)
    pair = tr.Pair.of(network, setting(**CIRCUITS[kind]), chips=chips, mode=mode, gain=0.5)
    pair.both(lambda engine: engine.load(tr.clamps(network, mode, chips)))
    pair.advance(80)
    found = pair.differences()
    assert max(found.values()) <= LIMIT, found


@pytest.mark.parametrize("kind", ["error_units", "lags"])
def test_a_stream_of_separate_calls(kind):
    """The label is let go and clamped again; states carry over between calls of `advance`."""
    network = Network.mlp([4, 5, 4, 3], "tanh")
    pair = tr.Pair.of(network, setting(**CIRCUITS[kind]))
    for sample in range(3):
        data = tr.clamps(network, "supervised", 2, sample)
        pair.both(lambda engine, data=data: engine.load([None, *data[1:]]))
        pair.advance(20)
        pair.both(lambda engine, data=data: engine.load([data[0][:1], *data[1:]]))
        if sample == 1:
            pair.both(lambda engine: engine.feedforward())
        pair.advance(30)
    assert pair.brian.time == pytest.approx(15.0)
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


# -- the order inside a time step ------------------------------------------------------------------


def short(rearrange, kind):
    """Return the largest difference after `rearrange` has changed the Brian2 objects."""
    network = Network.mlp([4, 5, 4, 3], "tanh")
    params = tr.parameters(network, 1)
    own = Parameters(network, params.flat.clone())
    circuit = setting(**CIRCUITS[kind])
    brian = BrianBackend(network, params, circuit, dt=tr.DT)
    chips = Continuous(network, own, circuit, dt=tr.DT)
    rearrange(brian)
    for engine in (brian, chips):
        engine.load(tr.clamps(network, "supervised", 1))
        engine.advance(100)
    pairs = ((chips.flow.states()[f"x{k}"], brian.states()[f"x{k}"]) for k in (1, 2))
    worst = max(float((a - b).abs().max()) for a, b in pairs)
    return max(worst, float((chips.flow.theta().flat - brian.theta().flat).abs().max()))


@pytest.mark.parametrize("kind", CIRCUITS)
@pytest.mark.parametrize("prefixes", [("aaa_", "zzz_"), ("zzz_", "aaa_")])
def test_names_do_not_matter(kind, prefixes):
    def rename(brian):
        for objects, prefix in zip((brian.parts.layers, brian.parts.maps), prefixes, strict=True):
            for number, made in enumerate(objects):
                for part in (made, *made.contained_objects):
                    # the last shall be the first, among objects of one kind too
                    part._name = f"{prefix}{9 - number}_{part.name}"

    assert short(rename, kind) <= LIMIT


@pytest.mark.parametrize("kind", CIRCUITS)
def test_default_orders_would_be_wrong(kind):
    def forget(brian):
        for made in brian.parts.maps:
            made.state_updater.order = 0
            for updater in made.summed_updaters.values():
                updater.order = -1

    assert short(forget, kind) > 1e-6


@pytest.mark.parametrize("kind", CIRCUITS)
def test_scheduling_summary(kind):
    """Rates; predictions; feedback; what monitors see; weights; neurons: in this order."""
    network = Network.mlp([4, 5, 4, 3], "tanh", prior=0.0)
    circuit = setting(**CIRCUITS[kind])
    brian = BrianBackend(network, tr.parameters(network, 1), circuit, dt=tr.DT, mode="generative")
    brian.net.add(*[m for pair in tr.watch(brian) for m in pair if m])
    phases = []
    for entry in brian.net.scheduling_summary().entries:
        name = entry.name
        if entry.when == "before_start":
            phase = "rates"
        elif name.endswith(("mu_post", "basal_post", "inter_in_post")):
            phase = "predict"
        elif name.endswith(("fb_pre", "td_pre")):
            phase = "feedback"
        elif "stateupdater" in name:
            phase = "weights" if "_map" in name else "neurons"
        else:
            phase = "count" if entry.when == "end" else "record"
            assert phase == "count" or entry.order == RECORD
        if phases[-1:] != [phase]:
            phases.append(phase)
    assert phases == ["rates", "predict", "feedback", "record", "weights", "neurons", "count"]


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


# -- compiled code -----------------------------------------------------------------------------


@pytest.mark.skipif(
    not (shutil.which("gcc") or shutil.which("clang")), reason="Cython needs a C++ compiler"
)
@pytest.mark.parametrize("kind", ["algebraic", "lags"])
def test_cython(kind):
    """A small network: each of Brian2's objects is compiled, once per machine."""
    network = Network.mlp([3, 2], "tanh", f_input=True, prior=0.2)
    circuit = setting(transport="kolen_pollack", **CIRCUITS[kind])
    params = tr.parameters(network, 2)
    own = Parameters(network, params.flat.clone())
    brian = BrianBackend(
        network, params, circuit, dt=tr.DT, mode="generative", target="cython", tau_x=[UNEQUAL] * 2
    )
    chips = Continuous(network, own, circuit, dt=tr.DT, mode="generative", tau_x=[UNEQUAL] * 2)
    for engine in (brian, chips):
        engine.load(tr.clamps(network, "generative", 2))
        engine.advance(500)
    for name, state in chips.flow.states().items():
        assert float((state - brian.states()[name]).abs().max()) <= LIMIT, name
    assert float((chips.flow.theta().flat - brian.theta().flat).abs().max()) <= LIMIT
    assert float((brian.theta().flat - params.flat).abs().max()) > 0.02, "control"
