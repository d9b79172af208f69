"""A record at time t holds energies and errors of the state at t, whatever integrates it."""

import numpy as np
import pytest
import torch

from pcsim.backends.brian import BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.runner.recorder import Recorder, distinct
from pcsim.stream import Record

F64 = torch.float64
LEAKY = Conductances(g_lk=0.2, g_B=0.9, g_A=0.7, g_som=0.5)
CIRCUITS = {
    "algebraic": Circuit(tau_w=4.0),
    "error_units": Circuit(kind="error_units", tau_err=0.4, tau_w=4.0),
    "dendritic": Circuit(kind="dendritic", conductances=LEAKY, tau_apical=0.4, tau_w=4.0),
    "sacramento": Circuit(kind="sacramento", conductances=LEAKY, tau_w=4.0),
}
STEPS = 6


def cost(network, theta, x):
    """½‖x − W tanh(x above)‖² of every layer of the first chip, from numbers alone."""
    totals = []
    for k, node in enumerate(network.nodes[:-1]):
        above = x[k + 1] if node.map.f == "identity" else np.tanh(x[k + 1])
        totals.append(0.5 * ((x[k] - above @ theta[k].T) ** 2).sum())
    return np.array(totals)


def recorded(engine, network, clamps):
    """Return recorded energies, and those of the states and weights that were there."""
    recorder, rows = Recorder(engine, Record(every=1), 1), []
    engine.load(clamps)
    engine.feedforward()

    def program():
        for _ in range(STEPS):
            x = [state[0, 0].numpy().copy() for state in present(engine, network, clamps)]
            theta = [views["w"][0].numpy().copy() for views in engine.flow.theta().of[:-1]]
            rows.append(cost(network, theta, x))
            yield
            recorder.after_step()

    engine.drive(program(), STEPS)
    assert recorder.times == pytest.approx(np.arange(STEPS) * engine.dt)
    return np.stack(recorder.rows["energy"])[:, 0], np.stack(rows)


def present(engine, network, clamps):
    moving = engine.flow.moving()
    return [moving.get(f"x{k}", clamps[k]) for k in range(len(network.nodes))]


def world(circuit, dt=0.2, brian=False, solver="euler"):
    network = Network.mlp([3, 4, 4, 2], "tanh", bias=False)
    params = initial_parameters(network, [1], F64)
    params.flat.mul_(1.5)
    rng = np.random.default_rng(2)
    y, u = (torch.as_tensor(rng.standard_normal((1, 1, n))) for n in (2, 3))
    clamps = [y, None, None, u]
    if brian:
        return BrianBackend(network, params, circuit, dt=dt), network, clamps
    return Continuous(network, params, circuit, dt=dt, solver_name=solver), network, clamps


@pytest.mark.parametrize("solver", ["euler", "exponential", "heun", "rk4"])
@pytest.mark.parametrize("kind", CIRCUITS)
def test_the_energy_is_that_of_its_instant(kind, solver):
    found, expected = recorded(*world(CIRCUITS[kind], solver=solver))
    assert np.abs(found - expected).max() < 1e-12
    assert np.abs(found[:-1] - expected[1:]).max() > 1e-4, "control: steps differ"


@pytest.mark.parametrize("kind", ["algebraic", "sacramento"])
def test_the_same_on_brian(kind):
    found, expected = recorded(*world(CIRCUITS[kind], brian=True))
    assert np.abs(found - expected).max() < 1e-12


@pytest.mark.parametrize("solver", ["heun", "rk4"])
def test_looking_back_changes_nothing(solver):
    engines = [world(CIRCUITS["dendritic"], solver=solver) for _ in range(2)]
    for number, (engine, _, clamps) in enumerate(engines):
        engine.look_back()  # before the first step there is nothing to look at
        engine.load(clamps)
        engine.feedforward()
        for _ in range(STEPS):
            engine.advance(1)
            if number:
                engine.look_back()
    one, other = (engine.flow for engine, _, _ in engines)
    assert all(torch.equal(one.moving()[n], s) for n, s in other.moving().items())
    assert all(torch.equal(a, b) for a, b in zip(one.weights, other.weights, strict=True))


def test_weights_that_chips_start_from_alike_are_kept_once():
    flat = torch.tensor([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.5]])
    rows, which = distinct(flat)
    assert len(rows) == 3
    assert torch.equal(rows[which], flat)
    flat[0] = 0.0
    assert rows[which][0].tolist() == [1.0, 2.0], "a copy: what learns leaves it as it was"
