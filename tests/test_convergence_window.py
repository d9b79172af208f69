"""The criterion of convergence: what it stops, what it must not stop, and how often it errs."""

import numpy as np
import pytest

from pcsim.config import Convergence
from pcsim.runner.convergence_window import ConvergenceWindow
from pcsim.trend import block_means, period, swing, trend
from tests.criterion import stop_of

WINDOW, RTOL = 40, 0.01
CHIPS, STEPS = 60, 2400
T = np.arange(STEPS)


def ends(series, window=WINDOW, rtol=RTOL, **fields):
    """Return the step at which each row converged, and at which it was called ringing; 0: never."""
    series = np.atleast_2d(series)
    criterion = ConvergenceWindow(Convergence(window=window, rtol=rtol, **fields), len(series))
    converged, rings = np.zeros((2, len(series)), dtype=int)
    for step, energy in enumerate(series.T, 1):
        criterion.add(energy)
        converged[criterion.converged & (converged == 0)] = step
        rings[criterion.ringing & (rings == 0)] = step
    assert not (converged * rings).any(), "one or the other"
    return converged, rings


def white(rng, shape=(CHIPS, STEPS)):
    return rng.standard_normal(shape)


def autoregressive(rng, phi, shape=(CHIPS, STEPS)):
    noise, out = white(rng, shape), np.empty(shape)
    out[:, 0] = noise[:, 0]
    for k in range(1, shape[1]):
        out[:, k] = phi * out[:, k - 1] + np.sqrt(1 - phi**2) * noise[:, k]
    return out


FLOOR = 1 + 4 * np.exp(-T / 150)
"""Changes by less than RTOL of itself per window from step 704 on: 4 e^{−t/150} = 0.0366."""
SLOW = 5 * np.exp(-T / 2000)
"""Falls by 2 % per window, twice the tolerance, as long as it lasts."""
CONVERGING = {
    "constant": lambda rng: np.ones((1, STEPS)),
    "decay": lambda rng: FLOOR[None],
    "decay to a negative floor": lambda rng: FLOOR[None] - 3,
    "white noise 1 %": lambda rng: FLOOR + 0.01 * white(rng),
    "white noise 5 %": lambda rng: FLOOR + 0.05 * white(rng),
    "white noise 20 %": lambda rng: FLOOR + 0.2 * white(rng),
    "AR(0.9) 5 %": lambda rng: FLOOR + 0.05 * autoregressive(rng, 0.9),
    "AR(0.98) 1 %": lambda rng: FLOOR + 0.01 * autoregressive(rng, 0.98),
}
GOING_ON = {
    "slow decay": lambda rng: SLOW[None],
    "slow decay, white noise 5 %": lambda rng: SLOW * (1 + 0.05 * white(rng)),
    "slow decay, white noise 30 %": lambda rng: SLOW * (1 + 0.3 * white(rng)),
    "slow decay, AR(0.98) 2 %": lambda rng: SLOW * (1 + 0.02 * autoregressive(rng, 0.98)),
    "ramp down": lambda rng: 60 - 0.0225 * T[None] + 0.3 * white(rng),
    "ramp up": lambda rng: 5 + 0.006 * T + 0.1 * white(rng),
    "negative ramp up": lambda rng: -40 + 0.015 * T + 0.1 * white(rng),
    "random walk": lambda rng: 50 + np.cumsum(0.5 * white(rng), 1),
}


@pytest.mark.parametrize("kind", CONVERGING)
def test_what_settles_is_stopped_in_time(kind):
    """No false negative, none called ringing, and none before the energy is flat."""
    converged, rings = ends(CONVERGING[kind](np.random.default_rng(1)))
    assert (converged > 0).mean() >= 0.95, kind
    assert (rings > 0).mean() <= 0.02
    if kind != "constant":
        assert (converged[converged > 0] >= 550).all()


@pytest.mark.parametrize("kind", GOING_ON)
def test_what_moves_is_not_stopped(kind):
    """False positives, over a whole run with its 240 tests: at most 4 %."""
    converged, rings = ends(GOING_ON[kind](np.random.default_rng(2)))
    assert (converged > 0).mean() <= 0.04, kind
    assert (rings > 0).mean() <= 0.02


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("window", [2, 12, 40, 50])
def test_the_criterion_is_the_stated_one(noise, window):
    """An independent implementation stops every chip at the same step."""
    rng = np.random.default_rng(3)
    steps = 300 if window < 12 else 1400
    series = FLOOR[1000 : 1000 + steps] if window < 12 else FLOOR[:steps]
    series = series + noise * white(rng, (2, steps))
    rtol = 0.01 * window / 40
    expected = [stop_of(row, window, rtol) or 0 for row in series]
    assert ends(series, window, rtol)[0].tolist() == expected
    assert any(expected) or noise == 0.05


def test_noise_makes_a_run_longer_never_shorter():
    rng = np.random.default_rng(4)
    noise = white(rng, (40, STEPS))
    medians = [np.median(ends(FLOOR + size * noise)[0]) for size in (0.0, 0.05, 0.2)]
    assert medians[0] < medians[1] < medians[2]


