"""Euler steps of the flow are iPC: γ = dt/τ_x, α = dt/τ_w, the same arithmetic."""

import math

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim import config, run
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Categorical, Gaussian
from pcsim.network import Network

STEPS, DT, TAU_X, TAU_W = 40, 0.2, 0.8, 25.0
ENERGIES = {
    "unit": {},
    "fixed": {"output": Gaussian(0.8), "hidden": Gaussian(2.0)},
    "learned": {"output": Gaussian(learned=True), "hidden": Gaussian(learned=True)},
    "labels": {"output": Categorical()},
}
CONVENTIONS = {
    "pre": {},
    "pre f_input": {"f_input": True},
    "post": {"convention": "post"},
    "post f_output": {"convention": "post", "f_output": True},
}
MODES = {"supervised": {}, "generative": {}, "prior": {"prior": 0.3}}


def discrete(network, mode, gamma, alpha, *, fast=False, steps=STEPS, decay=0.0, samples=4):
    params = oracle.random_parameters(network, 3, gain=0.7)
    schedule = Schedule(rule="ipc", T=steps, gamma=gamma, init="carry", fast=fast)
    optimizer = oracle.optimizer(params, alpha, decay=decay)
    runner = Discrete(network, params, schedule, optimizer, mode=mode)
    runner.start(oracle.clamps_of(network, mode, 3, samples, seed=1))
    for index in runner.field.free:
        generator = torch.Generator().manual_seed(index)
        shape = runner.field.x[index].shape
        runner.field.x[index].copy_(torch.randn(shape, generator=generator, dtype=oracle.F64))
    for _ in range(steps):
        runner.step()
    runner.finish()
    return runner


def flowing(network, mode, *, fast=False, solver="euler", samples=4, steps=STEPS, **circuit):
    params = oracle.random_parameters(network, 3, gain=0.7)
    circuit = {"tau_x": TAU_X, "tau_w": TAU_W} | circuit
    chips = ct.engine(network, params, DT, solver, mode=mode, fast=fast, **circuit)
    chips.load(oracle.clamps_of(network, mode, 3, samples, seed=1))
    for index in chips.flow.field.free:
        generator = torch.Generator().manual_seed(index)
        state = chips.flow.field.x[index]
        state.copy_(torch.randn(state.shape, generator=generator, dtype=oracle.F64))
    chips.advance(steps)
    chips.flow.theta()
    return chips


def differences(runner, chips):
    """Return the largest relative difference of weights and of states."""
    weights = oracle.largest(runner.params.flat - chips.params.flat)
    states = [oracle.largest(runner.field.x[k] - chips.flow.field.x[k]) for k in runner.field.free]
    return weights / oracle.largest(runner.params.flat), max(states)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("kind", ENERGIES)
def test_euler_is_ipc(kind, convention, mode):
    network = Network.mlp(
        [12, 5, 4, 3], "tanh", **ENERGIES[kind], **CONVENTIONS[convention], **MODES[mode]
    )
    held = "supervised" if mode == "supervised" else "generative"
    gamma, alpha = DT / TAU_X, DT / TAU_W
    exact = discrete(network, held, gamma, alpha)
    assert differences(exact, flowing(network, held)) == (0.0, 0.0)
    for fast in (discrete(network, held, gamma, alpha, fast=True),):
        assert max(differences(fast, flowing(network, held, fast=True))) <= 1e-12
    assert max(differences(exact, flowing(network, held, fast=True))) <= 1e-12
    for wrong in ({"tau_x": TAU_X * (1 + 1e-9)}, {"tau_w": TAU_W * (1 + 1e-9)}):
        assert max(differences(exact, flowing(network, held, **wrong))) > 1e-12, "control"


def test_weight_decay_is_that_of_sgd():
    network = Network.mlp([12, 5, 4, 3], "tanh")
    exact = discrete(network, "supervised", DT / TAU_X, DT / TAU_W, decay=0.3)
    assert max(differences(exact, flowing(network, "supervised", weight_decay=0.3))) <= 1e-13
    assert max(differences(exact, flowing(network, "supervised", weight_decay=0.301))) > 1e-6


def test_a_learned_variance_stops_at_its_floor():
    """Without errors ln σ² falls for ever; both backends, and all solvers, hold it at the floor."""
    energy = Gaussian(learned=True, floor=0.2)
    network = Network.mlp([4, 3, 2], "tanh", output=energy, hidden=energy)
    exact = discrete(network, "supervised", DT / TAU_X, 0.05, steps=300)
    euler = flowing(network, "supervised", tau_w=DT / 0.05, steps=300)
    assert max(differences(exact, euler)) <= 1e-12
    rk4 = flowing(network, "supervised", solver="rk4", tau_w=DT / 0.05, steps=300)
    for chips in (euler, rk4):
        variances = torch.cat([v["log_var"] for v in chips.params.of if "log_var" in v], 1).exp()
        assert float(variances.min()) == pytest.approx(0.2, abs=1e-12)


def test_mean_over_the_batch():
    network = Network.mlp([12, 5, 4, 3], "tanh")
    exact = discrete(network, "supervised", DT / TAU_X, DT / TAU_W / 4)
    assert max(differences(exact, flowing(network, "supervised", scale=0.25))) <= 1e-14
    assert max(differences(exact, flowing(network, "supervised", scale=0.25, fast=True))) <= 1e-12


