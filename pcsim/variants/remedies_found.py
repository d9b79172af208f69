"""What remedies bring back and cost: ranked, as sentence, table, numbers, figure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from pcsim.check.found import Check
from pcsim.check.physical import chip_name
from pcsim.rows import Rows
from pcsim.store import Result
from pcsim.store.frames import import_pandas
from pcsim.variants.beside import Beside, plain_interval, with_variants
from pcsim.variants.limit import Array, Estimate, losses

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Tried:
    """One remedy: what it costs, and what it brought."""

    name: str
    about: str
    devices: float
    """Memory devices per weight that it adds."""
    lines: str
    time: str
    automatic: bool
    """Whether the schedule still needs no controller."""
    accuracy: Array | None = None
    """Test accuracies (seed, chip)."""
    gain: Estimate | None = None
    """Accuracy that it brings back, paired."""
    limit: Estimate | None = None
    """The loss that the yield of all chips stay within."""
    reason: str = ""
    """Why it could not be tried."""


@dataclass(frozen=True, eq=False, repr=False)
class Remedies(Beside):
    """All remedies of a chip, the best first."""

    name: ClassVar[str] = "remedies"
    check: Check
    chips: int
    """Of each seed, for every remedy."""
    tried: tuple[Tried, ...]

    @cached_property
    def ranked(self) -> list[Tried]:
        """The remedies that could be tried, by what they bring back."""
        known = [(one.gain.value, one) for one in self.tried if one.gain]
        return [one for _, one in sorted(known, key=lambda pair: -pair[0])]

    def trains(self, one: Tried) -> str:
        """Whether the chip trains with a remedy: yes, likely, unlikely or no."""
        assert one.limit
        return would_train(one.limit, self.check.criterion.tolerance)

    def sentence(self) -> str:
        """Return the best remedy, and the best that needs no controller."""
        name = chip_name(self.check.config)
        helping = [one for one in self.ranked if one.gain and one.gain.low > 0]
        if not helping:
            return f"no remedy of {len(self.ranked)} helps {name} beyond what these seeds can tell"
        sentences = [f"best remedy of {name}: {self._words(helping[0])}"]
        automatic = next((one for one in helping if one.automatic), None)
        if not helping[0].automatic:
            sentences.append(
                f"best without a controller: {self._words(automatic)}"
                if automatic
                else "none without a controller helps"
            )
        return "; ".join(sentences)

    def _words(self, one: Tried) -> str:
        assert one.gain
        gain, low, high = (100 * v for v in (one.gain.value, one.gain.low, one.gain.high))
        trains = self.trains(one)
        return f"{one.name} ({gain:+.1f} points, {low:+.1f} to {high:+.1f}; trains: {trains})"

    def tables(self) -> list[Rows]:
        """Return the ranking, and why some could not be tried."""
        rows = []
        for one in self.ranked:
            assert one.accuracy is not None
            assert one.gain
            half = 50 * (one.gain.high - one.gain.low)
            rows.append(
                (
                    one.name,
                    f"{100 * float(one.accuracy.mean()):.1f}",
                    f"{100 * one.gain.value:+.1f} ± {half:.1f}",
                    self.trains(one),
                    "yes" if one.automatic else "no",
                    f"{one.devices:g}",
                    one.lines,
                    one.time,
                )
            )
        refused = [f"{one.name}: {one.reason}" for one in self.tried if one.reason]
        caption = (
            f"{self.chips} chips × {self.check.answer.seeds} seeds, each remedy at its own "
            "learning rate; gain: points of test accuracy, paired over seeds. Automatic: no "
            "controller has to tell the chip when something happens. Devices: added per weight."
        )
        if refused:
            caption += f" Not tried: {'; '.join(refused)}"
        columns = (
            "remedy",
            "accuracy, %",
            "gain",
            "trains",
            "automatic",
            "devices",
            "lines",
            "time",
        )
        title = f"Remedies of {chip_name(self.check.config)}"
        return [Rows(title, columns, tuple(rows), caption, words=True)]

    def data(self) -> dict[str, Any]:
        """Return all numbers as plain data, for other programs and for figures."""
        return {
            "sentence": self.sentence(),
            "chips": self.chips,
            "seeds": self.check.answer.seeds,
            "tried": [
                {
                    "name": one.name,
                    "about": one.about,
                    "devices": one.devices,
                    "lines": one.lines,
                    "time": one.time,
                    "automatic": one.automatic,
                    "accuracy": float(one.accuracy.mean()) if one.accuracy is not None else None,
                    "gain": plain_interval(one.gain) if one.gain else None,
                    "trains": self.trains(one) if one.limit else None,
                    "reason": one.reason,
                }
                for one in (*self.ranked, *(t for t in self.tried if t.reason))
            ],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """Return one line for each remedy."""
        pandas = import_pandas("Remedies.to_pandas")
        lines = []
        for one in self.data()["tried"]:
            ends = one.pop("gain") or {}
            lines.append(one | {"gain": ends.get("value")})
            lines[-1] |= {f"gain_{end}": ends.get(end) for end in ("low", "high")}
        return pandas.DataFrame(lines)

    def plot(self) -> Figure:
        """Draw what each remedy brings back, with its interval."""
        from pcsim.figures.remedy_bars import remedy_bars

        return remedy_bars(self.data(), chip_name(self.check.config))

    def beside(self, result: Result) -> Result:
        """Return a result of the check with the remedies added."""
        reference = self.check.answer.reference
        lost = {
            one.name.replace(" ", "_"): ([0.0], losses(one.accuracy, reference)[None])
            for one in self.ranked
            if one.accuracy is not None
        }
        return with_variants(
            result, self.name, self.sentence(), {"remedies": self.tables()}, self.data(), lost
        )


def would_train(limit: Estimate, tolerance: float) -> str:
    """Say whether a limit of the loss is within the tolerance, and how sure that is."""
    if limit.value <= tolerance + 1e-9:
        return "yes" if limit.high <= tolerance + 1e-9 else "likely"
    return "no" if limit.low > tolerance + 1e-9 else "unlikely"
