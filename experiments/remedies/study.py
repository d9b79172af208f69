"""The best remedy of every preset that loses more than the tolerance, and what it needs.

Each chip of the table of presets that loses more than 5 points is tried with every remedy that it
has a place for, in the case of that table: one sample at a time, states carried over, nothing
reset. Four rounds, each on fewer candidates:

    screened     one chip of each seed, coarse learning rates, fewer samples; every remedy
    paired       the same, two remedies together: pairs of the best
    compared     more chips, rates on both sides; the best, and the best without a controller
    confirmed    the population of a check, at the rate that was best; the best of both kinds

Where the best remedy loses more than the tolerance, it is paired with those that follow it, and the
rounds go on from there.

Held-out samples decide in each round; what is shown at the end are test samples. A device whose
whole chip is in the table gets the remedies of that chip. Cells are kept: an interrupted study goes
on; the tables have what is finished.

    pcsim experiment remedies

writes `remedies_SCALE.csv`, the best remedies, and `remedies_SCALE_screened.csv`, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.table import Table

from pcsim.check.criterion import Answer
from pcsim.store.files import check_own
from pcsim.store.parts import Parts
from pcsim.terminal import terminal

from ..common.keeping import first_line, write_table
from ..presets.study import shipped as table_of_presets
from .chips import Built, chip_of, failing, told
from .rounds import Candidate, Rounds, Scale

PAGE = "presets.md"
SHIPPED = Path(__file__).with_name("remedies_small.csv")
"""The table that the documentation shows."""
SCALES = {
    "small": Scale(1000, 400, 32, 2, (0.0125, 0.05, 0.2), 2, 3),
    "paper": Scale(1000, 1000, 32, 8, (0.0125, 0.025, 0.05, 0.1, 0.2), 5, 8),
}


HEADS: tuple[str, ...] = (
    *("preset", "loss without", "remedy", "outcome", "loss with it", "good chips", "rate"),
    *("devices", "needs", "automatic", "host"),
)
"""Columns of the page."""


def main(out: Path, scale: str) -> None:
    """Measure what is missing, print the tables, write them."""
    size = SCALES[scale]
    target, every = out / f"remedies_{scale}.csv", out / f"remedies_{scale}_screened.csv"
    command = f"pcsim experiment remedies --scale {scale}"
    for path in (target, every):
        check_own(path, first_line(command))
    rounds = Rounds(size, out / f"remedies_{scale}.cells")
    against = rounds.reference()
    before = {one["preset"]: one for one in table_of_presets()}
    rows: list[dict[str, str]] = []
    tries: list[dict[str, str]] = []
    best: dict[str, list[Candidate]] = {}
    for preset in failing(list(before.values())):
        if chip_of(preset) in best:
            best[preset] = rounds.without_chip(preset, best[chip_of(preset)])
        else:
            screened, best[preset] = rounds.search(preset, against)
            tries += [tried_row(preset, one) for one in screened]
        for one in best[preset]:
            answer, chip = rounds.answer(preset, one, against), rounds.built(preset, one.names)
            rows.append(row(before[preset], one, answer, chip))
        rows.sort(key=lambda one: list(before).index(one["preset"]))
        write_table(target, command, rows)
        write_table(every, command, tries)
    terminal().print(shown(rows, size))
    Parts(rounds.folder).forget()
    spent = f"{rounds.cpu_seconds / 60:.0f} CPU minutes"
    terminal().print(f"tables in {target} and {every}; {spent}")


def row(before: Mapping[str, str], one: Candidate, answer: Answer, chip: Built) -> dict[str, str]:
    """Return a line of the table; accuracies and losses in points."""
    low, median, high = 100 * np.quantile(np.nan_to_num(answer.accuracy), (0.05, 0.5, 0.95))
    return {
        "preset": before["preset"],
        "without": before["loss"],
        "without_error": before["error"],
        "remedy": told(one.names),
        "outcome": answer.outcome,
        "low": f"{low:.1f}",
        "median": f"{median:.1f}",
        "high": f"{high:.1f}",
        "loss": f"{100 * float(np.median(answer.loss)):.1f}",
        "error": f"{100 * answer.error:.1f}",
        "good": f"{answer.good.count}",
        "chips": f"{answer.chips}",
        "rate": f"{one.rate:.3g}",
        **chip.needs(),
    }


def tried_row(preset: str, one: Candidate) -> dict[str, str]:
    """Return a line of the table of all remedies; accuracies on held-out samples in points."""
    return {
        "preset": preset,
        "remedy": told(one.names),
        "held_out": "" if one.refused else f"{100 * one.score:.1f}",
        "rate": "" if one.refused else f"{one.rate:.3g}",
        "automatic": "yes" if one.automatic else "no",
        "refused": one.refused,
    }


def page_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of `docs/presets.md`."""
    lines = [HEADS, ("---",) * len(HEADS)]
    for one in rows:
        needs = [one["lines"]] if one["lines"] != "none" else []
        needs += [one["time"]] if one["time"] != "none" else []
        lines.append(
            (
                one["preset"],
                f"{one['without']} ± {one['without_error']}",
                one["remedy"],
                one["outcome"],
                f"{one['loss']} ± {one['error']}",
                f"{one['good']} of {one['chips']}",
                one["rate"],
                one["devices"],
                "; ".join(needs) or "nothing",
                one["automatic"],
                one["host"],
            )
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def shown(rows: Sequence[Mapping[str, str]], scale: Scale) -> Table:
    """Return the table for a terminal."""
    made = Table(title=f"best remedies: {scale.samples} digits, one at a time, nothing reset")
    heads = ("preset", "without", "best remedy", "loss", "outcome", "automatic", "devices", "lines")
    for head in heads:
        made.add_column(head, justify="right" if head in ("without", "loss") else "left")
    for one in rows:
        made.add_row(
            one["preset"],
            f"{one['without']} ± {one['without_error']}",
            one["remedy"],
            f"{one['loss']} ± {one['error']}",
            one["outcome"],
            one["automatic"],
            one["devices"],
            one["lines"],
        )
    return made
