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

from pcsim import store
from pcsim.errors import StoreError
from pcsim.runner.checkpoint import Clock, load_own, packed, part_of, path_for, under

if TYPE_CHECKING:
    from pcsim.runner.chip_run import ChipRun


class ChipCheckpoint:
    """Saves and restores one `ChipRun`, beside its result file."""

    def __init__(self, run: ChipRun, out: Path | None) -> None:
        self.run = run
        self.path = path_for(out) if out else None
        self._clock = Clock()

    def maybe_save(self) -> None:
        """Save, if the last time is long ago."""
        if self.path and self._clock.due:
            self.save()
            self._clock.written()

    def save(self) -> None:
        """Write everything atomically."""
        assert self.path
        run = self.run
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
        saved = packed(arrays, config=config, seconds=run.seconds, decided=run.decided)
        store.save(saved, self.path, overwrite=True)

    def restore(self) -> None:
        """Take up a checkpoint if there is one."""
        if not self.path or not self.path.exists():
            return
        saved, run = load_own(self.path, self.run.config), self.run
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
            raise StoreError(f"{error} (delete {self.path} for that)") from error
        run.seconds, run.decided = float(saved.attrs["seconds"]), bool(saved.attrs["decided"])
