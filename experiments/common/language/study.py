"""What the studies `masked_lm` and `conditional_lm` share: their cells and how they are joined.

A cell is one rule at one learning rate (and γ) from one seed. An interrupted study goes on with the
cells that are missing, and within a cell from its last checkpoint. A setting without a search
trains all seeds at every rate; one with a search chooses each rule's point before, with another
seed and on less text (`search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.config import Grid
from pcsim.store import Result, Variable

from .. import keeping, scaled, search
from ..search import Axes, Found, Point
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
DECIDE_RATES = (0.0003, 0.001, 0.003)
"""Where the search begins."""
DECIDE_SEEDS = (0, 1, 2, 3, 4)
SEEDS = (0, 1, 2), tuple(range(10))
"""Seeds at the scales small and paper."""


Cell = tuple[Method, int]
"""A method at its rate and γ, and a seed."""
Trained = tuple[dict[str, Variable], dict[str, Any], dict[str, Result]]
"""Variables and coordinates of the result, and the cells by name."""
MEASURED = {"dev_perplexity": ("windows",), "test_perplexity": (), "best_windows": ()}
"""What a cell has measured, and along which axes."""
SCORE = "search: −ln of the best dev perplexity of each point"


def cell_name(method: Method, seed: int) -> str:
    """Name a cell: one rule at one learning rate from one seed."""
    return f"{method.name}_a{method.alpha:g}_g{method.gamma:g}_{seed}"


def gathered(
    cells: Mapping[str, Result], setting: Setting
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the cells along the axes rule and seed, at the learning rate chosen for each rule.

    Chosen is the lowest mean over seeds of the logarithm of the best dev perplexity. What was
    found at all rates is kept beside it, as `tried_…` (rule, rate, seed, …).
    """
    tried = [setting.tried(method) for method in setting.methods]
    rates = np.array([[method.alpha for method in methods] for methods in tried])
    found = {
        name: np.array(
            [
                [[cells[cell_name(m, seed)][name] for seed in setting.seeds] for m in methods]
                for methods in tried
            ]
        )
        for name in MEASURED
    }
    best = np.nanmin(found["dev_perplexity"], axis=-1)  # (rule, rate, seed)
    each, chosen = np.arange(len(tried)), np.log(best).mean(-1).argmin(-1)
    variables = {
        "alpha": Variable(("rule",), rates[each, chosen], {"units": "1"}),
        "tried_alpha": Variable(("rule", "rate"), rates, {"units": "1"}),
    }
    for name, more in MEASURED.items():
        units = {"units": "1"}
        variables[name] = Variable(("rule", "seed", *more), found[name][each, chosen], units)
        variables[f"tried_{name}"] = Variable(("rule", "rate", "seed", *more), found[name], units)
    coords = {
        "rule": np.array([method.name for method in setting.methods]),
        "seed": np.array(setting.seeds),
        "windows": next(iter(cells.values()))["windows"],
    }
    return variables, coords


def measured(begun: scaled.Study, setting: Setting, runs: Sequence[Cell]) -> dict[str, Result]:
    """Return the results of some cells; those known at this setting are not measured again."""
    text, folder = (
        setting.model_dump_json(exclude={"search", "seeds"}),
        keeping.cells_of(begun.path),
    )
    measures = {
        (name := cell_name(*run)): partial(train, setting, *run, out=folder.path(name, text))
        for run in sorted(runs, key=lambda run: -run[0].T)  # the longest first
    }
    processes = keeping.PROCESSES if setting.device == "cpu" else 1
    return keeping.collect(measures, begun.path, text, begun.console, processes)


def at(method: Method, point: Point) -> Method:
    """Return a method at a point of its search."""
    return method.model_copy(update={"alpha": point.alpha, "gamma": point.gamma})


def scores(
    begun: scaled.Study, setting: Setting, asked: Mapping[str, Sequence[Grid]]
) -> dict[str, Found]:
    """Return the scores of some points of each method: −ln of the best dev perplexity."""
    methods: dict[str, Method] = {method.name: method for method in setting.methods}
    points = {
        name: [Point(*grid.alpha, *grid.weight_decay, *grid.gamma) for grid in grids]
        for name, grids in asked.items()
    }
    runs = {
        (name, point): (at(methods[name], point), setting.seeds[0])
        for name, some in points.items()
        for point in some
    }
    cells = measured(begun, setting, list(runs.values()))
    found: dict[str, Found] = {name: {} for name in asked}
    for (name, point), run in runs.items():
        found[name][point] = -float(np.log(np.nanmin(cells[cell_name(*run)]["dev_perplexity"])))
    return found


def searched(begun: scaled.Study, setting: Setting) -> Trained:
    """Choose the point of every method, then train the seeds there."""
    assert setting.search is not None
    names: list[str] = [method.name for method in setting.methods]
    given: dict[str, Axes] = {method.name: setting.axes(method) for method in setting.methods}
    first = {name: [search.grid_of(p) for p in search.first_points(given[name])] for name in names}
    asked = partial(scores, begun, setting.of_search())
    found = search.climb(first, given, setting.search.reach, asked)
    chosen = {name: search.best_point(found[name]) for name in names}
    methods = tuple(at(method, chosen[method.name]) for method in setting.methods)
    fixed = setting.model_copy(update={"methods": methods, "rates": ()})
    cells = measured(begun, fixed, [(m, seed) for m in methods for seed in setting.seeds])
    variables, coords = gathered(cells, fixed)
    variables = {name: variables[name] for name in MEASURED}
    dims, shape = ("rule",), (len(names),)
    variables |= search.chosen(list(chosen.values()), dims, shape)
    variables["edge"] = search.edges([(found[name], given[name]) for name in names], dims, shape)
    variables["search_score"], axes = search.scores(list(found.values()), dims, shape, SCORE)
    return variables, coords | axes, cells


def at_every_rate(begun: scaled.Study, setting: Setting) -> Trained:
    """Train the seeds at every rate; dev perplexities choose afterwards."""
    cells = measured(
        begun,
        setting,
        [(m, s) for one in setting.methods for m in setting.tried(one) for s in setting.seeds],
    )
    return *gathered(cells, setting), cells


SHOWN = scaled.Shown(report.tables, {"": report.draw}, report.rows)


def main(name: str, scales: Mapping[str, Setting], out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    sentencepiece()  # refuse before any work
    begun = scaled.begin(name, scales, scale, out)
    setting = scales[scale]
    found = searched(begun, setting) if setting.search else at_every_rate(begun, setting)
    variables, coords, cells = found
    origin = str(next(iter(cells.values())).attrs["data_origin"])
    claims = report.judge(Result(variables, coords), setting)
    begun.publish(variables, coords, claims, SHOWN, data_origin=origin)
