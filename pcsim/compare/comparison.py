"""The call behind `pcsim compare`: gather runs, insist on like with like, contrast, store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from pcsim import store
from pcsim.compare.contrast import contrast
from pcsim.compare.gather import Source, gather
from pcsim.compare.likeness import require_like
from pcsim.errors import ConfigError
from pcsim.provenance import provenance
from pcsim.run import check_target
from pcsim.status import Report
from pcsim.store import Result
from pcsim.store.lock import held


def compare(
    runs: Sequence[Source] | Mapping[str, Source],
    *,
    target: float | None = None,
    confidence: float = 0.95,
    unpaired: bool = False,
    at: Mapping[str, float] | None = None,
    out: Path | str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
) -> Result:
    """Compare runs with the first of them, the reference, on the same network, data and seeds.

    Main arguments:
        runs: result files of `pcsim run`, configurations (`.toml`, run first), external CSV or
            HDF5 files, or results and configurations in memory; a mapping gives them names.
        target: accuracy to be reached, as a fraction; default 95 % of the reference's last.

    Rarely used:
        confidence: of the intervals.
        unpaired: compare means even if network, data or seeds differ.
        at: the value of each grid axis, e.g. {"alpha": 0.01}.
        out: HDF5 file for the comparison; configurations keep their results in its folder.
    """
    if not 0 < confidence < 1:
        raise ConfigError(f"compare: confidence must be between 0 and 1, got {confidence}")
    if target is not None and not 0 < target <= 1:
        raise ConfigError(f"compare: target must be a fraction between 0 and 1, got {target}")
    path = Path(out) if out else None
    if path:
        check_target(path, overwrite)
    with held(path) if path else nullcontext():
        contenders = gather(runs, at or {}, path, report)
        if not unpaired:
            require_like(contenders)
        result = contrast(
            contenders, target=target, confidence=confidence, unpaired=unpaired, origin=provenance()
        )
        if path:
            store.save(result, path, overwrite=overwrite)
    return result
