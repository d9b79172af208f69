"""What counts as training: the criterion, and the answer that accuracies give by it.

A population has C chips, each trained from S seeds; row s of the reference is the best ideal rule
with the same seed, data and initial weights. With accuracies a_sk of chip k and r_s,

    loss of a chip     ℓ_k = mean_s (r_s − a_sk)                        paired over seeds
    its error          e   = t_{S−1} · SD_s(median_k (r_s − a_sk))/√S     common to all chips
    good               ℓ_k ≤ tolerance
    learnt             mean_s a_sk − guess ≥ ½ (mean_s r_s − guess), and never diverged

The share of good chips has the interval of Clopper and Pearson; its lower limit counts chips with
ℓ_k + e ≤ tolerance, its upper one those with ℓ_k − e ≤ tolerance, so that it knows of both, few
chips and few seeds. It is compared with the yield that was asked for:

    trains             the whole interval of the good lies at or above the yield
    trains with loss   it lies below, and that of the learnt at or above
    fails              both lie below: the chips stall, diverge, ring, forget, or guess
    marginal           an interval straddles the yield; so many chips or seeds would decide
    no verdict         the reference is not above the floor by more than the tolerance

The floor is what needs no learning: guessing the commonest class of n test samples (a binomial
number is right; one guess in a thousand does better), or training with shuffled labels, whichever
is higher. The test samples are taken as given: the answer is about this data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field
from scipy.special import bdtr, betaincinv, stdtrit  # scipy.stats takes half a second to import

from pcsim.frozen import Frozen

Array = npt.NDArray[Any]
Outcome = Literal["trains", "trains with loss", "marginal", "fails", "no verdict"]
OUTCOMES: tuple[Outcome, ...] = (
    "trains",
    "trains with loss",
    "marginal",
    "fails",
    "no verdict",
)
LUCK = 1e-3
"""Probability that a guess does better than the bound on it."""
LEARNT = 0.5
"""Part of what the reference has learnt that a chip which trains with loss has, at least."""
MOST = 10_000
"""Chips beyond this are not worth naming as the number that would decide."""
MOST_SEEDS = 100
"""The same for seeds, each of which is a training of every chip."""
FAILURES = {
    "diverged": "diverge",
    "ringing": "ring",
    "rising": "rise",
    "rebounded": "forget",
    "stalled": "stall",
}
"""What a chip that has not learnt does, by the outcome of its energy; the first that a seed shows.
Chips whose energy came down all the same `guess`."""


class Criterion(Frozen):
    """When a chip trains."""

    tolerance: Annotated[float, Field(gt=0, lt=1)] = 0.05
    """Test accuracy (a fraction) that a chip may lose against the best ideal rule."""
    yield_: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """Share of chips that must be good."""
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.9
    """Of intervals: each side errs in half of the rest."""

    @property
    def words(self) -> str:
        """The criterion as a person would say it."""
        return (
            f"{100 * self.yield_:g} % of the chips within {100 * self.tolerance:g} points of the "
            f"best ideal rule, at {100 * self.confidence:g} % confidence"
        )


@dataclass(frozen=True)
class Share:
    """A number of chips of a kind, and the interval of their share in all chips there could be."""

    count: int
    low: float
    high: float


def share(least: int, count: int, most: int, total: int, confidence: float) -> Share:
    """Return the interval of Clopper and Pearson, from counts that are themselves uncertain."""
    doubt = (1 - confidence) / 2
    low = float(betaincinv(least, total - least + 1, doubt)) if least else 0.0
    high = float(betaincinv(most + 1, total - most, 1 - doubt)) if most < total else 1.0
    return Share(count, low, high)


def guessing(labels: npt.NDArray[np.int64]) -> float:
    """Return the accuracy that guessing the commonest class exceeds with probability `LUCK`."""
    count = len(labels)
    right = bdtr(np.arange(count + 1.0), count, commonest(labels))
    return float(np.searchsorted(right, 1 - LUCK)) / count


def commonest(labels: npt.NDArray[np.int64]) -> float:
    """Return the share of the commonest class: the accuracy of a guess."""
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to 'does it train?', from accuracies alone."""

    criterion: Criterion
    accuracy: Array
    """Test accuracies (seed, chip); NaN counts as nothing right."""
    energy: Array
    """What the energies did (seed, chip), as `pcsim.verdict` says it."""
    reference: Array
    """Test accuracies (seed,) of the best ideal rule."""
    guess: float
    """Accuracy of guessing the commonest class."""
    floor: float
    """Accuracy that needs no learning."""
    identical: bool = False
    """All chips there could be are this one (ideal hardware): the yield has no interval."""

    @property
    def chips(self) -> int:
        """How many chips there are."""
        return int(self.accuracy.shape[1])

    @property
    def seeds(self) -> int:
        """How many seeds each was trained from."""
        return int(self.accuracy.shape[0])

    @cached_property
    def losses(self) -> Array:
        """Accuracy (seed, chip) that each training lost against the reference of its seed."""
        right = np.nan_to_num(np.asarray(self.accuracy, dtype=float))
        return np.asarray(np.asarray(self.reference, dtype=float)[:, None] - right)

    @property
    def loss(self) -> Array:
        """Accuracy (chip,) that each chip loses, mean over seeds."""
        return np.asarray(self.losses.mean(0))

    @property
    def error(self) -> float:
        """How well seeds tell the loss: half the interval, common to all chips."""
        return self._error_of(self.seeds)

    def _error_of(self, seeds: int) -> float:
        """Return the error with another number of seeds that scatter as these do."""
        if self.seeds < 2:
            return float("inf")
        scatter = float(np.median(self.losses, axis=1).std(ddof=1))
        away = float(stdtrit(seeds - 1, 0.5 + self.criterion.confidence / 2))
        return away * scatter / sqrt(seeds)

    @property
    def diverged(self) -> Array:
        """Which chips (chip,) diverged from one seed at least."""
        return np.asarray((self.energy == "diverged").any(0) | np.isnan(self.accuracy).any(0))

    @property
    def good(self) -> Share:
        """The chips that lose no more than the tolerance."""
        return self._good(self.error)

    def _good(self, error: float) -> Share:
        least, count, most = (self._within(offset) for offset in (error, 0.0, -error))
        return self._share(least, count, most)

    def _within(self, offset: float) -> int:
        """Count the chips that would be good if every loss were larger by an offset."""
        # Accuracies are ratios of whole numbers: what is equal on paper is equal here.
        within = self.loss + offset <= self.criterion.tolerance + 1e-9
        return int((within & ~self.diverged).sum())

    def _share(self, least: int, count: int, most: int) -> Share:
        if self.identical:
            return Share(count, least / self.chips, most / self.chips)
        return share(least, count, most, self.chips, self.criterion.confidence)

    @cached_property
    def has_learnt(self) -> Array:
        """Which chips (chip,) have learnt something worth the name."""
        gained = np.nan_to_num(np.asarray(self.accuracy, dtype=float)).mean(0) - self.guess
        enough = gained >= LEARNT * (float(np.mean(self.reference)) - self.guess)
        return np.asarray(enough & ~self.diverged)

    @property
    def learnt(self) -> Share:
        """The chips that have learnt, good or not."""
        count = int(self.has_learnt.sum())
        return self._share(count, count, count)

    @cached_property
    def outcome(self) -> Outcome:
        """Return the answer, or that there is none."""
        reference = float(np.mean(self.reference))
        if not reference - self.criterion.tolerance > self.floor:  # also where it is no number
            return "no verdict"
        trains = self._above(self.good)
        if trains is not False:
            return "trains" if trains else "marginal"
        learns = self._above(self.learnt)
        if learns is None:
            return "marginal"
        return "trains with loss" if learns else "fails"

    def _above(self, part: Share) -> bool | None:
        """Whether a share reaches the yield; None: its interval straddles it."""
        if part.low >= self.criterion.yield_:
            return True
        return None if part.high >= self.criterion.yield_ else False

    @property
    def failures(self) -> dict[str, int]:
        """What the chips that have not learnt do, and how many of each."""
        counts: dict[str, int] = {}
        for chip in np.flatnonzero(~self.has_learnt):
            shown = set(self.energy[:, chip])
            if self.diverged[chip]:
                shown.add("diverged")
            word = next((word for name, word in FAILURES.items() if name in shown), "guess")
            counts[word] = counts.get(word, 0) + 1
        return counts

    @property
    def would_decide(self) -> str:
        """Say how many more chips or seeds would turn 'marginal' into an answer."""
        if self.outcome != "marginal":
            return ""
        if self._above(self.good) is None and self._above(self._good(0.0)) is not None:
            for seeds in range(self.seeds + 1, MOST_SEEDS + 1):
                if self._above(self._good(self._error_of(seeds))) is not None:
                    return f"about {seeds} seeds would decide"
            return f"near the limit: more than {MOST_SEEDS} seeds would be needed to decide"
        part = self.good if self._above(self.good) is None else self.learnt
        if self.identical or part.count == self.criterion.yield_ * self.chips:
            return "it lies at the limit: no number of chips decides"
        known = part.count / self.chips
        total = self.chips
        while total < MOST:
            total = ceil(total * 1.1)
            count = round(known * total)
            if (
                self._above(share(count, count, count, total, self.criterion.confidence))
                is not None
            ):
                too = " and more seeds" if self._blurred(part, total) else ""
                return f"about {total} chips{too} would decide"
        return f"more than {MOST} chips would be needed to decide"

    def _blurred(self, part: Share, chips: int) -> bool:
        """Whether the error of these seeds would leave even so many chips undecided."""
        if part != self.good:
            return False
        least, count, most = (
            round(self._within(offset) / self.chips * chips)
            for offset in (self.error, 0.0, -self.error)
        )
        doubt = share(least, count, most, chips, self.criterion.confidence)
        return self._above(doubt) is None
