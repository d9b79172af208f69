"""Choose by held-out samples, judge by test samples: what a table of accuracies may show.

Arrays have the axes (lead, rule, alpha, weight_decay, gamma, seed, …) of `image_training.gathered`;
or (lead, rule, seed, …), where a search has chosen the point before (`image_study`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pcsim.compare.interval import paired_gap
from pcsim.store import Result

from .claims import Claim, Verdict, judged
from .seed_statistics import interval, judge_as_large, told

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
GRID = slice(2, 5)
"""Positions of the axes of the grid."""
SYMBOLS = {"alpha": "α", "weight_decay": "decay", "gamma": "γ"}
"""The axes of the grid, and what they are called in a table."""
CONFIDENCE = 0.95
LEARNT = 0.25
"""Accuracy from which a network has learnt something about ten classes; guessing has 0.1."""


def is_searched(result: Result) -> bool:
    """Return whether a search chose the points before the seeds were trained."""
    return "chosen_alpha" in result.variables


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
    if is_searched(result):
        return np.asarray(result[name], dtype=np.float64)
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
    row = ["chosen"]
    for index, rule in enumerate(result["rule"]):
        named = [
            f"{symbol} = {chosen_value(result, axis, lead, index):g}"
            for axis, symbol in SYMBOLS.items()
            if len(result[axis]) > 1 and not (rule == "BP" and axis == "gamma")
        ]
        row.append(", ".join(named))
    return row


def chosen_value(result: Result, axis: str, lead: int, rule: int) -> float:
    """Return the value of one axis of the grid at the chosen point."""
    if is_searched(result):
        return float(result[f"chosen_{axis}"][lead, rule])
    shape = tuple(len(result[name]) for name in SYMBOLS)
    point = np.unravel_index(best_point(result)[lead, rule], shape)
    return float(result[axis][point[list(SYMBOLS).index(axis)]])


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


def compare_rules(
    result: Result, lead: int, better: str, worse: str, claimed: float | None = None
) -> Claim:
    """Judge the claim that one rule classifies better than another, at their chosen points.

    A rule that loses at an end of what was tried might do better beyond: then nothing is decided.

    Main arguments:
        claimed: the difference of the paper, which a study that has searched for its points may
            refute although zero is in its interval; a study of minutes does not claim to.
    """
    rules = [str(r) for r in result["rule"]]
    first, second = (chosen_accuracy(result)[lead, rules.index(r)] for r in (better, worse))
    verdict = compare(first, second)
    evidence = f"{better} {percent(first)}, {worse} {percent(second)}"
    if is_searched(result):
        gain = interval(first - second)
        evidence += f"; difference {gain.percent()} points, paired by seed; " + told_by(
            first - second
        )
        if claimed is not None:
            verdict = judge_as_large(gain, claimed)
    loser = worse if verdict is Verdict.HOLDS else better
    if verdict is not Verdict.OPEN and (edge := edge_of(result, lead, rules.index(loser))):
        verdict = Verdict.OPEN
        evidence += f"; but {loser} has chosen {edge}"
    lead_name = result[result.variables["test_accuracy"].dims[0]][lead]
    return Claim(f"{lead_name}: {better} classifies better than {worse}", verdict, evidence)


def told_by(differences: Floats) -> str:
    """Return in words which difference these seeds tell."""
    sd = float(np.std(differences, ddof=1)) if len(differences) > 1 else float("nan")
    found = 100 * told(sd, len(differences)) if np.isfinite(sd) else float("inf")
    return f"{len(differences)} seeds tell {found:.2f} points with a power of 80 %"


def edge_of(result: Result, lead: int, rule: int) -> str:
    """Return in words that a choice lies at an end of what was tried; "" if not."""
    if is_searched(result):
        at_end = bool(result["edge"][lead, rule])
        return "a point with a neighbour that was not tried" if at_end else ""
    rates, rate = np.asarray(result["alpha"], float), chosen_value(result, "alpha", lead, rule)
    if len(rates) == 1 or rate not in (rates.min(), rates.max()):
        return ""
    end = "smallest" if rate == rates.min() else "largest"
    return f"the {end} learning rate, {rate:g}"


def has_learnt(*accuracies: Floats) -> bool:
    """Return whether all mean accuracies are far above chance, so that a comparison says much."""
    return all(float(np.mean(accuracy)) > LEARNT for accuracy in accuracies)


def percent(values: Floats) -> str:
    """Return mean ± standard deviation over seeds in per cent."""
    spread = 100 * values.std(ddof=1) if len(values) > 1 else float("nan")
    return f"{100 * values.mean():.2f} ± {spread:.2f} %"
