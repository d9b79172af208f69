"""Checkpoints of a run in continuous time: all that the next time step depends on, and the records.

A checkpoint is made between two steps, at any step: engine (weights, states, what is clamped as the
chips receive it, delay lines), hardware (its clock and memory), label, records. It is a picture:
making one changes nothing, and a run that goes on from it takes the very steps of one that was
never interrupted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from pcsim.errors import StoreError
from pcsim.runner.checkpoint import packed, part_of, under
from pcsim.store import Result

if TYPE_CHECKING:
    from pcsim.runner.chip_run import ChipRun


def pack(run: ChipRun) -> Result:
    """Return a copy of a run as it stands; its trajectories are on disk until here."""
    run.recorder.flush()
    arrays = under("engine", run.engine.state()) | under("window", run.window.state())
    if run.hardware:
        arrays |= under("chip", run.hardware.state())
    if run.label is not None:
        arrays["label"] = run.label
    arrays |= {"stopped_at": run.stopped_at} | under("held", run.recorder.held)
    if run.initial:
        arrays["initial"] = np.stack(run.initial)
    if run.accuracy_rows:
        arrays["accuracy"] = np.stack([row for _, row in run.accuracy_rows])
        arrays["accuracy_time"] = np.asarray([t for t, _ in run.accuracy_rows])
    arrays |= under("rows", {n: np.stack(rows) for n, rows in run.recorder.rows.items()})
    config = run.config.to_json()
    return packed(arrays, config=config, seconds=run.seconds, decided=run.decided)


def restore(run: ChipRun, saved: Result, kept_at: Path | None) -> None:
    """Let a run go on from what `pack` returned, and lay at `kept_at`."""
    device = run.params.flat.device
    if "label" in saved.variables:
        run.label = torch.as_tensor(saved["label"]).to(device)
    engine = part_of(saved, "engine", device)
    if run.label is not None and "clamp0" in engine:
        engine["clamp0"] = run.label  # it is moved where it stands
    run.engine.restore(engine)
    if run.hardware:
        run.hardware.restore(part_of(saved, "chip", device))
    run.window.restore({n: t.numpy() for n, t in part_of(saved, "window").items()})
    run.initial = list(saved["initial"]) if "initial" in saved.variables else []
    run.restore_stops(
        saved["stopped_at"], {n: t.numpy() for n, t in part_of(saved, "held").items()}
    )
    if "accuracy" in saved.variables:
        past = zip(saved["accuracy_time"], saved["accuracy"], strict=True)
        run.accuracy_rows = [(float(t), row) for t, row in past]
    try:
        run.recorder.restore({n: t.numpy() for n, t in part_of(saved, "rows").items()})
    except StoreError as error:
        raise StoreError(f"{error} (delete {kept_at} for that)") from error
    run.decided = bool(saved.attrs["decided"])
