"""Train what a study of pictures compares: at every point of a grid, or at points chosen before.

A budget without a search trains all seeds at every point, and held-out samples choose afterwards
(`held_out_choice`). One with a search goes the cheaper way:

    search   one seed, few samples and epochs: for each task and rule the point of the highest
             held-out accuracy, better than all its neighbours (`search`)
    report   all seeds at that point; held-out samples choose the epoch, test samples only measure
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from pcsim.config import Grid
from pcsim.store import Result, Variable

from . import image_training, keeping, search
from .image_training import SLOWEST_FIRST, Budget, More, Task, cell_name
from .scaled import Study
from .search import Axes, Found, Point

Key = tuple[Any, str]
"""A value of the leading axis, and a rule."""
Trained = tuple[dict[str, Variable], dict[str, Any], dict[str, Result]]
"""Variables and coordinates of the result, and the cells by name."""
SCORE = "search: best held-out accuracy of each point"


def train(
    begun: Study,
    leads: Mapping[str, Sequence[Any]],
    rules: Sequence[str],
    budget: Budget,
    task_of: Callable[[Any], Task],
    more: More | None = None,
) -> Trained:
    """Train every rule on every task, resuming with the cells that are missing.

    Main arguments:
        leads: name and values of the axis that the study varies besides rule and grid.
        task_of: returns the task of one of these values.
        more: what else is measured with the trained weights.
    """
    if budget.search is not None:
        return _searched(begun, leads, rules, budget, task_of, more)
    ((_, values),) = leads.items()
    measures = image_training.cells(values, rules, budget, partial(_measure, task_of, budget, more))
    found = begun.collect(measures, budget.processes)
    return *image_training.gathered(found, leads, rules, budget), found


def _measure(
    task_of: Callable[[Any], Task],
    budget: Budget,
    more: More | None,
    lead: Any,
    rule: str,
    point: Point,
) -> Result:
    return image_training.measure(task_of(lead), rule, point, budget, more)


def axes_of(rule: str, budget: Budget) -> Axes:
    """Return the values with which the search of a rule begins; BP has no γ."""
    return {
        "alpha": budget.alphas,
        "weight_decay": budget.weight_decays,
        "gamma": budget.gammas[:1] if rule == "BP" else budget.gammas,
    }


def _searched(
    begun: Study,
    leads: Mapping[str, Sequence[Any]],
    rules: Sequence[str],
    budget: Budget,
    task_of: Callable[[Any], Task],
    more: More | None,
) -> Trained:
    assert budget.search is not None
    ((lead_name, values),) = leads.items()
    keys: list[Key] = [(lead, rule) for lead, rule in product(values, rules)]
    given = {key: axes_of(key[1], budget) for key in keys}
    first = {key: [search.grid_of(p) for p in search.first_points(given[key])] for key in keys}
    found = search.climb(
        first, given, budget.search.reach, partial(_scores, begun, budget.of_search(), task_of)
    )
    chosen = {key: search.best_point(found[key]) for key in keys}
    cells = _collected(begun, "report", {key: [chosen[key]] for key in keys}, budget, task_of, more)
    in_order = [cells[cell_name(*key, chosen[key])] for key in keys]
    dims, shape = (lead_name, "rule"), (len(values), len(rules))
    variables = {
        name: Variable(
            (*dims, *one.dims),
            np.stack([cell[name] for cell in in_order]).reshape(*shape, *one.values.shape),
            one.attrs,
        )
        for name, one in in_order[0].variables.items()
    }
    variables |= search.chosen(list(chosen.values()), dims, shape)
    variables["edge"] = search.edges([(found[key], given[key]) for key in keys], dims, shape)
    variables["search_accuracy"], axes = search.scores(list(found.values()), dims, shape, SCORE)
    coords = {lead_name: np.array(values), "rule": np.array(rules), **axes}
    return variables, coords | dict(in_order[0].coords), cells


def _scores(
    begun: Study,
    budget: Budget,
    task_of: Callable[[Any], Task],
    asked: Mapping[Key, Sequence[Grid]],
) -> dict[Key, Found]:
    """Return the held-out accuracies of some points, each a grid of its own."""
    points = {
        key: [Point(*grid.alpha, *grid.weight_decay, *grid.gamma) for grid in grids]
        for key, grids in asked.items()
    }
    cells = _collected(begun, "search", points, budget, task_of, None)
    return {
        key: {
            point: float(
                np.nan_to_num(cells[cell_name(*key, point)]["validation_accuracy"]).max(-1).mean()
            )
            for point in some
        }
        for key, some in points.items()
    }


def _collected(
    begun: Study,
    stage: str,
    points: Mapping[Key, Sequence[Point]],
    budget: Budget,
    task_of: Callable[[Any], Task],
    more: More | None,
) -> dict[str, Result]:
    """Return the results of some points by the names of their cells, slow rules first.

    A cell is known by its configuration, and by what the setting says besides the budget: another
    number of seeds repeats no search.
    """
    known, measures = {}, {}
    slow_first = sorted(points, key=lambda key: SLOWEST_FIRST.index(key[1]))
    for lead, rule in slow_first:
        for point in points[lead, rule]:
            task, name = task_of(lead), cell_name(lead, rule, point)
            run = image_training.config_of(task, rule, point, budget)
            known[name] = f"{stage}_{name}_{keeping.digest(run)}"
            measures[known[name]] = partial(image_training.measure, task, rule, point, budget, more)
    setting = begun.setting.model_dump_json(exclude={"budget"}) if more else ""
    found = keeping.collect(measures, begun.path, setting, begun.console, budget.processes)
    return {name: found[one] for name, one in known.items()}
