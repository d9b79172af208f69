"""Full batch, smooth f: dF/dt = −Σ τ⁻¹|∂F|², so F never grows, whatever the time constants."""

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.energies import Gaussian
from pcsim.network import Network

NETWORK = Network.mlp([4, 6, 5, 3], "tanh")


def started(dt, solver="rk4", gain=1.0, seed=1, **circuit):
    params = oracle.random_parameters(NETWORK, 2, seed=seed, gain=gain)
    chips = ct.engine(NETWORK, params, dt, solver, **circuit)
    chips.load(oracle.clamps_of(NETWORK, "supervised", 2, 6, seed=seed + 1))
    chips.feedforward()
    ct.stir(chips, 0.8, seed)
    return chips


def energy(chips):
    chips.flow.forces()
    return chips.flow.energy_by_node().sum(1)


def curve(chips, steps):
    energies = [energy(chips)]
    for _ in range(steps):
        chips.advance(1)
        energies.append(energy(chips))
    return torch.stack(energies)


def own_times(seed):
    """Time constants per chip, unit and weight, spread over two decades."""
    generator = torch.Generator().manual_seed(seed)

    def times(*shape):
        return 10 ** (2 * torch.rand(*shape, generator=generator, dtype=ct.F64) - 0.5)

    params = oracle.random_parameters(NETWORK, 2)
    return {
        "tau_x_each": [times(2, 1, node.units) for node in NETWORK.nodes],
        "tau_w_each": times(*params.flat.shape),
    }


TIMES = {"weights fast": {"tau_w": 0.1}, "equal": {"tau_w": 1.0}, "weights slow": {"tau_w": 100.0}}


@pytest.mark.parametrize("name", [*TIMES, "each its own"])
def test_energy_falls_at_the_rate_of_the_gradients(name):
    times = TIMES.get(name) or own_times(3)
    dt = 1e-5 if name == "weights fast" else 1e-4
    chips = started(dt, **times)
    for _ in range(3):
        x = [state.detach().clone().requires_grad_() for state in chips.flow.field.x]
        flat = chips.params.flat.clone().requires_grad_()
        F = oracle.energy(NETWORK, chips.params.views(flat), "supervised", x)
        *g_x, g_flat = torch.autograd.grad(F.sum(), [x[1], x[2], flat])
        tau_x = times.get("tau_x_each", [1.0] * 4)
        tau_w = times.get("tau_w_each", times.get("tau_w"))
        fall = (g_flat**2 / tau_w).sum(1)
        for k, g in zip((1, 2), g_x, strict=True):
            fall = fall + (g**2 / tau_x[k]).sum((1, 2))
        # a one-sided difference of second order, on a copy that runs ahead
        ahead = started(dt, **times)
        copy_state(chips, ahead)
        before = energy(chips)
        ahead.advance(1)
        first = energy(ahead)
        ahead.advance(1)
        second = energy(ahead)
        slope = (-3 * before + 4 * first - second) / (2 * dt)
        assert oracle.largest(slope / fall + 1) <= 1e-4
        assert oracle.largest(F - before) <= 1e-10
        chips.advance(100)


def copy_state(source, target):
    for name, state in source.flow.moving().items():
        target.flow.moving()[name].copy_(state)
    for mine, theirs in zip(source.flow.weights, target.flow.weights, strict=True):
        theirs.copy_(mine)


@pytest.mark.parametrize("name", [*TIMES, "each its own"])
def test_energy_never_grows(name):
    times = TIMES.get(name) or own_times(4)
    dt = 2e-3 if name == "weights fast" else 2e-2
    energies = curve(started(dt, **times), 400)
    assert float(energies.diff(dim=0).max()) <= 1e-12 * float(energies[0].max())
    assert (energies[-1] < 0.9 * energies[0]).all(), "control: it does fall"


@pytest.mark.slow
def test_the_same_with_decay_if_its_cost_is_counted():
    """F + ½λ‖W‖² falls; F alone may rise."""
    chips = started(0.02, gain=2.0, tau_w=1.0, weight_decay=1.0)
    total, alone = [], []
    for _ in range(600):
        F = energy(chips)
        cost = sum(views["w"].square().sum((1, 2)) for views in chips.params.of if "w" in views)
        total.append(F + 0.5 * cost)
        alone.append(F)
        chips.advance(1)
    assert float(torch.stack(total).diff(dim=0).max()) <= 1e-12 * float(total[0].max())
    assert float(torch.stack(alone).diff(dim=0).max()) > 1e-6, "control: the decay must be counted"


CONTROLS = {
    "inhibition": {"kind": "dendritic", "inhibition": 0.5},
    "random feedback": {"transport": "random", "feedback_gain": 2.0},
    "apical lag": {"kind": "dendritic", "tau_apical": 1.0},
    "error lag": {"kind": "error_units", "tau_err": 1.0},
}


@pytest.mark.parametrize("name", CONTROLS)
def test_control_other_circuits_have_no_such_function(name):
    """For each there is a run in which F grows by far more than round-off."""
    # strong weights, and a start in which F falls first: then the flow overshoots the minimum
    chips = started(0.05, "heun", gain=2.0, tau_w=1e3, **CONTROLS[name])
    chips.feedforward()
    energies = curve(chips, 200)
    assert float((energies.diff(dim=0) / energies[0]).max()) > 1e-5


def test_ideal_dendrites_have_it():
    energies = curve(started(0.02, kind="dendritic", tau_w=10.0), 200)
    # Only on the manifold where interneurons predict exactly: they do from the start.
    assert float(energies.diff(dim=0).max()) <= 1e-12 * float(energies[0].max())


def test_the_energy_of_learned_variances_is_that_of_the_errors():
    """E_l of a step belongs to the state before it, the variances of that state included."""
    learned = Gaussian(learned=True)
    network = Network.mlp([2, 3, 2], "tanh", output=learned, hidden=learned)
    params = oracle.random_parameters(network, 2, seed=3)
    chips = ct.engine(network, params, 0.1, tau_w=2.0)
    clamps = oracle.clamps_of(network, "supervised", 2, 3, seed=4)
    chips.load(clamps)
    ct.stir(chips)
    for _ in range(5):
        theta = params.flat.clone()
        states = [chips.flow.states()[f"x{k}"].clone() for k in range(3)]
        expected = oracle.energy(network, params.of, "supervised", states)
        chips.advance(1)
        found = chips.flow.energy_by_node().sum(1)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert not torch.equal(params.flat, theta), "control: the variances have moved"
