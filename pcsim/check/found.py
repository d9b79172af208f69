"""What a check has found: the answer, its sentence, its table, its numbers, and what is stored."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from pcsim.check import tuning
from pcsim.check.cost import Cost, cost_of
from pcsim.check.criterion import Answer, Criterion, Outcome, commonest, guessing
from pcsim.check.physical import chip_name, idealisations, stream
from pcsim.check.rows import CHIP, ROWS, SHUFFLED
from pcsim.check.tuning import Rate
from pcsim.config import Config
from pcsim.rows import Rows
from pcsim.store import Attr, Result, Variable
from pcsim.store.frames import import_pandas
from pcsim.verdict import Verdict, verdict_from

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

CRITERION = Criterion()


@dataclass(frozen=True, eq=False, repr=False)
class Check:
    """What was found."""

    config: Config
    runs: dict[str, Result]
    left_out: dict[str, tuple[str, ...]]
    """Non-idealities that a row could not have."""
    labels: npt.NDArray[np.int64]
    """Classes of the test samples."""
    criterion: Criterion = CRITERION
    rates: dict[str, Rate] | None = None
    """Learning rate of each row per sample, and how it was chosen; none: as configured."""

    @property
    def verdict(self) -> Verdict:
        """Return what the energy of every chip did."""
        return verdict_from(self.runs[CHIP])

    def accuracy(self, row: str) -> npt.NDArray[np.float64]:
        """Return the test accuracies (seed, chip) of a row."""
        values = np.asarray(self.runs[row]["accuracy"], dtype=float)
        return values.reshape(len(values), -1)

    @cached_property
    def reference(self) -> str:
        """Return the best ideal rule, on held-out samples where there are any."""
        ideal = [name for name in self.runs if not ROWS[name].on_hardware and name != SHUFFLED]
        return max(ideal, key=lambda name: tuning.score(self.runs[name]))

    @cached_property
    def answer(self) -> Answer:
        """Return the answer with all that it rests on."""
        accuracy = self.accuracy(CHIP)
        floors = [guessing(self.labels)]
        if SHUFFLED in self.runs:
            floors.append(float(np.nan_to_num(self.accuracy(SHUFFLED)).max()))
        return Answer(
            self.criterion,
            accuracy,
            self.verdict.outcome.reshape(accuracy.shape),
            self.accuracy(self.reference).mean(1),
            commonest(self.labels),
            max(floors),
            identical=self.config.hardware.identical,
        )

    @property
    def outcome(self) -> Outcome:
        """Return the answer, or that there is none."""
        return self.answer.outcome

    @property
    def passed(self) -> bool:
        """Whether enough chips trained, compared with an ideal rule that did."""
        return self.outcome == "trains"

    @property
    def idealisations(self) -> tuple[str, ...]:
        """Return what the run has that a chip without a controller does not."""
        return idealisations(self.config)

    @cached_property
    def cost(self) -> Cost | None:
        """Return the estimate of what a training costs; None where its counts are not known."""
        samples = self.runs[CHIP].attrs.get("train_samples")
        return cost_of(self.config, int(str(samples))) if samples is not None else None

    def sentence(self, name: str | None = None) -> str:
        """Return the answer."""
        answer, name = self.answer, name or chip_name(self.config)
        reference = 100 * float(np.mean(answer.reference))
        points = f"{100 * self.criterion.tolerance:g} points"
        if self.outcome == "no verdict":
            return (
                f"no verdict on {name}: the best ideal rule ({self.reference}) reaches "
                f"{reference:.1f} %, and must be more than {points} above the floor "
                f"({100 * answer.floor:.1f} %); train it longer or change its rates until it learns"
            )
        good, loss = answer.good, 100 * float(np.median(answer.loss))
        words = {
            "trains": f"automatic iPC trains on {name}",
            "trains with loss": f"automatic iPC trains on {name} with a loss of {loss:.1f} points",
            "marginal": f"marginal: whether automatic iPC trains on {name} is not decided",
            "fails": f"automatic iPC fails on {name}",
        }[self.outcome]
        shares = "" if answer.identical else f", {100 * good.low:.0f}–{100 * good.high:.0f} %"
        text = (
            f"{words}: {good.count} of {answer.chips} chips{shares} are within {points} of the "
            f"best ideal rule's {reference:.1f} % (median loss {loss:.1f} ± "
            f"{100 * answer.error:.1f} points)"
        )
        if self.outcome == "marginal":
            text += f"; {answer.would_decide}"
        if self.outcome == "fails":
            failures = ", ".join(f"{count} {word}" for word, count in answer.failures.items())
            text += f"; chips that have not learnt: {failures}"
        ideal = "; ".join(self.idealisations)
        text = f"{text} [idealised: {ideal}]" if ideal else text
        standing = "; ".join(self.config.hardware.standing)
        return f"{text} [{standing}]" if standing else text

    def table(self, name: str | None = None) -> Table:
        """Return accuracies of all rows."""
        return self._accuracies(name).rich()

    def _accuracies(self, name: str | None = None) -> Rows:
        shown = name or chip_name(self.config)
        rows = []
        reference = np.asarray(self.answer.reference)[:, None]
        for row in self.runs:
            values = self.accuracy(row)
            finite = np.nan_to_num(values)
            low, middle, high = 100 * np.quantile(finite, (0.05, 0.5, 0.95))
            loss = 100 * float(np.median((reference - finite).mean(0)))
            rate = self.rates[row].short if self.rates and row in self.rates else "given"
            mark = " *" if self.left_out.get(row) else ""
            mark += " ← reference" if row == self.reference else ""
            sizes = f"{values.shape[0]} × {values.shape[1]}"
            numbers = (f"{low:.1f}", f"{middle:.1f}", f"{high:.1f}", f"{loss:+.1f}", sizes, rate)
            rows.append((row + mark, *numbers))
        notes = [f"* without {', '.join(names)}" for names in self.left_out.values() if names]
        if self.rates and any(rate.at_end for rate in self.rates.values()):
            notes.append("! the best rate is at the end of those tried")
        outcomes, counts = np.unique(self.verdict.outcome, return_counts=True)
        outcome_words = ", ".join(f"{n} {o}" for o, n in zip(outcomes, counts, strict=True))
        caption = "; ".join(
            [
                f"criterion: {self.criterion.words}",
                f"floor {100 * self.answer.floor:.1f} %",
                f"energies (another question than accuracy): {outcome_words}",
                *dict.fromkeys(notes),
                *self.config.hardware.standing,
            ]
        )
        return Rows(
            f"check of {shown} on {self.config.data.name}: {stream(self.config)}",
            ("test accuracy, %", "5 %", "median", "95 %", "loss", "seeds × chips", "rate"),
            tuple(rows),
            caption,
        )

    def plot(self, name: str | None = None) -> Figure:
        """Draw the energy of the chips beside the ideal one, and the accuracies of all rows."""
        from pcsim.plots import check_figure

        return check_figure(self, name)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the test accuracy of every row, seed and chip, one line each."""
        pandas = import_pandas("Check.to_pandas")
        seeds = self.runs[CHIP]["seed"]
        lines = [
            (row, int(seeds[k]), chip, value)
            for row in self.runs
            for k, values in enumerate(self.accuracy(row))
            for chip, value in enumerate(values)
        ]
        return pandas.DataFrame(lines, columns=["row", "seed", "chip", "accuracy"])

    def __repr__(self) -> str:
        """Return the answer in a few words; `sentence()`, `table()` and `plot()` say more."""
        answer = self.answer
        return (
            f"<Check of {chip_name(self.config)} on {self.config.data.name}: {self.outcome}; "
            f"{answer.good.count} of {answer.chips} chips, {answer.seeds} seeds; rows "
            f"{', '.join(self.runs)}>"
        )

    def _repr_html_(self) -> str:
        return f"<p><strong>{escape(self.sentence())}</strong></p>\n{self._accuracies().html()}"

    def numbers(self) -> dict[str, Any]:
        """Return the answer as plain data, for other programs."""
        answer = self.answer
        return {
            "outcome": self.outcome,
            "sentence": self.sentence(),
            "hardware": chip_name(self.config),
            "data": self.config.data.name,
            "criterion": self.criterion.model_dump(),
            "criterion_words": self.criterion.words,
            "command": self.command,
            "chip_numbers": self.config.hardware.numbers(),
            "stream": stream(self.config),
            "idealisations": list(self.idealisations),
            "chip": list(self.config.hardware.standing),
            "reference": {"row": self.reference, "accuracy": float(np.mean(answer.reference))},
            "floor": answer.floor,
            "chips": answer.chips,
            "seeds": answer.seeds,
            "good": vars(answer.good),
            "learnt": vars(answer.learnt),
            "loss": {"median": float(np.median(answer.loss)), "error": answer.error},
            "failures": answer.failures,
            "would_decide": answer.would_decide,
            "cost_estimate": self.cost.numbers if self.cost else None,
            "rows": {
                name: {
                    "median": float(np.median(np.nan_to_num(self.accuracy(name)))),
                    "rate": self.rates[name].value if self.rates and name in self.rates else None,
                    "left_out": list(self.left_out.get(name, ())),
                }
                for name in self.runs
            },
        }

    @property
    def command(self) -> str:
        """How `check` is asked for this, given its configuration as a file."""
        criterion = self.criterion
        words = [f"--tolerance {100 * criterion.tolerance:g} --yield {100 * criterion.yield_:g}"]
        words += ["--no-search"] if self.rates is None else []
        words += ["--no-twins"] if all(ROWS[name].in_time for name in self.runs) else []
        return " ".join(words)

    def result(self) -> Result:
        """Return the chips' result with the accuracies of the other rows beside it."""
        chip = self.runs[CHIP]
        variables = dict(chip.variables)
        coords = dict(chip.coords)
        for name, run in self.runs.items():
            if name != CHIP:
                about: dict[str, Attr] = {"long_name": f"test accuracy, {name}", "units": "1"}
                values = self.accuracy(name)
                own = ROWS[name].on_hardware and "chip" in run.variables["accuracy"].dims
                dims = ("seed", "chip") if own else ("seed",)
                key = name.replace(", ", ".").replace(" ", "_")
                shaped = values if own else values[:, 0]
                variables[f"twin.{key}"] = Variable(dims, shaped, about)
        attrs = dict(chip.attrs) | {
            "kind": "check",
            "check": self.sentence(),
            "outcome": self.outcome,
            "passed": int(self.passed),
            "answer": json.dumps(self.numbers()),
            "check_config": self.config.model_dump_json(exclude_unset=True),
        }
        if self.cost:
            attrs["cost"] = self.cost.to_json()
        return Result(variables, coords, attrs, dict(chip.coord_attrs))
