"""Continual equilibrium propagation against numpy, scipy, and the gradient of the loss."""

from functools import partial
from itertools import pairwise

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network

SIZES = [4, 5, 4, 3]
DATUM_UP = SIZES[::-1]
DT = 0.05


def started(gain=0.8, samples=3, *, bias=True, dt=DT, solver="euler", size=0.5, **circuit):
    """Return chips in a random state with clamped inputs, and their clamps."""
    network = Network.mlp(SIZES, "tanh", bias=bias)
    params = oracle.random_parameters(network, 2, seed=1, gain=gain)
    chips = ct.engine(network, params, dt, solver, kind="equilibrium", **circuit)
    clamps = oracle.clamps_of(network, "supervised", 2, samples, seed=2)
    chips.load(clamps)
    ct.stir(chips, size)
    return chips, clamps


def released(clamps):
    return [None, *clamps[1:]]


def right_hand_side(chips, clamps, bias=True):
    target = None if clamps[0] is None else clamps[0][0].numpy()
    return ct.equilibrium_rhs(chips, target, clamps[-1][0].numpy(), DATUM_UP, bias)


CIRCUITS = {
    "plain": {"tau_x": 0.7},
    "strong": {"beta": 2.0},
    "negative": {"beta": -0.3},
    "always plastic": {"plastic": "always"},
    "decay": {"weight_decay": 0.3},
    "no biases": {"bias": False},
}


@pytest.mark.parametrize("label", [True, False], ids=["nudged", "free"])
@pytest.mark.parametrize("name", CIRCUITS)
def test_euler_and_flow_against_numpy_and_scipy(name, label):
    fields = CIRCUITS[name]
    for solver, dt, tolerance in (("euler", DT, 1e-12), ("rk4", 0.005, 1e-7)):
        chips, clamps = started(dt=dt, solver=solver, **fields)
        shown = clamps if label else released(clamps)
        chips.load(shown)
        rhs, start = right_hand_side(chips, shown, fields.get("bias", True)), ct.read(chips)
        if solver == "rk4":
            expected = ct.integrate(rhs, start, 1.0)
        else:
            expected = start
            for _ in range(round(1.0 / dt)):
                expected = expected + dt * rhs(0, expected)
        chips.advance(round(1.0 / dt))
        assert ct.largest(expected - start) > 0.05, "something must have moved"
        assert ct.largest(ct.read(chips) - expected) <= tolerance
        weights = len(chips.flow.weights[0][0])
        moved = ct.largest((expected - start)[-weights:])
        plastic = label or fields.get("plastic") == "always" or "weight_decay" in fields
        assert (moved > 1e-3) == plastic


def test_steps_of_tau_x_are_those_of_the_paper():
    """Prototypical setting: s ← ∂Φ/∂s, with Φ = Σ r_k W r_{k+1}, and the nudge at the output."""
    chips, clamps = started(dt=1.0, beta=0.4, tau_w=1e9)
    named, (flat,) = ct.split(ct.read(chips), chips)
    layers = ct.unflatten(flat.copy(), DATUM_UP)
    x, target, source = [named[f"x{k}"] for k in range(3)], clamps[0][0].numpy(), clamps[-1][0]
    source = source.numpy()
    for _ in range(30):
        r = [x[0], np.tanh(x[1]), np.tanh(x[2]), source]
        up = [r[k + 1] @ w.T + b for k, (w, b) in enumerate(layers)]
        x = [
            up[0] + 0.4 * (target - x[0]),
            up[1] + r[0] @ layers[0][0],
            up[2] + r[1] @ layers[1][0],
        ]
    chips.advance(30)
    for k, expected in enumerate(x):
        assert ct.largest(chips.flow.states()[f"x{k}"][0].numpy() - expected) <= 1e-6


def hopfield(x, layers, source):
    """E = Σ ∫ f⁻¹ dr − b r − r W r, written in x: ∫ f⁻¹ dr = x tanh x − ln cosh x."""
    r = [x[0], *(torch.tanh(v) for v in x[1:]), source]
    total = 0.5 * x[0].square().sum() + sum(
        (v * v.tanh() - torch.log(torch.cosh(v))).sum() for v in x[1:]
    )
    for k, (w, b) in enumerate(layers):
        total = total - (r[k] * (r[k + 1] @ w.T + b)).sum()
    return total


def test_the_energy_falls_while_states_relax():
    chips, clamps = started(tau_w=1e9)
    chips.load(released(clamps))
    flat = chips.flow.weights[0][0].numpy()
    layers = [tuple(map(torch.as_tensor, pair)) for pair in ct.unflatten(flat, DATUM_UP)]
    energies = []
    for _ in range(300):
        x = [chips.flow.states()[f"x{k}"][0] for k in range(3)]
        energies.append(float(hopfield(x, layers, clamps[-1][0])))
        chips.advance(1)
    falls = -np.diff(energies)
    assert falls.min() >= -1e-12
    assert falls.sum() > 1


