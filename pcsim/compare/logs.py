"""Logs of other programs as columns: CSV, JSON lines, Parquet, TensorBoard's event files.

What a column is called there is said by a map, `{"test_accuracy": "val_acc"}`; what else is needed
to lay a log beside a run (per cent, samples per epoch or step) is said, not guessed.
"""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.compare.contender import Array
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.runner.progress import PROGRESS

REQUIRED = ("seed", "test_accuracy")
OPTIONAL = ("epoch", "step", *PROGRESS, "train_energy")
EVENTS = "events.out.tfevents"
SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True)
class Reading:
    """How the logs of other programs are read."""

    columns: Mapping[str, str] = field(default_factory=dict)
    """What our columns are called there."""
    percent: bool = False
    """Whether accuracies are per cent."""
    train_samples: int | None = None
    """Samples of one epoch."""
    batch: int | None = None
    """Samples of one step."""

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in (*REQUIRED, *OPTIONAL):
                raise ConfigError(
                    f"--column {name}=…: is none of {', '.join((*REQUIRED, *OPTIONAL))}"
                )
        for name, value in (("train-samples", self.train_samples), ("batch", self.batch)):
            if value is not None and value < 1:
                raise ConfigError(f"--{name}: must be at least 1, got {value}")

    @property
    def of_a_log(self) -> bool:
        """Whether something was said that only the log of another program needs."""
        return bool(self.columns) or self.percent


def is_log(path: Path) -> bool:
    """Return whether a path is a log of a kind that is read here."""
    return path.suffix.lower() in SUFFIXES or bool(event_files(path))


def event_files(path: Path) -> list[Path]:
    """Return TensorBoard's files: this one, or those directly in this folder."""
    if path.is_dir():
        return sorted(one for one in path.iterdir() if one.name.startswith(EVENTS))
    return [path] if path.name.startswith(EVENTS) else []


def columns_of(path: Path, reading: Reading) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return our columns as numbers, and what the file declares of itself."""
    declared: dict[str, Any] = {}
    found: Mapping[str, Sequence[Any]]
    if event_files(path):
        found = _tensorboard(path, reading)
    else:
        readers: dict[str, Callable[[Path, dict[str, Any]], Mapping[str, Sequence[Any]]]] = {
            ".csv": _csv,
            ".parquet": _parquet,
        }
        found = readers.get(path.suffix.lower(), _json_lines)(path, declared)
    columns = _renamed(str(path), found, reading)
    numbers = {name: _numbers(f"{path}, {name}", values) for name, values in columns.items()}
    prepared = _prepared(str(path), numbers, reading, found)
    require(str(path), prepared, found)
    return prepared, declared


def require(source: str, columns: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse a file without what is needed, and say what it has."""
    for column in REQUIRED:
        if column not in columns:
            raise ConfigError(
                f"{source}: has no column {column}; needed: {', '.join(REQUIRED)}; "
                f"understood: {', '.join(OPTIONAL)}; found: {', '.join(found) or 'none'}; "
                f"a column of another name is given by --column {column}=NAME"
            )


