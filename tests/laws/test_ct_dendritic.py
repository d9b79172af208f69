"""Dendritic circuits: exactly iPC under their conditions, and not when one of them is broken."""

from itertools import pairwise

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.backends.discrete import Discrete
from pcsim.circuit import Conductances
from pcsim.circuits.conductances import conductances as a_of
from pcsim.config import Schedule
from pcsim.network import Network

NETWORK = Network.mlp([5, 6, 5, 3], "tanh")
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=1.0)
DT, TAU_W = 0.1, 20.0


def nudged(g_som):
    return GENERAL.model_copy(update={"g_som": g_som})


def ipc(steps, mode="supervised", decay=0.0, network=NETWORK):
    params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
    schedule = Schedule(rule="ipc", T=steps, gamma=DT, init="carry", fast=False)
    runner = Discrete(
        network, params, schedule, oracle.optimizer(params, DT / TAU_W, decay=decay), mode=mode
    )
    runner.start(oracle.clamps_of(network, mode, 2, 4, seed=2))
    for index in runner.field.free:
        runner.field.x[index].fill_(0.1 * index)
    for _ in range(steps):
        runner.step()
    return runner


def dendritic(steps, *, mode="supervised", network=NETWORK, upset=None, **circuit):
    params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
    chips = ct.engine(network, params, DT, mode=mode, kind="dendritic", tau_w=TAU_W, **circuit)
    chips.load(oracle.clamps_of(network, mode, 2, 4, seed=2))
    for name, state in chips.flow.moving().items():
        if name.startswith("x"):
            state.fill_(0.1 * int(name[1:]))
    if upset:
        upset(chips.flow)
    chips.advance(steps)
    return chips


def deviation(runner, chips):
    states = [
        oracle.largest(chips.flow.states()[f"x{k}"] - runner.field.x[k]) for k in runner.field.free
    ]
    return max(oracle.largest(chips.flow.theta().flat - runner.params.flat), *states)


EXACT = {
    "default": {},
    "conductances": {"conductances": GENERAL},
    "nudged little": {"conductances": nudged(0.1)},
    "nudged": {"conductances": nudged(0.8)},
    "nudged strongly": {"conductances": nudged(4.0)},
    "tied": {"inter_learned": False},
    "tied, nudged": {"inter_learned": False, "conductances": nudged(0.8)},
    "unused rates": {"inter_learned": False, "inter_rate": 3.0},
}


@pytest.mark.parametrize("name", EXACT)
def test_equals_ipc_over_joint_steps(name):
    chips = dendritic(500, **EXACT[name])
    runner = ipc(500)
    assert deviation(runner, chips) <= 1e-10
    start = oracle.random_parameters(NETWORK, 2, seed=1, gain=0.8).flat
    assert oracle.largest(runner.params.flat - start) > 0.1, "control: much was learnt"


@pytest.mark.parametrize("mode", ["free", "generative"])
def test_equals_ipc_in_other_modes(mode):
    prior = Network.mlp([5, 6, 5, 3], "tanh", prior=0.2)
    for network in (NETWORK, prior) if mode == "generative" else (NETWORK,):
        chips = dendritic(300, mode=mode, network=network, conductances=GENERAL)
        runner = ipc(300, mode, network=network)
        assert deviation(runner, chips) <= 1e-10
        energy = chips.flow.energy_by_node()
        assert oracle.largest(energy - runner.field.energy_by_node()) <= 1e-10


def test_equals_ipc_with_decay():
    chips = dendritic(300, conductances=nudged(0.5), weight_decay=0.1)
    assert deviation(ipc(300, decay=0.1), chips) <= 1e-10
    assert deviation(ipc(300, decay=0.11), chips) > 1e-4


def offset(flow):
    flow.of["w_inter"][0]["w"].add_(0.05)


def alter(flow, name, factor, layers):
    """Let constants of a circuit be other than its equations need."""
    plan = flow.plan(flow.mode)
    for k in layers:
        for part in (plan.groups[k], plan.connections[k]):
            if name in part.constants:
                part.constants[name] *= factor
    flow.bind_anew()


def attenuated(flow):
    alter(flow, "gain_td", 1 / 1.05, (1, 2))


def basal_attenuated(flow):
    alter(flow, "a_B", 0.95, (1,))


BROKEN = {
    "C2 interneuron lag": ({"tau_inter": 0.3}, None),
    "C2 apical lag": ({"tau_apical": 0.3}, None),
    "C3 interneuron weights off": ({}, offset),
    "C3 interneurons too slow": ({"inter_rate": 0.5}, None),
    "C3 interneurons too fast": ({"inter_rate": 2.0}, None),
    "C4 inhibition": ({"inhibition": 0.999}, None),
    "C5 random feedback": ({"transport": "random"}, None),
    "C5 sign feedback": ({"transport": "sign"}, None),
    "C5 unlike feedback that follows": ({"transport": "kolen_pollack"}, None),
    "C7 apical attenuation": ({"conductances": GENERAL}, attenuated),
    "C7 basal attenuation": ({"conductances": GENERAL}, basal_attenuated),
}