def test_a_chip_is_judged_alone():
    rng = np.random.default_rng(5)
    series = np.concatenate([FLOOR + 0.1 * white(rng, (6, STEPS)), SLOW[None], SLOW[None] * np.nan])
    together, _ = ends(series)
    alone = [int(ends(row)[0][0]) for row in series]
    assert together.tolist() == alone
    assert together[-2:].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("part", "stops"), [(0.9, True), (1.1, False)], ids=["within", "beyond the tolerance"]
)
def test_both_sides_of_the_tolerance(part, stops):
    """F = e^{∓kt} changes by the same part of itself in every window."""
    for sign in (-1, 1):
        curve = np.exp(sign * part * RTOL * T / WINDOW)
        assert bool(ends(curve)[0][0]) is (stops and sign < 0) or sign > 0
    assert bool(ends(10 - part * 0.1 * np.arange(400) / WINDOW)[0][0]) is stops


def test_small_energies_by_the_initial_one():
    """What falls to zero for ever has converged when a window's change is `atol` of F(0)."""
    curve = 5 * np.exp(-T / 100)  # a third per window
    assert ends(curve, atol=0.0)[0][0] == 0
    converged = ends(curve, atol=1e-3)[0][0]
    assert 0 < converged < STEPS
    # four windows later than 5 e^{−t/100}·0.33 = 1e-3·5, and a tenfold F(0) makes it earlier
    assert 500 < converged < 1000
    assert ends(np.concatenate([[50.0], curve]), atol=1e-3)[0][0] < converged


def test_the_lowest_energy_counts():
    def rebound(factor):
        """Down to 1 within 100 steps, then up again by this factor and flat."""
        return 1 + 9 * np.exp(-T / 20) + (factor - 1) * (1 - np.exp(-np.maximum(T - 150, 0) / 30))

    assert ends(rebound(1.2))[0][0] > 0
    assert ends(rebound(1.3))[0][0] == 0
    assert ends(rebound(3.0))[0][0] == 0
    assert ends(rebound(3.0) - 5)[0][0] == 0, "also below zero"


@pytest.mark.parametrize("steps", [2, 3, 7, 33, 100, 161, 400])
def test_a_limit_cycle_rings(steps):
    rng = np.random.default_rng(6)
    turns = np.sin(2 * np.pi * (T / steps + rng.random((4, 1))) + 0.3)
    converged, rings = ends(1 + 4 * np.exp(-T / 50) + 0.3 * turns)
    assert not converged.any()
    assert rings.all() or steps > WINDOW * 4, "four turns in four windows"
    converged, rings = ends(1 + 4 * np.exp(-T / 50) + 0.3 * turns + 0.1 * white(rng, turns.shape))
    assert not converged.any(), "noise does not hide it"
    converged, rings = ends(1 + 4 * np.exp(-T / 50) + 0.005 * turns)
    assert converged.all(), "half the tolerance is no swing"


def test_a_swing_that_dies_out_is_waited_for():
    dying = 1 + 0.15 * np.exp(-T / 400) * np.sin(2 * np.pi * T / 50)
    converged, rings = ends(dying)
    assert not rings.any()
    assert converged[0] > 800  # 0.15 e^{−t/400}/√2 is the tolerance at 944, averaged over 160


def test_trend_and_its_error():
    """The error covers the truth as often as it says, also for correlated noise."""
    rng = np.random.default_rng(7)
    for series in (white(rng, (4000, 320)), autoregressive(rng, 0.9, (4000, 320))):
        line = trend(block_means(series + 0.01 * np.arange(320)))
        wrong = np.abs(line.change - 3.2) > line.error
        assert wrong.mean() < 0.006
        assert (np.abs(line.level - 1.595) > line.level_error).mean() < 0.01
        assert (np.abs(line.change - 3.2) > line.error / 3.79).mean() > 0.1, "control: not too wide"
    exact = trend(np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert exact.change[0] == pytest.approx(4.0)
    assert exact.error[0] == pytest.approx(0, abs=1e-12)
    assert trend(np.array([[1.0, 3.0]])).change[0] == pytest.approx(4.0)
    assert block_means(np.arange(10.0)[None], 4).tolist() == [[2.5, 4.5, 6.5, 8.5]]


def test_periods():
    rng = np.random.default_rng(8)
    for steps in (2, 5, 24):
        assert period(np.sin(2 * np.pi * np.arange(100) / steps + 1)) == steps
    assert period(np.sin(2 * np.pi * np.arange(100) / 40)) == 0, "fewer than four turns"
    assert period(np.ones(100)) == period(np.arange(100.0) ** 2) == period(np.ones(5)) == 0
    assert period(np.full(100, np.nan)) == 0
    assert swing(3 + np.arange(64.0) ** 2) == pytest.approx(0, abs=1e-9)
    assert swing(np.tile([1.0, -1.0], 50)) == pytest.approx(1, abs=1e-3)
    for length in (100, 250):
        noise = [white(rng, (300, length)), autoregressive(rng, 0.9, (300, length))]
        walks = np.cumsum(white(rng, (300, length)), 1)
        for rows in (*noise, walks):
            assert np.mean([period(row) > 0 for row in rows]) <= 0.02
