"""Fusing: points that differ only in fields which a step takes as a tensor share one run.

A fused run has the values as a grid (`config.Grid`), beside the seeds along the replica axis. Which
points share a run follows from the description alone, so that an interrupted sweep repeats the same
arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.runner.replicas import Replicas
from pcsim.store import Result, Variable
from pcsim.sweep.points import Point, Sweep

MAX_PARAMETERS = 7_000_000
"""Weights of all replicas of a fused run: it stays small in memory, and the stability margin is
measured with as many samples as in each run alone (`ChipRun._margin`)."""


@dataclass(frozen=True)
class TensorField:
    """A field that may differ between the replicas of one run."""

    field: str
    grid: str
    """Its name in `[grid]`, which is also the name of the axis in the run's result."""
    allowed: Callable[[Config], bool]
    """Whether a run with such a grid gives the numbers of separate runs."""
    hides: tuple[str, ...] = ()
    """Attributes of the run's result that then are not those of each point."""


def _independent(config: Config) -> bool:
    """Whether no replica of a population can influence what another one computes."""
    if config.run.backend == "discrete":
        # With patience, one replica that still improves keeps all others training.
        return not config.learning.patience
    # Automatic chips go on until the last has settled. Temporal noise is the same in all cells.
    return not config.run.automatic


def _alpha(config: Config) -> bool:
    if config.run.backend == "brian":
        return False  # chips with a τ_w of their own cannot use products or the fused kernel there
    return _independent(config) and not (
        config.run.backend == "continuous" and config.circuit.tau_w
    )


def _discrete(config: Config) -> bool:
    # In continuous time γ sets dt, which all chips of a run share.
    return _independent(config) and config.run.backend == "discrete"


def _gamma(config: Config) -> bool:
    return _discrete(config) and config.schedule.rule != "bp"


TENSOR_FIELDS = (
    TensorField("learning.alpha", "alpha", _alpha, hides=("tau_w",)),
    TensorField("learning.weight_decay", "weight_decay", _discrete),
    TensorField("schedule.gamma", "gamma", _gamma),
)
"""The registry: a further field needs a list in `[grid]` and one entry here."""
PIECES = "hardware.pieces."
"""Numbers of the hardware are known by this prefix; their lists stand in `[grid.hardware]`."""


def tensor_fields(swept: Iterable[str]) -> tuple[TensorField, ...]:
    """Return the fields of the registry, and every swept number of the hardware."""
    pieces = sorted(field for field in swept if field.startswith(PIECES))
    on_hardware = (TensorField(f, f.removeprefix(PIECES), _independent) for f in pieces)
    return (*TENSOR_FIELDS, *on_hardware)


@dataclass(frozen=True)
class Run:
    """Points that are computed together: every combination of the values in `grid`."""

    points: tuple[int, ...]
    grid: dict[str, tuple[float, ...]]
    """Values by the name in `[grid]`; empty for a point alone."""
    cells: tuple[dict[str, int], ...]
    """Where each point lies on the axes of the run's result."""


def plan(sweep: Sweep) -> tuple[Run, ...]:
    """Divide all valid points of a sweep into runs, in the order of their first points."""
    swept = {field for axis in sweep.table.axes for field in axis.fields}
    groups: dict[str, list[Point]] = {}
    fields: dict[str, tuple[TensorField, ...]] = {}
    for point in sweep.points:
        if point.config is None:
            continue
        usable = tuple(f for f in tensor_fields(swept) if f.field in swept and _fits(f, point))
        key = _key(point, usable)
        groups.setdefault(key, []).append(point)
        fields[key] = usable
    runs = [
        run
        for key, members in groups.items()
        for run in _blocks(members, fields[key], _limit(sweep, members[0]))
    ]
    return tuple(sorted(runs, key=lambda run: run.points[0]))


def _fits(field: TensorField, point: Point) -> bool:
    config, value = point.config, point.values[field.field]
    assert config
    if field.field.startswith(PIECES):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        given = config.grid.hardware or config.grid.trials
        return number and field.allowed(config) and not given
    return field.allowed(config) and not getattr(config.grid, field.grid)


