"""Claims, tables and figure of the study `alexnet`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from experiments.claims import Claim, Verdict, judged
from experiments.held_out_choice import (
    Floats,
    chosen_accuracy,
    compare,
    flat_grid,
    has_learnt,
    percent,
)
from experiments.rule_styles import STYLES
from pcsim import plots
from pcsim.store import Result

PAPER = {
    "none": {"BP": (75.64, 0.64), "PC": (64.63, 1.55), "iPC": (72.42, 0.53)},
    "augmented": {"BP": (83.12, 0.97), "PC": (71.99, 2.43), "iPC": (80.11, 0.44)},
}
"""Test accuracy in per cent, mean and spread over five seeds (the paper's table)."""
PAPER_CONVERGED = {"BP": "not given", "PC": "26 of 96", "iPC": "88 of 96"}
LARGEST_RATE = 1e-2
"""The largest learning rate of the paper's grid."""
MARGIN = 0.1
"""Test accuracy by which a point that has converged may be below the best one."""


def best_tests(result: Result) -> Floats:
    """Return the best test accuracy of any epoch (augmentation, rule, point, seed)."""
    return np.asarray(flat_grid(np.nan_to_num(result["test_accuracy"]).max(-1)), np.float64)


def converged(result: Result) -> Floats:
    """Return the share of points (augmentation, rule, seed) within `MARGIN` of the rule's best."""
    found = best_tests(result)
    return np.asarray((found > found.max(2, keepdims=True) - MARGIN).mean(2), np.float64)


def judge(result: Result) -> list[Claim]:
    """Set accuracies and shares of converged points beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    names = [str(n) for n in result["augmentation"]]
    bp, pc, ipc = (rules.index(r) for r in ("BP", "PC", "iPC"))
    accuracy, share = chosen_accuracy(result), converged(result)
    claims = []
    for name, rows, shares in zip(names, accuracy, share, strict=True):
        for better, worse in ((ipc, pc), (bp, ipc)):
            claims.append(
                Claim(
                    f"{name}: {rules[better]} classifies better than {rules[worse]}",
                    compare(rows[better], rows[worse]),
                    f"{rules[better]} {percent(rows[better])}, "
                    f"{rules[worse]} {percent(rows[worse])}",
                )
            )
        claims.append(
            Claim(
                f"{name}: iPC converges at more points of the grid than PC",
                # Within 10 points of a guess, everything has "converged".
                compare(shares[ipc], shares[pc])
                if has_learnt(rows[ipc], rows[pc])
                else Verdict.OPEN,
                f"iPC {percent(shares[ipc])}, PC {percent(shares[pc])} of the points",
            )
        )
        claims.append(_fails_only_at_the_largest_rate(result, names.index(name), ipc))
    for index, rule in enumerate(rules):
        plain, more = (accuracy[names.index(n), index] for n in ("none", "augmented"))
        evidence = f"with {percent(more)}, without {percent(plain)}"
        claims.append(
            Claim(f"augmentation improves {rule}", compare(more, plain), evidence),
        )
    return claims


def _fails_only_at_the_largest_rate(result: Result, augmentation: int, rule: int) -> Claim:
    """Judge by the mean over seeds: a sentence about all points has no spread of its own."""
    best = np.nan_to_num(result["test_accuracy"]).max(-1)[augmentation, rule].mean(-1)
    failed = best <= best.max() - MARGIN  # (alpha, weight_decay, gamma)
    rates = np.asarray(result["alpha"], float)
    at = rates[failed.any((1, 2))]
    verdict = Verdict.OPEN
    if rates.max() >= LARGEST_RATE and has_learnt(best.max()):  # else the grid cannot tell
        verdict = judged(bool((at == rates.max()).all()))
    where = ", ".join(f"{rate:g}" for rate in at)
    name = result["augmentation"][augmentation]
    return Claim(
        f"{name}: iPC fails to converge only at the largest learning rate, {LARGEST_RATE:g}",
        verdict,
        f"{int(failed.sum())} of {failed.size} points failed"
        + (f", at α = {where}" if where else ""),
    )


def tables(result: Result) -> Sequence[Table]:
    """Return accuracies and converged points, beside the paper's."""
    rules = [str(r) for r in result["rule"]]
    names = [str(n) for n in result["augmentation"]]
    accuracies = Table(title="test accuracy, mean ± SD over seeds (below: the paper)")
    counts = Table(title="points of the grid that converge, mean ± SD over seeds")
    for made in (accuracies, counts):
        for column in ("augmentation", *rules):
            made.add_column(column, justify="right")
    accuracy, share = chosen_accuracy(result), converged(result)
    for name, rows, shares in zip(names, accuracy, share, strict=True):
        accuracies.add_row(name, *(percent(row) for row in rows))
        theirs = PAPER[name]
        accuracies.add_row(
            "paper, full set", *(f"{theirs[r][0]:.2f} ± {theirs[r][1]:.2f} %" for r in rules)
        )
        counts.add_row(name, *(percent(row) for row in shares))
    counts.add_row("paper, one of them", *(PAPER_CONVERGED[r] for r in rules))
    return [accuracies, counts]


def draw(result: Result, path: Path) -> Path:
    """Draw the best test accuracy of every point, best first, and the margin of convergence."""
    names = [str(n) for n in result["augmentation"]]
    figure = Figure(figsize=(4.6 * len(names), 3.8), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    found = 100 * best_tests(result)
    points = np.arange(1, found.shape[2] + 1)
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for j, rule in enumerate(result["rule"]):
            colour, dash, marker = STYLES[str(rule)]
            ranked = -np.sort(-found[i, j], axis=0)
            middle = ranked.mean(-1)
            axes.plot(points, middle, marker=marker, ms=4, color=colour, ls=dash, label=str(rule))
            axes.fill_between(points, ranked.min(-1), ranked.max(-1), color=colour, alpha=0.15)
            axes.axhline(middle[0] - 100 * MARGIN, color=colour, ls=":", lw=1)
        title = "with augmentation" if name == "augmented" else "no augmentation"
        axes.set(title=title, xlabel="points of the grid, best first")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
    panels[0].set_ylabel("best test accuracy (%)")
    panels[0].legend(frameon=False)
    figure.suptitle("AlexNet over a grid: above its dotted line, a rule has converged")
    return plots.save(figure, path)
