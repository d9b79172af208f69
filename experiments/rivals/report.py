"""Claims, tables and figure of the study `rivals`, from its stored result."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from hw_models.cost import metric
from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict
from ..common.seed_statistics import (
    Floats,
    Interval,
    interval,
    judge_comparable,
    judge_greater,
)

IPC, PC, BP = "iPC, always on", "PC with phases", "BP on the array"
RANDOM, KOLEN_POLLACK = "iPC, feedback alignment", "iPC, Kolen–Pollack"
LATENT, EQUILIBRIUM = "iPC, latent equilibrium", "continual EP"
IDEAL, COARSE = "ideal", "1 % noise, 6 bits"
ROUNDED = "1 % noise, 6 bits, no accumulator"
MARGIN = 0.02
"""Accuracies closer than this are called comparable: five seeds tell no less."""


def accuracy(result: Result, budget: str, substrate: str, rule: str) -> Floats:
    """Return the test accuracy (seed,), mean over chips; NaN where it was refused."""
    where = tuple(
        list(result[axis]).index(name)
        for axis, name in (("budget", budget), ("substrate", substrate), ("rule", rule))
    )
    values = np.asarray(result["accuracy"][where])
    there = np.isfinite(values).any(0)  # an ideal chip is one of a kind
    return values[:, there].mean(1) if there.any() else np.full(len(values), np.nan)


def difference(result: Result, budget: str, substrate: str, rule: str, other: str) -> Interval:
    """Return the difference of two rules, paired by seed."""
    first, second = (accuracy(result, budget, substrate, one) for one in (rule, other))
    return interval(first - second)


EXPECTED: tuple[tuple[str, str, str, str, str], ...] = (
    (IPC, BP, IDEAL, "one pass", "comparable"),
    (IPC, PC, IDEAL, "one pass", "better"),
    (IPC, RANDOM, IDEAL, "one pass", "better"),
    (KOLEN_POLLACK, IPC, IDEAL, "one pass", "comparable"),
    (IPC, EQUILIBRIUM, IDEAL, "one pass", "better"),
    (IPC, EQUILIBRIUM, COARSE, "one pass", "better"),
    (IPC, LATENT, COARSE, "one pass", "better"),
    (PC, IPC, ROUNDED, "one pass", "better"),
    (BP, IPC, IDEAL, "more passes", "better"),
    (BP, IPC, "ecram_li", "more passes", "better"),
)
"""What was expected before anything ran: rule, other rule, chips, budget, and how they compare.

