"""Laws of the spiking circuit: bounds, counts, its limit for fine steps, and where it must fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pcsim import store
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous import settled
from pcsim.energies import Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.experiments.spiking import study as spiking
from pcsim.experiments.spiking.fidelity import CIRCUIT, Events, Fidelity, Pair, random_fidelity
from pcsim.experiments.spiking.tasks import (
    DIGITS,
    XOR,
    Learned,
    Questions,
    by_events,
    learn,
    questions,
)
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network

DEEP = Network.mlp([3, 5, 4, 2], "tanh")
FROZEN = CIRCUIT.model_copy(update={"tau_w": 1e12})


def chips(events, network=DEEP, circuit=CIRCUIT, dt=1e-4):
    params = initial_parameters(network, list(range(len(events))), torch.float64)
    each = [event.of(circuit) for event in events]
    made = Continuous(network, params, each[0], dt=dt, each=each)
    rng = np.random.default_rng(0)
    source, label = (
        torch.as_tensor(rng.normal(0, 1, (1, 1, network.nodes[k].units))) for k in (-1, 0)
    )
    made.load([label, *[None] * (len(network.nodes) - 2), source])
    return made


def counts(made):
    return {name: count.numpy().copy() for name, count in made.flow.events().items()}


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def test_what_receivers_believe_is_off_by_half_a_step_at_most():
    each = [Events(), Events(q=0.3, qe=0.2), Events(q=0.02, qe=0.5, tau_s=0.0)]
    made = chips(each)
    size = {
        kind: torch.tensor([getattr(e, name) for e in each]).view(-1, 1, 1)
        for kind, name in (("soma", "q"), ("apical", "qe"))
    }
    worst = dict.fromkeys(made.flow.hat, 0.0)
    for _ in range(300):
        made.advance(1)
        for name, hat in made.flow.hat.items():
            off = (made.flow.signal[name] - hat).abs() / size[name[:-1]]
            worst[name] = max(worst[name], float(off.max()))
    assert set(worst) == {"soma1", "soma2", "soma3", "apical0", "apical1"}
    assert max(worst.values()) <= 0.5 + 1e-9
    assert min(worst.values()) > 0.45, "control: the bound is reached"


def test_sums_are_what_the_weights_make_of_the_beliefs():
    """μ = W r̂ and fb = Wᵀ êrr while the weights rest; with moving weights they lag behind."""
    still, moving = chips([Events()], circuit=FROZEN), chips([Events()])
    off = []
    for made in (still.flow, moving.flow):
        (still if made is still.flow else moving).advance(200)
        w = [views["w"] for views in made.params.of[:-1]]
        mu = [made.hat[f"soma{k + 1}"] @ w[k].mT - made.mu[k] for k in range(3)]
        fb = [made.hat[f"apical{k}"] @ w[k] - made.fb[k + 1] for k in range(2)]
        off.append(max(float(part.abs().max()) for part in mu + fb))
    assert off[0] < 1e-13
    assert 1e-5 < off[1] < 0.05


def test_events_are_counted_one_by_one():
    made = chips([Events(), Events(q=0.3, qe=0.2)])
    by_hand = dict.fromkeys(made.flow.hat, 0)
    for _ in range(100):
        believed = {name: hat * made.flow._keep for name, hat in made.flow.hat.items()}
        made.advance(1)
        for name, hat in made.flow.hat.items():
            by_hand[name] += ((hat - believed[name]).abs() > 1e-9).sum(1).numpy()
    for name, count in counts(made).items():
        assert np.array_equal(count, by_hand[name]), name
        assert count.sum() > 0


def test_events_per_second_of_a_constant_rate():
    """A trace that leaks by r/τ_s per second needs r/(q τ_s) steps per second to stay."""
    network = Network.mlp([3, 2], "tanh")
    steps = (0.1, 0.05)
    made = chips([Events(q=q) for q in steps], network, FROZEN, dt=5e-5)
    u = torch.tensor([[[0.8, -0.5, 0.02]]], dtype=torch.float64)
    made.load([torch.zeros(1, 1, 2, dtype=torch.float64), u])
    made.advance(200)
    start = counts(made)["soma1"]
    made.advance(4000)
    rate = (counts(made)["soma1"] - start) / (4000 * made.dt)
    # The trace falls from r + q/2 to r − q/2 in τ_s ln((r + q/2)/(r − q/2)).
    for row, q in enumerate(steps):
        for column, r in enumerate((0.8, 0.5)):
            expected = 1 / (0.005 * np.log((r + q / 2) / (r - q / 2)))
            assert rate[row, column] == pytest.approx(expected, rel=0.05)
    assert (rate[:, 2] == 0).all(), "what is smaller than half a step is never sent"


def test_order_of_convergence_to_the_ode():
    """With resting weights: first order where each step has an event, better before that.

    Between two events the belief is a sawtooth of height q and period q τ_s/r, of which a soma with
    τ_x ≫ period sees a part ∝ period: together q². Below half a step nothing is sent: that is ∝ q.
    """
    for q, low, high in (((1e-3, 1e-4, 1e-5), 0.9, 1.1), ((0.08, 0.04, 0.02, 0.01), 1.1, 2.0)):
        fine = [Events(q=s, qe=s / 2) for s in q]
        found = random_fidelity(fine, circuit=FROZEN, samples=5, at_once=True)
        assert low < slope(q, found.rms.mean(1)) < high
        assert (found.rms < 0.2 * np.array(q)[:, None]).all()


def test_events_go_as_one_over_the_step():
    q = (0.2, 0.1, 0.05)
    found = random_fidelity([Events(q=s, qe=s / 2) for s in q], circuit=FROZEN, samples=5)
    for kind in (found.soma, found.apical):
        assert slope(q, kind.mean(1)) == pytest.approx(-1.0, abs=0.15)


def test_moving_weights_leave_an_error_of_the_order_of_the_leak():
    """μ − W r = −τ_s (dW/dt) r remains for q → 0; forgetting sooner makes it smaller."""
    taus = np.array([0.008, 0.004, 0.002])
    circuit = CIRCUIT.model_copy(update={"tau_w": 0.5})
    fine = [Events(q=2e-4, qe=1e-4, tau_s=tau) for tau in taus]
    found = random_fidelity(fine, circuit=circuit, samples=8)
    assert slope(taus, found.rms.mean(1)) == pytest.approx(1.0, abs=0.2)


def test_a_known_setting_and_pure_sigma_delta_as_control():
    """Rates, errors, cosines and event rates of 4-16-16-3 networks, four seeds."""
    leaky = [Events(q=0.1, qe=0.05), Events(q=0.05, qe=0.02)]
    found = random_fidelity([*leaky, Events(q=0.05, qe=0.02, tau_s=0.0)])
    rms, cosine = found.rms.mean(1), found.cosine.mean(1)
    assert rms[0] < 0.034
    assert rms[1] < 0.021
    assert rms[1] < 0.7 * rms[0]
    assert cosine[0] == pytest.approx(0.9998, abs=2e-4)
    assert cosine[1] == pytest.approx(0.99995, abs=5e-5)
    assert found.soma.mean(1)[:2] == pytest.approx([465, 939], rel=0.2)
    assert found.apical.mean(1)[:2] == pytest.approx([962, 1968], rel=0.2)
    # Without a leak, fewer events; but what old weights have written stays.
    assert (found.rms[2] > 5 * found.rms[1]).all()
    assert (found.cosine[2] < 0.995).all()
    assert found.soma.mean(1)[2] < 0.5 * found.soma.mean(1)[1]


def test_a_fine_step_is_the_ode_step_by_step():
    """q → 0 with resting weights: every Euler step of the continuous backend."""
    made = chips([Events(q=1e-9, qe=1e-9)], circuit=FROZEN)
    params = initial_parameters(DEEP, [0], torch.float64)
    ode = Circuit(kind="error_units", tau_x=0.01, tau_err=0.002, tau_w=1e12)
    exact = Continuous(DEEP, params, ode, dt=1e-4)
    exact.load([made.flow.x[0].clone(), None, None, made.flow.x[3].clone()])
    for engine in (made, exact):
        engine.feedforward()
    made.flow.send()
    made.advance(300)
    exact.advance(300)
    for name, state in exact.flow.moving().items():
        assert float((made.flow.moving()[name] - state).abs().max()) < 1e-7, name
    assert torch.allclose(made.flow.energy_by_node(), exact.flow.energy_by_node(), rtol=1e-6)


def test_learning_xor_by_events():
    """The ODE learns it, fine steps do, a step above every rate does not."""
    short = replace(XOR, samples=80, seeds=(0, 2), t_pres=0.05, reset=True)
    found = learn(short, [Events(q=0.2, qe=0.1), Events(q=2.5, qe=1.25)])
    assert (found.reference == 1).all()
    assert (found.accuracy[0] == 1).all()
    assert (found.accuracy_by_events[0] == 1).all()
    assert (found.accuracy[1] < 1).all()
    assert (found.fidelity.cosine[0] > 0.97).all()


def test_learning_digits_by_events(monkeypatch):
    """Three samples of the embedded digits: both learn the same, and seeds see their own order."""
    monkeypatch.setattr(settled, "FLUCTUATING", 0.5)  # its test is not looked at here
    short = replace(DIGITS, samples=3, seeds=(0, 1), t_pres=0.02)
    found = learn(short, [Events(q=0.02, qe=0.01), Events(q=0.4, qe=0.2)])
    assert found.accuracy.shape == found.accuracy_by_events.shape == (2, 2)
    assert (found.fidelity.cosine[0] > 0.998).all()
    assert (found.fidelity.cosine[1] < found.fidelity.cosine[0]).all()
    assert (found.fidelity.rate[1] < 0.3 * found.fidelity.rate[0]).all()
    network = Network.mlp(DIGITS.sizes, "tanh")
    first = next(questions(short, network).stream)
    assert first[0].shape == (2, 1, 10)
    assert not torch.equal(first[-1][0], first[-1][1])


def test_what_the_experiment_keeps_and_draws(tmp_path):
    """Every number has its place in the result; the figure is written."""
    rows, seeds = len(spiking.CHIPS), len(spiking.SEEDS)
    grid = np.linspace(0.1, 0.9, rows * seeds).reshape(rows, seeds)
    fidelity = Fidelity(*(grid + k for k in range(5)))
    one = Learned(fidelity, grid, grid / 2, np.full(seeds, 0.9))
    found = dict.fromkeys(spiking.TASKS, one)
    result = spiking.as_result(fidelity, found)
    again = spiking.as_learned("xor", result)
    for name in ("accuracy", "accuracy_by_events", "reference"):
        assert getattr(again, name) is getattr(one, name)
    assert again.fidelity.rms is one.fidelity.rms
    assert np.array_equal(result["digits_accuracy_by_events"], grid / 2)
    assert np.array_equal(result["xor_soma"], grid + 2)
    assert len(set(result["q"])) >= 5
    assert np.isinf(result["tau_s"]).sum() == 1
    store.save(result, tmp_path / "spiking.h5")
    assert np.array_equal(store.load(tmp_path / "spiking.h5")["random_rms"], grid)
    assert spiking.draw(fidelity, found, tmp_path / "spiking.png").stat().st_size > 10_000
    assert spiking.accuracy_table("xor", one).row_count == rows + 1
    assert spiking.fidelity_table("a", fidelity).row_count == rows


def test_by_events_agrees_with_the_forward_pass_for_fine_steps():
    start = initial_parameters(DEEP, [0, 1], torch.float64)
    pair = Pair(DEEP, CIRCUIT, [Events(q=1e-3, qe=1e-3)], start, dt=2.5e-4)
    inputs = torch.as_tensor(np.random.default_rng(1).normal(0, 1, (6, 3)))
    off = by_events(pair, inputs) - outputs(DEEP, pair.chips.params, inputs)
    assert float(off.abs().max()) < 0.02
    assert pair.chips.time == 0, "the tested chip itself has not moved"


def test_right_answers():
    asked = Questions(iter([]), torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]]))
    assert asked.right(torch.tensor([[[2.0], [3.0]], [[0.1], [-0.1]]])).tolist() == [0.5, 1.0]
    asked = Questions(iter([]), torch.zeros(2, 1), torch.tensor([1, 0]))
    assert asked.right(torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])).tolist() == [0.5]


def test_a_pair_keeps_seeds_and_descriptions_apart():
    """Each chip of a pair is the chip that runs alone."""
    start = initial_parameters(DEEP, [3, 4], torch.float64)
    each = [Events(), Events(q=0.4, qe=0.2)]
    pair = Pair(DEEP, CIRCUIT, each, start, dt=1e-4)
    rng = np.random.default_rng(0)
    label, source = (torch.as_tensor(rng.normal(0, 1, (2, 1, n))) for n in (2, 3))
    pair.present([label, None, None, source], 100)
    alone = Parameters(DEEP, start.flat[1:].clone())
    made = Continuous(DEEP, alone, each[1].of(CIRCUIT), dt=1e-4)
    made.load([label[1:], None, None, source[1:]])
    made.advance(100)
    assert float((pair.chips.params.flat[3] - alone.flat[0]).abs().max()) < 1e-14
    total = sum(int(c.sum()) for c in counts(made).values())
    assert pair.fidelity().rate[1, 1] == pytest.approx(total / 14 / 0.01)


@pytest.mark.parametrize(
    ("network", "mode", "words"),
    [
        (Network.mlp([2, 3, 1], "tanh", convention="post"), "supervised", "convention 'post'"),
        (Network.mlp([2, 3, 1], "softmax"), "supervised", "network.f 'softmax'"),
        (Network.mlp([2, 1], "tanh", output=Gaussian(2.0)), "supervised", "node 0: energy"),
        (Network.mlp([2, 3, 1], "tanh", prior=0.0), "supervised", "network.prior"),
        (DEEP, "generative", "mode 'generative'"),
        (DEEP, "associative", "mode 'associative'"),
    ],
)
def test_refusals(network, mode, words):
    params = initial_parameters(network, [0], torch.float64)
    with pytest.raises(UnsupportedError, match=r"circuit\.kind spiking") as error:
        Continuous(network, params, CIRCUIT, dt=1e-4, mode=mode)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"transport": "random"}, "unknown name"),
        ({"delay_fb": 1e-3}, "unknown name"),
        ({"look_err": 1e-3}, "unknown name"),
        ({"tau_err": 0.0}, "greater than 0"),
        ({"q": 0.0}, "greater than 0"),
        ({"kind": "error_units"}, "unknown name"),
    ],
)
def test_fields_that_have_no_meaning(fields, words):
    known = {"kind": "spiking", "tau_err": 0.002, "tau_s": 0.005, "tau_w": 1.0}
    with pytest.raises(ValueError, match=words):
        Circuit(**known | fields)


def test_bad_arguments():
    params = initial_parameters(DEEP, [0], torch.float64)
    with pytest.raises(ConfigError, match="2 circuits given for 1 chips"):
        Continuous(DEEP, params, CIRCUIT, dt=1e-4, each=[CIRCUIT] * 2)
    slower = CIRCUIT.model_copy(update={"tau_x": 0.02})
    with pytest.raises(UnsupportedError, match=r"each\[0\].*share all of their circuit"):
        Continuous(DEEP, params, CIRCUIT, dt=1e-4, each=[slower])
    with pytest.raises(UnsupportedError, match="share one circuit"):
        Continuous(DEEP, params, Circuit(tau_w=1.0), dt=1e-4, each=[CIRCUIT])
    with pytest.raises(ConfigError, match=r"solver\.dt: must be no longer than circuit\.tau_s"):
        Continuous(DEEP, params, Events(tau_s=5e-5).of(CIRCUIT), dt=1e-4)
    with pytest.raises(UnsupportedError, match=r"solver\.name 'heun': events"):
        Continuous(DEEP, params, CIRCUIT, dt=1e-4, solver_name="heun")
    made = Continuous(DEEP, params, CIRCUIT, dt=1e-4)
    with pytest.raises(ConfigError, match=r"load\.clamps"):
        made.load([None, None, None, None])
