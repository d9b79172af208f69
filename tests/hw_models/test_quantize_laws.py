"""Rounding, converters and events: where they stall, what they lose, and what they keep."""

import numpy as np
import pytest
import torch
from site_world import transform

from hw_models.converters import Converter, SendOnDelta, SigmaDelta
from hw_models.quantize import ConductancePair, QuantizedStates, QuantizedWeights, WeightLevels
from pcsim.errors import ConfigError


def tensor(values):
    return torch.as_tensor(np.atleast_1d(values), dtype=torch.float64).view(1, 1, -1)


def written(piece, w, change, steps=1, seed=0):
    """Write the same change again and again; return the stored weight."""
    w = tensor(w)
    _, write = transform(piece, (1, w.shape[2]), seed=seed)
    for _ in range(steps):
        w = w + write(torch.full_like(w, change), w=w)
    return w.numpy().ravel()


@pytest.mark.parametrize("bits", [2, 3, 6, 8])
def test_reads_land_on_all_levels_and_nowhere_else(bits):
    _, read = transform(QuantizedWeights(bits=bits, range=0.7), (1, 20_001))
    got = read(tensor(np.linspace(-1, 1, 20_001))).numpy().ravel()
    levels = np.unique(np.round(got / 0.7 * (2 ** (bits - 1) - 1), 9))
    np.testing.assert_allclose(levels, np.arange(-(2 ** (bits - 1)) + 1, 2 ** (bits - 1)))
    inside = np.abs(np.linspace(-1, 1, 20_001)) <= 0.7
    step = 0.7 / (2 ** (bits - 1) - 1)
    assert np.abs(got - np.linspace(-1, 1, 20_001))[inside].max() <= step / 2 + 1e-12


def test_nearest_rounding_loses_updates_below_half_a_step():
    """Law 24: an update is lost iff |αg| < LSB/2."""
    piece = QuantizedWeights(bits=4, range=0.7, accumulator=False)  # LSB = 0.1
    assert written(piece, 0.3, 0.049, steps=50)[0] == pytest.approx(0.3)
    assert written(piece, 0.3, 0.051, steps=3)[0] == pytest.approx(0.6)
    assert written(piece, 0.3, -0.051, steps=3)[0] == pytest.approx(0.0)


def test_lms_stalls_at_the_predicted_distance():
    """Q3: w stops at |w* − w| < LSB/(2αf²)."""
    lsb, target = 0.01, 0.37
    piece = QuantizedWeights(bits=8, range=1.27, accumulator=False)
    for alpha in (0.2, 0.02):
        _, write = transform(piece, (1, 1))
        w = tensor(0.0)
        for _ in range(2000):
            w = w + write(alpha * (target - w), w=w)
        gap = abs(target - float(w))
        assert gap < lsb / (2 * alpha) + 1e-12
        assert gap > lsb / (2 * alpha) - lsb - 1e-9  # and not much nearer
    assert float(w) < target  # α = 0.02 stops far away


def test_an_accumulator_loses_nothing():
    _, read = transform(QuantizedWeights(bits=4, range=0.7), (1, 1))
    stored = tensor(0.3)
    for _ in range(50):
        stored = stored + 0.004
    assert float(read(stored)) == pytest.approx(0.5)


def test_stochastic_rounding_is_unbiased_with_its_two_point_variance():
    """Law 24: stationary MSE of LMS is δ(LSB − δ), whatever the rate; mean unbiased."""
    lsb, target = 0.1, 0.337
    piece = QuantizedWeights(bits=4, range=0.7, rounding="stochastic", accumulator=False)
    delta = target - 0.3
    for alpha in (0.5, 0.9):
        w = torch.full((1, 1, 40_000), 0.3, dtype=torch.float64)
        _, write = transform(piece, (1, 40_000))
        errors = []
        for step in range(60):
            w = w + write(alpha * (target - w), w=w)
            if step >= 30:
                errors.append((w - target).numpy().ravel())
        errors = np.stack(errors)
        assert (errors**2).mean() == pytest.approx(delta * (lsb - delta), rel=0.05)
        # correlated in time: the standard error is that of independent weights
        assert abs(errors.mean()) < 3 * errors.mean(0).std() / np.sqrt(40_000)


@pytest.mark.parametrize("where", ["rate", "error", "product", "feedback", "input", "output"])
def test_converter_rounds_and_clips(where):
    _, convert = transform(Converter(where=where, bits=3, range=1.5), (7,))
    got = convert(tensor([-9, -0.26, -0.24, 0.0, 0.26, 1.24, 9])).numpy().ravel()
    np.testing.assert_allclose(got, [-1.5, -0.5, 0, 0, 0.5, 1.0, 1.5])


def test_converter_errors_are_those_of_devices():
    piece = Converter(where="rate", bits=12, range=4.0, gain_error=0.05, offset_error=30.0)
    _, convert = transform(piece, (20_000,))
    lsb = 4.0 / 2047
    at_zero = convert(tensor(np.zeros(20_000))).numpy().ravel()
    at_two = convert(tensor(np.full(20_000, 2.0))).numpy().ravel()
    assert at_zero.std() == pytest.approx(30 * lsb, rel=0.03)
    assert (at_two - at_zero).std() == pytest.approx(0.05 * 2.0, rel=0.03)
    again = convert(tensor(np.zeros(20_000))).numpy().ravel()
    assert np.array_equal(at_zero, again)  # fixed, not noise


