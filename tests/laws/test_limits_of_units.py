"""From points of accuracy to limits of a chip: law 39, and all laws for one layer of a data set."""

import numpy as np
import pytest

from pcsim import limits
from pcsim.limits import margins, noise, writes
from pcsim.limits.limit import Limit, largest, smallest


def scores(samples=4000, classes=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=samples)
    return np.eye(classes)[labels] + 0.4 * rng.normal(size=(samples, classes)), labels


@pytest.mark.parametrize("variance", [0.02, 0.3, 5.0])
def test_accuracy_under_disturbance_is_that_of_drawn_noise(variance):
    outputs, labels = scores()
    rng = np.random.default_rng(1)
    drawn = [
        ((outputs + np.sqrt(variance) * rng.normal(size=outputs.shape)).argmax(1) == labels).mean()
        for _ in range(20)
    ]
    found = margins.accuracy_when_disturbed(outputs, labels, variance)
    assert found == pytest.approx(np.mean(drawn), abs=3e-3)
    still = margins.accuracy_when_disturbed(outputs, labels, 0.0)
    assert still == (outputs.argmax(1) == labels).mean()
    assert still - found > 0.005, "control"


def test_the_tolerable_variance_loses_the_points():
    outputs, labels = scores()
    still = margins.accuracy_when_disturbed(outputs, labels, 0.0)
    before = 0.0
    for points in (0.01, 0.05, 0.2):
        variance = margins.tolerable_variance(outputs, labels, points)
        left = margins.accuracy_when_disturbed(outputs, labels, variance)
        assert still - left == pytest.approx(points, abs=1e-6)
        assert variance > before
        before = variance
    assert margins.tolerable_variance(outputs, labels, 0.9) == np.inf


@pytest.fixture(scope="module")
def unit():
    rng = np.random.default_rng(3)
    x = np.abs(rng.normal(size=(600, 6)))
    labels = (x @ rng.normal(size=(6, 3)) + 0.3 * rng.normal(size=(600, 3))).argmax(1)
    return limits.Always.of(
        x[:400], labels[:400], x[400:], labels[400:],
        points=0.05, dt=0.4, tau_x=1.0, tau_w=400.0, presentation=20.0,
    )  # fmt: skip


def test_limits_lose_what_is_tolerated(unit):
    """Each limit goes back through its law to the tolerance."""
    s = unit.read_noise().value
    spent = (s**2 / 2) * (0.4 / 1.6 + 1e-3 / (2 - 1e-3 * unit.power) * unit.power)
    assert spent == pytest.approx(unit.tolerance, rel=1e-6)
    assert unit.line_noise(2.0).value == pytest.approx(s / (2 * unit.power**0.5))
    quantum = unit.granularity().value
    floor = writes.excess_of_pulses(quantum, unit.activity.sum(), unit.residual)
    single = noise.excess_of_read_noise(unit.residual, 1e-3, unit.power)
    assert floor - single == pytest.approx(unit.tolerance, rel=1e-6)
    lifetime = unit.lifetime().value
    lost = [writes.excess_of_retention(unit.covariance, w, 400.0, lifetime) for w in unit.best]
    assert np.mean(lost) == pytest.approx(unit.tolerance, rel=1e-6)
    assert unit.times().value == np.inf
    assert unit.write_noise().value == pytest.approx((4 * unit.tolerance * 1e-3 / 6) ** 0.5)


def test_limits_move_as_they_should(unit):
    bits = [
        unit.bits(1.0, accumulator=a, stochastic=s, writes_of=1.0).value
        for a, s in ((True, False), (False, True), (False, False))
    ]
    assert bits == sorted(bits)
    assert bits[0] < bits[2], "control: an accumulator needs fewer"
    slower = unit.bits(1.0, accumulator=False, stochastic=False, writes_of=50.0).value
    assert slower < bits[2], "fewer and larger writes need fewer bits"
    assert unit.imbalance(np.inf).value < 2
    assert unit.bounds().at_most is False
    assert unit.offset(2.0).value == pytest.approx(unit.offset().value / 2)
    assert unit.granularity(1.0).value < unit.granularity().value


def test_a_limit_is_searched_and_said():
    assert largest(lambda x: x**2, 0.09) == pytest.approx(0.3)
    assert largest(lambda x: 1.0, 0.5) == 0.0
    assert largest(lambda x: 0.1, 0.5) == np.inf
    assert smallest(lambda x: 1 / x, 0.25) == pytest.approx(4.0)
    assert np.isnan(smallest(lambda x: 1.0, 0.5))
    assert Limit(38, "noise", 0.0312).words == "≤ 0.0312 by law 38"
    assert Limit(24, "steps", 5.0, at_most=False).words == "≥ 5 by law 24"
    assert Limit(22, "times", np.inf).words == "no limit by law 22"
    assert Limit(25, "retention", np.nan, at_most=False).words == "none by law 25"