def _key(point: Point, usable: Sequence[TensorField]) -> str:
    """Return what points must have in common to share a run."""
    assert point.config
    rest: dict[str, Any] = json.loads(point.config.to_json())
    for one in usable:
        *parents, last = one.field.split(".")
        section: Any = rest
        for name in parents:
            section = section[int(name) if isinstance(section, list) else name]
        del section[last]
    # Fields without a meaning at a point are not in its configuration, but they lie on an axis.
    fields = [one.field for one in usable]
    others = {name: value for name, value in point.values.items() if name not in fields}
    return json.dumps([fields, rest, others])


def _limit(sweep: Sweep, point: Point) -> int:
    assert point.config
    if sweep.table.fuse == 1:
        return 1
    weights = point.config.network.build().parameter_count * len(Replicas.of(point.config))
    return max(1, min(sweep.table.fuse, MAX_PARAMETERS // max(1, weights)))


def _blocks(members: list[Point], fields: tuple[TensorField, ...], limit: int) -> list[Run]:
    """Cut a group into complete grids of at most `limit` points."""
    columns = [list(dict.fromkeys(p.values[f.field] for p in members)) for f in fields]
    varied = [k for k, column in enumerate(columns) if len(column) > 1]
    if prod(len(column) for column in columns) != len(members):
        # Paired values: one grid per value of that field which gives the fewest grids.
        return min((_cut(members, fields, limit, k, columns[k], 1) for k in varied), key=len)
    if len(members) > limit:
        longest = max(varied, key=lambda k: len(columns[k]))
        others = len(members) // len(columns[longest])
        at_once = max(1, limit // others)
        return _cut(members, fields, limit, longest, columns[longest], at_once)
    return [_run(members, [fields[k] for k in varied], [columns[k] for k in varied])]


def _cut(
    members: list[Point],
    fields: tuple[TensorField, ...],
    limit: int,
    number: int,
    column: list[Any],
    at_once: int,
) -> list[Run]:
    """Divide points by the value of one field, at most `at_once` values together."""
    name, pieces = fields[number].field, -(-len(column) // at_once)
    edges = [len(column) * k // pieces for k in range(pieces + 1)]
    runs: list[Run] = []
    for start, stop in pairwise(edges):
        some = column[start:stop]
        runs += _blocks([p for p in members if p.values[name] in some], fields, limit)
    return runs


def _run(members: list[Point], fields: list[TensorField], columns: list[list[Any]]) -> Run:
    grid = {f.grid: tuple(column) for f, column in zip(fields, columns, strict=True)}
    cells = tuple(
        {f.grid: c.index(p.values[f.field]) for f, c in zip(fields, columns, strict=True)}
        for p in members
    )
    return Run(tuple(p.index for p in members), grid, cells)


def fused_config(sweep: Sweep, run: Run) -> Config:
    """Return the one configuration that computes all points of a run."""
    first = sweep.points[run.points[0]].config
    assert first
    if not run.grid:
        return first
    data = json.loads(first.to_json())
    for name, values in run.grid.items():
        place = data["grid"] if name in data["grid"] else data["grid"]["hardware"]
        place[name] = list(values)
    return configuration.pruned(data, "fused run")[0]  # all defaults stand there


def parts(result: Result) -> Iterator[tuple[int, Result]]:
    """Go through the points of a run's stored result."""
    points = json.loads(str(result.attrs["points"]))
    for index, cell in zip(points, json.loads(str(result.attrs["cells"])), strict=True):
        yield index, part(result, cell)


def part(result: Result, cell: dict[str, int]) -> Result:
    """Return one point of a run's result: its place on the grid axes, which it then has no more."""
    variables = {}
    for name, variable in result.variables.items():
        index = tuple(cell.get(dim, slice(None)) for dim in variable.dims)
        dims = tuple(dim for dim in variable.dims if dim not in cell)
        variables[name] = Variable(dims, variable.values[index], variable.attrs)
    if cell and "steps" in variables:
        # An automatic population runs until its slowest replica is done; this one ended earlier.
        last = int(variables["steps"].values.max())
        for name, one in variables.items():
            if one.dims[-1:] == ("step",):
                variables[name] = Variable(one.dims, one.values[..., :last], one.attrs)
    lengths = {
        dim: length
        for variable in variables.values()
        for dim, length in zip(variable.dims, variable.values.shape, strict=True)
    }
    coords = {n: labels[: lengths[n]] for n, labels in result.coords.items() if n in lengths}
    about = {n: a for n, a in result.coord_attrs.items() if n in lengths}
    return Result(variables, coords, result.attrs, about)
