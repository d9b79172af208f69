"""How much offset of the learning multiplier does always-on learning bear?

`pcsim experiment offset` trains a network with a hidden layer on the digits, one sample at a time,
nothing reset, on chips whose multipliers have offsets of deviation σ; for several presentation
times T and learning rates α. The line is the offset at which the closed form of
`pcsim.limits.offsets`, for linear units with the covariance of these inputs, gives an excess
loss of `TOLERANCE` per unit. Cells are kept: interrupted, the same command goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.config import Config, parse
from pcsim.limits.offsets import tolerable_offset
from pcsim.provenance import provenance
from pcsim.run import run
from pcsim.runner.task import Task
from pcsim.store import Result, Variable
from pcsim.sweep.functions import collect
from pcsim.terminal import progress, terminal

from ..common.keeping import claim, keep

PAGE = "offset.md"
TOLERANCE = 0.01
"""Excess loss per unit, ½ mean squared error."""
GAMMA = 0.4
"""Time step over τ_x."""


RATES = (3e-4, 1e-3, 3e-3)
"""Learning rates per time step, α = dt/τ_w."""


@dataclass(frozen=True)
class Scale:
    """What is tried."""

    samples: int
    offsets: tuple[float, ...]
    presents: tuple[float, ...]
    """Presentation times, τ_x."""
    alphas: tuple[float, ...]
    """Learning rates per time step, dt/τ_w."""
    chips: int
    sizes: tuple[int, ...] = (64, 32, 10)


SCALES = {
    "small": Scale(400, (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), (4.0, 12.0, 40.0), RATES, 2),
    "paper": Scale(
        1797, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1), (4.0, 8.0, 20.0, 40.0, 80.0), RATES, 16
    ),
}


def setting(scale: Scale, present: float, alpha: float) -> Config:
    """Return one run: all offsets side by side."""
    return parse(
        {
            "network": {"sizes": list(scale.sizes)},
            "schedule": {"gamma": GAMMA, "init": "carry"},
            "stream": {"t_pres": present},
            "learning": {"batch": 1, "epochs": 1, "alpha": alpha},
            "data": {"name": "digits", "limit": scale.samples},
            "run": {"backend": "continuous"},
            "hardware": {
                "chips": scale.chips,
                "pieces": {"multiplier": {"kind": "learning_multiplier", "offset_spread": 0.0}},
            },
            "grid": {"hardware": {"multiplier.offset_spread": list(scale.offsets)}},
        }
    )


def measured(scale: Scale, present: float, alpha: float) -> Result:
    """Return the accuracies (offset,) of one cell, median over chips."""
    found = np.nan_to_num(run(setting(scale, present, alpha))["accuracy"])
    axis = found.shape.index(len(scale.offsets))
    values = np.moveaxis(found, axis, 0).reshape(len(scale.offsets), -1)
    return Result(
        {"accuracy": Variable(("offset",), np.median(values, axis=1), {"units": "1"})},
        {"offset": np.array(scale.offsets)},
    )


def boundary(scale: Scale, present: float, alpha: float) -> float:
    """Return σ at which the closed form loses `TOLERANCE` per linear unit."""
    config = setting(scale, present, alpha)
    shown = Task.load(config, config.network.build()).train.x.cpu().numpy().astype(float)
    return tolerable_offset(
        shown.T @ shown / len(shown),
        TOLERANCE,
        presentation=present,
        presentations=len(shown),
        tau_w=GAMMA / alpha,
    )


def main(out: Path, scale: str) -> None:
    """Measure what is missing, print, store, draw."""
    size = SCALES[scale]
    target, figure = out / "offset.h5", out / "offset.png"
    claim(target, "offset", figure)
    keys = [(p, a) for a in size.alphas for p in size.presents]
    jobs = {_name(*key): partial(measured, size, *key) for key in keys}
    with progress("offset", remaining=False) as report:
        found = collect(jobs, out / "offset_cells", repr((size, GAMMA)), report=report)
    shape = (len(size.alphas), len(size.presents), len(size.offsets))
    accuracy = np.array([found[_name(*key)]["accuracy"] for key in keys]).reshape(shape)
    predicted = np.array([[boundary(size, p, a) for p in size.presents] for a in size.alphas])
    coords = {
        "alpha": np.array(size.alphas),
        "present": np.array(size.presents),
        "offset": np.array(size.offsets),
    }
    result = Result(
        {
            "accuracy": Variable(("alpha", "present", "offset"), accuracy),
            "boundary": Variable(("alpha", "present"), predicted),
        },
        coords,
        provenance(),
    )
    keep(result, target, "offset")
    terminal().print(table(result))
    plots.save(drawn(result), figure)
    terminal().print(f"stored in {target}, figure in {figure}")


def _name(present: float, alpha: float) -> str:
    return f"T{present:g}_a{alpha:g}"


def table(result: Result) -> Table:
    """Return accuracies with the predicted boundary beside them."""
    made = Table(title="accuracy, %, over the offset of the learning multiplier (of full scale)")
    for column in ("α", "T, τ_x", *(f"{o:g}" for o in result["offset"]), "boundary"):
        made.add_column(column, justify="right")
    for a, alpha in enumerate(result["alpha"]):
        for p, present in enumerate(result["present"]):
            row = [f"{100 * v:.1f}" for v in result["accuracy"][a, p]]
            edge = f"{result['boundary'][a, p]:.2g}"
            made.add_row(f"{alpha:g}", f"{present:g}", *row, edge)
    return made


def drawn(result: Result) -> Figure:
    """Draw a map of accuracies per rate, with the boundary."""
    columns = len(result["alpha"])
    figure = Figure(figsize=(3.4 * columns + 0.8, 3.2), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharex=True, sharey=True)[0]
    for a, alpha in enumerate(result["alpha"]):
        ax = axes[a]
        shown = ax.pcolormesh(
            result["present"],
            result["offset"],
            100 * result["accuracy"][a].T,
            vmin=0,
            vmax=100,
            shading="nearest",
            cmap="viridis",
        )
        ax.plot(result["present"], result["boundary"][a], "w.-")
        ax.set(xscale="log", yscale="log", title=f"α = {alpha:g}", xlabel="presentation, τ_x")
    axes[0].set_ylabel("offset σ, of full scale")
    figure.colorbar(shown, ax=list(axes), label="test accuracy, %")
    return figure