iPC writes at every step, each time by less than a coarse device can tell; equilibrium propagation
divides a small change by β, and a look-ahead amplifies what is fast: both amplify noise.
"""


def judge(result: Result) -> list[Claim]:
    """Judge what was expected."""
    made = []
    known = {axis: set(map(str, result[axis])) for axis in ("rule", "substrate")}
    for rule, other, substrate, budget, how in EXPECTED:
        if not {rule, other} <= known["rule"] or substrate not in known["substrate"]:
            continue
        gap = difference(result, budget, substrate, rule, other)
        if not np.isfinite(gap.mean):
            verdict = Verdict.OPEN
        elif how == "better":
            verdict = judge_greater(gap)
        else:
            verdict = judge_comparable(gap, MARGIN)
        told = "better than" if how == "better" else f"within {100 * MARGIN:g} points of"
        text = f"{substrate}, {budget}: {rule} is {told} {other}"
        made.append(Claim(text, verdict, f"difference {gap.percent()} points, paired by seed"))
    return made


def rows(result: Result) -> list[dict[str, str]]:
    """Return a line for each budget and rule: accuracies in percent, then what it takes."""
    made = []
    for b, budget in enumerate(map(str, result["budget"])):
        for r, rule in enumerate(map(str, result["rule"])):
            line = {"budget": budget, "rule": rule}
            for s, substrate in enumerate(map(str, result["substrate"])):
                found = interval(accuracy(result, budget, substrate, rule))
                refused = str(result["refused"][s, r])
                line[substrate] = "refused" if refused else f"{100 * found.mean:.2f}"
                for name, value in (("low", found.low), ("high", found.high)):
                    line[f"{substrate} {name}"] = "" if refused else f"{100 * value:.2f}"
                line[f"{substrate} rate"] = "" if refused else f"{result['rate'][b, s, r]:.6g}"
                line[f"{substrate} end"] = "yes" if result["at_end"][b, s, r] else "no"
            low, mean, high = result["joules"][b, r]
            pulses = result["pulses"][b, r, 1]
            line |= {
                "variant": str(result["variant"][r]),
                "passes": f"{result['passes'][b, r]:g}",
                "writes": f"{result['writes'][r]:g}",
                "reads": f"{result['reads'][r]:g}",
                "pulses": f"{pulses:.4g}" if np.isfinite(pulses) else "",
                "ms": f"{1e3 * result['seconds'][b, r]:.4g}",
                **{
                    name: f"{1e6 * value:.4g}" if np.isfinite(value) else ""
                    for name, value in (("µJ", mean), ("µJ low", low), ("µJ high", high))
                },
                "chip": "continuous" if result["in_time"][r] else "clocked",
            }
            made.append(line)
    return made


def tables(result: Result) -> list[Table]:
    """Return accuracies, what each rule takes, and who refused what."""
    seeds = len(result["seed"])
    title = f"test accuracy, % [95 % interval], {seeds} seeds × {len(result['chip'])} chips"
    first = Table(title=title)
    second = Table(title="what a training takes; energy and time are estimates")
    substrates = [str(one) for one in result["substrate"]]
    for column in ("budget", "rule", *substrates):
        first.add_column(column)
    for column in ("budget", "rule", "signals", "passes", "writes", "reads", "pulses", "time",
                   "energy"):  # fmt: skip
        second.add_column(column)
    signals = dict(zip(map(str, result["rule"]), map(str, result["signals"]), strict=True))
    for line in rows(result):
        cells = [
            line[one]
            if line[one] == "refused"
            else f"{line[one]} [{line[f'{one} low']}, {line[f'{one} high']}]"
            + ("!" if line[f"{one} end"] == "yes" else "")
            for one in substrates
        ]
        name = f"{line['rule']} ({line['variant']})" if line["variant"] else line["rule"]
        first.add_row(line["budget"], name, *cells)
        energy = metric(1e-6 * float(line["µJ"]), "J") if line["µJ"] else "–"
        second.add_row(
            line["budget"],
            line["rule"],
            signals[line["rule"]],
            *(line[n] for n in ("passes", "writes", "reads", "pulses")),
            metric(1e-3 * float(line["ms"]), "s"),
            energy,
        )
    third = Table(title="refused")
    for column in ("chips", "rule", "reason"):
        third.add_column(column)
    for s, substrate in enumerate(substrates):
        for r, rule in enumerate(map(str, result["rule"])):
            if reason := str(result["refused"][s, r]):
                third.add_row(substrate, rule, reason)
    return [first, second, third]


def draw(result: Result, path: Path) -> Path:
    """Draw a panel for each substrate: accuracies of chips by rule, with intervals over seeds."""
    rules = [str(one) for one in result["rule"]]
    substrates = [str(one) for one in result["substrate"]]
    figure = Figure(figsize=(2.6 * len(substrates) + 2.2, 4.2), layout="constrained")
    panels = figure.subplots(1, len(substrates), sharey=True, squeeze=False)[0]
    for s, (axes, substrate) in enumerate(zip(panels, substrates, strict=True)):
        for r, rule in enumerate(rules):
            if str(result["refused"][s, r]):
                axes.text(0.5, r, "refused", transform=axes.get_yaxis_transform(), va="center",
                          ha="center", color="0.4", fontsize="small")  # fmt: skip
                continue
            for b, budget in enumerate(map(str, result["budget"])):
                if b and result["passes"][b, r] == result["passes"][0, r]:
                    continue
                chips = 100 * np.asarray(result["accuracy"][b, s, r])
                found = interval(100 * accuracy(result, budget, substrate, rule))
                place = r + 0.25 * b
                shown = chips[np.isfinite(chips)]
                colour = plots.COLOURS[b]
                axes.plot(shown, np.full(len(shown), place), ".", color=colour, alpha=0.25, ms=4)
                axes.errorbar(found.mean, place, xerr=found.half, fmt="o", color=colour,
                              capsize=3, ms=5)  # fmt: skip
        axes.set(title=fill(substrate, 22), xlabel="test accuracy, %")
        axes.grid(alpha=0.25)
    panels[0].set_yticks(range(len(rules)), rules)
    panels[0].invert_yaxis()
    for b, budget in enumerate(map(str, result["budget"])):
        panels[0].plot([], [], "o", color=plots.COLOURS[b], label=budget)
    figure.legend(frameon=False, fontsize="small", loc="outside lower left", ncols=2)
    return plots.save(figure, path)
