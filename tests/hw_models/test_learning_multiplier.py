"""The learning multiplier acts in time, and its offset does to weights what the algebra says."""

from functools import cache

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import describe
from hw_models.plasticity_multiplier import LearningMultiplier
from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.continuous import Continuous
from pcsim.backends.discrete import Discrete
from pcsim.circuit import Circuit
from pcsim.config import Schedule
from pcsim.errors import ConfigError
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters
from pcsim.limits.offsets import excess_loss, tolerable_offset, weight_error
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded, Substrate

TAU_W = 2000.0
CHIPS = 400
INPUTS = 4
NETWORK = Network.mlp([INPUTS, 1], "identity", bias=False)


def population(piece, count=1, dt=1.0):
    substrate = Substrate(effects=piece.effects("multiplier"))
    return Chips(substrate, range(count), seed=5, dt=dt, noise=Seeded(0), dtype=torch.float64)


@cache
def inputs() -> tuple[np.ndarray, np.ndarray]:
    """Return 32 inputs whose mean r rᵀ is exactly a matrix with eigenvalues 2, 0.5, 0.1, 0.02."""
    rng = np.random.default_rng(1)
    white, _ = np.linalg.qr(rng.normal(size=(32, INPUTS)))
    modes, _ = np.linalg.qr(rng.normal(size=(INPUTS, INPUTS)))
    r = white * np.sqrt(32 * np.array([2.0, 0.5, 0.1, 0.02])) @ modes.T
    return r, r.T @ r / 32


