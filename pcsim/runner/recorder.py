"""The recorder: statistics of a population at intervals of simulated time; trajectories on request.

Statistics are small (chips × layers), so they stay in memory; trajectories go to disk as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim.engine import Engine
from pcsim.store import Attr, StreamVariable, StreamWriter, Variable
from pcsim.stream import Record

Array = npt.NDArray[Any]


def trajectories_of(result: Path) -> Path:
    """Return the file with the trajectories of a run, beside its result."""
    return result.with_suffix(".trajectories.h5")


def distinct(flat: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows that differ, and which of them each row is: most chips start alike."""
    known: dict[bytes, int] = {}
    which = [
        known.setdefault(blake2b(row.tobytes(), digest_size=16).digest(), len(known))
        for row in flat.detach().cpu().numpy()
    ]
    first = np.unique(which, return_index=True)[1]
    return flat[torch.as_tensor(first)], torch.as_tensor(which)


class Recorder:
    """Keeps energy, errors, events, weight change and alignment of a population every few steps."""

    def __init__(self, engine: Engine, spec: Record, every: int) -> None:
        self.engine, self.spec, self.every = engine, spec, max(1, every)
        self.rows: dict[str, list[Array]] = {}
        start = engine.flow.theta().flat
        self._size: Tensor = torch.linalg.vector_norm(start, dim=1)
        self._starts, self._begun = distinct(start)
        self._path: Path | None = None
        self._attrs: Mapping[str, Attr] = {}
        self._before: dict[str, Tensor] = {}
        self._writer: StreamWriter | None = None
        self.held: dict[str, Array] = {}
        """What stopped chips showed at their stop (chip, …), by name."""
        self.stopped = np.zeros(engine.params.replicas, dtype=bool)
        """Chips (chip,) that have stopped: their rows go on with what they were at their stop."""

    def stop(self, chips: Array) -> None:
        """Keep what these chips (chip,) show now: it is theirs from now on.

        Weights that no longer move need not be kept here.
        """
        new = chips & ~self.stopped
        for name, value in self._shown().items():
            held = self.held.setdefault(name, value.copy())
            held[new] = value[new]
        self.stopped = self.stopped | new

    def before_step(self) -> None:
        """Keep the states of a step that is going to be recorded: a row is of one instant."""
        if self._path and (self.engine.steps + 1) % self.every == 0:
            moving = self.engine.flow.moving()
            self._before = {name: state.clone() for name, state in moving.items()}

    def after_step(self) -> bool:
        """Record if it is time; what is recorded belongs to the state before the step."""
        if self.engine.steps % self.every:
            return False
        self.record()
        return True

    def finish(self) -> None:
        """Record the end of the run, unless that was just done."""
        now = (self.engine.steps - 1) * self.engine.dt
        if not self.rows or float(self.rows["time"][-1]) != now:
            self.record()

    def record(self) -> None:
        """Record now: errors and energies of the state from which the last step was taken."""
        engine = self.engine
        self._keep("time", np.asarray((engine.steps - 1) * engine.dt))
        for name, value in self._shown().items():
            if self.stopped.any():
                value[self.stopped] = self.held[name][self.stopped]
            self._keep(name, value)
        self._keep("weight_change", self._weight_change().double().cpu().numpy())
        feedback = engine.flow.feedback
        if feedback is not None and feedback.flat is not None:
            self._keep("alignment", feedback.alignment().double().cpu().numpy())
        engine.mark_diverged()
        if self._path:
            self._append(engine.flow.states() | self._before)

    def _shown(self) -> dict[str, Array]:
        """Return what the last step showed of every chip, by name."""
        flow = self.engine.flow
        self.engine.look_back()
        energy, states = flow.energy_by_node(), flow.states()
        samples = next(iter(states.values())).shape[1]
        values = {"energy": energy / samples}
        errors = [v for n, v in states.items() if n.rstrip("0123456789") == "err"]
        if errors:
            rms = torch.stack([e.square().mean((1, 2)).sqrt() for e in errors], 1)
            values["error_rms"] = rms
        if events := flow.events():
            each = [count.double().mean(1) / samples for count in events.values()]
            values["events"] = torch.stack(each, 1)
        return {name: value.double().cpu().numpy().copy() for name, value in values.items()}

    def _weight_change(self) -> Tensor:
        """Return |θ − θ(0)|/|θ(0)| (chip,), a few chips at a time to save memory."""
        flat = self.engine.flow.theta().flat
        rows = max(1, (1 << 22) // flat.shape[1])
        parts = [
            torch.linalg.vector_norm(
                flat[k : k + rows] - self._starts[self._begun[k : k + rows]], dim=1
            )
            for k in range(0, len(flat), rows)
        ]
        return torch.cat(parts) / self._size

    def _keep(self, name: str, value: Array) -> None:
        self.rows.setdefault(name, []).append(value)

    def stream_to(self, path: Path, attrs: Mapping[str, Attr] | None = None) -> None:
        """From now on, write trajectories: the first units and chips of the first sample."""
        self._path, self._attrs = path, attrs or {}

    def _open(self, path: Path) -> StreamWriter:
        chips = min(self.spec.chips, self.engine.params.replicas)
        variables = {
            name: StreamVariable(
                ("chip", f"unit_{name}"), (chips, min(self.spec.units, value.shape[2])), "float64"
            )
            for name, value in self.engine.flow.states().items()
        }
        return StreamWriter(
            path,
            variables,
            axis="time",
            axis_dtype="float64",
            attrs=self._attrs,
            coord_attrs={"time": {"units": "s"}},
            overwrite=True,
        )

    def restore(self, rows: Mapping[str, Array]) -> None:
        """Take up the rows of an interrupted run; its trajectory file goes on behind them."""
        self.rows = {name: list(values) for name, values in rows.items()}
        if self._path and self.rows:
            kept = len(self.rows["time"])
            self._writer = StreamWriter.resumed(self._path, kept, self._attrs)

    def flush(self) -> None:
        """Write to disk what the trajectories have so far, as a checkpoint needs it there."""
        if self._writer:
            self._writer.sync()

    def _append(self, states: dict[str, Tensor]) -> None:
        assert self._path
        self._writer = self._writer or self._open(self._path)
        units, chips = self.spec.units, self.spec.chips
        row = {n: v[:chips, 0, :units].double().cpu().numpy() for n, v in states.items()}
        self._writer.append(time=self.rows["time"][-1], **row)

    def close(self, failed: bool = False) -> None:
        """Finish the trajectory file; after a failure what was written stays as `.partial`."""
        if self._writer:
            if failed:
                self._writer.abort()
            else:
                self._writer.close()

    def variables(self, dims: tuple[str, ...], unfold: Any) -> dict[str, Variable]:
        """Return the statistics with the chip axis unfolded into `dims`."""
        layers = {"energy": "node", "error_rms": "node", "alignment": "map", "events": "sender"}
        about = {
            "energy": "energy E_l per sample of each node",
            "error_rms": "root mean square of the error of each node",
            "weight_change": "|θ − θ(0)| / |θ(0)|",
            "events": "events per unit and sample since the start, of each sender",
            "alignment": "cosine between forward and feedback weights of each map",
        }
        variables = {}
        for name, rows in self.rows.items():
            if name == "time":
                continue
            values = unfold(np.stack(rows, axis=1))
            axes = (*dims, "time", layers[name]) if name in layers else (*dims, "time")
            variables[name] = Variable(axes, values, {"long_name": about[name], "units": "1"})
        return variables

    @property
    def times(self) -> Array:
        """Return the times of the records in seconds."""
        return np.asarray(self.rows.get("time", []))
