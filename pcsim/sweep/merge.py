"""All points in one labelled result: the sweep axes in front of each variable's own.

Points may differ in length (fewer epochs), in labels (another time step) and in what they recorded
(another backend); nothing is lost on the way. `docs/sweep.md` tells the layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.provenance import provenance
from pcsim.store import Attr, Result, Variable
from pcsim.sweep.axes import Axis
from pcsim.sweep.folder import describe
from pcsim.sweep.outcome import DIVERGED, DONE, FAILED, MISSING, outcome_of
from pcsim.sweep.points import Sweep

Array = npt.NDArray[Any]
Parts = Mapping[int, Result]

# Per point, whether or not they agree.
_ALWAYS_VARIABLES = ("warnings", "time_utc", "command_line")
# Told by the description, or by the status, or of no use in a merged file.
_NOT_ATTRIBUTES = ("kind", "config", "points", "cells", "failure", "complete")


def merge(sweep: Sweep, parts: Parts) -> Result:
    """Put the finished points of a sweep into one result."""
    parts = dict(sorted(parts.items()))
    dims = tuple(axis.dim for axis in sweep.table.axes)
    coords, columns = _labels(sweep.table.axes)
    variables: dict[str, Variable] = dict(columns)
    inner, uneven = _inner_labels(parts)
    coords |= inner
    lengths = {dim: len(labels) for dim, labels in inner.items()}
    groups = {name: (own, found) for name, own, found in _variants(parts)}
    groups |= {f"{dim}.labels": ((dim,), found) for dim, found in uneven.items()}
    for name, (own, found) in groups.items():
        shape = tuple(lengths[dim] for dim in own)
        values = _stack({k: v.values for k, v in found.items()}, sweep, shape)
        about = next(iter(found.values())).attrs
        variables[name] = Variable((*dims, *own), values.reshape(*sweep.shape, *shape), about)
    status = _status(sweep, parts)
    per_point, common = _attributes(parts)
    for name, each in (status | per_point).items():
        values = _stack({k: np.asarray(v) for k, v in each.items()}, sweep, ())
        variables[name] = Variable(dims, values.reshape(sweep.shape))
    attrs = _description(sweep, list(status["status"].values())) | common
    coord_attrs = {n: a for p in parts.values() for n, a in p.coord_attrs.items() if n in coords}
    return Result(variables, coords, attrs, coord_attrs)


def _labels(axes: tuple[Axis, ...]) -> tuple[dict[str, Array], dict[str, Variable]]:
    """Return the labels of the sweep axes, and the values of paired fields as variables."""
    coords: dict[str, Array] = {}
    variables: dict[str, Variable] = {}
    for axis in axes:
        columns = {f: label(values) for f, values in zip(axis.fields, axis.columns, strict=True)}
        if len(columns) == 1:
            coords |= columns
        else:
            coords[axis.dim] = np.arange(len(axis))
            variables |= {f: Variable((axis.dim,), values) for f, values in columns.items()}
    return coords, variables


def label(values: tuple[Any, ...]) -> Array:
    """Return values as labels: numbers, booleans or text as they are, anything else as JSON."""
    for kinds in ((bool,), (str,), (int, float)):
        if all(isinstance(v, kinds) and (bool in kinds or type(v) is not bool) for v in values):
            return np.asarray(values)
    return np.asarray([json.dumps(value) for value in values])


def _inner_labels(parts: Parts) -> tuple[dict[str, Array], dict[str, dict[int, Variable]]]:
    """Return the labels of the points' own axes, and apart those which differ between points."""
    found: dict[str, dict[int, Array]] = {}
    for index, point in parts.items():
        for dim, labels in point.coords.items():
            found.setdefault(dim, {})[index] = labels
    common: dict[str, Array] = {}
    uneven: dict[str, dict[int, Variable]] = {}
    for dim, each in found.items():
        longest = max(each.values(), key=len)
        if all(np.array_equal(labels, longest[: len(labels)]) for labels in each.values()):
            common[dim] = longest
        else:
            common[dim] = np.arange(len(longest))
            uneven[dim] = {k: Variable((dim,), labels) for k, labels in each.items()}
    return common, uneven


