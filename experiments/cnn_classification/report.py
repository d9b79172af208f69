"""Claims, table and figure of the study `cnn_classification`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from pcsim.store import Result

from ..common import accuracies, grid_convergence
from ..common.claims import Claim
from ..common.held_out_choice import (
    chosen_accuracy,
    chosen_row,
    compare_rules,
    has_learnt,
    is_searched,
    percent,
    train_row,
)

PAPER = {
    "svhn": {"BP": (95.35, 1.53), "PC": (94.53, 1.54), "iPC": (96.45, 1.04)},
    "cifar10": {"BP": (69.34, 0.54), "PC": (70.84, 0.64), "iPC": (72.54, 0.93)},
}
"""Test accuracy in per cent, mean and spread over five seeds (the paper's table)."""


def judge(result: Result) -> list[Claim]:
    """Set the accuracies beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    found = []
    for lead, (name, rows) in enumerate(zip(result["data"], chosen_accuracy(result), strict=True)):
        for other in ("BP", "PC"):
            found.append(compare_rules(result, lead, "iPC", other, _gain(str(name), other)))
        if is_searched(result):
            continue  # the points of a search are no grid
        ipc, pc = rows[rules.index("iPC")], rows[rules.index("PC")]
        shares = grid_convergence.converged(result)[lead]
        most, fewer = (shares[rules.index(r)] for r in ("iPC", "PC"))
        found.append(grid_convergence.more_points(str(name), most, fewer, has_learnt(ipc, pc)))
    return found


def _gain(name: str, other: str) -> float | None:
    """Return by how much the paper's iPC is better than another rule."""
    paper = PAPER.get(name)
    return (paper["iPC"][0] - paper[other][0]) / 100 if paper else None


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
    return [made] if is_searched(result) else [made, grid_convergence.table(result, "data")]


def draw(result: Result, path: Path) -> Path:
    """Draw test accuracy over epochs at the chosen points, all seeds."""
    return accuracies.draw(result, "CNN 64-128-64 + 2 dense layers", path)
