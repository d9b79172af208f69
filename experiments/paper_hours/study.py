"""How many CPU-hours would the undecided claims of the paper take? A piece of each cell, timed.

`pcsim experiment paper_hours` trains every rule of each study for some batches, at its scale
`decide`, on one thread, and multiplies:

    hours = seconds per sample · samples · epochs · points of the grid

Seconds are those that the processor spends, so that others on the machine do not count; a short
training is taken off a longer one, so that loading and measuring do not either (an epoch of the
study also reads out held-out and test samples, which is not in the hours). All seeds train at once
where a study does so. It writes `paper_hours.csv`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from pcsim.runner.training import Training
from pcsim.store.files import check_own
from pcsim.terminal import terminal

from ..alexnet import study as alexnet
from ..cnn_classification import study as cnn
from ..common import keeping
from ..common.image_training import Budget, Point, config_of
from ..common.language.questions import clamps
from ..common.language.setting import Setting as Language
from ..common.language.setting import batches
from ..common.language.training import Run
from ..conditional_lm import study as conditional_lm
from ..masked_lm import study as masked_lm
from ..robustness import study as robustness
from ..width import study as width

SCALE = "decide"
COMMAND = "pcsim experiment paper_hours"
COLUMNS = ("study", "cells", "rule", "ms_per_sample", "samples", "epochs", "seeds", "runs", "hours")
BATCHES = 2
"""Batches that are timed, after a first one."""


@dataclass(frozen=True)
class Row:
    """What one rule of a study takes; `seconds` per sample with all the seeds of a run."""

    study: str
    cells: str
    rule: str
    seconds: float
    samples: int
    epochs: int
    seeds: int
    runs: int
    """Points of the grid; for language models times the seeds, which train one by one."""

    @property
    def hours(self) -> float:
        """CPU-hours of the training."""
        return self.seconds * self.samples * self.epochs * self.runs / 3600

    def line(self) -> dict[str, str]:
        """Return the line of the table."""
        values = (
            *(self.study, self.cells, self.rule, f"{1000 * self.seconds:.2f}", self.samples),
            *(self.epochs, self.seeds, self.runs, f"{self.hours:.2f}"),
        )
        return dict(zip(COLUMNS, map(str, values), strict=True))


def pictures(
    study: str,
    cells: str,
    data: str,
    network: Mapping[str, Any],
    rules: tuple[str, ...],
    budget: Budget,
    times: int = 1,
    augment: bool = False,
) -> Iterator[Row]:
    """Time the rules of a study of pictures; `times` cells are as large as this one."""
    for rule in rules:
        point = Point(budget.alphas[0], budget.weight_decays[0], budget.gammas[0])

        def seconds(count: int, rule: str = rule, point: Point = point) -> float:
            update = {"limit": count + 8, "validation": 8, "test": 8, "epochs": 1}
            short = budget.model_copy(update=update)
            training = Training(config_of(data, network, rule, point, short, augment=augment))
            begun = time.process_time()
            training.run()
            return time.process_time() - begun

        one = seconds(budget.batch)
        more = seconds((1 + BATCHES) * budget.batch)
        points = len(budget.alphas) * len(budget.weight_decays)
        points *= 1 if rule == "BP" else len(budget.gammas)
        yield Row(
            *(study, cells, rule, (more - one) / (BATCHES * budget.batch)),
            *(budget.limit - budget.validation, budget.epochs, len(budget.seeds), times * points),
        )


def language(study: str, setting: Language) -> Iterator[Row]:
    """Time the rules of a language model; every seed and rate is a run of its own."""
    for method in setting.methods:
        run = Run(setting, method, setting.seeds[0])
        asked = islice(batches(setting, method, setting.seeds[0]), 1 + BATCHES)
        questions = [clamps(run.network, one, run.params.flat) for one in asked]
        run.rule.batch(questions[0])
        begun = time.process_time()
        for one in questions[1:]:
            run.rule.batch(one)
        seconds = (time.process_time() - begun) / (BATCHES * method.batch)
        runs = len(setting.tried(method)) * len(setting.seeds)
        windows = len(setting.train_windows())
        yield Row(study, "all", method.name, seconds, windows, setting.epochs, 1, runs)


def rows() -> Iterator[Row]:
    """Time every study at the scale that decides."""
    rules = ("BP", "PC", "iPC")
    one = cnn.SCALES[SCALE]
    network = {"kind": "cnn", "channels": one.channels, "dense": (one.dense,)}
    sets = len(one.data)
    yield from pictures("cnn_classification", "all", one.data[-1], network, rules, one.budget, sets)
    two = alexnet.SCALES[SCALE]
    for name, full in (("all", two), ("one set, full network", alexnet.SCALES["paper"])):
        network = {"kind": "alexnet", "channels": full.channels, "dense": full.dense}
        budget = two.budget if full is two else two.budget.model_copy(update={"seeds": (0,)})
        times = len(alexnet.AUGMENTATIONS) if full is two else 1
        yield from pictures("alexnet", name, two.data, network, rules, budget, times)
    three = width.SCALES[SCALE]
    for factor in three.widths:
        network = width.network_of(factor)
        yield from pictures(
            "width", f"C = {factor}", three.data, network, width.RULES, three.budget
        )
    four = robustness.SCALES[SCALE]
    network = robustness.network_of(four)
    yield from pictures("robustness", "all", four.data, network, robustness.RULES, four.budget)
    yield from language("masked_lm", masked_lm.SCALES[SCALE])
    yield from language("conditional_lm", conditional_lm.SCALES[SCALE])


def main(out: Path) -> None:
    """Time, print, write."""
    path = out / "paper_hours.csv"
    check_own(path, keeping.first_line(COMMAND))
    console, threads = terminal(), torch.get_num_threads()
    shown = Table(title=f"CPU-hours at the scale {SCALE}, one thread")
    for column in COLUMNS:
        shown.add_column(column, justify="right")
    torch.set_num_threads(1)
    try:
        lines = []
        for row in rows():
            lines.append(row.line())
            shown.add_row(*lines[-1].values())
    finally:
        torch.set_num_threads(threads)
    keeping.write_table(path, COMMAND, lines)
    console.print(shown)
    console.print(f"table: {path}", soft_wrap=True)