def test_subtractive_dither_makes_the_error_uniform():
    _, convert = transform(Converter(where="rate", bits=4, range=0.7, dither=True), (40_000,))
    for value in (0.0, 0.013, 0.05):
        error = convert(tensor(np.full(40_000, value))).numpy().ravel() - value
        assert error.var() == pytest.approx(0.1**2 / 12, rel=0.03)
        assert abs(error.mean()) < 3 * 0.1 / np.sqrt(12 * 40_000)


def test_sigma_delta_mean_is_within_a_step_over_n():
    """Law 26: |mean(q) − u| ≤ Δ/N."""
    _, modulate = transform(SigmaDelta(where="rate", step=0.5), (9,))
    u = np.linspace(-0.9, 0.9, 9)
    total = np.zeros(9)
    for n in range(1, 400):
        value = modulate(tensor(u)).numpy().ravel()
        np.testing.assert_allclose(value / 0.5, np.round(value / 0.5), atol=1e-9)
        total += value
        assert (np.abs(total / n - u) <= 0.5 / n + 1e-12).all()


def test_plain_rounding_does_not_obey_the_sigma_delta_bound():
    _, convert = transform(Converter(where="rate", bits=3, range=1.5), (1,))
    total = sum(float(convert(tensor(0.2))) for _ in range(100))
    assert abs(total / 100 - 0.2) > 0.5 / 100


def test_events_are_sent_when_the_signal_has_moved_enough():
    _, link = transform(SendOnDelta(where="rate", delta=0.1), (1,))
    sent = [float(link(tensor(v))) for v in (0.05, 0.12, 0.2, 0.23, 0.0)]
    assert sent == pytest.approx([0.0, 0.12, 0.12, 0.23, 0.0])
    _, exact = transform(SendOnDelta(where="rate", delta=0.0), (1,))
    assert [float(exact(tensor(v))) for v in (0.3, -0.1)] == [0.3, -0.1]


def test_levels_are_taken_by_nearness():
    _, read = transform(WeightLevels(levels=[-1.0, 0.0, 0.25, 1.0]), (1, 6))
    got = read(tensor([-9, -0.51, -0.49, 0.13, 0.62, 0.63])).numpy().ravel()
    np.testing.assert_allclose(got, [-1, -1, 0, 0.25, 0.25, 1])


def test_pair_of_perfect_conductances_is_the_weight():
    _, read = transform(ConductancePair(levels=10**9, range=2.0), (1, 5))
    w = tensor([-3.0, -1.3, 0.0, 0.4, 2.0])
    np.testing.assert_allclose(read(w).numpy().ravel(), [-2, -1.3, 0, 0.4, 2], atol=1e-8)


def test_pair_at_rest_has_the_spread_of_two_leaks():
    piece = ConductancePair(levels=256, range=1.0, on_off=5.0, spread=0.1)
    _, read = transform(piece, (100, 400))
    zero = read(torch.zeros(1, 100, 400, dtype=torch.float64))
    assert float(zero.std()) == pytest.approx(0.1 * 0.25 * np.sqrt(2), rel=0.03)


def test_pairs_fill_one_after_the_other():
    """Four pairs of two states: nine values, each taken by nearness; one pair has three."""
    w = tensor(np.linspace(-1.3, 1.3, 105))
    _, read = transform(ConductancePair(levels=2, on_off=2.5, pairs=4), (1, 105))
    nearest = np.clip(np.floor(np.abs(w.numpy().ravel()) * 4 + 0.5), 0, 4) / 4
    expected = np.sign(w.numpy().ravel()) * nearest
    np.testing.assert_allclose(read(w).numpy().ravel(), expected, atol=1e-12)
    _, single = transform(ConductancePair(levels=2, on_off=2.5), (1, 105))
    assert len(np.unique(single(w).numpy().round(9))) == 3


def test_the_spread_of_several_pairs_is_that_of_independent_devices():
    """k of n pairs are on: variance (k (1 + off)² + (2n − k) off²) σ²/n²."""
    n, sigma, off = 4, 0.1, 1 / 1.5
    piece = ConductancePair(levels=2, on_off=2.5, pairs=n, spread=sigma)
    _, read = transform(piece, (100, 400))
    for k in (0, 2, 4):
        seen = read(torch.full((1, 100, 400), k / n, dtype=torch.float64))
        expected = sigma / n * np.sqrt(k * (1 + off) ** 2 + (2 * n - k) * off**2)
        assert float(seen.mean()) == pytest.approx(k / n, abs=0.003)
        assert float(seen.std()) == pytest.approx(expected, rel=0.02), k


def test_states_on_a_grid():
    _, velocity = transform(QuantizedStates(bits=4, range=0.7), (3,), dt=0.5)
    x = tensor([0.1, 0.3, 0.6])
    moved = x + 0.5 * velocity(tensor([0.09, 0.11, 9.0]), x=x)
    np.testing.assert_allclose(moved.numpy().ravel(), [0.1, 0.4, 0.7], atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: QuantizedWeights(bits=1), "greater than or equal to 2"),
        (lambda: QuantizedWeights(bits=4, range=0.0), "greater than 0"),
        (lambda: QuantizedWeights(bits=4, rounding="stochastic"), "stochastic is for writes"),
        (lambda: WeightLevels(levels=[1.0, 0.0]), "must ascend"),
        (lambda: ConductancePair(on_off=1.0), "greater than 1"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()