def _renamed(
    source: str, found: Mapping[str, Sequence[Any]], reading: Reading
) -> dict[str, Sequence[Any]]:
    """Return the columns that are understood, by our names."""
    columns = {}
    for name in (*REQUIRED, *OPTIONAL):
        theirs = reading.columns.get(name, name)
        if theirs in found:
            columns[name] = found[theirs]
        elif name in found:
            columns[name] = found[name]
        elif name in reading.columns:
            close = get_close_matches(theirs, found, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ConfigError(
                f"{source}: has no column {theirs!r} (--column {name}={theirs}); {hint}"
                f"found: {', '.join(found) or 'none'}"
            )
    return columns


def _prepared(
    source: str, columns: dict[str, Array], reading: Reading, found: Mapping[str, Any]
) -> dict[str, Array]:
    """Return columns in our units: fractions, and progress in samples, updates and epochs."""
    if "seed" not in columns and reading.of_a_log and columns:
        columns["seed"] = np.zeros(len(next(iter(columns.values()))))
    if reading.percent and "test_accuracy" in columns:
        accuracy = columns["test_accuracy"]
        if np.nanmax(accuracy, initial=0) <= 1:
            raise ConfigError(
                f"{source}: --percent: its accuracies are 1 or less, which are fractions"
            )
        columns["test_accuracy"] = accuracy / 100
    # Lightning numbers epochs and steps from 0, and logs at the end of each.
    first = 1 if {"epoch", "step"} <= found.keys() and Path(source).name == "metrics.csv" else 0
    if "epoch" in columns:
        epochs = columns.pop("epoch") + first
        columns.setdefault("epochs", epochs)
        if reading.train_samples:
            columns.setdefault("samples", epochs * reading.train_samples)
    if "step" in columns:
        steps = columns.pop("step") + first
        columns.setdefault("updates", steps)
        if reading.batch:
            columns.setdefault("samples", steps * reading.batch)
    if reading.train_samples and "samples" in columns:
        columns.setdefault("epochs", columns["samples"] / reading.train_samples)
    return columns


def _numbers(where: str, values: Sequence[Any]) -> Array:
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = np.nan if value is None or value == "" else float(value)
        except (TypeError, ValueError):
            place = f"line {value.line}, " if isinstance(value, _Cell) else f"row {row + 1}, "
            file, _, name = where.rpartition(", ")
            raise ConfigError(f"{file}, {place}{name}: {str(value)!r} is not a number") from None
    return numbers


class _Cell(str):
    """The text of a cell, and the line it stands in."""

    line: int


def _text(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None


def _csv(path: Path, declared: dict[str, Any]) -> dict[str, list[Any]]:
    """Read a table whose first row that is no comment names the columns."""
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(_text(path), 1):
        if line.lstrip().startswith("#"):
            declared |= _declaration(line, f"{path}, line {number}")
        elif line.strip():
            rows.append((number, next(csv.reader([line]))))
    if len(rows) < 2:
        raise ConfigError(f"{path}: needs a row of column names and at least one row of numbers")
    header = [cell.strip() for cell in rows[0][1]]
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for number, cells in rows[1:]:
        if len(cells) != len(header):
            raise ConfigError(
                f"{path}, line {number}: has {len(cells)} values for {len(header)} columns"
            )
        for name, text in zip(header, cells, strict=True):
            cell = _Cell(text.strip())
            cell.line = number
            columns[name].append(cell)
    return columns


def _json_lines(path: Path, declared: dict[str, Any]) -> dict[str, list[Any]]:
    """Read one object per line; a key that a line lacks is an empty cell."""
    rows = []
    for number, line in enumerate(_text(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise ConfigError(f"{path}, line {number}: is not JSON ({error.msg})") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{path}, line {number}: must be an object such as {{'epoch': 1}}")
        rows.append(row)
    if not rows:
        raise ConfigError(f"{path}: is empty")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}


def _parquet(path: Path, declared: dict[str, Any]) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise UnsupportedError(
            f"{path}: Parquet needs pyarrow; install it with pip install 'pcsim[logs]'"
        ) from None
    try:
        table = parquet.read_table(path)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (ArrowException, OSError) as error:
        raise ConfigError(f"{path}: cannot be read as Parquet ({error})") from None
    return {name: table[name].to_pylist() for name in table.column_names}


def _tensorboard(path: Path, reading: Reading) -> dict[str, list[Any]]:
    """Read the scalars whose tags are mapped; a row for each step."""
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError:
        raise UnsupportedError(
            f"{path}: TensorBoard's event files need tensorboard; install it with "
            "pip install 'pcsim[logs]'"
        ) from None
    events = EventAccumulator(str(path), {"scalars": 0, "tensors": 0})
    events.Reload()
    tags = events.Tags()
    points: dict[str, dict[int, float]] = {}
    for tag in tags["scalars"]:
        points[tag] = {event.step: event.value for event in events.Scalars(tag)}
    for tag in tags["tensors"]:
        values = {event.step: make_ndarray(event.tensor_proto) for event in events.Tensors(tag)}
        if all(np.size(value) == 1 and value.dtype.kind in "fiu" for value in values.values()):
            points[tag] = {step: float(value) for step, value in values.items()}
    if not points:
        raise ConfigError(f"{path}: has no scalars")
    wanted = set(reading.columns.values()) or set(REQUIRED + OPTIONAL)
    steps = sorted({step for tag in points if tag in wanted for step in points[tag]})
    columns: dict[str, list[Any]] = {
        tag: [values.get(step) for step in steps] for tag, values in points.items()
    }
    return {"step": [float(step) for step in steps]} | columns


def _declaration(line: str, where: str) -> dict[str, Any]:
    """Return what a comment declares: `# data.name = "digits"`; other comments say nothing."""
    text = line.lstrip("# \t")
    key, equals, value = text.partition("=")
    if not equals or " " in key.strip():
        return {}
    try:
        return {key.strip(): tomllib.loads(f"value = {value}")["value"]}
    except tomllib.TOMLDecodeError:
        raise ConfigError(
            f'{where}: {key.strip()} is not a TOML value; write text in quotes: # name = "text"'
        ) from None
