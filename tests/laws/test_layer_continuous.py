"""Images and sequences in continuous time: Euler is iPC, F falls, errors may lag behind."""

import layer_oracle as oracle
import pytest
import torch
from energy_oracle import copy, optimizer

from pcsim.backends.continuous import Continuous
from pcsim.backends.discrete import Discrete
from pcsim.circuit import Circuit
from pcsim.config import Schedule
from pcsim.errors import UnsupportedError

DT, TAU_X, TAU_W = 0.05, 1.0, 50.0
CHIPS, SAMPLES, STEPS = 2, 3, 25


def chips(network, params, clamps, **options):
    """Return a population at the feed-forward state."""
    options = {"kind": "algebraic", "tau_x": TAU_X, "tau_w": TAU_W} | options
    solver = options.pop("solver", "euler")
    dt = options.pop("dt", DT)
    engine = Continuous(network, params, Circuit(**options), dt=dt, solver_name=solver)
    engine.load(clamps)
    engine.feedforward()
    return engine


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", oracle.NETWORKS)
def test_euler_is_ipc(name, fast):
    network = oracle.NETWORKS[name]()
    start = oracle.random_parameters(network, CHIPS)
    clamps = oracle.clamps_of(network, CHIPS, SAMPLES)
    params = copy(start)
    alpha = DT / TAU_W
    steps = 8 if fast else STEPS  # stiff norms would blow round-off up
    schedule = Schedule(rule="ipc", gamma=DT / TAU_X, T=steps, fast=fast)
    runner = Discrete(network, params, schedule, optimizer(params, alpha))
    runner.start(clamps)
    for step in runner.steps:
        runner.step(step)
    runner.finish()
    engine = chips(network, copy(start), clamps)
    engine.advance(steps)
    theta = engine.flow.theta().flat
    assert oracle.largest(theta - start.flat) > 1e-4
    states = [oracle.largest(runner.field.x[k] - engine.flow.field.x[k]) for k in runner.field.free]
    bound = 1e-12 if fast else 0.0  # leaving out known zeros may change round-off
    assert oracle.largest(theta - params.flat) <= bound
    assert max(states) <= bound


@pytest.mark.parametrize("name", ["average pool, gelu", "causal attention", "layer norm"])
def test_energy_falls_and_solvers_agree(name):
    """RK4 with a large step meets Euler with a small one; the energy is a Lyapunov function."""
    network = oracle.NETWORKS[name]()
    start = oracle.random_parameters(network, CHIPS)
    clamps = oracle.clamps_of(network, CHIPS, SAMPLES)
    coarse = chips(network, copy(start), clamps, solver="rk4", dt=0.02)
    fine = chips(network, copy(start), clamps, dt=0.002)
    energies = []
    for _ in range(12):
        coarse.advance(1)
        energies.append(coarse.flow.energy_by_node().sum(1))
    fine.advance(120)
    assert (torch.stack(energies[1:]).diff(dim=0) < 0).all()
    ends = [e.flow.theta().flat - start.flat for e in (coarse, fine)]
    assert oracle.largest(ends[0] - ends[1]) <= 0.01 * oracle.largest(ends[0])


@pytest.mark.parametrize("name", ["max pool", "post-pool", "Gaussian scores"])
def test_error_units_lag_behind(name):
    """Fast error units come close to algebraic errors, slow ones do not; transparent or not."""
    network = oracle.NETWORKS[name]()
    if name == "Gaussian scores":
        network = oracle.transformer(scores=oracle.GAUSSIAN, output=oracle.GAUSSIAN)
    start = oracle.random_parameters(network, CHIPS)
    clamps = oracle.clamps_of(network, CHIPS, SAMPLES)
    ends = {}
    for tau in (None, 0.02, 0.01, 1.0):
        kind = {} if tau is None else {"kind": "error_units", "tau_err": tau}
        engine = chips(network, copy(start), clamps, dt=0.005, **kind)
        engine.advance(80)
        ends[tau] = engine.flow.theta().flat - start.flat
    size = oracle.largest(ends[None])
    far, near, slow = (oracle.largest(ends[t] - ends[None]) / size for t in (0.02, 0.01, 1.0))
    assert near < 0.6 * far < 0.12
    assert slow > 0.2


def test_kolen_pollack_on_convolutions():
    """The difference of forward and feedback weights shrinks by 1 − λ dt/τ_w per step."""
    network = oracle.NETWORKS["max pool"]()
    start = oracle.random_parameters(network, CHIPS)
    clamps = oracle.clamps_of(network, CHIPS, SAMPLES)
    engine = chips(network, copy(start), clamps, transport="kolen_pollack", weight_decay=20.0)
    feedback, theta = engine.flow.feedback, engine.flow.theta()
    weights = [(theta.of[k]["w"], feedback.of_node(k)) for k in feedback.nodes]
    before = [w - b for w, b in weights]
    engine.advance(STEPS)
    left = (1 - 20.0 * DT / TAU_W) ** STEPS
    for (w, b), gap in zip(weights, before, strict=True):
        assert oracle.largest(w - b - left * gap) <= 1e-12
    assert left < 0.7


def test_other_feedback_than_the_transpose():
    network = oracle.NETWORKS["max pool"]()
    start = oracle.random_parameters(network, CHIPS)
    clamps = oracle.clamps_of(network, CHIPS, SAMPLES)
    moved = {}
    for transport in ("shared", "random", "sign"):
        engine = chips(network, copy(start), clamps, transport=transport)
        engine.advance(STEPS)
        moved[transport] = engine.flow.theta().flat
        alignment = engine.flow.feedback.alignment()
        assert alignment.shape == (CHIPS, 4)
        assert (alignment.min() > 0.5) == (transport != "random")
    for other in ("random", "sign"):
        assert oracle.largest(moved["shared"] - moved[other]) > 1e-4


@pytest.mark.parametrize("make", [oracle.cnn, oracle.transformer])
@pytest.mark.parametrize("kind", ["dendritic", "sacramento"])
def test_other_circuits_refuse_by_name(kind, make):
    network = make()
    conductances = {"conductances": {"g_som": 0.8}} if kind == "sacramento" else {}
    params = oracle.random_parameters(network, 1)
    with pytest.raises(UnsupportedError, match=rf"circuit.kind {kind}: .* only a chain of dense"):
        Continuous(network, params, Circuit(kind=kind, tau_w=1.0, **conductances), dt=0.1)


def test_delays_refuse_by_name():
    circuit = Circuit(tau_w=1.0, delay_fb=0.1)
    network = oracle.cnn()
    with pytest.raises(UnsupportedError, match=r"circuit.delay_fb: only dense layers"):
        Continuous(network, oracle.random_parameters(network, 1), circuit, dt=0.1)
    network = oracle.transformer()
    circuit = Circuit(kind="error_units", tau_w=1.0, tau_err=0.1)
    with pytest.raises(UnsupportedError, match=r"node 0 needs a Gaussian"):
        Continuous(network, oracle.random_parameters(network, 1), circuit, dt=0.1)
