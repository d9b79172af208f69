"""What the studies `masked_lm` and `conditional_lm` share: their cells and how they are joined.

A cell is one rule from one seed. An interrupted study goes on with the cells that are missing, and
within a cell from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import language_report as report
from experiments import study
from experiments.language_setting import Setting
from experiments.language_text import Text, sentencepiece
from experiments.language_training import train
from pcsim.store import Result, Variable

PAGE = "paper_language_models.md"
"""The page in docs that tells about both studies."""
SMALL_TEXT = Text(source="one_shard", train=5000, dev=300, test=775, vocabulary=1001, positions=32)
"""All 6075 sentences of the official test shard."""
PAPER_TEXT = Text(
    source="benchmark", train=200_000, dev=10_000, test=6075, vocabulary=8001, positions=32
)
SEEDS = (0, 1, 2), tuple(range(10))
"""Seeds at the scales small and paper."""


def gathered(
    cells: Mapping[str, Result], setting: Setting
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the cells along the axes rule and seed."""
    names = [method.name for method in setting.methods]
    dims = {"dev_perplexity": ("windows",), "test_perplexity": (), "best_windows": ()}
    variables = {}
    for variable, more in dims.items():
        rows = [[cells[f"{n}_{seed}"][variable] for seed in setting.seeds] for n in names]
        joined = np.asarray(rows)
        variables[variable] = Variable(("rule", "seed", *more), joined, {"units": "1"})
    coords = {
        "rule": np.array(names),
        "seed": np.array(setting.seeds),
        "windows": next(iter(cells.values()))["windows"],
    }
    return variables, coords


def main(name: str, scales: Mapping[str, Setting], out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    sentencepiece()  # refuse before any work
    begun = study.begin(name, scales, scale, out)
    setting = scales[scale]
    longest_first = sorted(setting.methods, key=lambda method: -method.T)
    runs = {f"{m.name}_{seed}": (m, seed) for m in longest_first for seed in setting.seeds}
    measures = {
        cell: partial(train, setting, *run, keep=begun.cells_folder / f"{cell}.checkpoint")
        for cell, run in runs.items()
    }
    processes = study.PROCESSES if setting.device == "cpu" else 1
    cells = begun.collect(measures, processes)
    variables, coords = gathered(cells, setting)
    origin = str(next(iter(cells.values())).attrs["data_origin"])
    claims = report.judge(Result(variables, coords), setting)
    begun.publish(variables, coords, claims, report.tables, {"": report.draw}, data_origin=origin)
