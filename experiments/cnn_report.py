"""Claims, table and figure of the study `cnn_classification`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from rich.table import Table

from experiments.claims import Claim, Verdict
from experiments.rule_styles import STYLES
from pcsim import plots
from pcsim.store import Result

Floats = npt.NDArray[np.float64]
PAPER = {
    "svhn": {"BP": (95.35, 1.53), "PC": (94.53, 1.54), "iPC": (96.45, 1.04)},
    "cifar10": {"BP": (69.34, 0.54), "PC": (70.84, 0.64), "iPC": (72.54, 0.93)},
}
"""Test accuracy in per cent, mean and spread over five seeds (the paper's table)."""


def chosen(result: Result) -> Floats:
    """Return the test accuracy (data, rule, seed) where the held-out samples were classified best.

    The learning rate is the one with the best mean over seeds; the epoch is chosen per seed.
    """
    held = np.nan_to_num(result["validation_accuracy"])
    best_alpha = held.max(-1).mean(-1).argmax(-1)
    rows = np.take_along_axis(held, best_alpha[..., None, None, None], 2)[:, :, 0]
    test = np.take_along_axis(result["test_accuracy"], best_alpha[..., None, None, None], 2)
    epoch = rows.argmax(-1)
    return np.asarray(np.take_along_axis(test[:, :, 0], epoch[..., None], -1)[..., 0])


def compare(first: Floats, second: Floats) -> Verdict:
    """Return whether the first is better, seed by seed: by two standard errors or not decided."""
    gap = first - second
    if len(gap) < 2:
        return Verdict.OPEN
    error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
    if abs(float(gap.mean())) <= 2 * error:
        return Verdict.OPEN
    return Verdict.HOLDS if gap.mean() > 0 else Verdict.FAILS


def judge(result: Result) -> list[Claim]:
    """Set the accuracies beside the paper's claims."""
    accuracy, rules = chosen(result), [str(r) for r in result["rule"]]
    found = []
    for name, rows in zip(result["data"], accuracy, strict=True):
        ipc = rows[rules.index("iPC")]
        for other in ("BP", "PC"):
            theirs = rows[rules.index(other)]
            found.append(
                Claim(
                    f"{name}: iPC classifies better than {other}",
                    compare(ipc, theirs),
                    f"iPC {_percent(ipc)}, {other} {_percent(theirs)}",
                )
            )
    return found


def _percent(values: Floats) -> str:
    spread = 100 * values.std(ddof=1) if len(values) > 1 else float("nan")
    return f"{100 * values.mean():.2f} ± {spread:.2f} %"


def tables(result: Result) -> Sequence[Table]:
    """Return mean and standard deviation over seeds, beside the paper's."""
    made = Table(title="test accuracy, mean ± SD over seeds (below: the paper)")
    rules = [str(r) for r in result["rule"]]
    for column in ("data", *rules):
        made.add_column(column, justify="right")
    for name, rows in zip(result["data"], chosen(result), strict=True):
        made.add_row(str(name), *(_percent(row) for row in rows))
        paper = PAPER.get(str(name))
        if paper:
            cells = (f"{paper[r][0]:.2f} ± {paper[r][1]:.2f} %" for r in rules)
            made.add_row("paper, full set", *cells)
    return [made]


def draw(result: Result, path: Path) -> Path:
    """Draw test accuracy over epochs at the chosen learning rate, all seeds."""
    names = [str(n) for n in result["data"]]
    figure = Figure(figsize=(4 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    best = np.nan_to_num(result["validation_accuracy"]).max(-1).mean(-1).argmax(-1)
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for j, rule in enumerate(result["rule"]):
            colour, _, marker = STYLES[str(rule)]
            curves = 100 * result["test_accuracy"][i, j, best[i, j]]
            for k, curve in enumerate(curves):
                label = str(rule) if k == 0 else None
                axes.plot(result["epoch"], curve, marker=marker, ms=3, color=colour, label=label)
        axes.set(title=name, xlabel="epoch", ylabel="test accuracy (%)")
        axes.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.suptitle("CNN 64-128-64 + 2 dense layers")
    return plots.save(figure, path)
