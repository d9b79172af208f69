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


def test_an_energy_that_swings_to_the_end_has_no_settling_time():
    """The last swing ends with the run; its time would be the run's length."""
    swing = np.stack([DECAY, DECAY + np.cos(2 * np.pi * T / 10), 5 - 0.09 * T])
    settled = judge(T, swing, np.full(3, np.nan)).settled_at
    assert np.isfinite(settled).tolist() == [True, False, False]


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


# -- both sides of every threshold -----------------------------------------------------------------


@pytest.mark.parametrize(("floor", "name"), [(0.89, "converged"), (0.91, "stalled")])
def test_a_tenth_of_the_initial_energy_must_be_gone(floor, name):
    fall = np.exp(-T / 3)
    assert outcome(5 * (floor + (1 - floor) * fall)) == name
    below = -1 - (1 - floor) * (1 - fall)
    assert outcome(below) == name, "below zero by as much"


def test_negative_energies_that_rise_have_not_converged():
    assert outcome(-1 + 0.05 * (1 - np.exp(-T / 3))) == "stalled"
    assert outcome(-10 + 0.18 * T) == "rising"
    assert outcome(-10 - 0.18 * T) == "descending"
    assert outcome(-1 - 4 * (1 - np.exp(-T / 3))) == "converged"


@pytest.mark.parametrize(("part", "name"), [(0.045, "converged"), (0.06, "descending")])
def test_a_settled_chip_moves_by_five_percent_within_a_quarter(part, name):
    """A line whose last quarter falls by this part of its mean."""
    line = 1 + part * (50 - 6.25 - T) / 12.5
    assert outcome(np.where(T < 30, 1 + 4 * np.exp(-T / 3), 0) + line - (T < 30)) == name


def test_what_has_fallen_to_a_thousandth_is_settled():
    assert outcome(5 * np.exp(-T / 3)) == "converged"
    assert outcome(5 * np.exp(-T / 11)) == "descending"
    rest = (60 - T) / 60  # falls by half within the last quarter
    assert outcome(5 * np.exp(-T) + 4e-3 * rest) == "converged"
    assert outcome(5 * np.exp(-T) + 1e-1 * rest) == "descending"


@pytest.mark.parametrize(("factor", "name"), [(1.28, "converged"), (1.35, "rebounded")])
def test_a_quarter_above_the_lowest_is_a_rebound(factor, name):
    # and the tolerance of what is settled: 0.05·1.3 + 0.001·10
    back = 1 + 9 * np.exp(-T / 2) + (factor - 1) * (1 - np.exp(-np.maximum(T - 25, 0) / 2))
    assert outcome(back) == name


def test_up_again_is_a_rebound_and_up_from_the_start_is_rising():
    up = np.maximum(T - 25, 0) * 0.05
    assert outcome(1 + 9 * np.exp(-T / 2) + up) == "rebounded"
    assert outcome(1 + 0.05 * T) == "rising"


@pytest.mark.parametrize(("size", "name"), [(0.04, "ringing"), (0.02, "converged")])
def test_a_ringing_chip_swings_by_two_percent(size, name):
    """Root mean squares of 2.8 and 1.4 %."""
    assert outcome(DECAY + size * np.sin(2 * np.pi * T / 3)) == name


def test_a_switched_stream_is_never_ringing():
    swing = 1 + 4 * np.exp(-T / 3) + 0.5 * np.sin(2 * np.pi * T / 3)
    assert outcome(swing) == "ringing"
    assert outcome(swing, switched=True) == "converged"


def test_longer_runs_keep_the_start():
    """The same decay, seen for longer, with records further apart, has still converged."""
    for length in (30, 100, 1000, 30000):
        times = np.linspace(0.02 * length, length, 300)
        energy = 1 + 0.2 * np.exp(-times / 3)
        verdict = judge(times, energy[None], NEVER, initial=np.array([[1.2]]))
        assert verdict.outcome[0] == "converged", length
        assert verdict.start[0] == 1.2
    late = judge(times, energy[None], NEVER)
    assert late.outcome[0] == "stalled", "control: without it nothing seems to have happened"


def test_noise_does_not_hide_a_descent():
    """5 % per quarter beyond the tolerance, under noise of 20 %: the half of the run shows it."""
    rng = np.random.default_rng(5)
    line = 10 * (1 - 0.012 * T)
    chips = judge(T, line + 2 * rng.standard_normal((200, 400)), np.full(200, np.nan))
    assert (chips.outcome == "descending").mean() > 0.8
    flat = judge(T, 10 + 2 * rng.standard_normal((200, 400)), np.full(200, np.nan))
    assert (flat.outcome == "stalled").mean() > 0.97


def test_several_initial_energies_are_averaged_with_their_error():
    rng = np.random.default_rng(6)
    first = 1 + 0.5 * rng.standard_normal((1, 32))
    verdict = judge(T, np.full((1, 400), first.mean() - 0.2), NEVER, initial=first)
    assert verdict.start[0] == pytest.approx(first.mean())
    assert verdict.outcome[0] == "stalled", "0.2 is within 3·0.5/√32"
    lower = judge(T, np.full((1, 400), first.mean() - 0.35), NEVER, initial=first)
    assert lower.outcome[0] == "converged"


def test_a_criterion_of_the_run_is_taken_as_it_is():
    slow = 5 * np.exp(-T / 40)
    yes, no = np.array([True]), np.array([False])
    assert outcome(slow, settled=yes, ringing=no) == "converged"
    assert outcome(DECAY, settled=no, ringing=no) == "descending"
    assert outcome(DECAY, settled=no, ringing=yes) == "ringing"


def test_records_behind_a_stop_do_not_count():
    held = np.where(T < 20, 10 - 0.4 * T, 2.0)
    energy = np.stack([held, held])
    ends = np.array([int((T < 20).sum()), 400])
    verdict = judge(T, energy, np.full(2, np.nan), ends=ends)
    assert verdict.outcome.tolist() == ["descending", "converged"]
    assert verdict.spread[0] > 0.3 > verdict.spread[1]