@pytest.mark.parametrize("name", BROKEN)
def test_control_a_broken_condition_breaks_it(name):
    circuit, upset = BROKEN[name]
    chips = dendritic(300, upset=upset, **circuit)
    assert deviation(ipc(300), chips) > 1e-4


# -- closed forms of what breaks -------------------------------------------------------------------


def scalar(w0, w1, y, u, **circuit):
    network = Network.mlp([1, 1, 1], "identity", bias=False)
    params = oracle.random_parameters(network, 1)
    params.of[0]["w"].fill_(w0)
    params.of[1]["w"].fill_(w1)
    chips = ct.engine(network, params, 0.2, kind="dendritic", tau_w=1e14, **circuit)
    one = torch.ones(1, 1, 1, dtype=ct.F64)
    chips.load([y * one, None, u * one])
    return chips


@pytest.mark.parametrize("kappa", [1.0, 0.9, 0.5, 1.3])
@pytest.mark.parametrize("conductances", [Conductances(), GENERAL])
def test_inhibition_moves_the_fixed_point(kappa, conductances):
    w0, w1, y, u = 0.8, 0.6, 1.3, -0.7
    chips = scalar(w0, w1, y, u, inhibition=kappa, conductances=conductances)
    chips.advance(300)
    expected = (w1 * u + w0 * y) / (1 + kappa * w0 * w0)
    assert float(chips.flow.states()["x1"]) == pytest.approx(expected, abs=1e-10)


def test_an_interneuron_mismatch_moves_the_fixed_point():
    """x* = (I + θᵀ(θ + Δ))⁻¹ (μ + θᵀ y)."""
    network = Network.mlp([2, 4, 3], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=1, gain=0.7)
    theta, above = (params.of[k]["w"][0].numpy().copy() for k in (0, 1))
    chips = ct.engine(network, params, 0.2, kind="dendritic", tau_w=1e14, conductances=GENERAL)
    clamps = oracle.clamps_of(network, "supervised", 1, 1, seed=2)
    chips.load(clamps)
    shift = 0.2 * np.random.default_rng(0).standard_normal(theta.shape)
    chips.flow.of["w_inter"][0]["w"].add_(
        torch.as_tensor(shift)[None] / a_of(chips.circuit, 0)["a_D"]
    )
    chips.advance(400)
    y, u = clamps[0][0, 0].numpy(), clamps[2][0, 0].numpy()
    goal = np.linalg.solve(np.eye(4) + theta.T @ (theta + shift), above @ u + theta.T @ y)
    assert ct.largest(chips.flow.states()["x1"][0, 0].numpy() - goal) <= 1e-10
    exact = np.linalg.solve(np.eye(4) + theta.T @ theta, above @ u + theta.T @ y)
    assert ct.largest(exact - goal) > 1e-2, "control"


@pytest.mark.parametrize("conductances", [Conductances(), GENERAL])
def test_an_interneuron_mismatch_contracts(conductances):
    """D ← D (I − α Σ f fᵀ): the interneurons lock in wherever there is activity."""
    network = Network.mlp([5, 6, 5, 3], "tanh", bias=False)

    def upset(flow):
        for k in (0, 1):
            shape = flow.of["w_inter"][k]["w"].shape
            generator = torch.Generator().manual_seed(k)
            flow.of["w_inter"][k]["w"].add_(
                0.1 * torch.randn(shape, generator=generator, dtype=ct.F64)
            )

    chips = dendritic(0, network=network, upset=upset, conductances=conductances)
    flow = chips.flow

    def mismatch(k):
        known = a_of(flow.circuit, k)
        return known["a_D"] * flow.of["w_inter"][k]["w"] - known["a_B"] * flow.params.of[k]["w"]

    expected = [mismatch(k).clone() for k in (0, 1)]
    first = [float(d.norm()) for d in expected]
    for _ in range(200):
        chips.advance(1)
        for k in (0, 1):
            f = flow.value(k + 1, "r")
            eye = torch.eye(f.shape[2], dtype=ct.F64)
            expected[k] = expected[k] @ (eye - DT / TAU_W * f.mT @ f)
    for k in (0, 1):
        assert oracle.largest(mismatch(k) - expected[k]) <= 1e-12
        assert float(mismatch(k).norm()) < 0.95 * first[k]


