"""Claims, tables and heat maps of the study `hyperparameter_convergence`, from its stored result.

converged   best accuracy so far within 10 points of the best of the rule's whole grid
learning    not converged, but in the second half its best accuracy rose by more than a point or
            its energy fell by more than 1 %
failed      neither
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict, judged

ABOUT = {
    "test_accuracy": "fraction of test images right after each epoch, feed-forward pass",
    "train_energy": "energy F per sample at the last step of each batch, mean over the epoch",
}
WITHIN = 0.10
"""A cell has converged if its best accuracy is less than this below the best of the grid."""
STILL = 0.01
"""A gain in accuracy, or a relative fall of the energy, in the second half: still learning."""
PAPER = {"PC": 26, "iPC": 88}
"""Converged cells of 96, AlexNet on CIFAR-10."""

Floats = npt.NDArray[np.floating]
Bools = npt.NDArray[np.bool_]


def best(curves: Floats) -> Floats:
    """Return the best accuracy of each cell over its epochs (the last axis)."""
    return np.asarray(curves.max(-1))


def converged(curves: Floats, reference: float | None = None) -> Bools:
    """Return which cells are within 10 points of the best of this grid (or of `reference`)."""
    reached = best(curves)
    top = float(reached.max()) if reference is None else reference
    return np.asarray(top - reached < WITHIN)


def learning(curves: Floats, energies: Floats) -> Bools:
    """Return which cells are not there yet, but were still on their way."""
    half = max(1, curves.shape[-1] // 2)
    gains = best(curves) - best(curves[..., :half]) > STILL
    with np.errstate(invalid="ignore"):  # a diverged cell has no energy, and is not learning
        falls = energies[..., -1] < (1 - STILL) * energies[..., half - 1]
    return np.asarray(~converged(curves) & (gains | falls))


@dataclass(frozen=True, eq=False)
class Cells:
    """The grid (weight_decay, gamma, alpha) of one rule: its curves and what became of it."""

    curves: Floats
    converged: Bools
    learning: Bools

    @property
    def failed(self) -> Bools:
        """Neither converged nor on its way."""
        return np.asarray(~self.converged & ~self.learning)


def cells_of(result: Result, trial: int, rule: str) -> Cells:
    """Return the grid of one rule."""
    r = list(result["rule"]).index(rule)
    curves, energies = (result[name][trial, r] for name in ABOUT)
    return Cells(curves, converged(curves), learning(curves, energies))


def judge(result: Result) -> list[Claim]:
    """Set the counts beside the paper's."""
    made = []
    for k, trial in enumerate(result["trial"]):
        made += [
            _more_cells(result, k, str(trial)),
            _only_the_largest_rate(result, k, str(trial)),
            _equal_updates(result, k, str(trial)),
        ]
    return made


def _more_cells(result: Result, trial: int, name: str) -> Claim:
    pc, ipc = (cells_of(result, trial, rule) for rule in ("PC", "iPC"))
    counts = [int(c.converged.sum()) for c in (pc, ipc)]
    late = [int(c.learning.sum()) for c in (pc, ipc)]
    if counts[1] > counts[0] + late[0]:
        verdict = Verdict.HOLDS
    elif counts[1] + late[1] <= counts[0]:
        verdict = Verdict.FAILS
    else:  # the cells under way could turn it
        verdict = Verdict.OPEN
    top = float(max(best(pc.curves).max(), best(ipc.curves).max()))
    shared = [int(converged(c.curves, top).sum()) for c in (pc, ipc)]
    evidence = (
        f"after {pc.curves.shape[-1]} epochs iPC {counts[1]} of {pc.converged.size} "
        f"(and {late[1]} still learning), PC {counts[0]} (and {late[0]}); "
        f"against the best of both grids: iPC {shared[1]}, PC {shared[0]}"
    )
    return Claim(f"{name}: iPC converges on more of the grid than PC", verdict, evidence)


def _only_the_largest_rate(result: Result, trial: int, name: str) -> Claim:
    ipc = cells_of(result, trial, "iPC")
    verdict = judged(not ipc.failed[..., :-1].any())
    if verdict is Verdict.HOLDS and ipc.learning[..., :-1].any():
        verdict = Verdict.OPEN
    where = ", ".join(f"{alpha:g}" for alpha in result["alpha"][ipc.failed.any((0, 1))])
    evidence = f"{int(ipc.failed.sum())} cells failed" + (f", at α = {where}" if where else "")
    evidence += f"; {int(ipc.learning.sum())} still learning"
    return Claim(f"{name}: iPC fails at the largest α only", verdict, evidence)


def _equal_updates(result: Result, trial: int, name: str) -> Claim:
    """Compare PC after all epochs with iPC after 1/T of them: as many weight updates."""
    pc, ipc = (as_many_updates(result, trial, rule) for rule in ("PC", "iPC"))
    epochs = ipc.shape[-1]
    text = f"{name}: the same after equal numbers of weight updates (not asked in the paper)"
    if not epochs:
        return Claim(text, Verdict.OPEN, "the run is shorter than T epochs")
    counts = int(converged(pc).sum()), int(converged(ipc).sum())
    evidence = f"iPC {counts[1]} after epoch {epochs}, PC {counts[0]} after epoch {pc.shape[-1]}"
    return Claim(text, judged(counts[1] > counts[0]), evidence)


