"""At how many points of a grid does a rule converge? The paper's measure of robust training.

A point (learning rate, weight decay, γ) has converged if its best test accuracy of any epoch is
less than 10 percentage points below the best of the same rule. Arrays have the axes of
`image_training.gathered`, whose first one is called the lead here.
"""

from __future__ import annotations

import numpy as np
from rich.table import Table

from pcsim.store import Result

from .claims import Claim, Verdict, judged
from .held_out_choice import Floats, compare, flat_grid, has_learnt, percent

LARGEST_RATE = 1e-2
"""The largest learning rate of the paper's grid."""
MARGIN = 0.1
"""Test accuracy by which a point that has converged may be below the best one."""


def best_tests(result: Result) -> Floats:
    """Return the best test accuracy of any epoch (lead, rule, point, seed)."""
    return np.asarray(flat_grid(np.nan_to_num(result["test_accuracy"]).max(-1)), np.float64)


def converged(result: Result) -> Floats:
    """Return the share of points (lead, rule, seed) within `MARGIN` of the rule's best."""
    found = best_tests(result)
    return np.asarray((found > found.max(2, keepdims=True) - MARGIN).mean(2), np.float64)


def more_points(name: str, ipc: Floats, pc: Floats, learnt: bool) -> Claim:
    """Judge by the shares (seed,) of the points at which iPC and PC converge."""
    return Claim(
        f"{name}: iPC converges at more points of the grid than PC",
        # Within 10 points of a guess, everything has "converged".
        compare(ipc, pc) if learnt else Verdict.OPEN,
        f"iPC {percent(ipc)}, PC {percent(pc)} of the points",
    )


def fails_only_at_the_largest_rate(result: Result, name: str, lead: int, rule: int) -> Claim:
    """Judge by the mean over seeds: a sentence about all points has no spread of its own."""
    best = np.nan_to_num(result["test_accuracy"]).max(-1)[lead, rule].mean(-1)
    failed = best <= best.max() - MARGIN  # (alpha, weight_decay, gamma)
    rates, gammas = (np.asarray(result[axis], float) for axis in ("alpha", "gamma"))
    verdict = Verdict.OPEN
    if rates.max() >= LARGEST_RATE and has_learnt(best.max()):  # else the grid cannot tell
        verdict = judged(not failed[rates < rates.max()].any())
    where = ", ".join(
        f"(α = {rates[i]:g}, γ = {gammas[j]:g})" for i, j in np.argwhere(failed.any(1))
    )
    return Claim(
        f"{name}: iPC fails to converge only at the largest learning rate, {LARGEST_RATE:g}",
        verdict,
        f"{int(failed.sum())} of {failed.size} points failed" + (f", at {where}" if where else ""),
    )


def table(result: Result, lead: str) -> Table:
    """Return the shares of converged points; `lead` names the first axis."""
    rules = [str(r) for r in result["rule"]]
    made = Table(title="points of the grid that converge, mean ± SD over seeds")
    for column in (lead, *rules):
        made.add_column(column, justify="right")
    for name, shares in zip(result[lead], converged(result), strict=True):
        made.add_row(str(name), *(percent(row) for row in shares))
    return made