def test_fast_interneurons_explain_the_error_away():
    """θ and x frozen: the apical signal shrinks by (1 − η‖f‖²) per step."""
    network = Network.mlp([3, 4, 2], "tanh", bias=False)
    params = oracle.random_parameters(network, 1, seed=1)
    eta, frozen = 0.05, 1e12
    rate = eta * frozen / DT
    chips = ct.engine(
        network, params, DT, kind="dendritic", tau_x=frozen, tau_w=frozen, inter_rate=rate
    )
    chips.load(oracle.clamps_of(network, "supervised", 1, 1, seed=2))
    chips.flow.states()["x1"].fill_(0.7)
    sizes = []
    chips.advance(40, lambda: sizes.append(chips.flow.states()["apical1"].clone()))
    shrink = 1 - eta * float(torch.tanh(chips.flow.states()["x1"]).square().sum())
    for n, apical in enumerate(sizes):
        assert oracle.largest(apical - shrink**n * sizes[0]) <= 1e-10
    assert shrink < 0.95


# -- Sacramento ------------------------------------------------------------------------------------


def sacramento(g_som, mode, target=None, seed=2, steps=0, **circuit):
    network = Network.mlp([4, 5, 3], "tanh", bias=False)
    params = oracle.random_parameters(network, 1, seed=1)
    conductances = GENERAL.model_copy(update={"g_som": g_som})
    chips = ct.engine(
        network, params, 0.1, mode=mode, kind="sacramento", tau_w=1e12,
        conductances=conductances, **circuit,
    )  # fmt: skip
    clamps = oracle.clamps_of(network, mode, 1, 3, seed=seed)
    chips.load(clamps)
    chips.feedforward()
    chips.advance(steps)
    chips.flow.forces()
    return chips, clamps


def test_self_predicting_dendrites_are_silent():
    chips, _ = sacramento(0.8, "free")
    assert oracle.largest(chips.flow.states()["apical1"]) <= 1e-10
    ct.stir(chips)  # from any state it becomes silent again
    chips.flow.forces()
    assert oracle.largest(chips.flow.states()["apical1"]) > 1e-2
    chips.advance(800)
    assert oracle.largest(chips.flow.states()["apical1"]) <= 1e-10
    loud, _ = sacramento(0.8, "free", self_predicting=False)
    assert oracle.largest(loud.flow.states()["apical1"]) > 1e-2, (
        "control: random weights do not cancel"
    )
    taught, _ = sacramento(0.8, "supervised", steps=200)
    assert oracle.largest(taught.flow.states()["apical1"]) > 1e-2, "control: a target is an error"


@pytest.mark.slow
def test_small_nudge_law():
    """v_A → W_down [φ'(v̂_B) ∘ (1−λ_I) λ_N (target − v̂_B)]; the deviation is of first order."""
    deviations = []
    for g_som in (0.8, 0.08, 0.008):
        chips, clamps = sacramento(g_som, "supervised", steps=1500)
        flow, g = chips.flow, chips.circuit.conductances
        hat = flow.value(0, "v_alone")
        lam_out = g_som / (g.g_lk + g.g_B + g_som)
        lam_inter = g_som / (g.g_lk + g.g_D + g_som)
        error = (1 - lam_inter) * lam_out * (clamps[0] - hat) / torch.cosh(hat) ** 2
        expected = error @ flow.of["w_down"][0]["w"]
        got = flow.states()["apical1"]
        deviations.append(oracle.largest(got - expected) / oracle.largest(expected))
    assert deviations[0] < 0.5
    for coarse, fine in pairwise(deviations):
        assert 5 < coarse / fine < 20


# -- latent equilibrium ----------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.3, 1.0, 50.0])
def test_latent_equilibrium_is_pc_with_whole_steps(tau):
    network = Network.mlp([5, 6, 5, 3], "tanh")
    alpha = DT / TAU_W
    params = oracle.random_parameters(network, 2, seed=1, gain=0.35)
    schedule = Schedule(rule="ipc", T=1, gamma=1.0, init="carry", fast=False)
    runner = Discrete(network, params, schedule, oracle.optimizer(params, alpha))
    clamps = oracle.clamps_of(network, "supervised", 2, 4, seed=2)
    runner.start(clamps)
    for _ in range(150):
        runner.step()
    found = {}
    for look in (tau, 0.9 * tau):
        params = oracle.random_parameters(network, 2, seed=1, gain=0.35)
        chips = ct.engine(network, params, DT, tau_x=tau, tau_w=TAU_W, look_soma=look)
        chips.load(clamps)
        chips.feedforward()
        chips.advance(150)
        states = [oracle.largest(chips.flow.field.x[k] - runner.field.x[k]) for k in (1, 2)]
        found[look] = max(oracle.largest(chips.flow.theta().flat - runner.params.flat), *states)
    assert found[tau] <= 1e-10
    assert found[0.9 * tau] > 1e-6, "control"
