"""Where a chip trains along one or two of its numbers: sentence, tables, numbers, figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf, isfinite, log2
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pcsim.check.found import Check
from pcsim.check.physical import chip_name
from pcsim.rows import Rows
from pcsim.store import Result
from pcsim.store.frames import import_pandas
from pcsim.variants.beside import Beside, plain_interval, with_variants
from pcsim.variants.limit import Array, Estimate, change
from pcsim.variants.quotes import ABOUT, Quote
from pcsim.variants.remedies_found import would_train

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Value = int | float


@dataclass(frozen=True)
class Need:
    """What a number must be, everything else given."""

    at_most: bool
    """Whether it has an upper end, else a lower one."""
    value: Estimate
    """inf: all values that were tried train; nan: none does."""

    @property
    def words(self) -> str:
        """Say it in a cell of a table."""
        if np.isnan(self.value.value):
            return "none tried"
        if self.value.value == inf:
            return "all tried"
        sign = "≤" if self.at_most else "≥"
        return f"{sign} {self.value.value:.3g} ({_end(self.value.low)} to {_end(self.value.high)})"


def need(values: Sequence[Value], limits: Sequence[Estimate], level: float) -> Need:
    """Return what a number must be, from the limits of the loss at ascending values."""
    logarithm = all(value > 0 for value in values) and not all(isinstance(v, int) for v in values)
    places = [log2(value) if logarithm else float(value) for value in values]
    at_most = limits[-1].value >= limits[0].value
    if not at_most:  # the good end is that of large values
        places, limits = [-place for place in places[::-1]], list(limits)[::-1]
    if limits[0].value > level:
        return Need(at_most, Estimate(np.nan, np.nan, np.nan))
    found = change(places, limits, level)

    def value(place: float) -> float:
        if place == inf:
            return inf
        place = place if at_most else -place
        return float(2.0**place) if logarithm else place

    ends = sorted((value(found.low), value(found.high)))
    return Need(at_most, Estimate(value(found.value), *ends))


@dataclass(frozen=True, eq=False, repr=False)
class Specs(Beside):
    """The region in which a chip trains."""

    name: ClassVar[str] = "specs"
    check: Check
    chips: int
    """Of each seed, for every combination."""
    axes: Mapping[str, tuple[Value, ...]]
    limits: tuple[Estimate, ...]
    """The loss that the yield of all chips stay within, for all combinations, last axis fastest."""
    losses: Array
    """Losses (combination, seed, chip)."""
    laws: tuple[Quote, ...] = ()
    """What the law of the last number says, for each value of the first of two (else one)."""

    @property
    def law(self) -> Quote:
        """What the law of the last number says; of two, at the first value of the first."""
        return self.laws[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(values) for values in self.axes.values())

    def needs(self) -> list[tuple[Value | None, Need]]:
        """Return what the last number must be, for each value of the first of two (else None)."""
        *outer, last = self.axes.values()
        level, wide = self.check.criterion.tolerance, len(last)
        firsts: Sequence[Value | None] = outer[0] if outer else (None,)
        return [
            (first, need(last, self.limits[k * wide : (k + 1) * wide], level))
            for k, first in enumerate(firsts)
        ]

    def sentence(self) -> str:
        """Say what the numbers must be."""
        names, found = list(self.axes), self.needs()
        sentences = [
            (f"{names[0]} = {first:g}: " if first is not None else "") + self._said(names[-1], one)
            for first, one in found
        ]
        if len(sentences) > 3:
            sentences = [sentences[0], sentences[len(sentences) // 2], sentences[-1]]
        text = f"to train, {chip_name(self.check.config)} needs: {'; '.join(sentences)}"
        if len(self.laws) == 1 and self.law.limit:
            known = f"; on the map that was {self.law.off}" if self.law.error else ""
            text += f" (beforehand: {self.law.words}{known})"
        return text

    @staticmethod
    def _said(name: str, one: Need) -> str:
        if np.isnan(one.value.value):
            return f"no {name} that was tried is good enough"
        if one.value.value == inf:
            return f"any {name} that was tried"
        return f"{name} {one.words}"

    def tables(self) -> list[Rows]:
        """Return the needs along the last axis, and every combination that was trained."""
        names = list(self.axes)
        quoted = [(one.words, one.off) for one in self.laws]
        rows = tuple(
            ("" if first is None else f"{first:g}", one.words, *law)
            for (first, one), law in zip(self.needs(), quoted or repeat(("–", "–")), strict=False)
        )
        title = f"Specification of {chip_name(self.check.config)}"
        first = names[0] if len(names) > 1 else ""
        caption = (
            f"{names[-1]} at which the verdict changes, with its interval; criterion: "
            f"{self.check.criterion.words}. The learning rate is that of the chip as it is. "
            f"{ABOUT}"
        )
        cells = []
        for number, cell in enumerate(np.ndindex(*self.shape)):
            values = [f"{v[k]:g}" for v, k in zip(self.axes.values(), cell, strict=True)]
            limit = self.limits[number]
            ends = f"{100 * limit.low:.1f} to {100 * limit.high:.1f}"
            mean = f"{100 * float(self.losses[number].mean()):.1f}"
            trains = would_train(limit, self.check.criterion.tolerance)
            cells.append((*values, mean, f"{100 * limit.value:.1f}", ends, trains))
        columns = (*names, "mean loss", "limit", "interval", "trains")
        about = (
            f"Points of test accuracy, {self.chips} chips × {self.check.answer.seeds} seeds each; "
            "limit: the loss that the yield of all chips stay within."
        )
        return [
            Rows(title, (first, f"{names[-1]} must be", "law", "off"), rows, caption),
            Rows("Every combination", columns, tuple(cells), about),
        ]

    def data(self) -> dict[str, Any]:
        """Return all numbers as plain data, for other programs and for figures."""
        return {
            "sentence": self.sentence(),
            "chips": self.chips,
            "seeds": self.check.answer.seeds,
            "tolerance": self.check.criterion.tolerance,
            "axes": {name: list(values) for name, values in self.axes.items()},
            "limit_loss": [plain_interval(one) for one in self.limits],
            "loss": [float(one.mean()) for one in self.losses],
            "needs": [
                {"at": first, "at_most": one.at_most, **plain_interval(one.value)}
                for first, one in self.needs()
            ],
            "laws": [one.data() for one in self.laws],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return every combination, one line each."""
        pandas = import_pandas("Specs.to_pandas")
        lines = []
        for number, cell in enumerate(np.ndindex(*self.shape)):
            line: dict[str, Any] = {
                name: values[k] for (name, values), k in zip(self.axes.items(), cell, strict=True)
            }
            limit = self.limits[number]
            line |= {"loss": float(self.losses[number].mean()), "limit_loss": limit.value}
            lines.append(line | {"limit_low": limit.low, "limit_high": limit.high})
        return pandas.DataFrame(lines)

    def plot(self) -> Figure:
        """Draw the limit of the loss, with the line at which the verdict changes."""
        from pcsim.figures.spec_surface import spec_surface

        return spec_surface(self.data(), chip_name(self.check.config))

    def beside(self, result: Result) -> Result:
        """Return a result of the check with the specification added."""
        lost = {"combination": (list(range(len(self.losses))), self.losses)}
        return with_variants(
            result, self.name, self.sentence(), {"specs": self.tables()}, self.data(), lost
        )


def _end(value: float) -> str:
    return f"{value:.3g}" if isfinite(value) else "beyond"