@pytest.mark.parametrize("kind", ["unit", "fixed", "learned", "labels"])
@pytest.mark.parametrize("mode", ["supervised", "prior"])
def test_exponential_steps_are_sample_and_hold(kind, mode):
    """Predictions and feedback held over dt while the soma leaks: γ = 1 − e^{−dt/τ}."""
    network = Network.mlp([6, 5, 4, 3], "tanh", **ENERGIES[kind], **MODES[mode])
    held = "supervised" if mode == "supervised" else "generative"
    gamma = 1 - math.exp(-DT / TAU_X)
    exact = discrete(network, held, gamma, DT / TAU_W)
    held_chips = flowing(network, held, solver="exponential")
    assert max(differences(exact, held_chips)) <= 1e-12
    other = discrete(network, held, DT / TAU_X, DT / TAU_W)
    assert max(differences(other, held_chips)) > 1e-4, "control: γ = dt/τ is another map"


@pytest.mark.parametrize("solver", ["euler", "exponential"])
def test_time_constants_of_their_own(solver):
    """τ_x per chip and unit, τ_w per chip and weight, against explicit gradient steps."""
    network = Network.mlp([6, 5, 4, 3], "tanh")
    params = oracle.random_parameters(network, 3, gain=0.7)
    generator = torch.Generator().manual_seed(5)

    def times(*shape):
        return 0.5 + torch.rand(*shape, generator=generator, dtype=oracle.F64)

    tau_x = [times(3, 1, node.units) for node in network.nodes]
    tau_w = 20 * times(*params.flat.shape)
    chips = ct.engine(
        network, params, DT, solver, tau_x_each=tau_x, tau_w_each=tau_w, weight_decay=0.1
    )
    chips.load(oracle.clamps_of(network, "supervised", 3, 4, seed=1))
    ct.stir(chips)
    x = [state.clone() for state in chips.flow.field.x]
    flat = params.flat.clone()
    is_weight = torch.zeros_like(flat)
    for views in params.views(is_weight)[:-1]:
        views["w"].fill_(1.0)
    for _ in range(STEPS):
        for leaf in [flat, *x]:
            leaf.requires_grad_()
        views = params.views(flat)
        energy = oracle.energy(network, views, "supervised", x).sum()
        g_flat, *g_x = torch.autograd.grad(energy, [flat, x[1], x[2]])
        with torch.no_grad():
            for k, g in zip((1, 2), g_x, strict=True):
                gain = DT / tau_x[k] if solver == "euler" else 1 - torch.exp(-DT / tau_x[k])
                x[k] = x[k] - gain * g
            flat = flat - DT / tau_w * (g_flat + 0.1 * is_weight * flat)
        x = [state.detach() for state in x]
    chips.advance(STEPS)
    assert oracle.largest(chips.flow.theta().flat - flat) <= 1e-12
    for k in (1, 2):
        assert oracle.largest(chips.flow.field.x[k] - x[k]) <= 1e-12


# -- one configuration, two backends ---------------------------------------------------------------


def both(**sections):
    base = {
        "network": {"sizes": [64, 8, 6, 10]},
        "schedule": {"rule": "ipc", "T": 6, "gamma": 0.3},
        "learning": {"alpha": 4e-3, "batch": 25, "epochs": 2},
        "data": {"name": "digits", "limit": 100},
        "run": {"dtype": "float64", "seeds": [3, 1]},
    }
    changes = sections | {"run": sections.get("run", {})}
    results = []
    for backend in ("discrete", "continuous"):
        changes["run"] = {**changes["run"], "backend": backend}
        results.append(run(config.changed(config.parse(base), changes))["parameters"])
    return results


CONFIGURATIONS = {
    "plain": {},
    "carry": {"schedule": {"init": "carry"}},
    "zero": {"schedule": {"init": "zero"}},
    "literal": {"schedule": {"fast": False}},
    "single samples": {"learning": {"batch": 1, "alpha": 1e-2}, "data": {"limit": 30}},
    "full batch": {"learning": {"batch": 0, "alpha": 1e-3}},
    "mean": {"learning": {"reduction": "mean", "alpha": 0.1}},
    "decay": {"learning": {"weight_decay": 0.1}},
    "gammas": {"grid": {"gamma": [0.1, 0.4]}},
    "one gamma": {"grid": {"gamma": [0.1]}},
    "alphas": {"grid": {"alpha": [1e-3, 5e-3]}},
    "one alpha": {"grid": {"alpha": [1e-3]}},
    "one decay": {"grid": {"weight_decay": [0.2]}},
    "grid": {"grid": {"alpha": [1e-3, 5e-3], "gamma": [0.1, 0.4]}},
    "labels": {"network": {"output": {"kind": "categorical"}}},
    "variances": {"network": {"hidden": {"learned": True}}},
    "post": {"network": {"convention": "post"}},
    "generative": {"network": {"sizes": [5, 6, 64]}, "data": {"mode": "generative"}},
    "generative carry": {
        "network": {"sizes": [5, 6, 64], "prior": 0.0},
        "data": {"mode": "generative"},
        "schedule": {"init": "carry"},
        "learning": {"batch": 0, "alpha": 1e-3},
    },
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_one_configuration_runs_on_both_backends(name):
    first, second = both(**CONFIGURATIONS[name])
    assert first.shape == second.shape
    np.testing.assert_allclose(second, first, rtol=0, atol=1e-11 * np.abs(first).max())
    assert len({row.tobytes() for row in first.reshape(-1, first.shape[-1])}) == len(
        first.reshape(-1, first.shape[-1])
    ), "control: the replicas differ from each other"