def loss_gradient(flat, clamps):
    """Return dC/dθ at the free rest: autograd through the fixed point, solved by Newton steps."""
    theta = torch.as_tensor(flat).clone().requires_grad_()
    views = Parameters(Network.mlp(SIZES, "tanh"), theta[None]).of
    layers = [(views[k]["w"][0], views[k]["b"][0]) for k in range(3)]
    target, source = clamps[0][0], clamps[-1][0]

    def residual(flat_x, row):
        x = flat_x.split([3, 4, 5])
        r = [x[0], torch.tanh(x[1]), torch.tanh(x[2]), row]
        up = [w @ r[k + 1] + b for k, (w, b) in enumerate(layers)]
        return torch.cat([up[0], up[1] + r[0] @ layers[0][0], up[2] + r[1] @ layers[1][0]]) - flat_x

    total = torch.zeros_like(theta)
    for k, wanted in enumerate(target):
        x = torch.zeros(12, dtype=ct.F64)
        for _ in range(400):
            x = (x + 0.5 * residual(x, source[k])).detach()
        jacobian = torch.autograd.functional.jacobian(partial(residual, row=source[k]), x)
        moved = x - torch.linalg.solve(
            jacobian.detach(), residual(x, source[k])
        )  # dx/dθ = −J⁻¹ ∂residual/∂θ
        cost = 0.5 * (moved[:3] - wanted).square().sum()
        total = total + torch.autograd.grad(cost, theta, retain_graph=True)[0]
    return total.numpy()


def learnt(beta, *, tau_w=1e7, sign=1, settle=40.0, dt=0.2):
    """Return what one presentation adds to the weights, per τ_x/τ_w, and the gradient."""
    chips, clamps = started(0.5, 2, beta=beta, tau_w=tau_w, dt=dt, solver="rk4")
    chips.load(released(clamps))
    chips.advance(round(settle / dt))
    before = chips.flow.weights[0][0].clone()
    chips.load(clamps)
    chips.advance(round(40.0 / dt))
    change = sign * (chips.flow.weights[0][0] - before).numpy() * tau_w
    return change, loss_gradient(before.numpy(), clamps)


def error_of(beta, **options):
    change, gradient = learnt(beta, **options)
    assert np.abs(gradient).max() > 0.1
    return np.linalg.norm(change + gradient) / np.linalg.norm(gradient)


@pytest.mark.slow
def test_a_weak_nudge_learns_the_gradient_of_the_loss():
    errors = [error_of(beta) for beta in (0.2, 0.05, 0.0125)]
    assert errors[2] < 0.02
    for large, small in pairwise(errors):
        assert 3 < large / small < 5, "the error is of first order in β"
    # The mean over both signs of the nudge is of second order.
    up, gradient = learnt(0.05)
    down, _ = learnt(-0.05)
    both = np.linalg.norm((up + down) / 2 + gradient) / np.linalg.norm(gradient)
    assert both < errors[1] / 5


@pytest.mark.slow
def test_controls_without_rest_or_with_the_wrong_sign():
    assert error_of(0.025, sign=-1) > 1.9
    assert error_of(0.025, settle=0.0) > 1, "no free phase: the nudge is not all that moves"
    assert error_of(0.025, tau_w=1000.0) > 2 * error_of(0.025), "weights must be slow"


def test_always_plastic_unlearns():
    """Back at the free rest, weights that were always plastic are where they were."""
    kept = {}
    for plastic in ("nudged", "always"):
        chips, clamps = started(gain=0.5, tau_w=1e6, plastic=plastic)
        chips.load(released(clamps))
        chips.advance(1200)
        before = chips.flow.weights[0].clone()
        for shown in (clamps, released(clamps)):
            chips.load(shown)
            chips.advance(1200)
        kept[plastic] = float((chips.flow.weights[0] - before).norm()) * 1e6
    assert kept["nudged"] > 1
    assert kept["always"] < 0.1 * kept["nudged"]


def test_energies_are_the_distance_to_the_target_and_to_rest():
    chips, clamps = started(tau_x=0.7)
    before = ct.read(chips)
    speed = right_hand_side(chips, clamps)(0, before)
    x, *moves = (
        ct.split(before, chips)[0]["x0"],
        *(ct.split(0.7 * speed, chips)[0][f"x{k}"] for k in (1, 2)),
    )
    gaps = [clamps[0][0].numpy() - x, *moves]
    chips.advance(1)
    expected = [0.5 * (gap**2).sum() for gap in gaps]
    np.testing.assert_allclose(chips.flow.energy_by_node()[0], expected, rtol=1e-12)
    chips.load(released(clamps))
    chips.advance(1)
    assert float(chips.flow.energy_by_node()[0, 0]) == 0, "no target, no distance to it"


def test_what_has_no_equilibrium_is_refused():
    network = Network.mlp(SIZES, "tanh")
    params = oracle.random_parameters(network, 1, seed=1)
    with pytest.raises(UnsupportedError, match=r"mode 'generative'.*an input and at most a target"):
        ct.engine(network, params, DT, mode="generative", kind="equilibrium")
    with pytest.raises(ValueError, match="must not be 0"):
        ct.engine(network, params, DT, kind="equilibrium", beta=0.0)
