"""Choose the settings of a rule by held-out samples: some points, then the neighbours of the best.

    points of α × weight decay × γ, each with a score on held-out samples, the more the better
    while the best point has a neighbour that was not tried, one step on one axis away: try it

A step goes to the next value of the axis, or beyond its end. So the chosen point is better than all
its neighbours, and no value is chosen because better ones were not looked at. An axis of a single
value is given, not searched.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pcsim.config import Grid
from pcsim.store import Variable


class Point(NamedTuple):
    """One combination of hyper-parameters."""

    alpha: float
    weight_decay: float
    gamma: float


Found = dict[Point, float]
"""Score of each point tried on held-out samples, mean over the seeds of the search."""
Axes = Mapping[str, tuple[float, ...]]
"""Values of each axis with which a search begins, by its name."""
K = TypeVar("K", bound=Hashable)
EDGE = "whether a neighbour of the chosen point, one step on one axis away, was not tried"


def grid_of(point: Point) -> Grid:
    """Return the grid that is one point."""
    return Grid(alpha=(point.alpha,), weight_decay=(point.weight_decay,), gamma=(point.gamma,))


def first_points(given: Axes) -> list[Point]:
    """Return all α and weight decays at the middle γ."""
    middle = given["gamma"][len(given["gamma"]) // 2]
    return [Point(a, d, middle) for a, d in product(given["alpha"], given["weight_decay"])]


def usual_points(given: Axes) -> int:
    """Return how many points a search tries that begins with its best α: two more on each axis."""
    return len(first_points(given)) + 2 * sum(len(values) > 1 for values in given.values())


def best_point(found: Mapping[Point, float]) -> Point:
    """Return the point of the highest score; of equals the one tried first."""
    return max(found, key=lambda point: found[point])


def neighbours(found: Mapping[Point, float], given: Axes) -> list[Point]:
    """Return the points one step beside the best one that were not tried."""
    best, points = best_point(found), []
    for axis in Point._fields:
        values = tried(found, given, axis)
        if len(values) == 1:
            continue
        k, far = values.index(getattr(best, axis)), len(values) - 1
        lower = values[k - 1] if k else _beyond(values[0], values[1])
        upper = values[k + 1] if k < far else _beyond(values[far], values[far - 1])
        points += [best._replace(**{axis: value}) for value in (lower, upper)]
    return [point for point in points if point not in found]


def tried(found: Mapping[Point, float], given: Axes, axis: str) -> list[float]:
    """Return the values of an axis, given or tried since, sorted."""
    return sorted({*given[axis], *(getattr(point, axis) for point in found)})


def _beyond(last: float, before: float) -> float:
    return float(f"{last * last / before:.2g}")


def further_points(found: Mapping[Point, float], given: Axes, reach: int) -> list[Point]:
    """Return the neighbours of the best point that may be tried.

    `reach` says how many values of an axis may be tried beyond its ends.
    """
    return [
        point
        for point in neighbours(found, given)
        if all(
            getattr(point, axis) in known or len(known) < len(given[axis]) + reach
            for axis in given
            for known in [tried(found, given, axis)]
        )
    ]


def climb(
    first: Mapping[K, Sequence[Grid]],
    given: Mapping[K, Axes],
    reach: int,
    measure: Callable[[Mapping[K, Sequence[Grid]]], Mapping[K, Found]],
) -> dict[K, Found]:
    """Search for every key at once; return the scores of all that was tried.

    Main arguments:
        first: what is tried first.
        given: the axes.
        reach: values that may be tried beyond the ends of an axis.
        measure: returns the scores of the grids asked for; each may be trained side by side.
    """
    found: dict[K, Found] = {key: {} for key in first}
    asked = dict(first)
    while asked:
        for key, points in measure(asked).items():
            found[key] |= points
        more = {key: further_points(found[key], given[key], reach) for key in found}
        asked = {
            key: [grid_of(point) for point in points] for key, points in more.items() if points
        }
    return found


def chosen(
    points: Sequence[Point], dims: tuple[str, ...], shape: tuple[int, ...]
) -> dict[str, Variable]:
    """Return the chosen points as variables `chosen_…`."""
    return {
        f"chosen_{axis}": Variable(
            dims, np.array([getattr(point, axis) for point in points]).reshape(shape)
        )
        for axis in Point._fields
    }


def edges(
    searched: Sequence[tuple[Found, Axes]], dims: tuple[str, ...], shape: tuple[int, ...]
) -> Variable:
    """Return whether each search ended for want of reach."""
    open_ended = [bool(neighbours(found, given)) for found, given in searched]
    return Variable(dims, np.array(open_ended).reshape(shape), {"long_name": EDGE})


def scores(
    found: Sequence[Found], dims: tuple[str, ...], shape: tuple[int, ...], about: str
) -> tuple[Variable, dict[str, Any]]:
    """Return all scores on the axes `dims` × α × weight decay × γ, NaN where none was measured."""
    axes = {
        axis: sorted({getattr(point, axis) for points in found for point in points})
        for axis in Point._fields
    }
    values = np.full((len(found), *map(len, axes.values())), np.nan)
    for grid, points in zip(values, found, strict=True):
        for point, score in points.items():
            grid[tuple(axes[axis].index(getattr(point, axis)) for axis in axes)] = score
    whole = values.reshape(*shape, *values.shape[1:])
    coords = {axis: np.array(tried) for axis, tried in axes.items()}
    return Variable((*dims, *axes), whole, {"long_name": about}), coords