def _variants(parts: Parts) -> list[tuple[str, tuple[str, ...], dict[int, Variable]]]:
    """Gather every variable, once for each set of axes that it has."""
    found: dict[tuple[str, tuple[str, ...]], dict[int, Variable]] = {}
    for index, point in parts.items():
        for name, variable in point.variables.items():
            found.setdefault((name, variable.dims), {})[index] = variable
    plain: set[str] = set()
    named = []
    for (name, own), each in found.items():
        title = f"{name}@{'+'.join(own)}" if name in plain else name
        plain.add(name)
        named.append((title, own, each))
    return named


def _stack(each: Mapping[int, Array], sweep: Sweep, shape: tuple[int, ...]) -> Array:
    """Return (point, *shape), with gaps where a point has nothing or a shorter axis."""
    kinds = {values.dtype.kind for values in each.values()}
    gaps = len(each) < len(sweep.points) or any(v.shape != shape for v in each.values())
    if "U" in kinds:
        texts = np.full((len(sweep.points), *shape), "", dtype=object)
        for index, values in each.items():
            texts[_place(index, values)] = values.astype(str).astype(object)
        return texts.astype(str)
    dtype = np.result_type(*(values.dtype for values in each.values()))
    if gaps and dtype.kind in "biu":
        dtype = np.dtype(np.float64)
    fill: Any = np.nan if dtype.kind in "fc" else 0
    stacked = np.full((len(sweep.points), *shape), fill, dtype=dtype)
    for index, values in each.items():
        stacked[_place(index, values)] = values
    return stacked


def _place(index: int, values: Array) -> tuple[int | slice, ...]:
    return (index, *(slice(length) for length in values.shape))


def _status(sweep: Sweep, parts: Parts) -> dict[str, dict[int, Any]]:
    status: dict[int, Any] = {}
    reason: dict[int, Any] = {}
    config: dict[int, Any] = {}
    for point in sweep.points:
        k = point.index
        if point.config is None:
            status[k], reason[k] = FAILED, point.problem
        elif k in parts:
            status[k], reason[k] = outcome_of(parts[k])
        else:
            status[k], reason[k] = MISSING, ""
        config[k] = point.config.to_json() if point.config else ""
    return {"status": status, "reason": reason, "config": config}


def _description(sweep: Sweep, states: list[str]) -> dict[str, Attr]:
    told = describe(sweep)
    axes = [{"dim": axis.dim, "fields": axis.fields} for axis in sweep.table.axes]
    counts: dict[str, Attr] = {n: states.count(n) for n in (DONE, FAILED, DIVERGED, MISSING)}
    return {
        **provenance(),
        "kind": "sweep",
        "sweep": json.dumps(told.pop("sweep")),
        "base_config": json.dumps(told),
        "devices": json.dumps(sweep.devices),
        "axes": json.dumps(axes),
        "seeds": json.dumps(sweep.seeds),
        "points": len(sweep.points),
        **counts,
    }


def _attributes(parts: Parts) -> tuple[dict[str, dict[int, Any]], dict[str, Attr]]:
    """Divide the attributes of points into those which differ or are measured, and the common."""
    found: dict[str, dict[int, Attr]] = {}
    for index, point in parts.items():
        for name, value in point.attrs.items():
            if name not in _NOT_ATTRIBUTES:
                found.setdefault(name, {})[index] = value
    common: dict[str, Attr] = {}
    per_point: dict[str, dict[int, Any]] = {}
    for name, each in found.items():
        numeric = any(not isinstance(value, str) for value in each.values())
        if numeric or name in _ALWAYS_VARIABLES or len(set(each.values())) > 1:
            per_point[name] = each
        else:
            common[name] = next(iter(each.values()))
    return per_point, common
