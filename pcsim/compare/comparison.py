"""The call behind `pcsim compare`: gather runs, insist on like with like, contrast, store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcsim import store
from pcsim.compare.contrast import contrast
from pcsim.compare.gather import Source, gather
from pcsim.compare.likeness import require_like
from pcsim.compare.logs import Reading
from pcsim.errors import ConfigError
from pcsim.provenance import provenance
from pcsim.run import check_target
from pcsim.status import Report
from pcsim.store import Result
from pcsim.store.lock import held

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pcsim.rows import Rows


class Comparison(Result):
    """Runs against the first of them, on named axes (run, seed, …)."""

    def tables(self) -> list[Rows]:
        """Return accuracy and gap, agreement, cost of the target, and settings that differ."""
        from pcsim.compare.tables import comparison_tables

        return comparison_tables(self)

    def plot(self) -> Figure:
        """Draw energy and accuracy over the training, and the gaps to the reference."""
        from pcsim.compare.figure import comparison_figure

        return comparison_figure(self)

    def __repr__(self) -> str:
        """Return the gap of every run with its interval, in points of accuracy."""
        runs = [str(name) for name in self["run"]]
        gaps = [
            f"{name} {100 * self['gap_mean'][k]:+.2f} points"
            + (
                f" ({100 * self['gap_low'][k]:+.2f} … {100 * self['gap_high'][k]:+.2f})"
                if np.isfinite(self["gap_low"][k])
                else ""
            )
            for k, name in enumerate(runs[1:], 1)
        ]
        how = "paired by seed" if self.attrs["paired"] else "unpaired"
        return f"<Comparison with {runs[0]}, {how}: {'; '.join(gaps)}>"

    def _repr_html_(self) -> str:
        return "\n".join(table.html() for table in self.tables())


def compare(
    runs: Sequence[Source] | Mapping[str, Source],
    *,
    target: float | None = None,
    confidence: float = 0.95,
    unpaired: bool = False,
    at: Mapping[str, float] | None = None,
    columns: Mapping[str, str] | None = None,
    percent: bool = False,
    train_samples: int | None = None,
    batch: int | None = None,
    out: Path | str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
) -> Comparison:
    """Compare runs with the first of them, the reference, on the same network, data and seeds.

    Main arguments:
        runs: result files of `pcsim run`, configurations (`.toml`, run first), logs of other
            programs (CSV, JSON lines, Parquet, TensorBoard, HDF5), or results and configurations
            in memory; a mapping gives them names.
        target: accuracy to be reached, as a fraction; default 95 % of the reference's last.

    Rarely used:
        confidence: of the intervals.
        unpaired: compare means even if network, data or seeds differ.
        at: the value of each grid axis, e.g. {"alpha": 0.01}.
        columns: what columns of logs are called, e.g. {"test_accuracy": "val_acc"}.
        percent: accuracies of logs are per cent.
        train_samples, batch: samples of an epoch and of a step of logs.
        out: HDF5 file for the comparison; configurations keep their results in its folder.
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"compare: confidence must be between 0 and 1, got {confidence}")
    if target is not None and not 0 < target <= 1:
        raise ConfigError(f"compare: target must be a fraction between 0 and 1, got {target}")
    reading = Reading(columns or {}, percent, train_samples, batch)
    path = Path(out) if out else None
    if path:
        check_target(path, overwrite)
    with held(path) if path else nullcontext():
        contenders = gather(runs, at or {}, path, report, reading)
        if not unpaired:
            require_like(contenders)
        result = contrast(
            contenders, target=target, confidence=confidence, unpaired=unpaired, origin=provenance()
        )
        if path:
            store.save(result, path, overwrite=overwrite)
    return Comparison.of(result)
