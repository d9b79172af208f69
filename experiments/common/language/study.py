"""What the studies `masked_lm` and `conditional_lm` share: their cells and how they are joined.

A cell is one rule at one learning rate from one seed. An interrupted study goes on with the cells
that are missing, and within a cell from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.store import Result, Variable

from .. import keeping, scaled
from . import report
from .setting import Method, Setting
from .text import Text, sentencepiece
from .training import train

PAGE = "paper_language_models.md"
"""The page in docs that tells about both studies."""


def small_text(train: int, positions: int) -> Text:
    """Return part of the official test shard; a hundred tokens are little more than characters."""
    return Text(
        source="one_shard", train=train, dev=300, test=775, vocabulary=101, positions=positions
    )


SMALL_FEATURES = 64
PAPER_TEXT = Text(
    source="benchmark", train=200_000, dev=10_000, test=6075, vocabulary=8001, positions=32
)
SMALL_RATES = (0.001,)
"""Tried besides the published rates, which were found for another text, network and batch."""
DECIDE_RATES = (0.0003, 0.001)
"""One on either side, so that no rule need take the end of its search."""
DECIDE_SEEDS = (0, 1, 2, 3, 4)
SEEDS = (0, 1, 2), tuple(range(10))
"""Seeds at the scales small and paper."""


def cell_name(method: Method, seed: int) -> str:
    """Name a cell: one rule at one learning rate from one seed."""
    return f"{method.name}_a{method.alpha:g}_{seed}"


def gathered(
    cells: Mapping[str, Result], setting: Setting
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the cells along the axes rule and seed, at the learning rate chosen for each rule.

    Chosen is the lowest mean over seeds of the logarithm of the best dev perplexity. What was
    found at all rates is kept beside it, as `tried_…` (rule, rate, seed, …).
    """
    tried = [setting.tried(method) for method in setting.methods]
    rates = np.array([[method.alpha for method in methods] for methods in tried])
    dims = {"dev_perplexity": ("windows",), "test_perplexity": (), "best_windows": ()}
    found = {
        name: np.array(
            [
                [[cells[cell_name(m, seed)][name] for seed in setting.seeds] for m in methods]
                for methods in tried
            ]
        )
        for name in dims
    }
    best = np.nanmin(found["dev_perplexity"], axis=-1)  # (rule, rate, seed)
    each, chosen = np.arange(len(tried)), np.log(best).mean(-1).argmin(-1)
    variables = {
        "alpha": Variable(("rule",), rates[each, chosen], {"units": "1"}),
        "tried_alpha": Variable(("rule", "rate"), rates, {"units": "1"}),
    }
    for name, more in dims.items():
        units = {"units": "1"}
        variables[name] = Variable(("rule", "seed", *more), found[name][each, chosen], units)
        variables[f"tried_{name}"] = Variable(("rule", "rate", "seed", *more), found[name], units)
    coords = {
        "rule": np.array([method.name for method in setting.methods]),
        "seed": np.array(setting.seeds),
        "windows": next(iter(cells.values()))["windows"],
    }
    return variables, coords


SHOWN = scaled.Shown(report.tables, {"": report.draw})


def main(name: str, scales: Mapping[str, Setting], out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    sentencepiece()  # refuse before any work
    begun = scaled.begin(name, scales, scale, out)
    setting = scales[scale]
    longest_first = sorted(setting.methods, key=lambda method: -method.T)
    runs = {
        cell_name(tried, seed): (tried, seed)
        for method in longest_first
        for tried in setting.tried(method)
        for seed in setting.seeds
    }
    measures = {
        cell: partial(train, setting, *run, out=begun.cell(cell)) for cell, run in runs.items()
    }
    processes = keeping.PROCESSES if setting.device == "cpu" else 1
    cells = begun.collect(measures, processes)
    variables, coords = gathered(cells, setting)
    origin = str(next(iter(cells.values())).attrs["data_origin"])
    claims = report.judge(Result(variables, coords), setting)
    begun.publish(variables, coords, claims, SHOWN, data_origin=origin)
