"""The verdict on synthetic energies whose answer is known."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from pcsim.store import Result, Variable
from pcsim.verdict import judge, verdict_from

T = np.linspace(0, 50, 400)
NEVER = np.array([np.nan])


def outcome(energy, **options):
    verdict = judge(T[: len(energy)], np.asarray(energy)[None], NEVER, **options)
    return str(verdict.outcome[0])


DECAY = 1 + 4 * np.exp(-T / 3)
RNG = np.random.default_rng(0)


def test_decay_to_a_floor_is_convergence():
    verdict = judge(T, DECAY[None], NEVER)
    assert verdict.outcome[0] == "converged"
    assert verdict.floor[0] == pytest.approx(1, abs=1e-3)
    assert verdict.start[0] == DECAY[0]
    assert verdict.spread[0] < 1e-2
    # within 10 % of the way: 4 e^{−t/3} ≤ 0.1 (start − floor)
    expected = 3 * np.log(4 / (0.1 * (verdict.start[0] - verdict.floor[0])))
    assert verdict.settled_at[0] == pytest.approx(expected, abs=0.3)


def test_decay_to_zero_is_convergence():
    assert outcome(5 * np.exp(-T / 3)) in ("converged", "descending")
    assert outcome(5 * np.exp(-T / 0.5) + 1e-30) == "converged"


def test_constant_is_stalled():
    assert outcome(np.full(400, 2.0)) == "stalled"
    assert outcome(np.full(400, 2.0) + 0.01 * RNG.standard_normal(400)) == "stalled"


def test_slow_decay_is_descending():
    assert outcome(5 * np.exp(-T / 40)) == "descending"
    assert outcome(10 - 0.18 * T) == "descending"


@pytest.mark.parametrize("period", [2.0, 4.0, 6.0])
def test_swings_are_ringing(period):
    swing = np.sin(2 * np.pi * T / period)
    assert outcome(2 + swing) == "ringing"
    assert outcome(1 + 4 * np.exp(-T / 3) + 0.5 * swing) == "ringing"
    assert outcome(2 + np.exp(-T / 30) * swing) == "ringing"


def test_a_swing_that_has_died_out_is_convergence():
    assert outcome(1 + 4 * np.exp(-T / 3) * (1 + np.cos(T))) == "converged"


def test_what_is_not_a_number_has_diverged():
    broken = DECAY.copy()
    broken[300:] = np.nan
    assert outcome(broken) == "diverged"
    infinite = DECAY.copy()
    infinite[350:] = np.inf
    assert outcome(infinite) == "diverged"
    huge = judge(T, (np.exp(14 * T) * 1e-2)[None], np.array([20.0]))
    assert huge.outcome[0] == "diverged"
    assert np.isnan(huge.floor[0])
    assert outcome(np.full(400, np.nan)) == "diverged"
    marked = judge(T, DECAY[None], np.array([12.5]))
    assert marked.outcome[0] == "diverged"
    assert marked.diverged_at[0] == 12.5


def test_growth_is_not_convergence():
    assert outcome(np.exp(T / 10)) != "converged"


def test_noise_around_a_floor():
    """Twenty chips with white noise: all converge, with the right floor and spread."""
    noise = 0.1 * RNG.standard_normal((20, 400))
    verdict = judge(T, DECAY + noise, np.full(20, np.nan))
    assert (verdict.outcome == "converged").mean() >= 0.9
    assert verdict.converged == (verdict.outcome == "converged").mean()
    np.testing.assert_allclose(verdict.floor, 1, atol=0.08)
    np.testing.assert_allclose(verdict.spread, 0.1, rtol=0.25)


def test_white_noise_is_not_ringing():
    noise = RNG.standard_normal((500, 400))
    for level in (0.05, 0.3):
        verdict = judge(T, 2 + level * noise, np.full(500, np.nan))
        assert (verdict.outcome == "ringing").mean() <= 0.01
        assert (verdict.outcome == "stalled").mean() >= 0.95


def test_rises_are_counted_where_energy_must_fall():
    assert np.isnan(judge(T, DECAY[None], NEVER).rises[0])
    assert judge(T, DECAY[None], NEVER, lyapunov=True).rises[0] == 0
    bumpy = DECAY.copy()
    bumpy[[50, 100, 150]] += 0.5
    assert judge(T, bumpy[None], NEVER, lyapunov=True).rises[0] == pytest.approx(3 / 399)


def test_chips_are_judged_one_by_one():
    energy = np.stack([DECAY, np.full(400, 2.0), 2 + np.sin(2 * T), np.full(400, np.nan)])
    verdict = judge(
        T, energy, np.array([np.nan, np.nan, np.nan, 3.0]), np.array([0.9, 0.1, 0.2, 0])
    )
    assert list(verdict.outcome) == ["converged", "stalled", "ringing", "diverged"]
    assert verdict.accuracy[0] == 0.9
    console = Console(width=120, record=True, file=StringIO())
    console.print(verdict.table())
    shown = console.export_text()
    assert "4 chips: 1 converged, 1 stalled, 1 ringing, 1 diverged" in shown
    stored = Result({f"verdict.{n}": Variable(("chip",), v) for n, v in verdict.columns().items()})
    again = verdict_from(stored)
    assert list(again.outcome) == list(verdict.outcome)
    np.testing.assert_array_equal(again.floor, verdict.floor)


@pytest.mark.parametrize("records", [1, 2, 5, 11, 30])
def test_short_records_are_judged_too(records):
    verdict = judge(T[:records], np.linspace(5, 1, records)[None], NEVER, lyapunov=True)
    assert verdict.outcome[0] in ("converged", "descending", "stalled")


def test_an_energy_that_grows_is_called_rising():
    times = np.arange(400.0)
    energy = np.stack([np.exp(times / 100), np.exp(-times / 100)])
    outcome = judge(times, energy, np.full(2, np.nan)).outcome
    assert outcome.tolist()[0] == "rising"
    assert outcome.tolist()[1] != "rising"
