"""Claims, table and figure of the study `cnn_classification`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common import grid_convergence
from ..common.claims import Claim
from ..common.held_out_choice import (
    at_best_point,
    chosen_accuracy,
    chosen_row,
    compare_rules,
    has_learnt,
    percent,
    train_row,
)
from ..common.styles import STYLES

PAPER = {
    "svhn": {"BP": (95.35, 1.53), "PC": (94.53, 1.54), "iPC": (96.45, 1.04)},
    "cifar10": {"BP": (69.34, 0.54), "PC": (70.84, 0.64), "iPC": (72.54, 0.93)},
}
"""Test accuracy in per cent, mean and spread over five seeds (the paper's table)."""


def judge(result: Result) -> list[Claim]:
    """Set the accuracies beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    accuracy, share = chosen_accuracy(result), grid_convergence.converged(result)
    found = []
    for lead, (name, rows, shares) in enumerate(zip(result["data"], accuracy, share, strict=True)):
        found += [compare_rules(result, lead, "iPC", other) for other in ("BP", "PC")]
        ipc, pc = rows[rules.index("iPC")], rows[rules.index("PC")]
        most, fewer = (shares[rules.index(r)] for r in ("iPC", "PC"))
        learnt = has_learnt(ipc, pc)
        found.append(grid_convergence.more_points(str(name), most, fewer, learnt))
    return found


def tables(result: Result) -> Sequence[Table]:
    """Return mean and standard deviation over seeds, beside the paper's."""
    made = Table(title="test accuracy, mean ± SD over seeds (below: the paper)")
    rules = [str(r) for r in result["rule"]]
    for column in ("data", *rules):
        made.add_column(column, justify="right")
    for lead, (name, rows) in enumerate(zip(result["data"], chosen_accuracy(result), strict=True)):
        made.add_row(str(name), *(percent(row) for row in rows))
        made.add_row(*chosen_row(result, lead))
        made.add_row(*train_row(result, lead))
        paper = PAPER.get(str(name))
        if paper:
            cells = (f"{paper[r][0]:.2f} ± {paper[r][1]:.2f} %" for r in rules)
            made.add_row("paper, full set", *cells)
    return [made, grid_convergence.table(result, "data")]


def draw(result: Result, path: Path) -> Path:
    """Draw test accuracy over epochs at the chosen point of the grid, all seeds."""
    names = [str(n) for n in result["data"]]
    figure = Figure(figsize=(4 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    test = at_best_point(result, "test_accuracy")
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for j, rule in enumerate(result["rule"]):
            colour, _, marker = STYLES[str(rule)]
            for k, curve in enumerate(100 * test[i, j]):
                label = str(rule) if k == 0 else None
                axes.plot(result["epoch"], curve, marker=marker, ms=3, color=colour, label=label)
        axes.set(title=name, xlabel="epoch", ylabel="test accuracy (%)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.suptitle("CNN 64-128-64 + 2 dense layers")
    return plots.save(figure, path)
