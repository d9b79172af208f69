"""Accuracies of a study of pictures as a stored table, and as curves over the epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pcsim import plots
from pcsim.store import Result

from .held_out_choice import (
    at_best_point,
    chosen_accuracy,
    chosen_value,
    edge_of,
)
from .seed_statistics import interval
from .styles import STYLES


def lead_of(result: Result) -> str:
    """Return the name of the axis that the study varies besides the rule."""
    return result.variables["test_accuracy"].dims[0]


def rows(result: Result) -> list[dict[str, str]]:
    """Return the accuracies in percent at the chosen points, a line for each task and rule.

    `ipc_gain` is iPC less this rule, paired by seed, with its 95 % interval.
    """
    made, lead, rules = [], lead_of(result), [str(rule) for rule in result["rule"]]
    accuracy, learnt = chosen_accuracy(result), at_best_point(result, "train_accuracy")
    for k, name in enumerate(result[lead]):
        for r, rule in enumerate(rules):
            found = interval(accuracy[k, r])
            gain = dict.fromkeys(("ipc_gain", "ipc_gain_low", "ipc_gain_high"), "")
            if "iPC" in rules and rule != "iPC":
                gap = interval(accuracy[k, rules.index("iPC")] - accuracy[k, r])
                gain = _percents(ipc_gain=gap.mean, ipc_gain_low=gap.low, ipc_gain_high=gap.high)
            gamma = chosen_value(result, "gamma", k, r)
            made.append(
                {
                    lead: str(name),
                    "rule": rule,
                    **_percents(mean=found.mean, sd=found.sd, low=found.low, high=found.high),
                    **_percents(train=float(learnt[k, r].mean())),
                    **gain,
                    "alpha": f"{chosen_value(result, 'alpha', k, r):g}",
                    "gamma": "" if rule == "BP" else f"{gamma:g}",
                    "edge": "yes" if edge_of(result, k, r) else "no",
                }
            )
    return made


def _percents(**fractions: float) -> dict[str, str]:
    return {name: f"{100 * value:.3f}" for name, value in fractions.items()}


def draw(result: Result, title: str, path: Path) -> Path:
    """Draw test accuracy over epochs at the chosen point of the grid, all seeds."""
    names = [str(name) for name in result[lead_of(result)]]
    figure = Figure(figsize=(4 * len(names), 3.6), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    test = 100 * np.asarray(at_best_point(result, "test_accuracy"))
    for i, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for j, rule in enumerate(result["rule"]):
            colour, _, marker = STYLES[str(rule)]
            for k, curve in enumerate(test[i, j]):
                label = str(rule) if k == 0 else None
                axes.plot(result["epoch"], curve, marker=marker, ms=3, color=colour, label=label)
        axes.set(title=name, xlabel="epoch", ylabel="test accuracy (%)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid(alpha=0.25)
    panels[0].legend(frameon=False)
    figure.suptitle(title)
    return plots.save(figure, path)
