"""Feedback weights that are not the forward array: alignment by decay, radius, signs, records."""

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.circuit import Circuit, Conductances
from pcsim.circuits.conductances import conductances as a_of
from pcsim.network import Network
from pcsim.runner.recorder import Recorder
from pcsim.stream import Record

NETWORK = Network.mlp([5, 6, 5, 3], "tanh")
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=1.0)


def started(transport, dt=0.1, solver="euler", network=NETWORK, **circuit):
    params = oracle.random_parameters(network, 2, seed=1, gain=0.7)
    circuit = {"tau_w": 4.0, "weight_decay": 0.5} | circuit
    chips = ct.engine(network, params, dt, solver, transport=transport, **circuit)
    chips.load(oracle.clamps_of(network, "supervised", 2, 3, seed=2))
    chips.feedforward()
    return chips


def gap(chips):
    """θ − B of every map, in the units of the network."""
    theta = chips.flow.theta().of
    back = chips.flow.feedback.of
    return [theta[k]["w"] - back[k]["w"] for k in range(3)]


@pytest.mark.parametrize(
    "circuit",
    [
        {},
        {"kind": "error_units", "tau_err": 0.2},
        {"kind": "dendritic", "conductances": GENERAL},
        {"tau_w_each": torch.full((2, 1), 4.0, dtype=ct.F64)},
    ],
    ids=["algebraic", "error units", "dendritic", "per weight"],
)
def test_kolen_pollack_aligns_by_decay_alone(circuit):
    """(θ − B) shrinks by exactly (1 − αλ) per step, whatever is learnt."""
    chips = started("kolen_pollack", **circuit)
    first = [d.clone() for d in gap(chips)]
    before = chips.flow.feedback.flat.clone()
    n = 200
    chips.advance(n)
    shrink = (1 - 0.1 / 4.0 * 0.5) ** n
    for now, start in zip(gap(chips), first, strict=True):
        assert oracle.largest(now - shrink * start) <= 1e-12
    assert oracle.largest(chips.flow.feedback.flat - before) > 0.01, "B does learn"


def test_kolen_pollack_as_a_flow():
    chips = started("kolen_pollack", 0.05, "rk4")
    first = [d.clone() for d in gap(chips)]
    chips.advance(100)
    for now, start in zip(gap(chips), first, strict=True):
        assert oracle.largest(now - np.exp(-0.5 * 5.0 / 4.0) * start) <= 1e-8


def test_without_decay_the_gap_stays():
    chips = started("kolen_pollack", weight_decay=0.0)
    first = [d.clone() for d in gap(chips)]
    chips.advance(200)
    for now, start in zip(gap(chips), first, strict=True):
        assert oracle.largest(now - start) <= 1e-12


@pytest.mark.parametrize("kind", ["algebraic", "dendritic"])
def test_signs(kind):
    """B = s·sign(θ) with the root mean square of θ, also after a weight has changed its sign."""
    chips = started("sign", kind=kind)
    signs = [torch.sign(views["w"]) for views in chips.flow.theta().of[:-1]]
    chips.advance(200)
    chips.flow.forces()
    theta = chips.flow.theta().of
    changed = 0
    for k in range(3):
        w, back = theta[k]["w"], chips.flow.feedback.of[k]["w"]
        size = w.square().mean((1, 2), keepdim=True).sqrt()
        stored = back * (a_of(chips.circuit, k)["a_B"] if kind == "dendritic" else 1.0)
        assert oracle.largest(stored - torch.sign(w) * size) <= 1e-12
        changed += int((torch.sign(w) != signs[k]).sum())
    assert changed, "control: there was a sign to follow"


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "stable"), [(0.8, True), (1.3, False)])
def test_random_feedback_is_stable_within_its_radius(gain, stable):
    """Entries of variance g²/n: inference itself is unstable as soon as g_B g_θ > 1."""
    n = 150
    network = Network.mlp([1, n, n], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=3, gain=1.0)
    # Uniform feedback has a third of the variance of its bound.
    circuit = {"transport": "random", "feedback_gain": gain * 3**0.5, "tau_w": 1e12}
    chips = ct.engine(network, params, 0.1, **circuit)
    zero = torch.zeros(1, n, 1, dtype=ct.F64)
    chips.load([torch.zeros(1, n, n, dtype=ct.F64), None, zero])
    x = chips.flow.moving()["x1"]
    x.copy_(torch.eye(n, dtype=ct.F64)[None])  # every sample probes one unit
    (force,) = chips.flow.forces()
    assert bool(np.linalg.eigvals(force.value[0].numpy()).real.max() < 0) == stable
    chips.advance(1500)
    assert bool(float(x.abs().max()) < 1) == stable


def test_shared_feedback_is_stable_at_any_gain():
    network = Network.mlp([1, 40, 40], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=3, gain=3.0)
    chips = ct.engine(network, params, 0.01, tau_w=1e12)
    chips.load([torch.zeros(1, 1, 40, dtype=ct.F64), None, torch.zeros(1, 1, 1, dtype=ct.F64)])
    chips.flow.moving()["x1"].fill_(1.0)
    chips.advance(500)
    assert float(chips.flow.moving()["x1"].abs().max()) < 1


def cosines(chips):
    theta, back = chips.flow.theta().of, chips.flow.feedback
    return np.array(
        [
            [
                np.sum(w * b) / np.linalg.norm(w) / np.linalg.norm(b)
                for w, b in (
                    (theta[k]["w"][c].numpy(), back.of[k]["w"][c].numpy()) for k in range(3)
                )
            ]
            for c in range(2)
        ]
    )


@pytest.mark.parametrize("transport", ["random", "sign", "kolen_pollack"])
@pytest.mark.parametrize("kind", ["algebraic", "dendritic"])
def test_alignment_is_recorded(transport, kind):
    chips = started(transport, kind=kind)
    recorder = Recorder(chips, Record(), 10)
    chips.advance(300, recorder.after_step)
    rows = recorder.rows["alignment"]
    assert len(rows) == 30
    if transport != "sign":  # signs are read before the weights' last move
        np.testing.assert_allclose(rows[-1], cosines(chips), atol=1e-12)
    if transport == "kolen_pollack":
        assert (rows[-1] > 0.9).all()
        assert (rows[0] < 0.6).all()


def test_shared_arrays_have_no_alignment_to_record():
    chips = started("shared")
    recorder = Recorder(chips, Record(), 1)
    chips.advance(3, recorder.after_step)
    assert "alignment" not in recorder.rows


def test_feedback_belongs_to_the_seed():
    def feedback(seeds, gain=1.0):
        params = oracle.random_parameters(NETWORK, len(seeds))
        circuit = Circuit(transport="random", tau_w=1.0, feedback_gain=gain)
        return ct.Continuous(NETWORK, params, circuit, dt=0.1, seeds=seeds).flow.feedback.flat

    both = feedback([4, 9])
    assert torch.equal(both[1:], feedback([9]))
    assert not torch.equal(both[0], both[1])
    assert oracle.largest(feedback([9], 2.0) - 2 * both[1:]) <= 1e-15
