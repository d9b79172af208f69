"""What margins were found: sentences, tables, numbers, a figure, and what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pcsim.check.found import Check
from pcsim.check.physical import chip_name
from pcsim.fields.chip_number import ChipNumber
from pcsim.rows import Rows
from pcsim.store import Result
from pcsim.store.frames import import_pandas
from pcsim.variants.beside import Beside, plain_interval, with_variants
from pcsim.variants.ladder import Ladder, doublings
from pcsim.variants.limit import Estimate, paired
from pcsim.variants.quotes import ABOUT, Quote

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Part:
    """A piece of the chip: what it costs."""

    name: str
    kind: str
    gain: Estimate | None
    """Accuracy that comes back where it is made ideal; None: the rest cannot stand without it."""
    alone: Estimate | None
    """Accuracy that it costs on an otherwise ideal chip; None: it cannot stand alone."""
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Margins(Beside):
    """Margins of every number, and the bottleneck."""

    name: ClassVar[str] = "margins"
    check: Check
    chips: int
    """Of each seed, for every value that was tried."""
    numbers: tuple[ChipNumber, ...]
    ladders: tuple[Ladder, ...]
    """Every direction that was tried, of the numbers that are not 0."""
    parts: tuple[Part, ...]
    laws: Mapping[str, Quote] = field(default_factory=dict)
    """What its law says beforehand about each number, by path."""

    @property
    def trains(self) -> bool:
        """Whether the chip trains as it is, so that numbers have a margin to lose."""
        answer = self.check.answer
        return bool(answer.good.count >= self.check.criterion.yield_ * answer.chips)

    def of(self, path: str, up: bool | None = None) -> Estimate | None:
        """Return the margin of a number as a factor, or in bits: inf where nothing tried changes
        the verdict; None: it was not tried in this direction.

        Without `up`, the nearer one of the directions.
        """
        found = [
            self._size(one)
            for one in self.ladders
            if one.number.path == path and one.tried and up in (None, one.up)
        ]
        return min(found, key=lambda one: one.value, default=None)

    def _size(self, ladder: Ladder) -> Estimate:
        place = ladder.found
        value, low, high = (ladder.size(p) for p in (place.value, place.low, place.high))
        return Estimate(value, low, high)

    def sensitivity(self, path: str) -> Estimate | None:
        """Return the accuracy (a fraction) that a doubling costs, or one bit less; negative where
        the chip gains."""
        slopes = []
        for ladder in self.ladders:
            near = ladder.place_of_one
            if ladder.number.path != path or near is None:
                continue
            lost = ladder.losses[near] - ladder.losses[0]
            toward = ladder.up != ladder.number.bits  # more of a number, fewer bits
            slopes.append((lost if toward else -lost) / doublings(ladder, ladder.places[near]))
        if not slopes:
            return None
        return paired(np.mean(slopes, axis=0), self.check.criterion.confidence)

    @cached_property
    def critical(self) -> list[Ladder]:
        """The directions in which the verdict changes, the tightest first."""
        found = [one for one in self.ladders if one.tried and isfinite(one.found.value)]
        return sorted(found, key=lambda one: one.found.value)

    def words(self, ladder: Ladder) -> str:
        """Say how far a number may go, or must."""
        if not ladder.tried:
            return "at its limit"
        one = self._size(ladder)
        if ladder.number.bits:
            far = f"{ladder.farthest:g}"
            if one.value == inf:
                return f"more than {far} bits" + _from(one, "", ladder.farthest)
            return f"{one.value:.1f} bits" + _from(one, "", ladder.farthest)
        sign = "×" if ladder.up else "÷"
        if one.value == inf:
            return f"more than {sign}{ladder.farthest:.3g}" + _from(one, sign, ladder.farthest)
        return f"{sign}{one.value:.3g}" + _from(one, sign, ladder.farthest)

    def sentence(self) -> str:
        """Return the tightest margins."""
        name = chip_name(self.check.config)
        tried = {one.number.path for one in self.ladders if one.tried}
        margins = [f"{one.number.path} {self._way(one)} {self.words(one)}" for one in self.critical]
        if self.trains:
            free = len(tried) - len({one.number.path for one in self.critical})
            first = "; ".join(margins[:3]) or "no number has a margin within what was tried"
            text = f"margins of {name}: {first}; {free} of {len(tried)} numbers change nothing"
        else:
            first = "; ".join(margins[:3]) or "no number alone makes it train within what was tried"
            text = f"{name} does not train: {first}"
        return f"{text}{self._bottleneck}"

    @property
    def _bottleneck(self) -> str:
        known = [part for part in self.parts if part.gain is not None]
        if not known:
            return ""
        worst = max(known, key=lambda part: part.gain.value if part.gain else -inf)
        assert worst.gain
        if worst.gain.low <= 0:
            return "; no single piece is a bottleneck that these seeds can tell"
        gain, low, high = (100 * v for v in (worst.gain.value, worst.gain.low, worst.gain.high))
        return f"; bottleneck: {worst.name} ({gain:.1f} points, {low:.1f} to {high:.1f})"

    def _way(self, ladder: Ladder) -> str:
        word = "may" if self.trains else "must"
        if ladder.number.bits:
            return f"{word} {'gain' if ladder.up else 'lose'}"
        return f"{word} {'grow' if ladder.up else 'shrink'}"

    def tables(self) -> list[Rows]:
        """Return the margins of all numbers, and what each piece costs."""
        return [self._margins(), *([self._pieces()] if self.parts else [])]

    def _margins(self) -> Rows:
        rows = []
        order = {one.number.path: k for k, one in reversed(list(enumerate(self.critical)))}
        for number in sorted(self.numbers, key=lambda n: order.get(n.path, len(order))):
            ways = {one.up: self.words(one) for one in self.ladders if one.number == number}
            slope = self.sensitivity(number.path)
            shown = f"{100 * slope.value:+.1f} ± {_half(slope):.1f}" if slope else "–"
            law = self.laws.get(number.path)
            said = (law.words, law.off) if law and law.limit else ("–", "–")
            way = (ways.get(True, "–"), ways.get(False, "–"))
            rows.append((number.path, number.text, *way, shown, *said))
        verb = "may" if self.trains else "must"
        caption = (
            f"Test accuracy of {self.chips} chips × {self.check.answer.seeds} seeds per value; "
            f"criterion: {self.check.criterion.words}. Lost: points per doubling, or per bit less, "
            "at the chip as it is. – not tried: 0 has no factor; a number whose ideal is 0 only "
            "harms by growing. The learning rate is that of the chip as it is. "
            f"{ABOUT}"
        )
        columns = ("number", "is", f"{verb} grow", f"{verb} shrink", "lost", "law", "off")
        return Rows(f"Margins of {chip_name(self.check.config)}", columns, tuple(rows), caption)

    def _pieces(self) -> Rows:
        def shown(one: Estimate | None) -> str:
            return "–" if one is None else f"{100 * one.value:+.1f} ± {_half(one):.1f}"

        ordered = sorted(self.parts, key=lambda p: -(p.gain.value if p.gain else -inf))
        rows = tuple((p.name, p.kind, shown(p.gain), shown(p.alone)) for p in ordered)
        refused = "; ".join(f"{p.name}: {p.reason}" for p in self.parts if p.reason)
        caption = (
            "Points of test accuracy, paired over seeds: what comes back where one piece is made "
            "ideal, and what it costs alone on an ideal chip." + (f" {refused}" if refused else "")
        )
        columns = ("piece", "kind", "comes back without it", "costs alone")
        return Rows("Bottleneck: leave one out, one at a time", columns, rows, caption)

    def plot(self) -> Figure:
        """Draw a tornado: what a doubling and a halving do, and the margins."""
        from pcsim.figures.tornado import tornado

        return tornado(self.data(), chip_name(self.check.config))

    def data(self) -> dict[str, Any]:
        """Return all numbers as plain data, for other programs and for figures."""
        return {
            "sentence": self.sentence(),
            "trains": self.trains,
            "chips": self.chips,
            "seeds": self.check.answer.seeds,
            "margins": [self._line(one) for one in self.ladders],
            "sensitivity": {
                n.path: plain_interval(slope)
                for n in self.numbers
                if (slope := self.sensitivity(n.path))
            },
            "laws": {path: one.data() for path, one in self.laws.items()},
            "pieces": {
                part.name: {"kind": part.kind}
                | {
                    name: plain_interval(one) if one else None
                    for name, one in (("gain", part.gain), ("alone", part.alone))
                }
                for part in self.parts
            },
        }

    def _line(self, ladder: Ladder) -> dict[str, Any]:
        return {
            "number": ladder.number.path,
            "value": ladder.number.value,
            "unit": "bits" if ladder.number.bits else "factor",
            "direction": "grow" if ladder.up else "shrink",
            "margin": plain_interval(self._size(ladder)) if ladder.tried else None,
            "tried": [
                {
                    "value": ladder.at(place),
                    "loss": float(lost.mean()),
                    "limit_loss": plain_interval(limit),
                }
                for place, lost, limit in zip(
                    ladder.places, ladder.losses, ladder.limits, strict=True
                )
            ],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return every value that was tried, one line each."""
        pandas = import_pandas("Margins.to_pandas")
        lines = []
        for ladder in self.ladders:
            one = self._size(ladder) if ladder.tried else None
            for place, lost, limit in zip(ladder.places, ladder.losses, ladder.limits, strict=True):
                way = "grow" if ladder.up else "shrink"
                ends = (limit.value, limit.low, limit.high)
                value = ladder.at(place)
                lines.append(
                    (ladder.number.path, way, value, float(lost.mean()), *ends)
                    + ((one.value, one.low, one.high) if one else (None,) * 3)
                )
        columns = ["number", "direction", "value", "loss", "limit_loss", "limit_low", "limit_high"]
        columns += ["margin", "margin_low", "margin_high"]
        return pandas.DataFrame(lines, columns=columns)

    def beside(self, result: Result) -> Result:
        """Return a result of the check with the margins added."""
        return with_variants(
            result,
            self.name,
            self.sentence(),
            {"margins": [self._margins()]}
            | ({"bottleneck": [self._pieces()]} if self.parts else {}),
            self.data(),
            {
                f"{one.number.path}.{'grow' if one.up else 'shrink'}": (
                    [one.at(place) for place in one.places],
                    np.stack(one.losses),
                )
                for one in self.ladders
            },
        )


def _half(one: Estimate) -> float:
    return 100 * (one.high - one.low) / 2


def _from(one: Estimate, sign: str, farthest: float) -> str:
    """Return the interval of a margin in brackets."""
    low = f"{sign}{one.low:.3g}" if isfinite(one.low) else f">{sign}{farthest:.3g}"
    high = f"{sign}{one.high:.3g}" if isfinite(one.high) else f">{sign}{farthest:.3g}"
    return f" ({low} to {high})" if low != high else ""