def as_many_updates(result: Result, trial: int, rule: str) -> Floats:
    """Return the curves up to the epoch at which a rule has made PC's number of weight updates."""
    curves = cells_of(result, trial, rule).curves
    updates = int(result.attrs["updates_per_batch"]) if rule == "iPC" else 1
    return curves[..., : curves.shape[-1] // updates]


def tables(result: Result) -> list[Table]:
    """Return the counts at each α, and the best accuracy, of each rule."""
    made = []
    each = len(result["weight_decay"]) * len(result["gamma"])
    for k, trial in enumerate(result["trial"]):
        table = Table(title=f"{trial}: converged (+ still learning) of {each} cells at each α")
        table.add_column("α")
        columns = []
        for rule in map(str, result["rule"]):
            table.add_column(rule, justify="right")
            cells = cells_of(result, k, rule)
            there, late = cells.converged.sum((0, 1)), cells.learning.sum((0, 1))
            shown = [f"{a} (+{b})" if b else str(a) for a, b in zip(there, late, strict=True)]
            top = 100 * best(cells.curves).max()
            columns.append([*shown, f"{there.sum()} of {cells.converged.size}", f"{top:.2f}"])
        heads = [*(f"{alpha:g}" for alpha in result["alpha"]), "all", "best accuracy, %"]
        for row in zip(heads, *columns, strict=True):
            table.add_row(*row)
        made.append(table)
    made[-1].caption = f"the paper, AlexNet on CIFAR-10: PC {PAPER['PC']}, iPC {PAPER['iPC']} of 96"
    return made


def rows(result: Result) -> list[dict[str, str]]:
    """Return best accuracies in percent over α, a line for each rule, weight decay and γ."""
    made = []
    for k, trial in enumerate(result["trial"]):
        for rule in map(str, result["rule"]):
            cells = cells_of(result, k, rule)
            percent, equal = 100 * best(cells.curves), converged(as_many_updates(result, k, rule))
            for d, decay in enumerate(result["weight_decay"]):
                for g, gamma in enumerate(result["gamma"]):
                    line = {"trial": str(trial), "rule": rule, "weight_decay": f"{decay:g}"}
                    line["gamma"] = f"{gamma:g}"
                    rates = zip(result["alpha"], percent[d, g], strict=True)
                    line |= {f"{alpha:g}": f"{value:.2f}" for alpha, value in rates}
                    line["converged"] = str(int(cells.converged[d, g].sum()))
                    line["learning"] = str(int(cells.learning[d, g].sum()))
                    line["converged_equal_updates"] = str(int(equal[d, g].sum()))
                    made.append(line)
    return made


def draw(result: Result, path: Path) -> Path:
    """Draw the best accuracy over α × weight decay, a panel for each γ."""
    rows = [(k, str(rule)) for k in range(len(result["trial"])) for rule in result["rule"]]
    gammas = result["gamma"]
    size = (4.1 * len(gammas) + 0.8, 2.1 * len(rows) + 0.8)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(gammas), squeeze=False, sharex=True, sharey=True)
    colours = ScalarMappable(Normalize(0, 100), "cividis")
    for line, (k, rule) in zip(panels, rows, strict=True):
        cells = cells_of(result, k, rule)
        there, late, percent = cells.converged, cells.learning, 100 * best(cells.curves)
        for g, axes in enumerate(line):
            axes.imshow(percent[:, g], cmap=colours.cmap, norm=colours.norm, aspect="auto")
            _mark(axes, percent[:, g], there[:, g], late[:, g])
            axes.set_title(
                f"{result['trial'][k]}, {rule}, γ = {gammas[g]:g}: {there[:, g].sum()} converged",
                fontsize=8,
            )
        line[0].set_ylabel(f"weight decay\n{rule}: {there.sum()} of {there.size}", fontsize=9)
    for axes in panels[-1]:
        axes.set_xticks(range(len(result["alpha"])), [f"{a:.0e}" for a in result["alpha"]])
        axes.tick_params(axis="x", labelsize=7)
        axes.set_xlabel("α")
    for line in panels:
        line[0].set_yticks(
            range(len(result["weight_decay"])), [f"{d:g}" for d in result["weight_decay"]]
        )
    figure.colorbar(colours, ax=panels, label="best test accuracy, %", shrink=0.8)
    figure.suptitle(
        "bold: converged (within 10 points of the best); ↑: still learning", fontsize=10
    )
    return plots.save(figure, path)


def _mark(axes: Axes, percent: Floats, there: Bools, late: Bools) -> None:
    """Write each accuracy into its cell."""
    for (row, column), value in np.ndenumerate(percent):
        axes.text(
            column,
            row,
            f"{value:.0f}" + ("↑" if late[row, column] else ""),
            ha="center",
            va="center",
            fontsize=7,
            color="black" if value > 60 else "white",
            weight="bold" if there[row, column] else "normal",
        )
