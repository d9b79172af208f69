"""Claims, tables and figure of the study `mlp_classification`, from its stored result."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict
from ..common.seed_statistics import (
    Floats,
    Interval,
    interval,
    judge_as_large,
    judge_comparable,
    seeds_needed,
)
from ..common.styles import STYLES

ABOUT = {
    "test_accuracy": "fraction of test images right after each epoch; NaN after an early end",
    "validation_accuracy": "fraction of held-out training images right after each epoch",
    "accuracy": "test accuracy at the epoch of best validation accuracy",
    "search_accuracy": "search: best validation accuracy of each cell, mean over its seeds",
}
PAPER = {
    ("mnist", "BP"): (98.26, 0.12),
    ("mnist", "PC"): (98.55, 0.14),
    ("mnist", "iPC"): (98.54, 0.86),
    ("fashion_mnist", "BP"): (88.54, 0.64),
    ("fashion_mnist", "PC"): (85.12, 0.75),
    ("fashion_mnist", "iPC"): (89.13, 0.86),
}
"""Table 1, percent: mean and ±. Z-IL is not in it; it equals BP."""
Judge = Callable[[Interval], Verdict]
MARGIN = 0.01
"""Accuracies closer than this are called comparable (the paper's iPC and BP differ by 0.3, 0.6)."""


def accuracy(result: Result, data: str, rule: str) -> Floats:
    """Return the test accuracy (seed,) of one rule."""
    d, r = list(result["data"]).index(data), list(result["rule"]).index(rule)
    return np.asarray(result["accuracy"][d, r])


def difference(result: Result, data: str, rule: str, other: str) -> Interval:
    """Return the difference of two rules, paired by seed."""
    return interval(accuracy(result, data, rule) - accuracy(result, data, other))


def at_edge(result: Result, data: str, rule: str) -> bool:
    """Return whether a neighbour of the chosen cell was not tried: it might be better."""
    d, r = list(result["data"]).index(data), list(result["rule"]).index(rule)
    return bool(result["edge"][d, r])


def compare(result: Result, data: str, rules: tuple[str, str], text: str, verdict: Judge) -> Claim:
    """Judge the difference of two tuned rules; undecided while one is not tuned in its range.

    The evidence says how many seeds would tell the difference that the paper found.
    """
    gain = difference(result, data, *rules)
    edges = [rule for rule in rules if at_edge(result, data, rule)]
    evidence = f"difference {gain.percent()} points, paired by seed"
    if edges:
        evidence += f"; {' and '.join(edges)} chose a cell with a neighbour that was not tried"
    means = [PAPER.get((data, rule), (np.nan, 0))[0] for rule in rules]
    if needed := seeds_needed((means[0] - means[1]) / 100, gain.sd):
        evidence += f"; {needed} seeds tell the paper's {means[0] - means[1]:+.2f}"
    return Claim(f"{data}: {text}", Verdict.OPEN if edges else verdict(gain), evidence)


def judge(result: Result) -> list[Claim]:
    """Judge what Table 1 says about these networks."""
    close = partial(judge_comparable, margin=MARGIN)
    rules = [str(rule) for rule in result["rule"]]
    made = []
    for data in map(str, result["data"]):
        for rule in rules:
            if rule.startswith("iPC"):
                text = f"{rule} is comparable with BP (within {100 * MARGIN:g} point)"
                made.append(compare(result, data, (rule, "BP"), text, close))
        for better, worse in (("iPC", "BP"), ("iPC", "PC")):
            means = [PAPER.get((data, rule), (np.nan, 0))[0] for rule in (better, worse)]
            if not means[0] > means[1]:
                continue  # the paper does not say so of this data set
            text = f"{better} is better than {worse} ({means[0]:g} against {means[1]:g} %)"
            large = partial(judge_as_large, claimed=(means[0] - means[1]) / 100)
            made.append(compare(result, data, (better, worse), text, large))
        if "Z-IL" in rules:
            gain = difference(result, data, "Z-IL", "BP")
            text = f"{data}: Z-IL is as accurate as BP with BP's settings, as it must be"
            evidence = f"difference {gain.percent()} points, paired by seed"
            made.append(Claim(text, close(gain), evidence))
    return made


def rows(result: Result) -> list[dict[str, str]]:
    """Return the table of accuracies in percent, a line for each data set and contestant."""
    made = []
    for d, data in enumerate(map(str, result["data"])):
        for r, rule in enumerate(map(str, result["rule"])):
            found = interval(accuracy(result, data, rule))
            # What one would report who chooses the epoch by the test images.
            peeked = interval(np.nanmax(result["test_accuracy"][d, r], axis=-1))
            paper = PAPER.get((data, rule))
            gamma = float(result["chosen_gamma"][d, r])
            made.append(
                {
                    "data": data,
                    "contestant": rule,
                    **_percents(mean=found.mean, sd=found.sd, low=found.low, high=found.high),
                    "paper": f"{paper[0]:.2f}" if paper else "",
                    "paper_sd": f"{paper[1]:.2f}" if paper else "",
                    **_percents(by_test=peeked.mean),
                    **{n: f"{result[f'chosen_{n}'][d, r]:g}" for n in ("alpha", "weight_decay")},
                    "gamma": "" if rule in ("BP", "Z-IL") else f"{gamma:g}",
                    "edge": "yes" if at_edge(result, data, rule) else "no",
                    **_to_bp(result, data, rule),
                }
            )
    return made


def _to_bp(result: Result, data: str, rule: str) -> dict[str, str]:
    if rule == "BP":
        return dict.fromkeys(("to_bp", "to_bp_low", "to_bp_high"), "")
    gap = difference(result, data, rule, "BP")
    return _percents(to_bp=gap.mean, to_bp_low=gap.low, to_bp_high=gap.high)


def _percents(**fractions: float) -> dict[str, str]:
    return {name: f"{100 * value:.3f}" for name, value in fractions.items()}


def tables(result: Result) -> list[Table]:
    """Return test accuracies beside Table 1, and the cells that were chosen."""
    made = Table(title=f"test accuracy, %, {len(result['seed'])} seeds", show_lines=False)
    heads = ("data", "rule", "here, ± SD [95 % interval]", "the paper", "best epoch by test")
    for column in (*heads, "α, λ, γ chosen", "difference to BP"):
        made.add_column(column)
    for line in rows(result):
        number = {name: float(line[name]) for name in ("mean", "sd", "low", "high", "by_test")}
        made.add_row(
            line["data"],
            line["contestant"],
            "{mean:.2f} ± {sd:.2f} [{low:.2f}, {high:.2f}]".format(**number),
            f"{line['paper']} ± {line['paper_sd']}" if line["paper"] else "–",
            f"{number['by_test']:.2f}",
            ", ".join(line[name] or "–" for name in ("alpha", "weight_decay", "gamma")),
            difference(result, line["data"], line["contestant"], "BP").percent(),
        )
    return [made]


def draw(result: Result, path: Path) -> Path:
    """Draw each data set: test accuracy by rule beside the paper's, and test error over epochs."""
    sets = [str(data) for data in result["data"]]
    figure = Figure(figsize=(9, 3.3 * len(sets) + 0.4), layout="constrained")
    panels = figure.subplots(len(sets), 2, squeeze=False)
    for d, (data, (left, right)) in enumerate(zip(sets, panels, strict=True)):
        _draw_accuracies(left, result, data)
        _draw_curves(right, result, d)
        left.set_title(f"{data}: points are seeds, bars 95 % intervals", fontsize=9)
        right.set_title(f"{data}: mean and range over {len(result['seed'])} seeds", fontsize=9)
    if panels[0][0].get_legend_handles_labels()[0]:  # the paper may not have this data set
        panels[0][0].legend(frameon=False, fontsize=8)
    panels[0][1].legend(frameon=False, fontsize=8)
    figure.suptitle(
        "Perceptrons with two hidden layers of 64, settings chosen on validation images"
    )
    return plots.save(figure, path)


def _draw_accuracies(axes: Axes, result: Result, data: str) -> None:
    rules = [str(rule) for rule in result["rule"]]
    for k, rule in enumerate(rules):
        colour, _, marker = STYLES[rule]
        values = 100 * accuracy(result, data, rule)
        found = interval(values)
        half = found.half if np.isfinite(found.half) else 0.0
        axes.errorbar(k, found.mean, half, color=colour, fmt=marker, capsize=5)
        axes.plot(np.full(len(values), k - 0.12), values, ".", color=colour, alpha=0.6)
        if (reference := PAPER.get((data, rule))) is not None:
            label = "the paper, mean ±" if k == 0 else None
            axes.errorbar(k + 0.2, *reference, color="0.45", fmt="_", capsize=3, label=label)
    long = any(len(rule) > 6 for rule in rules)
    turned: dict[str, Any] = {"rotation": 20, "ha": "right", "fontsize": "small"} if long else {}
    axes.set_xticks(range(len(rules)), rules, **turned)
    axes.set(ylabel="test accuracy, %")
    axes.grid(alpha=0.25)


def _draw_curves(axes: Axes, result: Result, data: int) -> None:
    for k, rule in enumerate(map(str, result["rule"])):
        error = 100 * (1 - result["test_accuracy"][data, k])
        there = np.isfinite(error).all(0)
        # Z-IL lies on BP: dotted, so that both are seen.
        dash = ":" if rule == "Z-IL" else STYLES[rule][1]
        epochs, error = result["epoch"][there], error[:, there]
        axes.plot(epochs, error.mean(0), dash, color=STYLES[rule][0], label=rule)
        axes.fill_between(
            epochs, error.min(0), error.max(0), color=STYLES[rule][0], alpha=0.15, lw=0
        )
    axes.set(xlabel="epoch", ylabel="test error, %", yscale="log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.grid(alpha=0.25, which="both")
