"""Checkpoints of a run in continuous time: weights, states, noise and records, between switches."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pcsim import store
from pcsim.checkpoint import load_own, path_for
from pcsim.store import Attr, Result, Variable

if TYPE_CHECKING:
    from pcsim.chip_run import ChipRun

SECONDS = 30.0
"""Checkpoints are written at a switch, but not more often than this."""


class ChipCheckpoint:
    """Saves and restores one `ChipRun`, beside its result file.

    Signals under way in delay lines are not kept: a circuit with delays starts afresh.
    """

    def __init__(self, run: ChipRun, out: Path | None) -> None:
        circuit = run.timing.circuit
        delayed = circuit.delay_err or circuit.delay_fb
        self.run = run
        self.path = path_for(out) if out and not delayed and not run.config.run.automatic else None
        self._saved_at = time.monotonic()
        self._states: dict[str, Tensor] = {}
        self._on_chip: dict[str, Tensor] = {}

    def maybe_save(self, epoch: int, done: int) -> None:
        """Save after `done` presentations of this epoch, if the last time is long ago."""
        if self.path and time.monotonic() - self._saved_at > SECONDS:
            self.save(epoch, done)
            self._saved_at = time.monotonic()

    def save(self, epoch: int, done: int) -> None:
        """Write everything atomically."""
        assert self.path
        run = self.run
        run.recorder.flush()
        arrays: dict[str, np.ndarray] = {
            f"weights.{k}": w.detach().cpu().numpy() for k, w in enumerate(run.engine.weights())
        }
        moving = run.engine.flow.moving()
        arrays |= {f"state.{n}": s.detach().cpu().numpy() for n, s in moving.items()}
        arrays |= {f"rows.{n}": np.stack(rows) for n, rows in run.recorder.rows.items()}
        arrays["noise"] = run.noise.generator.get_state().numpy()
        if run.hardware:
            arrays |= {f"chip.{n}": v.cpu().numpy() for n, v in run.hardware.state().items()}
        arrays["diverged_at"] = run.engine.diverged_at.numpy()
        if run.label is not None:
            arrays["label"] = run.label.cpu().numpy()
        if run.accuracy_rows:
            arrays["accuracy"] = np.stack([row for _, row in run.accuracy_rows])
            arrays["accuracy_time"] = np.asarray([t for t, _ in run.accuracy_rows])
        variables = {
            name: Variable(tuple(f"{name}.{k}" for k in range(value.ndim)), value)
            for name, value in arrays.items()
        }
        attrs: dict[str, Attr] = {
            "config": run.config.to_json(),
            "epoch": epoch,
            "presentations": done,
            "steps": run.engine.steps,
        }
        store.save(Result(variables, {}, attrs), self.path, overwrite=True)

    def restore(self) -> tuple[int, int]:
        """Take up a checkpoint if there is one; return the epoch and its finished presentations."""
        if not self.path or not self.path.exists():
            return 0, 0
        saved, run = load_own(self.path, self.run.config), self.run
        count = len(run.engine.weights())
        weights = [torch.as_tensor(saved[f"weights.{k}"]) for k in range(count)]
        run.engine.restore(weights, int(saved.attrs["steps"]))
        run.noise.generator.set_state(torch.as_tensor(saved["noise"]))
        run.engine.diverged_at.copy_(torch.as_tensor(saved["diverged_at"]))
        device = run.params.flat.device
        if "label" in saved.variables:
            run.label = torch.as_tensor(saved["label"]).to(device)
        if "accuracy" in saved.variables:
            past = zip(saved["accuracy_time"], saved["accuracy"], strict=True)
            run.accuracy_rows = [(float(t), row) for t, row in past]
        rows = {}
        for name, variable in saved.variables.items():
            kind, _, rest = name.partition(".")
            if kind == "rows":
                rows[rest] = variable.values
            elif kind == "state":
                self._states[rest] = torch.as_tensor(variable.values).to(device)
            elif kind == "chip":
                self._on_chip[rest] = torch.as_tensor(variable.values).to(device)
        run.recorder.restore(rows)
        return int(saved.attrs["epoch"]), int(saved.attrs["presentations"])

    def restore_states(self) -> None:
        """Put the saved states back, once the data of the last presentation is clamped again."""
        self.run.engine.set_states(self._states)
        if self.run.hardware:
            self.run.hardware.restore(self._on_chip)
