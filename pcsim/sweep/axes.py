"""The axes of a sweep: dotted field names with lists, linear or logarithmic ranges, or in pairs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from pcsim.errors import ConfigError
from pcsim.frozen import Frozen

RANGES: dict[str, Callable[[float, float, int], Any]] = {
    "lin": np.linspace,
    "log": np.geomspace,
}
# Fields that already are axes of a single run, with what to do instead.
_REFUSED = {
    "run.seeds": "every point has all seeds: list them in run.seeds itself",
    "grid": "sweep the field itself (learning.alpha, …): such points are fused on their own",
    "sweep": "a sweep cannot sweep itself",
}


class Axis(Frozen):
    """One axis: a field with its values, or several fields whose values go side by side."""

    fields: tuple[str, ...]
    """Dotted names of the fields that vary together."""
    columns: tuple[tuple[Any, ...], ...]
    """The values of each field."""

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def dim(self) -> str:
        """The name of the axis in a result."""
        return "+".join(self.fields)

    def at(self, index: int) -> dict[str, Any]:
        """Return the value of each field at one place of the axis."""
        return {f: column[index] for f, column in zip(self.fields, self.columns, strict=True)}


class SweepTable(Frozen):
    """The table `[sweep]`, with ranges spelt out."""

    axes: tuple[Axis, ...]
    """The fields that vary, each with its values."""
    fuse: Annotated[int, Field(ge=1)] = 32
    """At most so many points share one run; 1: each point has its own."""
    leave_out: tuple[str, ...] = Field(("parameters", "predictions"), strict=False)
    """Variables of a run that are not stored."""
    invalid: Literal["refuse", "record"] = "refuse"
    """Combinations that make no sense: refuse them before the sweep starts, or record as failed."""


def read_table(raw: Any, source: str) -> SweepTable:
    """Validate a `[sweep]` table; the error names the field."""
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{source}: sweep: must be a section, got {raw!r}")
    known = ["paired", *SweepTable.model_fields]
    for name in raw:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
            raise ConfigError(f"{source}: sweep.{name}: unknown name; {hint}")
    try:
        settings = {n: v for n, v in raw.items() if n not in ("axes", "paired")}
        return SweepTable.model_validate({**settings, "axes": _axes(raw, source)})
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"{source}: sweep.{path}: {first['msg']}, got {first['input']!r}"
        ) from None


def _axes(raw: Mapping[str, Any], source: str) -> tuple[Axis, ...]:
    alone, paired = raw.get("axes", {}), raw.get("paired", [])
    if not isinstance(alone, Mapping):
        raise ConfigError(f"{source}: sweep.axes: must be a section of fields, got {alone!r}")
    if not isinstance(paired, Sequence) or not all(isinstance(p, Mapping) for p in paired):
        raise ConfigError(f"{source}: sweep.paired: write each as a section [[sweep.paired]]")
    axes = [_axis([one], f"{source}: sweep.axes") for one in flat(alone)]
    axes += [_axis(list(flat(group)), f"{source}: sweep.paired") for group in paired if group]
    if not axes:
        raise ConfigError(f"{source}: sweep.axes: name at least one field with its values")
    fields = [field for axis in axes for field in axis.fields]
    for field in fields:
        for other in fields:
            if field != other and field.startswith(f"{other}."):
                raise ConfigError(f"{source}: sweep.axes: {field} is inside of {other}; choose one")
        if fields.count(field) > 1:
            raise ConfigError(f"{source}: sweep.axes: {field} is there twice")
    return tuple(axes)


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Go through a table whose fields are written with or without quotes, `"a.b"` or a.b."""
    for name, value in table.items():
        if isinstance(value, Mapping) and not (len(value) == 1 and set(value) <= set(RANGES)):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _axis(columns: list[tuple[str, Any]], where: str) -> Axis:
    """Build one axis, and refuse what could not be labelled."""
    spread = {field: _values(given, f"{where}.{field}") for field, given in columns}
    lengths = {field: len(values) for field, values in spread.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{field} has {n}" for field, n in lengths.items())
        raise ConfigError(f"{where}: paired fields need equally many values, but {shown}")
    for field in spread:
        for refused, reason in _REFUSED.items():
            if f"{field}.".startswith(f"{refused}.") or refused.startswith(f"{field}."):
                raise ConfigError(f"{where}.{field}: cannot be swept; {reason}")
    rows = Counter(json.dumps(row) for row in zip(*spread.values(), strict=True))
    row, times = rows.most_common(1)[0]
    if times > 1:
        raise ConfigError(f"{where}.{'+'.join(spread)}: {row} is listed {times} times")
    return Axis(fields=tuple(spread), columns=tuple(spread.values()))


def _values(given: Any, where: str) -> tuple[Any, ...]:
    if isinstance(given, Mapping):
        ((scale, ends),) = given.items()
        return _range(scale, ends, f"{where}.{scale}")
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise ConfigError(
            f"{where}: must be a list of values, {{ lin = [first, last, how many] }} or "
            f"{{ log = [first, last, how many] }}, got {given!r}"
        )
    return tuple(given)


def _range(scale: str, ends: Any, where: str) -> tuple[float | int, ...]:
    wanted = f"{where}: must be [first, last, how many]"
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 3:
        raise ConfigError(f"{wanted}, got {ends!r}")
    first, last, count = ends
    numbers = all(isinstance(n, int | float) and not isinstance(n, bool) for n in ends)
    if not numbers or not np.isfinite([first, last]).all() or count != int(count) or count < 2:
        raise ConfigError(f"{wanted} with two numbers and a count of at least 2, got {ends!r}")
    if scale == "log" and not (first > 0 and last > 0):
        raise ConfigError(f"{where}: a logarithmic range needs ends above 0, got {ends!r}")
    # 12 digits: 0.3 stays 0.3, and does not become 0.30000000000000004 as a label.
    values = [float(f"{v:.12g}") for v in RANGES[scale](first, last, int(count))]
    whole = isinstance(first, int) and isinstance(last, int)
    if whole and all(v == int(v) for v in values):
        return tuple(int(v) for v in values)
    return tuple(values)
