"""Confidence intervals: a known gap is covered at the stated rate."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pcsim.compare.contender import Contender, Curve, unknown_progress
from pcsim.compare.contrast import contrast
from pcsim.compare.interval import BOOTSTRAP_SEEDS, paired_gap, unpaired_gap

GAP, SEEDS = -0.02, 5


def contender(name: str, accuracy: np.ndarray) -> Contender:
    curve = Curve(accuracy[:, None], unknown_progress((len(accuracy), 1)))
    return Contender(name, name, {}, np.arange(len(accuracy)), accuracy, curve)


def within_three_errors(covered: np.ndarray, rate: float) -> bool:
    return bool(abs(covered.mean() - rate) < 3 * np.sqrt(rate * (1 - rate) / len(covered)))


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_a_known_gap_is_covered_at_the_stated_rate(confidence: float) -> None:
    """Through the whole comparison; seeds share a large part of their luck, as paired ones do."""
    rng = np.random.default_rng(1)
    covered, narrow, widths = [], [], {"paired": [], "unpaired": []}
    for _ in range(500):
        luck = rng.normal(0.9, 0.02, SEEDS)
        a = contender("a", luck + rng.normal(0, 0.004, SEEDS))
        b = contender("b", luck + GAP + rng.normal(0, 0.004, SEEDS))
        found = contrast([a, b], confidence=confidence)
        low, high = found["gap_low"][1], found["gap_high"][1]
        covered.append(low <= GAP <= high)
        # The control: a normal quantile in place of Student's is too narrow for five seeds.
        shrink = stats.norm.ppf(0.5 + confidence / 2) / stats.t.ppf(0.5 + confidence / 2, SEEDS - 1)
        narrow.append(abs(found["gap_mean"][1] - GAP) <= shrink * (high - low) / 2)
        widths["paired"].append(high - low)
        welch = contrast([a, b], confidence=confidence, unpaired=True)
        widths["unpaired"].append(welch["gap_high"][1] - welch["gap_low"][1])
    assert within_three_errors(np.array(covered), confidence)
    assert not within_three_errors(np.array(narrow), confidence)
    assert np.mean(widths["paired"]) < 0.4 * np.mean(widths["unpaired"])  # what pairing is for


def test_paired_coverage_in_many_repetitions() -> None:
    rng = np.random.default_rng(2)
    drawn = rng.normal(GAP, 0.01, (6000, SEEDS))
    gaps = [paired_gap(row, 0.95) for row in drawn]
    covered = np.array([gap.low <= GAP <= gap.high for gap in gaps])
    assert within_three_errors(covered, 0.95)


def test_unpaired_coverage_with_unequal_spreads() -> None:
    rng = np.random.default_rng(3)
    covered = []
    for _ in range(4000):
        gap = unpaired_gap(rng.normal(0, 0.01, 8), rng.normal(GAP, 0.02, 12), 0.95)
        covered.append(gap.low <= GAP <= gap.high)
    assert abs(np.mean(covered) - 0.95) < 0.011  # Welch's is an approximation, a good one


def test_intervals_agree_with_scipy() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(0, 1, 6), rng.normal(0.3, 1, 6)
    limits = stats.ttest_rel(b, a).confidence_interval(0.9)
    gap = paired_gap(b - a, 0.9)
    assert (gap.low, gap.high) == pytest.approx((limits.low, limits.high))
    limits = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.9)
    gap = unpaired_gap(a, b, 0.9)
    assert (gap.low, gap.high) == pytest.approx((limits.low, limits.high))


def test_bootstrap_covers_a_skewed_gap() -> None:
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(150):
        gap = paired_gap(rng.exponential(1, 40), 0.95)
        covered.append(gap.bootstrap_low <= 1 <= gap.bootstrap_high)
    assert 0.88 <= np.mean(covered) <= 0.98


def test_few_seeds_are_not_bootstrapped_and_one_has_no_interval() -> None:
    few = paired_gap(np.linspace(0, 1, BOOTSTRAP_SEEDS - 1), 0.95)
    assert np.isnan(few.bootstrap_low)
    assert np.isfinite(few.low)
    enough = paired_gap(np.linspace(0, 1, BOOTSTRAP_SEEDS), 0.95)
    assert enough.bootstrap_low < 0.5 < enough.bootstrap_high
    one = paired_gap(np.array([0.1]), 0.95)
    assert one.mean == 0.1
    assert np.isnan([one.low, one.high]).all()
    same = paired_gap(np.full(BOOTSTRAP_SEEDS, 0.25), 0.95)
    assert (same.low, same.high, same.bootstrap_low, same.bootstrap_high) == (0.25,) * 4
