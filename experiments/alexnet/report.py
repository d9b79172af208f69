"""Claims, tables and figure of the study `alexnet`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common import accuracies, grid_convergence
from ..common.claims import Claim
from ..common.held_out_choice import (
    chosen_accuracy,
    chosen_row,
    compare,
    compare_rules,
    has_learnt,
    is_searched,
    percent,
    train_row,
)
from ..common.styles import STYLES

PAPER = {
    "none": {"BP": (75.64, 0.64), "PC": (64.63, 1.55), "iPC": (72.42, 0.53)},
    "augmented": {"BP": (83.12, 0.97), "PC": (71.99, 2.43), "iPC": (80.11, 0.44)},
}
"""Test accuracy in per cent, mean and spread over five seeds (the paper's table)."""
PAPER_CONVERGED = {"BP": "not given", "PC": "26 of 96", "iPC": "88 of 96"}


def judge(result: Result) -> list[Claim]:
    """Set accuracies and shares of converged points beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    names = [str(n) for n in result["augmentation"]]
    pc, ipc = (rules.index(r) for r in ("PC", "iPC"))
    accuracy = chosen_accuracy(result)
    claims = []
    for lead, (name, rows) in enumerate(zip(names, accuracy, strict=True)):
        for better, worse in (("iPC", "PC"), ("BP", "iPC")):
            claimed = (PAPER[name][better][0] - PAPER[name][worse][0]) / 100
            claims.append(compare_rules(result, lead, better, worse, claimed))
        if is_searched(result):
            continue  # the points of a search are no grid
        shares = grid_convergence.converged(result)[lead]
        learnt = has_learnt(rows[ipc], rows[pc])
        claims.append(grid_convergence.more_points(name, shares[ipc], shares[pc], learnt))
        claims.append(grid_convergence.fails_only_at_the_largest_rate(result, name, lead, ipc))
    for index, rule in enumerate(rules):
        plain, more = (accuracy[names.index(n), index] for n in ("none", "augmented"))
        evidence = f"with {percent(more)}, without {percent(plain)}"
        claims.append(
            Claim(f"augmentation improves {rule}", compare(more, plain), evidence),
        )
    return claims


def tables(result: Result) -> Sequence[Table]:
    """Return accuracies and converged points, beside the paper's."""
    rules = [str(r) for r in result["rule"]]
    names = [str(n) for n in result["augmentation"]]
    accuracies = Table(title="test accuracy, mean ± SD over seeds (below: the paper)")
    for column in ("augmentation", *rules):
        accuracies.add_column(column, justify="right")
    for name, rows in zip(names, chosen_accuracy(result), strict=True):
        accuracies.add_row(name, *(percent(row) for row in rows))
        accuracies.add_row(*chosen_row(result, names.index(name)))
        accuracies.add_row(*train_row(result, names.index(name)))
        theirs = PAPER[name]
        accuracies.add_row(
            "paper, full set", *(f"{theirs[r][0]:.2f} ± {theirs[r][1]:.2f} %" for r in rules)
        )
    if is_searched(result):
        return [accuracies]
    counts = grid_convergence.table(result, "augmentation")
    counts.add_row("paper, one of them", *(PAPER_CONVERGED[r] for r in rules))
    return [accuracies, counts]


def draw(result: Result, path: Path) -> Path:
    """Draw the best test accuracy of every point, best first, and the margin of convergence."""
    if is_searched(result):
        return accuracies.draw(result, "AlexNet for pictures of 32×32", path)
    names = [str(n) for n in result["augmentation"]]
    figure = Figure(figsize=(4.6 * len(names), 3.8), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    found = 100 * grid_convergence.best_tests(result)
    points = np.arange(1, found.shape[2] + 1)
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for j, rule in enumerate(result["rule"]):
            colour, dash, marker = STYLES[str(rule)]
            ranked = -np.sort(-found[i, j], axis=0)
            middle = ranked.mean(-1)
            axes.plot(points, middle, marker=marker, ms=4, color=colour, ls=dash, label=str(rule))
            axes.fill_between(points, ranked.min(-1), ranked.max(-1), color=colour, alpha=0.15)
            axes.axhline(middle[0] - 100 * grid_convergence.MARGIN, color=colour, ls=":", lw=1)
        title = "with augmentation" if name == "augmented" else "no augmentation"
        axes.set(title=title, xlabel="points of the grid, best first")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("best test accuracy (%)")
    panels[0].legend(frameon=False)
    figure.suptitle("AlexNet over a grid: above its dotted line, a rule has converged")
    return plots.save(figure, path)
