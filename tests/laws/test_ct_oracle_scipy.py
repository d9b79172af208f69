"""Every circuit, integrated by pcsim, against its equations in numpy, integrated by scipy."""

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.circuit import Conductances
from pcsim.energies import Gaussian
from pcsim.network import Network

T, DT = 1.0, 0.01
SIZES = [4, 5, 4, 3]
DATUM_UP = SIZES[::-1]
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=1.2)
NUDGED = GENERAL.model_copy(update={"g_som": 0.7})


def started(network, mode="supervised", **circuit):
    """Return chips in a random state, with clamped data."""
    params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
    chips = ct.engine(network, params, DT, "rk4", mode=mode, **circuit)
    clamps = oracle.clamps_of(network, mode, 2, 3, seed=2)
    chips.load(clamps)
    chips.feedforward()
    ct.stir(chips)
    return chips, clamps


def agreement(chips, rhs):
    """Return the largest difference after T, relative to the motion in that time."""
    start = ct.read(chips)
    expected = ct.integrate(rhs, start, T)
    chips.advance(round(T / DT))
    assert ct.largest(expected - start) > 0.05, "something must have moved"
    return ct.largest(ct.read(chips) - expected) / ct.largest(expected - start)


ERRORS = {
    "algebraic": {"tau_x": 0.7},
    "error units": {"kind": "error_units", "tau_err": 0.3},
    "error units, look-ahead": {"kind": "error_units", "tau_err": 0.3, "look_err": 0.2},
    "decay": {"weight_decay": 0.4},
    "random": {"transport": "random", "feedback_gain": 0.7},
    # slow weights: a sign that changes is a jump, which no solver of this order can follow
    "sign": {"transport": "sign", "tau_w": 500.0},
    "kolen_pollack": {"transport": "kolen_pollack", "weight_decay": 0.3},
    "lagged kolen_pollack": {
        "kind": "error_units",
        "tau_err": 0.2,
        "transport": "kolen_pollack",
        "weight_decay": 0.3,
    },
}


@pytest.mark.parametrize("precision", [False, True], ids=["unit", "precision"])
@pytest.mark.parametrize("name", ERRORS)
def test_error_circuits(name, precision):
    variances = [0.6, 1.5, 1.5] if precision else None
    energies = {"output": Gaussian(0.6), "hidden": Gaussian(1.5)} if precision else {}
    chips, clamps = started(Network.mlp(SIZES, "tanh", **energies), **ERRORS[name])
    rhs = ct.error_rhs(chips, clamps, DATUM_UP, variances, fixed_feedback(chips))
    assert agreement(chips, rhs) <= 1e-7


def fixed_feedback(chips):
    back = chips.flow.feedback
    if back.kind != "random":
        return None
    return [views["w"][0].numpy() for views in back.of[:-1]]


@pytest.mark.parametrize("kind", ["algebraic", "error_units"])
def test_released_output(kind):
    lag = {"tau_err": 0.3} if kind == "error_units" else {}
    chips, clamps = started(Network.mlp(SIZES, "tanh"), "free", kind=kind, **lag)
    assert agreement(chips, ct.error_rhs(chips, clamps, DATUM_UP)) <= 1e-7


DENDRITIC = {
    "default": {},
    "conductances": {"conductances": GENERAL},
    "nudged": {"conductances": NUDGED},
    "tied": {"conductances": NUDGED, "inter_learned": False},
    "inhibition": {"inhibition": 0.8},
    "apical lag": {"tau_apical": 0.3, "conductances": NUDGED},
    "apical look-ahead": {"tau_apical": 0.3, "look_apical": 0.2},
    "interneuron lag": {"tau_inter": 0.2, "conductances": NUDGED},
    "interneuron look-ahead": {"tau_inter": 0.2, "look_inter": 0.15},
    "both lags": {"tau_inter": 0.2, "look_inter": 0.1, "tau_apical": 0.1, "inhibition": 0.9},
    "rate": {"inter_rate": 2.0, "conductances": GENERAL},
    "decay": {"weight_decay": 0.3, "conductances": NUDGED},
    "random": {"transport": "random", "feedback_gain": 0.7, "conductances": NUDGED},
    "sign": {"transport": "sign", "tau_w": 500.0, "conductances": GENERAL},
    "kolen_pollack": {"transport": "kolen_pollack", "weight_decay": 0.3, "conductances": GENERAL},
}


@pytest.mark.parametrize("name", DENDRITIC)
def test_dendritic(name):
    chips, clamps = started(Network.mlp(SIZES, "tanh"), kind="dendritic", **DENDRITIC[name])
    rhs = ct.dendritic_rhs(chips, clamps, DATUM_UP, fixed_feedback(chips))
    assert agreement(chips, rhs) <= 1e-7


SACRAMENTO = {
    "all four plasticities": {"eta_inter": 0.7, "eta_apical": 0.5, "eta_down": 0.3},
    "from random weights": {"self_predicting": False, "eta_apical": 0.5},
    "interneurons of their own time": {"tau_inter": 0.3, "weight_decay": 0.2},
    "no target": {"self_predicting": False, "eta_apical": 0.5},
}


@pytest.mark.parametrize("name", SACRAMENTO)
def test_sacramento(name):
    mode = "free" if name == "no target" else "supervised"
    network = Network.mlp(SIZES, "tanh", bias=False)
    chips, clamps = started(
        network, mode, kind="sacramento", conductances=NUDGED, **SACRAMENTO[name]
    )
    target = None if clamps[0] is None else clamps[0][0].numpy()
    rhs = ct.sacramento_rhs(chips, target, clamps[-1][0].numpy(), DATUM_UP)
    assert agreement(chips, rhs) <= 1e-7


