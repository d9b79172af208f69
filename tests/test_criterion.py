"""The criterion of a verdict: synthetic accuracies on both sides of every threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, t

from pcsim.check.criterion import OUTCOMES, Answer, Criterion, guessing, share
from pcsim.errors import ConfigError

LABELS = np.arange(400) % 10


def answer(accuracy, reference=0.9, energy="converged", floor=0.15, **options):
    """Return the answer for accuracies (seed, chip); one row stands for three equal seeds."""
    accuracy = np.atleast_2d(np.asarray(accuracy, dtype=float))
    if len(accuracy) == 1:
        accuracy = np.repeat(accuracy, 3, axis=0)
    reference = np.broadcast_to(np.asarray(reference, dtype=float), len(accuracy))
    names = np.broadcast_to(np.asarray(energy), accuracy.shape)
    criterion = options.pop("criterion", Criterion())
    return Answer(criterion, accuracy, names, reference, 0.1, floor, **options)


@pytest.mark.parametrize(
    ("loss", "outcome"),
    [(0.0, "trains"), (0.05, "trains"), (0.0501, "trains with loss"), (0.399, "trains with loss")],
)
def test_five_points_may_be_lost_and_half_may_be_kept(loss, outcome):
    """A reference of 90 % with a guess of 10 %: half of what it learnt is 50 %."""
    assert answer([0.9 - loss] * 32).outcome == outcome
    assert answer([0.499] * 32).outcome == "fails"
    assert answer([0.501] * 32).outcome == "trains with loss"


def test_the_tolerance_is_an_argument():
    wide = Criterion(tolerance=0.2)
    assert answer([0.75] * 32, criterion=wide).outcome == "trains"
    assert answer([0.69] * 32, criterion=wide).outcome == "trains with loss"


@pytest.mark.parametrize(
    ("good", "chips", "yield_", "outcome"),
    [
        (29, 29, 0.9, "trains"),  # 0.9^29 < 5 %
        (28, 28, 0.9, "marginal"),  # 0.9^28 > 5 %
        (32, 32, 0.9, "trains"),
        (31, 32, 0.9, "marginal"),
        (26, 32, 0.9, "marginal"),
        (25, 32, 0.9, "trains with loss"),
        (31, 32, 0.8, "trains"),
        (31, 32, 0.95, "marginal"),
        (0, 32, 0.9, "trains with loss"),
    ],
)
def test_the_yield_knows_how_few_chips_there_are(good, chips, yield_, outcome):
    """An independent oracle: a binomial tail of 5 % on either side."""
    found = answer([0.9] * good + [0.7] * (chips - good), criterion=Criterion(yield_=yield_))
    assert found.outcome == outcome
    surely = binom.sf(good - 1, chips, yield_) <= 0.05
    hardly = binom.cdf(good, chips, yield_) < 0.05
    assert (found.good.low >= yield_, found.good.high < yield_) == (surely, hardly)


def test_intervals_are_those_of_clopper_and_pearson():
    for count, total in ((0, 10), (3, 10), (10, 10), (50, 64)):
        found = share(count, count, count, total, 0.9)
        if count:
            assert binom.sf(count - 1, total, found.low) == pytest.approx(0.05)
        if count < total:
            assert binom.cdf(count, total, found.high) == pytest.approx(0.05)
        assert found.count == count
    assert share(0, 0, 0, 5, 0.9).low == 0
    assert share(5, 5, 5, 5, 0.9).high == 1


def test_an_interval_from_uncertain_counts_is_the_widest_of_theirs():
    """Its low end is that of the least count, its high end that of the largest."""
    uncertain = share(20, 26, 30, 32, 0.9)
    assert uncertain.low == share(20, 20, 20, 32, 0.9).low
    assert uncertain.high == share(30, 30, 30, 32, 0.9).high
    assert uncertain.count == 26


def test_one_seed_knows_no_error_and_decides_nothing():
    """All chips lose nothing, or nearly all: a single seed cannot say whether others would."""
    for accuracy in (0.9, 0.6):
        right = np.full((1, 64), accuracy)
        found = Answer(
            Criterion(), right, np.full((1, 64), "converged"), np.array([0.9]), 0.1, 0.15
        )
        assert found.error == np.inf
        assert found.outcome == "marginal"


def test_seeds_are_paired():
    """The reference moves with its seed: what is common to both is no loss, and no doubt."""
    reference = np.array([0.8, 0.9, 0.95])
    found = answer(np.repeat(reference[:, None] - 0.03, 32, axis=1), reference=reference)
    assert found.outcome == "trains"
    assert found.error == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(found.loss, 0.03)


def test_few_seeds_are_a_doubt_common_to_all_chips():
    """Losses of 0, 4 and 8 points by seed: 4 ± 6.7 on average, and more seeds would decide."""
    losses = np.array([0.0, 0.04, 0.08])
    found = answer(np.repeat(0.9 - losses[:, None], 32, axis=1))
    error = t.ppf(0.95, 2) * 0.04 / np.sqrt(3)
    assert found.error == pytest.approx(error)
    assert found.good.count == 32
    assert found.outcome == "marginal"
    seeds = int(found.would_decide.split()[1])
    assert found.would_decide == f"about {seeds} seeds would decide"
    enough = [t.ppf(0.95, s - 1) * 0.04 / np.sqrt(s) <= 0.01 for s in (seeds - 1, seeds)]
    assert enough == [False, True]


def test_so_many_seeds_that_nobody_trains_them_are_not_named():
    """100 seeds settle a distance to the limit of t_99·σ/√100, and no smaller one."""
    scatter = np.array([-0.04, 0.0, 0.04])
    error = t.ppf(0.95, 99) * 0.04 / np.sqrt(100)
    for beyond, words in (
        (0.98 * error, "near the limit: more than 100 seeds would be needed to decide"),
        (1.02 * error, "about 9"),
    ):
        found = answer(np.repeat(0.9 - 0.05 + beyond + scatter[:, None], 32, axis=1))
        assert found.outcome == "marginal"
        assert found.would_decide.startswith(words)


def test_marginal_says_how_many_chips_would_decide():
    found = answer([0.9] * 31 + [0.7])
    number = int(found.would_decide.split()[1])
    assert found.would_decide == f"about {number} chips would decide"
    good = round(31 / 32 * number)
    assert binom.sf(good - 1, number, 0.9) <= 0.05
    fewer = int(number / 1.25)
    assert binom.sf(round(31 / 32 * fewer) - 1, fewer, 0.9) > 0.05, "no more than are needed"
    at_limit = answer([0.9] * 36 + [0.7] * 4)
    assert "no number of chips decides" in at_limit.would_decide
    assert answer([0.9] * 32).would_decide == ""


def test_few_chips_and_seeds_that_scatter_need_more_of_both():
    """Eight good chips are too few; where seeds scatter, no number of chips decides alone."""
    steady = answer([[0.87] * 8, [0.88] * 8, [0.89] * 8])
    assert steady.would_decide.endswith("chips would decide")
    blurred = answer([[0.84] * 8, [0.88] * 8, [0.92] * 8])
    assert blurred.good.count == steady.good.count == 8
    assert blurred.would_decide.endswith("chips and more seeds would decide")


def test_between_loss_and_failure_is_marginal():
    assert answer([0.7] * 32).outcome == "trains with loss"
    assert answer([0.7] * 28 + [0.1] * 4).outcome == "marginal"
    assert answer([0.7] * 20 + [0.1] * 12).outcome == "fails"


@pytest.mark.parametrize(
    ("energy", "word"),
    [
        ("diverged", "diverge"),
        ("ringing", "ring"),
        ("rising", "rise"),
        ("rebounded", "forget"),
        ("stalled", "stall"),
        ("converged", "guess"),
        ("descending", "guess"),
    ],
)
def test_failures_are_told_by_their_energies(energy, word):
    found = answer([0.1] * 32, energy=energy)
    assert (found.outcome, found.failures) == ("fails", {word: 32})


@pytest.mark.parametrize("energy", ["converged", "descending", "stalled", "rebounded", "ringing"])
def test_energy_and_accuracy_are_two_questions(energy):
    """Noise may keep an energy from falling: what was learnt is what the chip answers."""
    assert answer([0.9] * 32, energy=energy).outcome == "trains"


def test_a_chip_that_diverged_once_is_not_good():
    accuracy, energy = np.full((3, 32), 0.9), np.full((3, 32), "converged", dtype="<U10")
    energy[1, :10] = "diverged"
    assert answer(accuracy, energy=energy).good.count == 22
    assert answer(accuracy, energy=energy).failures == {"diverge": 10}
    accuracy[1, :10] = np.nan
    assert answer(accuracy).good.count == 22


@pytest.mark.parametrize(
    ("reference", "accuracy", "outcome"),
    [
        (0.15, 0.9, "no verdict"),
        (0.1999, 0.2, "no verdict"),
        (0.2001, 0.2, "trains"),
        (np.nan, 0.9, "no verdict"),
        ([0.9, 0.9, np.nan], 0.9, "no verdict"),
    ],
)
def test_a_reference_at_the_floor_gives_no_verdict(reference, accuracy, outcome):
    assert answer([accuracy] * 32, reference=reference).outcome == outcome


def test_the_shuffled_control_raises_the_floor():
    assert answer([0.9] * 32, floor=0.84).outcome == "trains"
    assert answer([0.9] * 32, floor=0.86).outcome == "no verdict"


def test_identical_chips_have_no_interval():
    assert answer([0.9], identical=True).outcome == "trains"
    assert answer([0.8], identical=True).outcome == "trains with loss"
    assert answer([0.1], identical=True).outcome == "fails"
    assert answer([0.9]).outcome == "marginal", "the control: one chip of many"


def test_a_share_at_the_yield_reaches_it():
    """Of either end of an interval; only identical chips have ends that are ratios."""
    assert answer([0.9] * 9 + [0.1], identical=True).outcome == "trains"
    seeds = [[0.9 - loss] * 9 + [0.1] for loss in (0.01, 0.03, 0.05)]
    doubtful = answer(seeds, identical=True)
    assert (doubtful.good.low, doubtful.good.high) == (0.0, 0.9)
    assert doubtful.outcome == "marginal"


def test_half_of_what_was_learnt_is_enough():
    assert answer([0.5] * 40, reference=0.9).has_learnt.all(), "exactly half above the guess"


def test_a_chance_is_the_commonest_class_with_a_bound():
    """The smallest accuracy that at most one guess in a thousand exceeds, by the exact tail."""
    for labels in (LABELS, np.array([0] * 300 + [1] * 100), np.arange(40) % 2):
        count = len(labels)
        right = round(guessing(labels) * count)
        weights = binom.pmf(np.arange(count + 1), count, np.bincount(labels).max() / count)
        assert weights[right + 1 :].sum() <= 1e-3 < weights[right:].sum()
    assert guessing(np.array([0] * 300 + [1] * 100)) > 0.8, "shuffled labels teach that much"


@pytest.mark.parametrize("fields", [{"tolerance": 0.0}, {"yield_": 1.0}, {"confidence": 0.5}])
def test_a_criterion_without_meaning_is_refused(fields):
    with pytest.raises(ConfigError):
        Criterion(**fields)


RANK = {"trains": 2, "trains with loss": 1, "fails": 0}
CHIPS = st.lists(st.floats(0, 1), min_size=32, max_size=32)


@given(CHIPS, st.floats(0, 0.5), st.lists(st.floats(-0.05, 0.05), min_size=3, max_size=3))
def test_worse_chips_never_have_a_better_outcome(accuracy, worse, seeds):
    """Every chip loses as much more: the outcome stays, gets worse, or gets undecided."""
    better = np.clip(np.asarray(accuracy)[None] + np.asarray(seeds)[:, None], 0, 1)
    before, after = answer(better), answer(np.clip(better - worse, 0, 1))
    assert {before.outcome, after.outcome} <= set(OUTCOMES)
    if after.outcome == "trains":
        assert before.good.count == 32 or before.outcome == "trains"
        assert before.outcome in ("trains", "marginal")
    if before.outcome == "fails":
        assert after.outcome in ("fails", "marginal")
