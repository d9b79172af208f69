"""Training results from elsewhere, as logs (`pcsim.compare.logs`) or HDF5 (docs/compare.md).

One row per seed and record, columns by name. A CSV may begin with lines `# name = value` (TOML)
that say what was trained, an HDF5 file says it in attributes of its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pcsim import store
from pcsim.compare.contender import Array, Contender, Curve, unknown_progress
from pcsim.compare.logs import OPTIONAL, REQUIRED, Reading, columns_of, require
from pcsim.errors import ConfigError
from pcsim.runner.progress import PROGRESS

PLAIN = Reading()
PER_SEED = ("parameters", "predictions")
"""HDF5 only, two axes: one row per seed, in the order in which the seeds first appear."""


def from_log(name: str, path: Path, reading: Reading = PLAIN) -> Contender:
    """Read a log: CSV, JSON lines, Parquet, or TensorBoard's."""
    columns, declared = columns_of(path, reading)
    return _contender(name, str(path), columns, declared)


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

    def rows_with(column: str) -> list[Array]:
        """Return, for every seed, the rows in which a column has a number."""
        known = np.isfinite(columns[column])
        return [np.flatnonzero((given == seed) & known) for seed in seeds]

    def curve(column: str) -> Curve:
        """Return a column over its records (seed, record), NaN behind the last one of a seed."""
        rows = rows_with(column)

        def by_seed(name: str) -> Array:
            values = np.full((len(seeds), max(map(len, rows))), np.nan)
            for k, index in enumerate(rows):
                values[k, : len(index)] = columns[name][index]
            return values

        values = by_seed(column)
        known = {name: by_seed(name) for name in PROGRESS if name in columns}
        return Curve(values, unknown_progress(values.shape) | known)

    rows = rows_with("test_accuracy")
    if empty := [int(seed) for seed, index in zip(seeds, rows, strict=True) if not len(index)]:
        raise ConfigError(f"{source}: seed {empty[0]} has no test_accuracy in any row")
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
        accuracy_curve=curve("test_accuracy"),
        energy_curve=curve("train_energy") if "train_energy" in columns else None,
        **more,
    )


def _check(source: str, columns: Mapping[str, Array]) -> None:
    require(source, columns, columns)
    length = len(columns["seed"])
    for column in (*REQUIRED, *OPTIONAL):
        if column in columns and columns[column].shape != (length,):
            raise ConfigError(f"{source}: {column} must have one value per row, as seed has")
    accuracy = columns["test_accuracy"][np.isfinite(columns["test_accuracy"])]
    if not len(accuracy) or not np.all((accuracy >= 0) & (accuracy <= 1)):
        raise ConfigError(
            f"{source}: test_accuracy must be fractions between 0 and 1 (--percent: per cent)"
        )
    if np.any(columns["seed"] != np.round(columns["seed"])):
        raise ConfigError(f"{source}: seed must be whole numbers")