@pytest.mark.parametrize(
    "wrong", [{"tau_err": 0.301}, {"look_err": 0.201}, {"tau_w": 5.01}, {"weight_decay": 0.01}]
)
def test_control_a_slightly_different_circuit_is_noticed(wrong):
    right = {"kind": "error_units", "tau_err": 0.3, "look_err": 0.2, "tau_w": 5.0}
    chips, clamps = started(Network.mlp(SIZES, "tanh"), **right)
    chips.circuit = chips.circuit.model_copy(update=wrong)  # read by the right-hand side only
    rhs = ct.error_rhs(chips, clamps, DATUM_UP)
    assert agreement(chips, rhs) > 1e-5


# -- what a differential equation does not describe: steps ----------------------------------------


def looped(chips, clamps, steps, *, late=0, late_fb=0):
    """Euler steps with errors that arrive some steps late, everywhere or in the feedback only."""
    c = chips.circuit
    free = [k for k, clamp in enumerate(clamps) if clamp is None]
    named, (flat,) = ct.split(ct.read(chips), chips)
    s = ct.Layers({k: v.copy() for k, v in named.items()}, clamps)
    layers = ct.unflatten(flat.copy(), DATUM_UP)
    past = []
    for n in range(steps):
        past.append(s.eps(layers))
        zero = [0 * e for e in past[0]]
        xi = past[n - late] if n >= late else zero
        fed = past[n - late - late_fb] if n >= late + late_fb else zero
        moves = {k: -xi[k] + s.slope(k) * (fed[k - 1] @ layers[k - 1][0]) for k in free}
        layers = [
            (w + DT / c.tau_w * e.T @ s.f(k + 1), b + DT / c.tau_w * e.sum(0))
            for k, ((w, b), e) in enumerate(zip(layers, xi, strict=True))
        ]
        for k, move in moves.items():
            s.x[k] = s.x[k] + DT / c.tau_x * move
    return np.concatenate([s.x[k].ravel() for k in free] + [ct.flatten(layers)])


@pytest.mark.parametrize(("late", "late_fb"), [(0, 0), (1, 0), (7, 0), (0, 1), (0, 9), (3, 4)])
def test_delays(late, late_fb):
    network = Network.mlp(SIZES, "tanh")
    results = []
    for fast in (True, False):
        params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
        chips = ct.engine(
            network, params, DT, fast=fast, delay_err=late * DT, delay_fb=late_fb * DT, tau_x=0.1
        )
        clamps = oracle.clamps_of(network, "supervised", 2, 3, seed=2)
        chips.load(clamps)
        ct.stir(chips)
        expected = looped(chips, clamps, 150, late=late, late_fb=late_fb)
        other = looped(chips, clamps, 150, late=late + 1, late_fb=late_fb)
        chips.advance(150)
        assert ct.largest(ct.read(chips) - expected) <= 1e-12
        assert ct.largest(ct.read(chips) - other) > 1e-4, "control: one more step of delay"
        results.append(ct.read(chips))
    assert ct.largest(results[0] - results[1]) <= 1e-12


@pytest.mark.parametrize(("tau", "look"), [(1.0, 1.0), (0.2, 0.2), (1.0, 0.6), (0.5, 0.2)])
def test_somatic_look_ahead(tau, look):
    """τ ẋ = −x + μ(x̆) + f'(x̆)∘θᵀε(x̆); the next x̆ is x + τ̂ ẋ."""
    network = Network.mlp(SIZES, "tanh")
    params = oracle.random_parameters(network, 1, seed=1, gain=0.4)
    chips = ct.engine(network, params, DT, tau_x=tau, look_soma=look)
    clamps = oracle.clamps_of(network, "supervised", 1, 3, seed=2)
    chips.load(clamps)
    ct.stir(chips)
    named, (flat,) = ct.split(ct.read(chips), chips)
    s = ct.Layers({k: v.copy() for k, v in named.items()}, clamps)
    membrane = {k: named[f"u{k}"].copy() for k in (1, 2)}
    layers = ct.unflatten(flat.copy(), DATUM_UP)
    for _ in range(100):
        eps = s.eps(layers)
        rates = {
            k: (-membrane[k] + s.x[k] - eps[k] + s.slope(k) * (eps[k - 1] @ layers[k - 1][0])) / tau
            for k in (1, 2)
        }
        layers = [
            (w + DT / 5 * e.T @ s.f(k + 1), b + DT / 5 * e.sum(0))
            for k, ((w, b), e) in enumerate(zip(layers, eps, strict=True))
        ]
        for k, rate in rates.items():
            s.x[k] = membrane[k] + look * rate
            membrane[k] = membrane[k] + DT * rate
    chips.advance(100)
    states = chips.flow.states()
    for k in (1, 2):
        assert ct.largest(states[f"x{k}"][0].numpy() - s.x[k]) <= 1e-12
        assert ct.largest(states[f"u{k}"][0].numpy() - membrane[k]) <= 1e-12
    assert ct.largest(chips.flow.theta().flat[0].numpy() - ct.flatten(layers)) <= 1e-12


def test_fixed_random_feedback_stays():
    chips, _ = started(Network.mlp(SIZES, "tanh"), transport="random")
    before = chips.flow.feedback.flat.clone()
    chips.advance(20)
    assert torch.equal(chips.flow.feedback.flat, before)
