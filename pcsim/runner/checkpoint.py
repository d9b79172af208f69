"""Checkpoints: everything a run needs to go on as if nothing had happened.

Of every kind of run a checkpoint is one file of arrays, named `part.name`, beside the result. Data
order and initial states are functions of (seed, epoch), so that no generator state is stored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from pcsim import store
from pcsim.config import Config
from pcsim.errors import StoreError
from pcsim.store import Attr, Result, Variable

SECONDS = 20.0
"""Checkpoints are not written more often than this, but for that of an interrupted run."""

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
Arrays = Mapping[str, torch.Tensor | np.ndarray]


class Clock:
    """Says when the next checkpoint is due."""

    def __init__(self) -> None:
        self._written = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the last one was written long ago."""
        return time.monotonic() - self._written > SECONDS

    def written(self) -> None:
        """Note that one was written now."""
        self._written = time.monotonic()


def packed(arrays: Arrays, **attrs: Attr) -> Result:
    """Return a copy of these arrays, ready to be stored."""
    plain = {
        name: value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
        for name, value in arrays.items()
    }
    variables = {name: Variable(_axes(value.shape), value.copy()) for name, value in plain.items()}
    return Result(variables, {}, attrs)


def _axes(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Name axes by their lengths: arrays share those that are as long, so that few are stored."""
    return tuple(f"of{size}.{shape[:k].count(size)}" for k, size in enumerate(shape))


def under(part: str, arrays: Arrays) -> dict[str, torch.Tensor | np.ndarray]:
    """Name the arrays of one part of a run."""
    return {f"{part}.{name}": value for name, value in arrays.items()}


def part_of(saved: Result | Tensors, part: str, device: torch.device | str = "cpu") -> Tensors:
    """Return the arrays of one part by their own names."""
    values = saved if isinstance(saved, dict) else {n: saved[n] for n in saved.variables}
    return {
        name.removeprefix(f"{part}."): torch.as_tensor(value).to(device)
        for name, value in values.items()
        if name.startswith(f"{part}.")
    }


def snapshot(config: Config, tensors: Arrays, progress: Progress) -> Result:
    """Return a copy of the training as it stands, ready to be stored."""
    history = {name: np.stack(rows) for name, rows in progress.history.items()}
    return packed(
        {**tensors, **under("history", history)},
        config=config.to_json(),
        epoch_done=progress.epoch,
        seconds=progress.seconds,
        batches=progress.batches,
        batch=progress.batch,
    )


def load_own(path: Path, config: Config) -> Result:
    """Load a checkpoint, and refuse one that another configuration has written."""
    saved = store.load(path)
    if saved.attrs.get("config") != config.to_json():
        raise StoreError(
            f"{path}: belongs to another configuration; finish that run with its own, "
            f"or delete the checkpoint to start afresh"
        )
    return saved


def unpacked(saved: Result) -> tuple[Tensors, Progress]:
    """Return what `snapshot` has packed."""
    history = {name: list(rows.numpy()) for name, rows in part_of(saved, "history").items()}
    tensors = {
        name: torch.as_tensor(variable.values)
        for name, variable in saved.variables.items()
        if not name.startswith("history.")
    }
    attrs = saved.attrs
    done, batches, batch = (int(attrs[n]) for n in ("epoch_done", "batches", "batch"))
    return tensors, Progress(done, float(attrs["seconds"]), batches, batch, history)
