"""Choose by held-out samples, judge by test samples: what a table of accuracies may show.

Arrays have the axes (lead, rule, alpha, weight_decay, gamma, seed, …) of `image_training.gathered`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pcsim.compare.interval import paired_gap
from pcsim.store import Result

from .claims import Claim, Verdict, judged

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
GRID = slice(2, 5)
"""Positions of the axes of the grid."""
SYMBOLS = {"alpha": "α", "weight_decay": "decay", "gamma": "γ"}
"""The axes of the grid, and what they are called in a table."""
CONFIDENCE = 0.95
LEARNT = 0.25
"""Accuracy from which a network has learnt something about ten classes; guessing has 0.1."""


def flat_grid(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Join the three axes of the grid: (lead, rule, point, seed, …)."""
    return values.reshape(*values.shape[:2], -1, *values.shape[5:])


def best_point(result: Result) -> Ints:
    """Return the point of the grid (lead, rule) with the best mean over seeds.

    Each seed counts with the epoch at which most held-out samples were right.
    """
    held = flat_grid(np.nan_to_num(result["validation_accuracy"]))
    return np.asarray(held.max(-1).mean(-1).argmax(-1), dtype=np.int64)


def at_best_point(result: Result, name: str) -> Floats:
    """Return a variable (lead, rule, seed, …) at the chosen point of the grid."""
    values, point = flat_grid(result[name]), best_point(result)
    index = point.reshape(*point.shape, *(1,) * (values.ndim - 2))
    return np.asarray(np.take_along_axis(values, index, 2)[:, :, 0], dtype=np.float64)


def chosen_accuracy(result: Result) -> Floats:
    """Return the test accuracy (lead, rule, seed) at the chosen point, each seed's best epoch."""
    epoch = np.nan_to_num(at_best_point(result, "validation_accuracy")).argmax(-1)
    test = at_best_point(result, "test_accuracy")
    return np.asarray(np.take_along_axis(test, epoch[..., None], -1)[..., 0])


def chosen_row(result: Result, lead: int) -> list[str]:
    """Return which point was chosen for each rule, for a table; a single value is not named."""
    shape = tuple(len(result[axis]) for axis in SYMBOLS)
    row = ["chosen"]
    for rule, point in zip(result["rule"], best_point(result)[lead], strict=True):
        named = [
            f"{symbol} = {float(result[axis][k]):g}"
            for (axis, symbol), k in zip(
                SYMBOLS.items(), np.unravel_index(point, shape), strict=True
            )
            if len(result[axis]) > 1 and not (rule == "BP" and axis == "gamma")
        ]
        row.append(", ".join(named))
    return row


def train_row(result: Result, lead: int) -> list[str]:
    """Return the accuracies on the training samples at the chosen points, for a table."""
    rows = at_best_point(result, "train_accuracy")[lead]
    return ["on training samples", *(percent(row) for row in rows)]


def compare(first: Floats, second: Floats) -> Verdict:
    """Return whether the first is larger, seed by seed.

    It is decided if the 95 % interval of the mean difference (Student's t, which is wide for two
    or three seeds) leaves zero out.
    """
    gap = paired_gap(first - second, CONFIDENCE)
    if not np.isfinite([gap.low, gap.high]).all() or gap.low <= 0 <= gap.high:
        return Verdict.OPEN
    return judged(gap.low > 0)


def compare_rules(result: Result, lead: int, better: str, worse: str) -> Claim:
    """Judge the claim that one rule classifies better than another, at their chosen points.

    A rule that loses with the smallest or largest learning rate of the grid might do better beyond
    it: then nothing is decided.
    """
    rules = [str(r) for r in result["rule"]]
    first, second = (chosen_accuracy(result)[lead, rules.index(r)] for r in (better, worse))
    verdict = compare(first, second)
    evidence = f"{better} {percent(first)}, {worse} {percent(second)}"
    loser = worse if verdict is Verdict.HOLDS else better
    if verdict is not Verdict.OPEN and (edge := _edge_rate(result, lead, rules.index(loser))):
        verdict = Verdict.OPEN
        evidence += f"; but {loser} has chosen {edge}"
    lead_name = result[result.variables["test_accuracy"].dims[0]][lead]
    return Claim(f"{lead_name}: {better} classifies better than {worse}", verdict, evidence)


def _edge_rate(result: Result, lead: int, rule: int) -> str:
    """Return in words that a chosen learning rate is the first or last of several; "" if not."""
    rates = np.asarray(result["alpha"], float)
    shape = tuple(len(result[axis]) for axis in SYMBOLS)
    k = int(np.unravel_index(best_point(result)[lead, rule], shape)[0])
    if len(rates) == 1 or rates[k] not in (rates.min(), rates.max()):
        return ""
    end = "smallest" if rates[k] == rates.min() else "largest"
    return f"the {end} learning rate, {rates[k]:g}"


def has_learnt(*accuracies: Floats) -> bool:
    """Return whether all mean accuracies are far above chance, so that a comparison says much."""
    return all(float(np.mean(accuracy)) > LEARNT for accuracy in accuracies)


def percent(values: Floats) -> str:
    """Return mean ± standard deviation over seeds in per cent."""
    spread = 100 * values.std(ddof=1) if len(values) > 1 else float("nan")
    return f"{100 * values.mean():.2f} ± {spread:.2f} %"
