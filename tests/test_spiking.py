"""Laws of the spiking circuit: bounds, counts, its limit for fine steps, and where it must fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments import spiking, spiking_tasks
from experiments.spiking_fidelity import CIRCUIT, Fidelity, Pair, random_fidelity
from experiments.spiking_tasks import DIGITS, XOR, Learned, Questions, by_events, learn, questions
from pcsim import store
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.spiking import SpikingChips
from pcsim.energies import Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.spiking import Spiking

DEEP = Network.mlp([3, 5, 4, 2], "tanh")
FROZEN = CIRCUIT.model_copy(update={"tau_w": 1e12})


def chips(each, network=DEEP, circuit=CIRCUIT, dt=1e-4, **options):
    params = initial_parameters(network, list(range(len(each))), torch.float64)
    made = SpikingChips(network, params, circuit, each, dt=dt, **options)
    rng = np.random.default_rng(0)
    source, label = (
        torch.as_tensor(rng.normal(0, 1, (1, 1, network.nodes[k].units))) for k in (-1, 0)
    )
    made.load([label, *[None] * (made.top - 1), source])
    return made


def steps_of(made, name):
    kind = "q" if name.startswith("soma") else "qe"
    return torch.tensor([getattr(s, kind) for s in made.spiking]).view(-1, 1, 1)


def slope(x, y):
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def test_what_receivers_believe_is_off_by_half_a_step_at_most():
    made = chips([Spiking(), Spiking(q=0.3, qe=0.2), Spiking(q=0.02, qe=0.5, tau_s=None)])
    worst = dict.fromkeys(made.hat, 0.0)
    for _ in range(300):
        made.advance(1)
        for name, hat in made.hat.items():
            off = (made.signal[name] - hat).abs() / steps_of(made, name)
            worst[name] = max(worst[name], float(off.max()))
    assert set(worst) == {"soma1", "soma2", "soma3", "apical0", "apical1"}
    assert max(worst.values()) <= 0.5 + 1e-9
    assert min(worst.values()) > 0.45, "control: the bound is reached"


def test_sums_are_what_the_weights_make_of_the_beliefs():
    """μ = W r̂ and fb = Wᵀ êrr while the weights rest; with moving weights they lag behind."""
    still, moving = chips([Spiking()], plastic=False), chips([Spiking()])
    off = []
    for made in (still, moving):
        made.advance(200)
        w = [views["w"] for views in made.params.of[:-1]]
        mu = [made.hat[f"soma{k + 1}"] @ w[k].mT - made.mu[k] for k in range(3)]
        fb = [made.hat[f"apical{k}"] @ w[k] - made.fb[k + 1] for k in range(2)]
        off.append(max(float(part.abs().max()) for part in mu + fb))
    assert off[0] < 1e-13
    assert 1e-5 < off[1] < 0.05


def test_events_are_counted_one_by_one():
    made = chips([Spiking(), Spiking(q=0.3, qe=0.2)])
    by_hand = dict.fromkeys(made.hat, 0)
    for _ in range(100):
        believed = {name: hat * made._keep for name, hat in made.hat.items()}
        made.advance(1)
        for name, hat in made.hat.items():
            by_hand[name] += ((hat - believed[name]).abs() > 1e-9).sum(1).numpy()
    for name, counts in made.events().items():
        assert np.array_equal(counts, by_hand[name]), name
        assert counts.sum() > 0


def test_events_per_second_of_a_constant_rate():
    """A trace that leaks by r/τ_s per second needs r/(q τ_s) steps per second to stay."""
    network = Network.mlp([3, 2], "tanh")
    steps = (0.1, 0.05)
    made = chips([Spiking(q=q) for q in steps], network, FROZEN, dt=5e-5)
    u = torch.tensor([[[0.8, -0.5, 0.02]]], dtype=torch.float64)
    made.load([torch.zeros(1, 1, 2, dtype=torch.float64), u])
    made.advance(200)
    start = made.events()["soma1"]
    made.advance(4000)
    rate = (made.events()["soma1"] - start) / (4000 * made.dt)
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
        fine = [Spiking(q=s, qe=s / 2) for s in q]
        found = random_fidelity(fine, circuit=FROZEN, samples=5, at_once=True)
        assert low < slope(q, found.rms.mean(1)) < high
        assert (found.rms < 0.2 * np.array(q)[:, None]).all()


def test_events_go_as_one_over_the_step():
    q = (0.2, 0.1, 0.05)
    found = random_fidelity([Spiking(q=s, qe=s / 2) for s in q], circuit=FROZEN, samples=5)
    for kind in (found.soma, found.apical):
        assert slope(q, kind.mean(1)) == pytest.approx(-1.0, abs=0.15)


def test_moving_weights_leave_an_error_of_the_order_of_the_leak():
    """μ − W r = −τ_s (dW/dt) r remains for q → 0; forgetting sooner makes it smaller."""
    taus = np.array([0.008, 0.004, 0.002])
    circuit = CIRCUIT.model_copy(update={"tau_w": 0.5})
    fine = [Spiking(q=2e-4, qe=1e-4, tau_s=tau) for tau in taus]
    found = random_fidelity(fine, circuit=circuit, samples=8)
    assert slope(taus, found.rms.mean(1)) == pytest.approx(1.0, abs=0.2)


def test_a_known_setting_and_pure_sigma_delta_as_control():
    """Rates, errors, cosines and event rates of 4-16-16-3 networks, four seeds."""
    leaky = [Spiking(q=0.1, qe=0.05), Spiking(q=0.05, qe=0.02)]
    found = random_fidelity([*leaky, Spiking(q=0.05, qe=0.02, tau_s=None)])
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
    made = chips([Spiking(q=1e-9, qe=1e-9)], circuit=FROZEN)
    params = initial_parameters(DEEP, [0], torch.float64)
    exact = Continuous(DEEP, params, FROZEN, dt=1e-4)
    exact.load([made.x[0].clone(), None, None, made.x[3].clone()])
    for engine in (made, exact):
        engine.feedforward()
    made.communicate()
    made.advance(300)
    exact.advance(300)
    for k in (1, 2):
        assert float((made.x[k] - exact.flow.moving()[f"x{k}"]).abs().max()) < 1e-7
        assert float((made.err[k] - exact.flow.moving()[f"err{k}"]).abs().max()) < 1e-7


def test_learning_xor_by_events():
    """The ODE learns it, fine steps do, a step above every rate does not."""
    short = replace(XOR, samples=80, seeds=(0, 2), t_pres=0.05, reset=True)
    found = learn(short, [Spiking(q=0.2, qe=0.1), Spiking(q=2.5, qe=1.25)])
    assert (found.reference == 1).all()
    assert (found.accuracy[0] == 1).all()
    assert (found.accuracy_by_events[0] == 1).all()
    assert (found.accuracy[1] < 1).all()
    assert (found.fidelity.cosine[0] > 0.97).all()


def test_learning_digits_by_events(monkeypatch):
    """Three samples of the embedded digits: both learn the same, and seeds see their own order."""
    monkeypatch.setattr(spiking_tasks, "TEST_TIME", 0.005)  # its test is not looked at here
    short = replace(DIGITS, samples=3, seeds=(0, 1), t_pres=0.02)
    found = learn(short, [Spiking(q=0.02, qe=0.01), Spiking(q=0.4, qe=0.2)])
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
    made = chips([Spiking(q=1e-3, qe=1e-3)] * 2, dt=2.5e-4)
    made.load([None, None, None, torch.zeros(1, 1, 3, dtype=torch.float64)])
    inputs = torch.as_tensor(np.random.default_rng(1).normal(0, 1, (6, 3)))
    off = by_events(made, inputs) - outputs(DEEP, made.params, inputs)
    assert float(off.abs().max()) < 0.02
    assert made.time == 0, "the tested chip itself has not moved"


def test_right_answers():
    asked = Questions(iter([]), torch.zeros(2, 1), torch.tensor([[1.0], [-1.0]]))
    assert asked.right(torch.tensor([[[2.0], [3.0]], [[0.1], [-0.1]]])).tolist() == [0.5, 1.0]
    asked = Questions(iter([]), torch.zeros(2, 1), torch.tensor([1, 0]))
    assert asked.right(torch.tensor([[[0.0, 1.0], [0.0, 1.0]]])).tolist() == [0.5]


def test_a_pair_keeps_seeds_and_descriptions_apart():
    """Each chip of a pair is the chip that runs alone."""
    start = initial_parameters(DEEP, [3, 4], torch.float64)
    each = [Spiking(), Spiking(q=0.4, qe=0.2)]
    pair = Pair(DEEP, CIRCUIT, each, start, dt=1e-4)
    rng = np.random.default_rng(0)
    label, source = (torch.as_tensor(rng.normal(0, 1, (2, 1, n))) for n in (2, 3))
    pair.present([label, None, None, source], 100)
    alone = Parameters(DEEP, start.flat[1:].clone())
    made = SpikingChips(DEEP, alone, CIRCUIT, each[1:], dt=1e-4)
    made.load([label[1:], None, None, source[1:]])
    made.advance(100)
    assert float((pair.chips.params.flat[3] - alone.flat[0]).abs().max()) < 1e-14
    total = sum(int(c.sum()) for c in made.events().values())
    assert pair.fidelity().rate[1, 1] == pytest.approx(total / 14 / 0.01)


@pytest.mark.parametrize(
    ("network", "circuit", "words"),
    [
        (DEEP, Circuit(tau_w=1.0), "circuit.kind 'algebraic'"),
        (DEEP, CIRCUIT.model_copy(update={"transport": "random"}), "circuit.transport 'random'"),
        (DEEP, CIRCUIT.model_copy(update={"delay_fb": 1e-3}), "circuit.delay_fb"),
        (Network.mlp([2, 3, 1], "tanh", convention="post"), CIRCUIT, "convention 'post'"),
        (Network.mlp([2, 3, 1], "softmax"), CIRCUIT, "network.f 'softmax'"),
        (Network.mlp([2, 1], "tanh", output=Gaussian(2.0)), CIRCUIT, "node 0: energy"),
        (Network.mlp([2, 3, 1], "tanh", prior=0.0), CIRCUIT, "network.prior"),
    ],
)
def test_refusals(network, circuit, words):
    params = initial_parameters(network, [0], torch.float64)
    with pytest.raises(UnsupportedError, match="spiking circuit") as error:
        SpikingChips(network, params, circuit, [Spiking()], dt=1e-4)
    assert words in str(error.value)


def test_bad_arguments():
    params = initial_parameters(DEEP, [0], torch.float64)
    with pytest.raises(ConfigError, match="2 descriptions given for 1 chips"):
        SpikingChips(DEEP, params, CIRCUIT, [Spiking()] * 2, dt=1e-4)
    with pytest.raises(ConfigError, match=r"SpikingChips\.dt"):
        SpikingChips(DEEP, params, CIRCUIT, [Spiking(tau_s=5e-5)], dt=1e-4)
    made = SpikingChips(DEEP, params, CIRCUIT, [Spiking()], dt=1e-4)
    with pytest.raises(ConfigError, match=r"SpikingChips\.load"):
        made.load([None, None, None, None])
    with pytest.raises(ValueError, match="greater than 0"):
        Spiking(q=0.0)
