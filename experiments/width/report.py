"""Claims, table and figure of the study `width`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict
from ..common.held_out_choice import (
    Floats,
    chosen_accuracy,
    chosen_row,
    compare,
    compare_rules,
    percent,
    told_by,
    train_row,
)
from ..common.seed_statistics import interval
from ..common.styles import STYLES

PAPER_WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20)
PAPER = {
    "BP": (67.92, 71.23, 71.65, 72.64, 73.35, 73.71, 74.19, 74.51, 74.62, 75.08, 75.51),
    "iPC": (70.61, 74.12, 74.91, 75.88, 76.61, 77.04, 77.48, 77.41, 76.51, 76.55, 76.12),
}
"""Test accuracy in per cent at each width (the paper's table; it gives no spread)."""
PAPER_PEAK = 7
"""The width at which the paper's iPC is best."""


def judge(result: Result) -> list[Claim]:
    """Set the accuracies beside the paper's claims."""
    widths, accuracy = np.asarray(result["width"]), chosen_accuracy(result)
    rules = [str(r) for r in result["rule"]]
    bp = accuracy[:, rules.index("BP")]
    gain = Claim(
        f"BP gains from the width: C = {widths[-1]} is better than C = {widths[0]}",
        compare(bp[-1], bp[0]),
        f"{percent(bp[-1])} against {percent(bp[0])}; difference "
        f"{interval(bp[-1] - bp[0]).percent()} points, paired by seed; {told_by(bp[-1] - bp[0])}",
    )
    if "iPC" not in rules:
        return [gain]
    ipc = accuracy[:, rules.index("iPC")]
    claims = []
    for lead, width in enumerate(widths):
        theirs = PAPER_WIDTHS.index(width) if width in PAPER_WIDTHS else None
        claimed = None if theirs is None else (PAPER["iPC"][theirs] - PAPER["BP"][theirs]) / 100
        claim = compare_rules(result, lead, "iPC", "BP", claimed)
        claims.append(replace(claim, text=f"C = {claim.text}"))
    claims += [_half_the_width(widths.tolist(), ipc, bp), gain, _declines(widths, ipc)]
    return claims


def _half_the_width(widths: list[int], ipc: Floats, bp: Floats) -> Claim:
    """Compare iPC at C with BP at 2C, over all pairs from C = 2 on, as the paper's table allows."""
    pairs = [(widths.index(c), widths.index(2 * c)) for c in widths if c > 1 and 2 * c in widths]
    text = "iPC needs fewer parameters: at C (2 and more) it is better than BP at 2C"
    if not pairs:
        return Claim(text, Verdict.OPEN, "no such pair of widths was measured")
    narrow = np.mean([ipc[a] for a, _ in pairs], axis=0)
    wide = np.mean([bp[b] for _, b in pairs], axis=0)
    at = ", ".join(str(widths[a]) for a, _ in pairs), ", ".join(str(widths[b]) for _, b in pairs)
    evidence = f"iPC at C = {at[0]}: {percent(narrow)}, BP at C = {at[1]}: {percent(wide)}"
    return Claim(text, compare(narrow, wide), evidence)


def _declines(widths: npt.NDArray[np.int64], ipc: Floats) -> Claim:
    best = int(ipc.mean(-1).argmax())
    evidence = (
        f"best at C = {widths[best]} with {percent(ipc[best])}, "
        f"C = {widths[-1]} has {percent(ipc[-1])}"
    )
    verdict = compare(ipc[best], ipc[-1])
    if widths[-1] <= PAPER_PEAK:
        verdict = Verdict.OPEN
        evidence += f"; the paper sees it from C = {PAPER_PEAK} on"
    elif best == len(widths) - 1:
        verdict = Verdict.FAILS
    return Claim("iPC gets worse again beyond a certain width", verdict, evidence)


def tables(result: Result) -> Sequence[Table]:
    """Return mean and standard deviation over seeds, beside the paper's."""
    made = Table(title="test accuracy, mean ± SD over seeds")
    rules = [str(r) for r in result["rule"]]
    for column in ("C", *rules, *(f"{r}, paper" for r in rules)):
        made.add_column(column, justify="right")
    for lead, (width, rows) in enumerate(
        zip(result["width"], chosen_accuracy(result), strict=True)
    ):
        theirs = ["" for _ in rules]
        if width in PAPER_WIDTHS:
            theirs = [f"{PAPER[r][PAPER_WIDTHS.index(int(width))]:.2f} %" for r in rules]
        made.add_row(str(width), *(percent(row) for row in rows), *theirs)
        made.add_row(*chosen_row(result, lead))
        made.add_row(*train_row(result, lead))
    return [made]


def draw(result: Result, path: Path) -> Path:
    """Draw test accuracy over width: ours with all seeds, the paper's beside it."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    ours, theirs = figure.subplots(1, 2)
    accuracy, widths = 100 * chosen_accuracy(result), np.asarray(result["width"])
    for j, rule in enumerate(result["rule"]):
        colour, dash, marker = STYLES[str(rule)]
        style = {"color": colour, "ls": dash, "marker": marker, "ms": 5}
        ours.plot(widths, accuracy[:, j].mean(-1), label=str(rule), **style)
        ours.plot(widths, accuracy[:, j], marker, color=colour, ms=3, alpha=0.5)
        theirs.plot(PAPER_WIDTHS, PAPER[str(rule)], label=str(rule), **style)
    ours.set(
        title=f"here, {result.attrs['train_samples']} training samples", ylabel="test accuracy (%)"
    )
    theirs.set(title="the paper, full CIFAR-10", ylabel="test accuracy (%)")
    for axes in (ours, theirs):
        axes.set_xlabel("width C: channels 8C, 16C, 8C, dense 128C")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
        axes.legend(frameon=False)
    return plots.save(figure, path)
