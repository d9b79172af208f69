"""What is said of a run in continuous time: warnings before it, and the verdict behind it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch

from pcsim.circuits import PAGES
from pcsim.kernels.parameters import Parameters
from pcsim.runner.timing import weight_time
from pcsim.stability import StabilityWarning, advise, affordable_probes, margin
from pcsim.verdict import Verdict, judge

if TYPE_CHECKING:
    from pcsim.runner.chip_run import ChipRun

BATCHES = 64
"""Presentations that the stability margin looks at."""


def warn(run: ChipRun) -> None:
    """Warn, with the number, before a run that must blow up or may not be stable."""
    if run.config.data.mode != "supervised":
        return
    kind = run.config.circuit.kind
    if PAGES[kind].phases and not run.settle:
        warnings.warn(
            f"take care: a circuit of kind {kind!r} learns from what a label changes at rest; "
            "stream.t_settle = 0 leaves no time without it: some ten tau_x let the states rest",
            StabilityWarning,
            stacklevel=4,
        )
    top = run.task.train.x[: min(run.samples, 64)][None]
    # A batch larger than the probe scales the Gram matrices with it.
    scale = run.scale * run.samples / top.shape[1]
    dt = run.timing.dt
    # In a grid, the fastest chip is the one to fear for.
    fastest = {
        name: weight_time(dt, max(getattr(run.chips, rate)))
        for name, rate in (("tau_x", "gamma"), ("tau_w", "alpha"))
        if getattr(run.config.grid, rate)
    }
    circuit = run.timing.circuit.model_copy(update=fastest)
    # Weights start from their seed alone: one chip speaks for all of its seed.
    first = [run.chips.seed_of.index(k) for k in range(len(run.chips.seeds))]
    theta = Parameters(run.network, run.engine.flow.theta().flat[first])
    for advice in advise(run.network, theta, circuit, dt, top, scale):
        kind = "will blow up" if advice.certain else "take care"
        warnings.warn(f"{kind}: {advice.message}", StabilityWarning, stacklevel=4)


def verdict(run: ChipRun, margin: np.ndarray | None) -> Verdict:
    """Judge a run from what was recorded, and from the stability margin of each chip."""
    accuracy = run.accuracy_rows[-1][1] if run.accuracy_rows else None
    energy = np.stack(run.recorder.rows["energy"], 1).sum(2)
    diverged = run.engine.diverged_at.numpy()
    lyapunov = not run.switches and run.timing.circuit.kind == "algebraic"
    automatic = run.config.run.automatic
    return judge(
        run.recorder.times,
        energy,
        diverged,
        accuracy,
        initial=np.stack(run.initial, 1) if run.initial else None,
        lyapunov=lyapunov,
        settled=run.window.converged if automatic else None,
        ringing=run.window.ringing if automatic else None,
        ends=_records_until_stop(run),
        margin=margin,
        switched=run.switches,
    )


def _records_until_stop(run: ChipRun) -> np.ndarray:
    """Return how many records (chip,) were taken while each chip was running."""
    last = np.nan_to_num(run.stopped_at, nan=np.inf) - 0.5 * run.timing.dt
    return np.asarray((run.recorder.times[None] < last[:, None]).sum(1))


def margin_of(run: ChipRun) -> np.ndarray | None:
    """Return the stability margin of each chip at its present weights.

    It is that of the worst sample or batch, of as many as are affordable; where not even one
    batch is, a part of it stands for the whole.
    """
    theta = run.engine.flow.theta()
    if run.config.data.mode != "supervised":
        return None
    affordable = affordable_probes(theta.flat.nelement())
    if affordable < run.samples:
        probe, batch = affordable, affordable
    else:
        shown = min(affordable, len(run.task.train.x)) // run.samples
        probe, batch = min(shown, BATCHES) * run.samples, run.samples
    scale = run.scale * run.samples / batch
    dt, dtype = run.timing.dt, torch.float64
    gamma = run.chips.rate("gamma", dtype, "cpu") if run.config.grid.gamma else None
    alpha = run.chips.rate("alpha", dtype, "cpu") if run.config.grid.alpha else None
    circuit = run.timing.circuit
    rates = (
        dt / circuit.tau_x if gamma is None else gamma,
        dt / circuit.weight_time if alpha is None else alpha,
    )
    top = run.task.train.x[:probe][None]
    return margin(run.network, theta, circuit, top, scale, rates, batch).numpy()
