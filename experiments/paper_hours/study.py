"""How many CPU-hours do the paper's claims take that need training? A piece of each cell, timed.

`pcsim experiment paper_hours` trains every rule of each study for some batches, at its scale
`decide`, on one thread, and multiplies:

    hours = seconds per sample · samples · epochs · runs

for the search of the settings, with one seed (as many runs as if it began with the best rate: two
more points on each axis than it begins with), and for the seeds at the point it chooses.

Seconds are those that the processor spends, so that others on the machine do not count; a short
training is taken off a longer one, so that loading and measuring do not either (an epoch of the
study also reads out held-out and test samples, which is not in the hours). All seeds train at once
where a study does so. It writes `paper_hours.csv`. Times that stand there are taken over, so that
another number of samples, epochs or points costs nothing: remove the file to time anew.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from rich.table import Table

from pcsim.runner.training import Training
from pcsim.store.files import check_own
from pcsim.terminal import terminal

from ..alexnet import study as alexnet
from ..cnn_classification import study as cnn
from ..common import keeping
from ..common.image_study import axes_of
from ..common.image_training import Budget, Task, config_of
from ..common.language.questions import clamps
from ..common.language.setting import Method, batches
from ..common.language.setting import Setting as Language
from ..common.language.training import Run
from ..common.search import Point, first_points, usual_points
from ..conditional_lm import study as conditional_lm
from ..masked_lm import study as masked_lm
from ..robustness import study as robustness
from ..width import study as width

SCALE = "decide"
COMMAND = "pcsim experiment paper_hours"
KEY = ("study", "cells", "rule", "stage", "batch", "seeds")
"""What a time belongs to; a row that has it in the table of an earlier run is not timed again."""
COLUMNS = (*KEY, "ms_per_sample", "samples", "epochs", "runs", "hours")
Known = Mapping[tuple[str, ...], float]
"""Seconds per sample by `KEY`."""
BATCHES = 2
"""Batches that are timed, after a first one."""


@dataclass(frozen=True)
class Row:
    """What one rule of a study takes; `seconds` per sample with all the seeds of a run."""

    study: str
    cells: str
    rule: str
    stage: str
    batch: int
    seeds: int
    seconds: float
    samples: int
    epochs: int
    runs: int
    """Points; for language models times the seeds, which train one by one."""

    @property
    def hours(self) -> float:
        """CPU-hours of the training."""
        return self.seconds * self.samples * self.epochs * self.runs / 3600

    def line(self) -> dict[str, str]:
        """Return the line of the table."""
        values = (
            *(self.study, self.cells, self.rule, self.stage, self.batch, self.seeds),
            *(f"{1000 * self.seconds:.2f}", self.samples, self.epochs, self.runs),
            f"{self.hours:.2f}",
        )
        return dict(zip(COLUMNS, map(str, values), strict=True))


def known_times(path: Path) -> Known:
    """Return the times in a table that this command has written; none if there is none."""
    if not path.exists():
        return {}
    lines = csv.DictReader(path.read_text(encoding="utf-8").splitlines()[1:])
    return {tuple(line[k] for k in KEY): float(line["ms_per_sample"]) / 1000 for line in lines}


def time_of(known: Known, key: tuple[object, ...], measure: Callable[[], float]) -> float:
    """Return a time that is known, or else measure it."""
    found = known.get(tuple(map(str, key)))
    return measure() if found is None else found


def pictures(
    known: Known,
    study: str,
    cells: str,
    task: Task,
    rules: tuple[str, ...],
    budget: Budget,
    times: int = 1,
) -> Iterator[Row]:
    """Time the rules of a study of pictures; `times` cells are as large as this one."""
    assert budget.search is not None
    for rule in rules:
        given = axes_of(rule, budget)
        point = first_points(given)[0]
        for stage, one, runs in (
            ("search", budget.of_search(), usual_points(given)),
            ("seeds", budget, 1),
        ):
            key = (study, cells, rule, stage, one.batch, len(one.seeds))
            seconds = time_of(known, key, partial(seconds_per_sample, task, rule, point, one))
            yield Row(*key, seconds, one.limit - one.validation, one.epochs, times * runs)


def seconds_per_sample(task: Task, rule: str, point: Point, budget: Budget) -> float:
    """Return the time of the processor, with all the seeds of a run."""

    def seconds(count: int) -> float:
        update = {"limit": count + 8, "validation": 8, "test": 8, "epochs": 1}
        training = Training(config_of(task, rule, point, budget.model_copy(update=update)))
        begun = time.process_time()
        training.run()
        return time.process_time() - begun

    one = seconds(budget.batch)
    return (seconds((1 + BATCHES) * budget.batch) - one) / (BATCHES * budget.batch)


def language(known: Known, study: str, setting: Language) -> Iterator[Row]:
    """Time the rules of a language model; every seed is a run of its own."""
    assert setting.search is not None
    for method in setting.methods:
        points = usual_points(setting.axes(method))
        for stage, part, runs in (
            ("search", setting.of_search(), points),
            ("seeds", setting, len(setting.seeds)),
        ):
            key = (study, "all", method.name, stage, method.batch, 1)
            seconds = time_of(known, key, partial(seconds_per_window, setting, method))
            yield Row(*key, seconds, len(part.train_windows()), part.epochs, runs)


def seconds_per_window(setting: Language, method: Method) -> float:
    """Return the time of the processor."""
    run = Run(setting, method, setting.seeds[0])
    asked = islice(batches(setting, method, setting.seeds[0]), 1 + BATCHES)
    questions = [clamps(run.network, one, run.params.flat) for one in asked]
    run.rule.batch(questions[0])
    begun = time.process_time()
    for one in questions[1:]:
        run.rule.batch(one)
    return (time.process_time() - begun) / (BATCHES * method.batch)


def rows(known: Known) -> Iterator[Row]:
    """Time every study at the scale that decides."""
    rules = ("BP", "PC", "iPC")
    one = cnn.SCALES[SCALE]
    task = cnn.task_of(one, one.data[-1])  # its pictures are as large as those of the other sets
    yield from pictures(known, "cnn_classification", "each set", task, rules, one.budget)
    two = alexnet.SCALES[SCALE]
    for name, full in (("all", two), ("one set, full network", alexnet.SCALES["paper"])):
        budget = two.budget if full is two else two.budget.model_copy(update={"seeds": (0,)})
        times = len(alexnet.AUGMENTATIONS) if full is two else 1
        task = alexnet.task_of(full, alexnet.AUGMENTATIONS[0])
        yield from pictures(known, "alexnet", name, task, rules, budget, times)
    three = width.SCALES[SCALE]
    for factor in (1, 2, 4, 8):
        yield from pictures(
            known, "width", f"C = {factor}", width.task_of(three, factor), width.RULES, three.budget
        )
    four = robustness.SCALES[SCALE]
    task = robustness.task_of(four, four.data)
    yield from pictures(known, "robustness", "all", task, robustness.RULES, four.budget)
    yield from language(known, "masked_lm", masked_lm.SCALES[SCALE])
    yield from language(known, "conditional_lm", conditional_lm.SCALES[SCALE])


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
        for row in rows(known_times(path)):
            lines.append(row.line())
            shown.add_row(*lines[-1].values())
    finally:
        torch.set_num_threads(threads)
    keeping.write_table(path, COMMAND, lines)
    console.print(shown)
    console.print(f"table: {path}", soft_wrap=True)
