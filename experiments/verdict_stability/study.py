"""Is the answer of a check a property of the chip? Ten checks of each with other seeds and threads.

Every repetition has seeds, chips (`hardware.seed`), temporal noise and a number of threads (1 or
2) of its own. An answer is stable if nine of ten repetitions have the same outcome, or *marginal*;
with shuffled labels no repetition may train. Rows and checks are kept: an interrupted study goes
on.

`pcsim experiment verdict_stability`; `--scale paper` has the defaults of `pcsim check`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table

from pcsim import config as configuration
from pcsim.check import CHIP, DIGITS, check
from pcsim.check.criterion import OUTCOMES
from pcsim.cli.demo import NOISY
from pcsim.config import Config
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.store.parts import Parts
from pcsim.sweep.functions import collect
from pcsim.terminal import progress, terminal

from ..common.keeping import cells_of, claim, keep

STUDY = "verdict_stability"
DEMO, SHUFFLED = "the demo's chip", "ideal, shuffled labels"
CHIPS: dict[str, dict[str, dict[str, Any]]] = {
    "ideal": {"hardware": {"preset": "ideal"}},
    "ecram_li": {"hardware": {"preset": "ecram_li"}},
    "reram_sb": {"hardware": {"preset": "reram_sb"}},
    "dynapse2": {"hardware": {"preset": "dynapse2"}},
    "pcm_programmed": {"hardware": {"preset": "pcm_programmed"}},
    DEMO: {"hardware": {"pieces": NOISY}},
    SHUFFLED: {"hardware": {"preset": "ideal"}, "data": {"shuffled": True}},
}
"""Sections of a configuration by the name of the chip."""
STABLE = 0.9
"""Share of the repetitions that must agree, or be marginal."""


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    samples: int
    seeds: int
    chips: int
    repetitions: int = 10


PAGE = "verdict_stability.md"
SCALES = {"small": Scale(300, 3, 30), "paper": Scale(1000, 3, 32)}


def setting(name: str, repetition: int, scale: Scale) -> Config:
    """Return the configuration of one check."""
    first = repetition * scale.seeds
    sections: dict[str, dict[str, Any]] = {
        "data": {"limit": scale.samples},
        "run": {"seeds": list(range(first, first + scale.seeds))},
    }
    given = {section: dict(fields) for section, fields in CHIPS[name].items()}
    if given["hardware"].get("preset") != "ideal":
        given["hardware"] |= {"chips": scale.chips, "seed": repetition}
        sections["solver"] = {"noise_seed": repetition}
    for section, fields in given.items():
        sections[section] = sections.get(section, {}) | fields
    return configuration.changed(configuration.parse(DIGITS, STUDY), sections)


@contextmanager
def on_threads(number: int) -> Iterator[None]:
    """Let runs have so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def measured(name: str, repetition: int, scale: Scale, rows: Path) -> Result:
    """Check a chip once; ideal rows are shared by the chips of a repetition."""
    threads = 1 + repetition % 2
    with on_threads(threads):
        made = check(setting(name, repetition, scale), twins="ideal", rows=rows)
    answer = made.answer
    numbers = {
        "reference": float(np.mean(answer.reference)),
        "floor": answer.floor,
        "loss": float(np.median(answer.loss)),
        "error": answer.error,
        "good": answer.good.count / answer.chips,
    }
    variables = {key: Variable((), np.asarray(value)) for key, value in numbers.items()}
    variables["accuracy"] = Variable(("seed", "chip"), made.accuracy(CHIP))
    rates = {row: rate.value for row, rate in (made.rates or {}).items()}
    attrs = {"outcome": made.outcome, "threads": threads, "rates": json.dumps(rates)}
    return Result(variables, {}, attrs)


def agreeing(outcomes: Sequence[str]) -> tuple[str, int]:
    """Return the decided outcome that is most common, and how many have it or are marginal."""
    decided = Counter(one for one in outcomes if one != "marginal")
    if not decided:
        return "marginal", len(outcomes)
    outcome, count = decided.most_common(1)[0]
    return outcome, count + outcomes.count("marginal")


def main(out: Path, scale: str) -> None:
    """Check, print, store."""
    target = out / f"{STUDY}_{scale}.h5"
    claim(target, STUDY)
    size = SCALES[scale]
    rows = Parts(cells_of(target).folder / "rows")
    cells = {
        f"{name} {repetition}": partial(measured, name, repetition, size, rows.folder)
        for repetition in range(size.repetitions)
        for name in CHIPS
    }
    with progress("checks", remaining=False) as report:
        done = collect(cells, cells_of(target).folder, f"{size} {DIGITS}", report=report)
    terminal().print(table(done, size))
    rows.forget()
    keep(stored(done, size), target, STUDY)


def of_chip(done: Mapping[str, Result], name: str) -> list[Result]:
    """Return the checks of one chip that are finished."""
    return [result for key, result in done.items() if key.rsplit(" ", 1)[0] == name]


def table(done: Mapping[str, Result], scale: Scale) -> Table:
    """Return how often each chip had which outcome."""
    shown = Table(
        title=f"the answer, {scale.repetitions} times: {scale.samples} samples, "
        f"{scale.chips} chips × {scale.seeds} seeds"
    )
    for column in ("chip", "outcomes", "stable", "loss, points"):
        shown.add_column(column, no_wrap=column == "stable")
    for name in CHIPS:
        results = of_chip(done, name)
        outcomes = [str(one.attrs["outcome"]) for one in results]
        told = [f"{outcomes.count(one)} {one}" for one in OUTCOMES if one in outcomes]
        _, count = agreeing(outcomes)
        stable = count >= STABLE * len(outcomes) and not (name == SHUFFLED and "trains" in outcomes)
        losses = [100 * float(one["loss"]) for one in results]
        shown.add_row(
            name,
            ", ".join(told),
            f"{count} of {len(outcomes)}, {'yes' if stable else 'NO'}",
            f"{min(losses):.1f} to {max(losses):.1f}",
        )
    return shown


def stored(done: Mapping[str, Result], scale: Scale) -> Result:
    """Return outcomes and numbers (chip, repetition)."""
    results = [of_chip(done, name) for name in CHIPS]
    dims = ("chip", "repetition")
    numbers = ("reference", "floor", "loss", "error", "good")
    variables = {
        key: Variable(dims, np.array([[float(one[key]) for one in row] for row in results]))
        for key in numbers
    }
    for key in ("outcome", "threads"):
        values = np.array([[one.attrs[key] for one in row] for row in results])
        variables[key] = Variable(dims, values)
    coords = {"chip": np.array(list(CHIPS)), "repetition": np.arange(scale.repetitions)}
    return Result(variables, coords, provenance())
