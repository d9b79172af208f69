"""Checkpoints of a run in continuous time: all that the next time step depends on, and the records.

A checkpoint is made between two steps, at any step: engine (weights, states, what is clamped as the
chips receive it, delay lines), hardware (its clock and memory), label, records. It is a picture:
making one changes nothing, and a run that goes on from it takes the very steps of one that was
never interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from pcsim import store
from pcsim.errors import StoreError
from pcsim.runner.checkpoint import load_own, path_for
from pcsim.store import Attr, Result, Variable

if TYPE_CHECKING:
    from pcsim.runner.chip_run import ChipRun

SECONDS = 30.0
"""Checkpoints are not written more often than this, but for one when a run is interrupted."""


class ChipCheckpoint:
    """Saves and restores one `ChipRun`, beside its result file."""

    def __init__(self, run: ChipRun, out: Path | None) -> None:
        self.run = run
        self.path = path_for(out) if out else None
        self._saved_at = time.monotonic()

    def maybe_save(self) -> None:
        """Save, if the last time is long ago."""
        if self.path and time.monotonic() - self._saved_at > SECONDS:
            self.save()
            self._saved_at = time.monotonic()

    def save(self) -> None:
        """Write everything atomically."""
        assert self.path
        run = self.run
        run.recorder.flush()
        arrays = _named("engine", run.engine.state()) | _named("window", run.window.state())
        if run.hardware:
            arrays |= _named("chip", run.hardware.state())
        if run.label is not None:
            arrays["label"] = run.label.cpu().numpy()
        arrays |= {"stopped_at": run.stopped_at} | _named("held", run.recorder.held)
        if run.initial:
            arrays["initial"] = np.stack(run.initial)
        if run.accuracy_rows:
            arrays["accuracy"] = np.stack([row for _, row in run.accuracy_rows])
            arrays["accuracy_time"] = np.asarray([t for t, _ in run.accuracy_rows])
        arrays |= {f"rows.{n}": np.stack(rows) for n, rows in run.recorder.rows.items()}
        variables = {
            name: Variable(tuple(f"{name}.{k}" for k in range(value.ndim)), value)
            for name, value in arrays.items()
        }
        attrs: dict[str, Attr] = {
            "config": run.config.to_json(),
            "seconds": run.seconds,
            "decided": run.decided,
        }
        store.save(Result(variables, {}, attrs), self.path, overwrite=True)

    def restore(self) -> None:
        """Take up a checkpoint if there is one."""
        if not self.path or not self.path.exists():
            return
        saved, run = load_own(self.path, self.run.config), self.run
        device = run.params.flat.device
        if "label" in saved.variables:
            run.label = torch.as_tensor(saved["label"]).to(device)
        engine = _under("engine", saved, device)
        if run.label is not None and "clamp0" in engine:
            engine["clamp0"] = run.label  # it is moved where it stands
        run.engine.restore(engine)
        if run.hardware:
            run.hardware.restore(_under("chip", saved, device))
        run.window.restore({n: t.numpy() for n, t in _under("window", saved, "cpu").items()})
        run.initial = list(saved["initial"]) if "initial" in saved.variables else []
        run.restore_stops(
            saved["stopped_at"], {n: t.numpy() for n, t in _under("held", saved, "cpu").items()}
        )
        if "accuracy" in saved.variables:
            past = zip(saved["accuracy_time"], saved["accuracy"], strict=True)
            run.accuracy_rows = [(float(t), row) for t, row in past]
        try:
            run.recorder.restore({n: t.numpy() for n, t in _under("rows", saved, "cpu").items()})
        except StoreError as error:
            raise StoreError(f"{error} (delete {self.path} for that)") from error
        run.seconds, run.decided = float(saved.attrs["seconds"]), bool(saved.attrs["decided"])


def _named(kind: str, tensors: Mapping[str, Any]) -> dict[str, np.ndarray]:
    return {
        f"{kind}.{name}": value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        for name, value in tensors.items()
    }


def _under(kind: str, saved: Result, device: torch.device | str) -> dict[str, Tensor]:
    """Return the tensors of one kind by their own names."""
    return {
        name.removeprefix(f"{kind}."): torch.as_tensor(variable.values).to(device)
        for name, variable in saved.variables.items()
        if name.startswith(f"{kind}.")
    }
