"""The points of a sweep: every combination of the axes, each a complete, valid configuration."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.meaning import sentence
from pcsim.sweep.axes import SweepTable, flat, read_table


@dataclass(frozen=True)
class Point:
    """One combination: where it lies on the axes, and its configuration."""

    index: int
    cell: tuple[int, ...]
    values: Mapping[str, Any]
    config: Config | None
    """None if the combination makes no sense, and the sweep records such ones as failed."""
    problem: str = ""
    unused: Mapping[str, str] = field(default_factory=dict)
    """Fields that have no meaning at this point, with what they need; they are left out of it."""

    def __str__(self) -> str:
        return ", ".join(f"{name} = {json.dumps(value)}" for name, value in self.values.items())


@dataclass(frozen=True)
class Sweep:
    """A sweep as it was described, and its points."""

    base: Mapping[str, Any]
    """The configuration without `[sweep]`, as it was given."""
    table: SweepTable
    points: tuple[Point, ...]
    devices: Mapping[str, Any]
    """What each preset held when it was read."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return tuple(len(axis) for axis in self.table.axes)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, which all points share."""
        return next(point.config.run.seeds for point in self.points if point.config)


def read_sweep(path: Path, overrides: Mapping[str, str] | None = None) -> Sweep:
    """Read a sweep from a TOML file; `overrides` are dotted names with TOML values."""
    return make_sweep(_read(path, overrides), str(path))


def _read(path: Path, overrides: Mapping[str, str] | None) -> dict[str, Any]:
    data = configuration.read(path)
    given = dict(overrides or {})
    axes = data.get("sweep", {}).get("axes") if isinstance(data.get("sweep"), dict) else None
    if isinstance(axes, dict):
        data["sweep"]["axes"] = dict(flat(axes))
        names = data["sweep"]["axes"].get("data.name")
        if isinstance(names, list):
            data["sweep"]["axes"]["data.name"] = [configuration.beside(path, n) for n in names]
    for name, text in given.items():
        if name.startswith("sweep.axes.") and isinstance(axes, dict):
            field = name.removeprefix("sweep.axes.")
            data["sweep"]["axes"][field] = configuration.value_of(text)
        else:
            configuration.change(data, name, text)
    return data


def read_description(path: Path, overrides: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a sweep with all ranges spelt out, but without validating its points."""
    base, table = _divided(_read(path, overrides), str(path))
    return described(base, table)


Devices = dict[str, Any]
"""What each preset held when it was read, by its name or path."""


def make_sweep(
    data: Mapping[str, Any], source: str = "sweep", devices: Devices | None = None
) -> Sweep:
    """Spread a description, and validate every point before any of them runs.

    Every preset is read once for all points, unless `devices` has what it held.
    """
    devices = dict(devices or {})
    base, table = _divided(data, source)
    points: list[Point] = []
    for cell in product(*(range(len(axis)) for axis in table.axes)):
        values: dict[str, Any] = {}
        for axis, index in zip(table.axes, cell, strict=True):
            values |= axis.at(index)
        points.append(_point(len(points), cell, values, base, table, source, devices))
    _refuse_unused(points, source)
    if not any(point.config for point in points):
        raise ConfigError(f"{source}: no point makes sense; the first: {points[0].problem}")
    assert len(points) == prod(len(axis) for axis in table.axes)
    return Sweep(base, table, tuple(points), devices)


def _divided(data: Mapping[str, Any], source: str) -> tuple[dict[str, Any], SweepTable]:
    """Return the configuration that all points share, and the table of axes."""
    if "sweep" not in data:
        raise ConfigError(f"{source}: has no [sweep] section; `pcsim run` takes single runs")
    base = _plain(data, source)
    return base, read_table(base.pop("sweep"), source)


def described(base: Mapping[str, Any], table: SweepTable) -> dict[str, Any]:
    """Return a description that `make_sweep` reads, with all ranges spelt out."""
    shown = table.model_dump(mode="json", exclude={"axes"})
    columns = [dict(zip(a.fields, a.columns, strict=True)) for a in table.axes]
    shown["axes"] = {f: v for c in columns if len(c) == 1 for f, v in c.items()}
    shown["paired"] = [c for c in columns if len(c) > 1]
    return _plain({**base, "sweep": shown}, "sweep")


def _point(
    index: int,
    cell: tuple[int, ...],
    values: Mapping[str, Any],
    base: Mapping[str, Any],
    table: SweepTable,
    source: str,
    devices: Devices,
) -> Point:
    data = json.loads(json.dumps(base))
    here = f"{source}: sweep point {index}"
    for name, value in values.items():
        _put(data, name, value, f"{here}: sweep.axes.{name}")
    preset = _use_device(data, values, devices)
    try:
        config, unused = configuration.pruned(data, here)
        if config.hardware.device:
            devices.setdefault(preset, config.hardware.device.model_dump(mode="json"))
        if config.record.trajectories:
            raise ConfigError(
                f"{here}: record.trajectories: a sweep keeps statistics only; "
                "record the trajectories of single points with `pcsim run`"
            )
    except ConfigError as error:
        if table.invalid == "refuse":
            shown = Point(index, cell, values, None)
            raise ConfigError(f"{error} ({shown})") from None
        return Point(index, cell, values, None, str(error).removeprefix(f"{here}: "))
    return Point(index, cell, values, config, unused=unused)


def _refuse_unused(points: Sequence[Point], source: str) -> None:
    """Refuse fields that have no meaning at any point: the rules of a sweep need different ones."""
    valid = [point for point in points if point.config]
    for name, needs in (valid[0].unused if valid else {}).items():
        if all(name in point.unused for point in valid):
            raise ConfigError(f"{source}: {sentence(name, needs)}, at one of the points at least")


def _use_device(data: dict[str, Any], values: Mapping[str, Any], devices: Devices) -> str:
    """Put in what the preset of a point held when it was read; return the name of the preset."""
    hardware = data.get("hardware")
    if not isinstance(hardware, dict):
        return ""
    if "hardware.preset" in values:
        hardware.pop("device", None)  # it belongs to another preset
    preset = str(hardware.get("preset", ""))
    if preset in devices:
        hardware.setdefault("device", devices[preset])
    return preset


def _plain(data: Any, source: str) -> dict[str, Any]:
    """Return what TOML would have given: tables, lists, numbers, text."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(data))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{source}: holds what no TOML file can hold ({error})") from None
    return plain


def _put(data: Any, field: str, value: Any, where: str) -> None:
    """Set a field by its dotted name; a number picks an item of a list that is there."""
    *parents, last = field.split(".")
    for part in parents:
        if isinstance(data, list):
            data = data[_item(data, part, where)]
        elif isinstance(data, dict):
            data = data.setdefault(part, {})
    if isinstance(data, list):
        data[_item(data, last, where)] = value
    elif isinstance(data, dict):
        data[last] = value
    else:
        raise ConfigError(f"{where}: there is a value, not a section, before {last!r}")


def _item(data: list[Any], part: str, where: str) -> int:
    if not part.isdecimal() or int(part) >= len(data):
        raise ConfigError(f"{where}: {part!r} must be the number of an item, 0 to {len(data) - 1}")
    return int(part)
