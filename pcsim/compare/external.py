"""Training results from elsewhere, as CSV or HDF5 (docs/compare.md).

One row per seed and record, columns by name. A CSV may begin with lines `# name = value` (TOML)
that say what was trained, an HDF5 file says it in attributes of its root.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pcsim import store
from pcsim.compare.contender import PROGRESS, Array, Contender, Curve, unknown_progress
from pcsim.errors import ConfigError

REQUIRED = ("seed", "test_accuracy")
OPTIONAL = ("epoch", *PROGRESS, "train_energy")
PER_SEED = ("parameters", "predictions")
"""HDF5 only, two axes: one row per seed, in the order in which the seeds first appear."""


def from_csv(name: str, path: Path) -> Contender:
    """Read a table whose first row that is no comment names the columns."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    declared: dict[str, Any] = {}
    rows: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            declared |= _declaration(line, f"{path}, line {number}")
        elif line.strip():
            rows.append((number, next(csv.reader([line]))))
    if len(rows) < 2:
        raise ConfigError(f"{path}: needs a row of column names and at least one row of numbers")
    header = [cell.strip() for cell in rows[0][1]]
    table = np.empty((len(rows) - 1, len(header)))
    for row, (number, cells) in enumerate(rows[1:]):
        if len(cells) != len(header):
            raise ConfigError(
                f"{path}, line {number}: has {len(cells)} values for {len(header)} columns"
            )
        for column, text in enumerate(cells):
            table[row, column] = _number(text, f"{path}, line {number}, {header[column]}")
    return _contender(name, str(path), dict(zip(header, table.T, strict=True)), declared)


def from_hdf5(name: str, path: Path) -> Contender:
    """Read arrays at the root of a file, columns of equal length, and its attributes."""
    columns, declared = store.read_columns(path)
    return _contender(name, str(path), columns, declared)


def _contender(
    name: str, source: str, columns: Mapping[str, Array], declared: Mapping[str, Any]
) -> Contender:
    _check(source, columns)
    given = columns["seed"]
    seeds = np.asarray(list(dict.fromkeys(given.astype(int).tolist())))
    rows = [np.flatnonzero(given == seed) for seed in seeds]
    longest = max(map(len, rows))

    def by_seed(column: str) -> Array:
        """Return a column as (seed, record), NaN behind the last record of a seed."""
        values = np.full((len(seeds), longest), np.nan)
        for k, index in enumerate(rows):
            values[k, : len(index)] = columns[column][index]
        return values

    curve = by_seed("test_accuracy")
    progress = unknown_progress(curve.shape)
    progress |= {column: by_seed(column) for column in PROGRESS if column in columns}
    energy = by_seed("train_energy") if "train_energy" in columns else None
    more: dict[str, Any] = {}
    for column in PER_SEED:
        if column in columns:
            if columns[column].shape[:1] != (len(seeds),) or columns[column].ndim != 2:
                raise ConfigError(f"{source}: {column} must have one row for each of the seeds")
            more[column] = columns[column]
    return Contender(
        name=name,
        source=source,
        fields=dict(declared),
        seeds=seeds,
        accuracy=np.array([columns["test_accuracy"][index[-1]] for index in rows]),
        accuracy_curve=Curve(curve, progress),
        energy_curve=None if energy is None else Curve(energy, progress),
        **more,
    )


def _check(source: str, columns: Mapping[str, Array]) -> None:
    for column in REQUIRED:
        if column not in columns:
            raise ConfigError(
                f"{source}: has no column {column}; needed: {', '.join(REQUIRED)}; "
                f"understood: {', '.join(OPTIONAL)}; found: {', '.join(columns) or 'none'}"
            )
    length = len(columns["seed"])
    for column in (*REQUIRED, *OPTIONAL):
        if column in columns and columns[column].shape != (length,):
            raise ConfigError(f"{source}: {column} must have one value per row, as seed has")
    accuracy = columns["test_accuracy"]
    if not length or not np.all((accuracy >= 0) & (accuracy <= 1)):
        raise ConfigError(
            f"{source}: test_accuracy must be fractions between 0 and 1 (divide per cent by 100)"
        )
    if np.any(columns["seed"] != np.round(columns["seed"])):
        raise ConfigError(f"{source}: seed must be whole numbers")


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


def _number(text: str, where: str) -> float:
    try:
        return float(text) if text.strip() else np.nan
    except ValueError:
        raise ConfigError(f"{where}: {text!r} is not a number") from None
