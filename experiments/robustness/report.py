"""Claims, tables and figure of the study `robustness`, from its stored result.

Arrays here have the axes (rule, seed, corruption, level), at the point of the grid that held-out
samples choose for each rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.table import Table

from pcsim import plots
from pcsim.compare.interval import paired_gap
from pcsim.store import Result

from ..common.claims import Claim, Verdict
from ..common.held_out_choice import (
    CONFIDENCE,
    Floats,
    at_best_point,
    chosen_value,
    compare,
    edge_of,
    has_learnt,
    is_searched,
)
from ..common.seed_statistics import interval, judge_as_large
from ..common.styles import STYLES

PAPER_ERROR = {"BP": 0.12, "iPC": 0.05}
"""AdaECE of the undisturbed test set (the paper's text; the rest is a figure without numbers)."""
MILD = 3
"""The level up to which the paper finds iPC better calibrated than BP without any shift."""


def chosen(result: Result, name: str) -> Floats:
    """Return a variable (rule, seed, corruption, level) at the chosen points of the grid."""
    return np.asarray(at_best_point(result, name)[0])


def judge(result: Result) -> list[Claim]:
    """Set calibration errors and accuracies beside the paper's claims."""
    rules = [str(r) for r in result["rule"]]
    bp, ipc = rules.index("BP"), rules.index("iPC")
    error = chosen(result, "calibration_error")
    clean, medians = error[:, :, 0, 0], np.median(error, axis=2)  # (rule, seed[, level])
    mild, any_level = (medians[ipc, :, 1:end].max(-1) for end in (MILD + 1, None))
    accuracy = chosen(result, "corrupted_accuracy")
    decline = accuracy[:, :, 0, 0] - np.median(accuracy, axis=2)[:, :, -1]
    claimed = PAPER_ERROR["BP"] - PAPER_ERROR["iPC"]
    found = [
        Claim(
            "iPC is better calibrated than BP on the test set (AdaECE 0.05 against 0.12)",
            judge_as_large(interval(clean[bp] - clean[ipc]), claimed)
            if is_searched(result)
            else compare(clean[bp], clean[ipc]),
            f"iPC {_number(clean[ipc])}, BP {_number(clean[bp])}; {_gap(clean[ipc], clean[bp])}",
        ),
        Claim(
            f"iPC under shifts up to level {MILD} is better calibrated than BP without any",
            compare(clean[bp], mild),
            f"iPC, worst median up to level {MILD}: {_number(mild)}; BP {_number(clean[bp])}; "
            f"{_gap(mild, clean[bp])}",
        ),
        Claim(
            "iPC's median error at every level is below that of BP at level 1",
            compare(medians[bp, :, 1], any_level),
            f"iPC, worst level: {_number(any_level)}; BP at level 1: {_number(medians[bp, :, 1])}; "
            f"{_gap(any_level, medians[bp, :, 1])}",
        ),
        Claim(
            "accuracy declines as much by iPC as by BP",
            _alike(decline[ipc], decline[bp]),
            f"accuracy at level 0 less the median at the last level: iPC {_number(decline[ipc])}, "
            f"BP {_number(decline[bp])}; {_gap(decline[ipc], decline[bp])}",
        ),
    ]
    at_edge = is_searched(result) and bool(np.any(result["edge"]))
    if has_learnt(accuracy[bp, :, 0, 0], accuracy[ipc, :, 0, 0]) and not at_edge:
        return found
    # A network that guesses is calibrated as soon as it is unsure, and cannot get worse; one whose
    # settings lie at an end of what was tried might be better beyond.
    return [replace(claim, verdict=Verdict.OPEN) for claim in found]


ALIKE = 0.05
"""Declines of accuracy that differ by less are called comparable here; the paper has no number."""


def _alike(first: Floats, second: Floats) -> Verdict:
    """Return whether the 95 % interval of the mean difference is within ±`ALIKE`, or outside."""
    gap = paired_gap(first - second, CONFIDENCE)
    if -ALIKE < gap.low <= gap.high < ALIKE:
        return Verdict.HOLDS
    return Verdict.FAILS if gap.low > ALIKE or gap.high < -ALIKE else Verdict.OPEN


def _gap(first: Floats, second: Floats) -> str:
    """Return iPC less BP, seed by seed, with its interval."""
    gap = paired_gap(first - second, CONFIDENCE)
    return f"difference {gap.mean:.3f} [{gap.low:.3f}, {gap.high:.3f}]"


def _number(values: Floats) -> str:
    spread = values.std(ddof=1) if len(values) > 1 else float("nan")
    return f"{values.mean():.3f} ± {spread:.3f}"


def tables(result: Result) -> Sequence[Table]:
    """Return medians over corruptions at each level, mean ± SD over seeds, and per corruption."""
    rules, levels = [str(r) for r in result["rule"]], [int(v) for v in result["level"]]
    made = []
    for name, title in (
        ("calibration_error", "AdaECE"),
        ("corrupted_accuracy", "accuracy"),
    ):
        values = chosen(result, name)
        table = Table(title=f"{title}, mean ± SD over seeds")
        for column in ("corruption", "rule", *(f"level {v}" for v in levels)):
            table.add_column(column, justify="right")
        for i, rule in enumerate(rules):
            rows = {"median": np.median(values[i], axis=1)}
            rows |= {str(kind): values[i, :, k] for k, kind in enumerate(result["corruption"])}
            for kind, row in rows.items():
                table.add_row(kind, rule, *(_number(row[:, k]) for k in range(len(levels))))
            table.add_section()
        made.append(table)
    return made


def rows(result: Result) -> list[dict[str, str]]:
    """Return medians over corruptions, mean and SD over seeds, a line for each rule and level."""
    made = []
    values = {
        name: np.median(chosen(result, variable), axis=2)
        for name, variable in (("error", "calibration_error"), ("accuracy", "corrupted_accuracy"))
    }
    for r, rule in enumerate(map(str, result["rule"])):
        for k, level in enumerate(result["level"]):
            line = {"rule": rule, "level": str(level)}
            for name, median in values.items():
                found = interval(median[r, :, k])
                line |= {name: f"{found.mean:.4f}", f"{name}_sd": f"{found.sd:.4f}"}
            line["alpha"] = f"{chosen_value(result, 'alpha', 0, r):g}"
            line["gamma"] = "" if rule == "BP" else f"{chosen_value(result, 'gamma', 0, r):g}"
            line["edge"] = "yes" if edge_of(result, 0, r) else "no"
            made.append(line)
    return made


def draw(result: Result, path: Path) -> Path:
    """Draw a box over all corruptions and seeds at each level, BP beside iPC."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    panels = figure.subplots(1, 2)
    levels = np.asarray(result["level"], float)
    names = ("corrupted_accuracy", "calibration_error")
    labels = ("accuracy (%)", "calibration error AdaECE")
    for axes, name, label in zip(panels, names, labels, strict=True):
        unit = 100 if name == "corrupted_accuracy" else 1
        values = unit * chosen(result, name)
        for j, rule in enumerate(result["rule"]):
            colour, _, marker = STYLES[str(rule)]
            boxes = [_finite(values[j, :, :, k]) for k in range(len(levels))]
            axes.boxplot(
                boxes,
                positions=levels + (j - 0.5) * 0.36,
                widths=0.3,
                patch_artist=True,
                boxprops={"facecolor": colour, "alpha": 0.45},
                medianprops={"color": "black"},
                flierprops={"marker": marker, "ms": 3, "mec": colour},
                manage_ticks=False,
            )
        axes.set(xlabel="level of corruption (0: none)", ylabel=label, xticks=levels)
        axes.grid(alpha=0.25, axis="y")
    handles = [Patch(color=STYLES[str(r)][0], alpha=0.45, label=str(r)) for r in result["rule"]]
    panels[0].legend(handles=handles, frameon=False)
    figure.suptitle("AlexNet under shift: boxes over six corruptions and all seeds")
    return plots.save(figure, path)


def _finite(values: Floats) -> Floats:
    flat = values.ravel()
    return np.asarray(flat[np.isfinite(flat)])
