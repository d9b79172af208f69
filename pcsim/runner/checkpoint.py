"""Checkpoints: everything a training needs to go on as if nothing had happened.

Data order and initial states are functions of (seed, epoch), so that no generator state is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from pcsim import store
from pcsim.config import Config
from pcsim.errors import StoreError
from pcsim.store import Result, Variable

History = dict[str, list[np.ndarray]]


@dataclass
class Progress:
    """Finished epochs and what was recorded in each, (replica,) arrays."""

    epoch: int = 0
    seconds: float = 0.0
    batches: int = 0
    """Batches in all."""
    batch: int = 0
    """Batches of the epoch that is not finished."""
    history: History = field(default_factory=dict)

    def record(self, **values: np.ndarray) -> None:
        """Append one epoch's record."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


def path_for(result: Path) -> Path:
    """Return the checkpoint that belongs to a result file."""
    return result.with_name(result.name + ".checkpoint")


Tensors = dict[str, torch.Tensor]


def snapshot(config: Config, tensors: Tensors, progress: Progress) -> Result:
    """Return a copy of the training as it stands, ready to be stored."""
    variables = {
        name: Variable(tuple(f"{name}_{k}" for k in range(t.ndim)), t.detach().cpu().numpy().copy())
        for name, t in tensors.items()
    }
    for name, rows in progress.history.items():
        variables[f"history.{name}"] = Variable(("epoch", "replica"), np.stack(rows))
    attrs: dict[str, store.Attr] = {
        "config": config.to_json(),
        "epoch_done": progress.epoch,
        "seconds": progress.seconds,
        "batches": progress.batches,
        "batch": progress.batch,
    }
    return Result(variables, {}, attrs)


def load_own(path: Path, config: Config) -> Result:
    """Load a checkpoint, and refuse one that another configuration has written."""
    saved = store.load(path)
    if saved.attrs.get("config") != config.to_json():
        raise StoreError(
            f"{path}: belongs to another configuration; finish that run with its own, "
            f"or delete the checkpoint to start afresh"
        )
    return saved


def restore(path: Path, config: Config) -> tuple[Tensors, Progress]:
    """Load a checkpoint made with the same configuration."""
    saved = load_own(path, config)
    history = {
        name.removeprefix("history."): list(variable.values)
        for name, variable in saved.variables.items()
        if name.startswith("history.")
    }
    tensors = {
        name: torch.as_tensor(variable.values)
        for name, variable in saved.variables.items()
        if not name.startswith("history.")
    }
    attrs = saved.attrs
    done, batches, batch = (int(attrs[n]) for n in ("epoch_done", "batches", "batch"))
    return tensors, Progress(done, float(attrs["seconds"]), batches, batch, history)