def streamed(piece, presentation, *, presentations=2000, dt=None):
    """Show samples one at a time to chips that start at the optimum; return Δw and the offsets."""
    dt = presentation if dt is None else dt
    chips = population(piece, CHIPS, dt)
    best = torch.tensor([0.3, -0.5, 0.2, 0.1], dtype=torch.float64)
    params = Parameters(NETWORK, best.expand(CHIPS, -1).clone())
    engine = Continuous(NETWORK, params, Circuit(tau_w=TAU_W), dt=dt, chips=chips, fast=False)
    r, _ = inputs()
    shown = [torch.tensor(one).expand(CHIPS, 1, -1) for one in r]
    rounds = np.tile(np.arange(32), (presentations // 32, 1))
    order = np.random.default_rng(3).permuted(rounds, axis=1)
    for k in order.ravel():
        engine.load([shown[k] @ best.view(-1, 1), shown[k]])
        engine.advance(round(presentation / dt))
    effect = chips.substrate.effects[0]
    offsets = chips.fixed(effect, 0, (1, INPUTS))["shift"]
    return (params.flat - best).numpy(), offsets.numpy()[:, 0], order.size


OFFSETS = LearningMultiplier(offset=0.002, offset_spread=0.01, full_scale=0.7)


@pytest.mark.parametrize("presentation", [0.1, 1.0, 30.0])
def test_weights_leave_the_optimum_as_predicted(presentation):
    error, offsets, shown = streamed(OFFSETS, presentation)
    _, covariance = inputs()
    turns = presentation * shown / TAU_W
    predicted = np.stack([weight_error(covariance, 0.7 * o, turns=turns) for o in offsets])
    size = np.abs(predicted).max()
    assert np.abs(error - predicted).max() < 0.04 * size
    settled = np.stack([weight_error(covariance, 0.7 * o) for o in offsets])
    assert np.abs(error - settled).max() > 0.1 * size  # control: the slowest mode has not settled


def test_weights_settle_where_predicted():
    """All samples side by side, their mean as the request: the exact average."""
    r, covariance = inputs()
    piece = LearningMultiplier(offset_spread=0.01, gain_error=0.5)
    chips = population(piece, CHIPS, 200.0)
    params = Parameters(NETWORK, torch.zeros(CHIPS, INPUTS, dtype=torch.float64))
    circuit = Circuit(tau_w=TAU_W)
    engine = Continuous(NETWORK, params, circuit, dt=200.0, chips=chips, scale=1 / 32, fast=False)
    shown, best = torch.tensor(r).expand(CHIPS, -1, -1), torch.tensor([[0.3], [-0.5], [0.2], [0.1]])
    engine.load([shown @ best.double(), shown])
    engine.advance(3500)
    offsets = chips.fixed(chips.substrate.effects[0], 0, (1, INPUTS))["shift"].numpy()[:, 0]
    error = (params.flat - best.double().T).numpy()
    predicted = np.stack([weight_error(covariance, o, gain=1.5) for o in offsets])
    np.testing.assert_allclose(predicted, offsets @ np.linalg.inv(covariance) / 1.5)
    np.testing.assert_allclose(error, predicted, atol=1e-4)
    assert np.abs(error - 1.5 * predicted).max() > 0.3 * np.abs(predicted).max()  # without gain


def test_the_time_step_is_of_no_consequence():
    coarse, _, _ = streamed(OFFSETS, 4.0, presentations=512)
    fine, _, _ = streamed(OFFSETS, 4.0, presentations=512, dt=1.0)
    np.testing.assert_allclose(coarse, fine, atol=0.01 * np.abs(fine).max())


@pytest.mark.parametrize("presentation", [0.1, 1.0, 30.0])
def test_the_boundary_of_tolerable_offset(presentation):
    """Chips on the predicted boundary lose the tolerance in the mean."""
    _, covariance = inputs()
    shown = 1984
    sigma = tolerable_offset(
        covariance, 1e-4, presentation=presentation, presentations=shown, tau_w=TAU_W
    )
    error, _, count = streamed(LearningMultiplier(offset_spread=sigma), presentation)
    assert count == shown
    losses = 0.5 * np.einsum("ci,ij,cj->c", error, covariance, error)
    uncertainty = losses.std() / np.sqrt(CHIPS)
    assert losses.mean() == pytest.approx(1e-4, abs=4 * uncertainty, rel=0.05)
    assert uncertainty < 0.1e-4


def test_the_boundary_falls_as_one_over_time_and_then_stays():
    _, covariance = inputs()

    def boundary(presentation):
        return tolerable_offset(
            covariance, 1e-3, presentation=presentation, presentations=100, tau_w=1e4
        )

    assert boundary(2e-3) / boundary(1e-3) == pytest.approx(0.5, rel=1e-3)
    assert boundary(1e6) == pytest.approx(boundary(2e6), rel=1e-6)
    floor = np.sqrt(2e-3 / np.trace(np.linalg.inv(covariance)))
    assert boundary(1e6) == pytest.approx(floor)
    assert boundary(10.0) > floor


def test_an_input_that_never_fires_lets_its_weight_run_away_unfelt():
    covariance = np.diag([1.0, 0.0])
    assert weight_error(covariance, [0.1, 0.1], turns=50.0) == pytest.approx([0.1, 5.0])
    assert excess_loss(covariance, 0.1, turns=50.0) == pytest.approx(0.005)
    assert weight_error(covariance, [0.1, 0.0]) == pytest.approx([0.1, 0.0])


@pytest.mark.parametrize("dt", [0.5, 0.125])
def test_static_transfer(dt):
    """z(p) = p − clip(p, ±d), then gain, offset and limit, in units of full scale."""
    piece = LearningMultiplier(
        full_scale=2.0, offset=0.05, gain_error=0.2, dead_zone=0.1, limit=0.6
    )
    product = np.linspace(-2, 2, 81)
    beyond = np.sign(product) * np.maximum(np.abs(product) - 0.2, 0)
    expected = np.clip(1.2 * beyond + 0.1, -1.2, 1.2)
    chip = Devices(piece, count=81, dt=dt)
    done = chip.write(torch.tensor(product * dt)).numpy().ravel()
    np.testing.assert_allclose(done, expected * dt, atol=1e-15)
    assert (done[np.abs(product) < 0.2] == 0.1 * dt).all()


@pytest.mark.parametrize(
    ("per", "shape"), [("device", (3, 5)), ("row", (3, 1)), ("column", (1, 5)), ("chip", (1, 1))]
)
def test_who_shares_a_multiplier(per, shape):
    chips = population(LearningMultiplier(offset_spread=0.1, gain_spread=0.1, per=per), 2)
    drawn = chips.fixed(chips.substrate.effects[0], 0, (3, 5))
    assert drawn["shift"].shape == drawn["gain"].shape == (2, *shape)
    assert len(np.unique(drawn["shift"].numpy())) == 2 * shape[0] * shape[1]


SILENT = [torch.zeros(2, 1, 1, dtype=torch.float64), torch.zeros(2, 1, INPUTS, dtype=torch.float64)]


def drifted(make, batches=3):
    """Return the weights of two chips after batches of zeros, where only the offset writes."""
    params = Parameters(NETWORK, torch.zeros(2, INPUTS, dtype=torch.float64))
    alpha = torch.tensor([0.01, 0.02], dtype=torch.float64)
    optimizer = Optimizer(OptimizerSpec("sgd"), params, alpha, in_place=False)
    engine = make(params, optimizer, population(LearningMultiplier(offset=0.1), 2, 0.5))
    for _ in range(batches):
        engine.batch(SILENT)
    return params.flat.numpy()


@pytest.mark.parametrize("rule", ["ipc", "pc", "bp"])
def test_the_offset_is_integrated_all_the_time_whatever_the_rule(rule):
    """T = 4 steps per batch: 12 steps of α·o, also where a rule writes once per batch."""

    def make(params, optimizer, chips):
        if rule == "bp":
            return ArrayBackprop(NETWORK, params, optimizer, chips=chips, steps=4)
        schedule = Schedule(rule=rule, T=4, fast=False)
        return Discrete(NETWORK, params, schedule, optimizer, gamma=0.5, chips=chips)

    weights = drifted(make)
    np.testing.assert_allclose(weights[0], 12 * 0.01 * 0.1)
    np.testing.assert_allclose(weights[1], 12 * 0.02 * 0.1)


def test_a_dead_zone_beyond_the_limit_is_refused():
    fields = {"kind": "learning_multiplier", "dead_zone": 0.5, "limit": 0.4}
    with pytest.raises(ConfigError, match=r"dead_zone must be below limit, got 0\.5 and 0\.4"):
        describe("ideal", {"m": fields})


@pytest.mark.parametrize(("sleep", "dt"), [(5.0, 1.0), (5.0, 0.7), (10.0, 0.3)])
def test_sleep_takes_an_offset_away_and_leaves_its_ripple(sleep, dt):
    """Over a period an offset adds up to nothing, at any time step; awake it adds up to the ripple,
    offset·(time awake)/τ_w; what is learnt awake stays."""
    every, offset = 20.0, 0.3
    piece = LearningMultiplier(offset=offset, sleep=sleep, wake_every=every)
    chip, awake = Devices(piece, dt=dt), Devices(LearningMultiplier(offset=offset), dt=dt)
    steps = round(10 * every / dt)
    path = []
    for _ in range(steps):
        chip.write(0.0)
        awake.write(0.0)
        path.append(float(chip.w))
    ripple = offset * (every - sleep)  # the bench has τ_w = 1
    assert abs(path[-1]) <= 1.01 * ripple * dt / sleep * every / (every - sleep)
    assert -min(path) == pytest.approx(ripple, rel=0.15)
    assert max(path) < 0.15 * ripple
    assert float(awake.w) == pytest.approx(offset * steps * dt), "control: it runs away"


def test_what_is_asked_for_awake_is_learnt_and_what_is_asleep_is_unlearnt():
    chip = Devices(LearningMultiplier(sleep=5.0, wake_every=20.0))
    done = [float(chip.write(0.01)) for _ in range(40)]
    assert done == pytest.approx(2 * (5 * [-0.03] + 15 * [0.01]))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"sleep": 1.0}, "sleep and wake_every go together"),
        ({"sleep": 2.0, "wake_every": 2.0}, "sleep must be shorter than wake_every"),
        ({"sleep": 1.0, "wake_every": 2.0, "chop": 1.0}, "give one of them"),
    ],
)
def test_phases_that_make_no_sense_are_refused(fields, sentence):
    with pytest.raises(ConfigError, match=sentence):
        describe("ideal", {"m": {"kind": "learning_multiplier", "offset": 0.1, **fields}})
