"""Claims, tables and figure of the study `fullbatch_efficiency`, from its stored result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict, judged
from ..common.falling_curves import Floats, speed_up
from ..common.styles import STYLES

ABOUT = {
    "smm": "non-parallel matrix products executed so far, as counted",
    "loss": "squared error ½|y − μ⁰|² of the feed-forward pass, per training image",
    "test_error": "fraction of test images wrong, feed-forward pass",
    "updates": "weight updates made with all SMMs",
}


def rivals(result: Result) -> list[str]:
    """Return every rule but iPC."""
    return [str(rule) for rule in result["rule"] if rule != "iPC"]


def speed_ups(result: Result, rival: str, quantity: str, rates: tuple[int, int]) -> Floats:
    """Return SMMs of the rival / SMMs of iPC to the rival's lowest value (depth, seed).

    `rates` are the positions of iPC's and of the rival's rate.
    """
    rules = list(result["rule"])
    own, other = rules.index("iPC"), rules.index(rival)
    made = [
        [
            speed_up(
                result["smm"][d, own, rates[0]],
                result[quantity][d, own, rates[0], s],
                result["smm"][d, other, rates[1]],
                result[quantity][d, other, rates[1], s],
            )
            for s in range(len(result["seed"]))
        ]
        for d in range(len(result["depth"]))
    ]
    return np.asarray(made)


def best_rate(result: Result, rule: str) -> int:
    """Return the rate with the lowest final loss, mean over depths and seeds; NaN is worst."""
    final = result["loss"][:, list(result["rule"]).index(rule), :, :, -1].mean((0, 2))
    return int(np.argmin(np.where(np.isfinite(final), final, np.inf)))


def judge(result: Result) -> list[Claim]:
    """Judge at the paper's rate (the first), then at each rule's best rate of those tried."""
    rate = str(result["rate"][0])
    made = []
    for quantity, words in (("loss", "training loss"), ("test_error", "test error")):
        for rival in rivals(result):
            factors = speed_ups(result, rival, quantity, (0, 0))
            text = f"iPC needs fewer SMMs than {rival} ({words}, {rate})"
            made.append(Claim(text, _faster(factors), _factors(result, factors)))
    for rival in rivals(result):
        rates = best_rate(result, "iPC"), best_rate(result, rival)
        factors = speed_ups(result, rival, "loss", rates)
        chosen = " against ".join(str(result["rate"][k]) for k in rates)
        text = f"the same, each rule at its best rate tried: iPC against {rival} (training loss)"
        evidence = f"{chosen}: {_factors(result, factors)}"
        made.append(Claim(text, _faster(factors), evidence))
    return made


def _faster(factors: Floats) -> Verdict:
    """Judge that iPC was faster every time; a rival that learnt nothing decides nothing."""
    if np.isinf(factors).any() and (factors > 1).all():
        return Verdict.OPEN
    return judged(bool((factors > 1).all()))


def _factors(result: Result, factors: Floats) -> str:
    parts = [
        f"L = {depth}: {np.median(row):.3g}× ({row.min():.3g} to {row.max():.3g})"
        for depth, row in zip(result["depth"], factors, strict=True)
    ]
    return "SMMs of the rival / SMMs of iPC, median (range) over seeds: " + "; ".join(parts)


def tables(result: Result) -> list[Table]:
    """Return loss and test error with all SMMs spent, mean ± SD over the seeds."""
    made = []
    smms = int(result["smm"].max())
    for d, depth in enumerate(result["depth"]):
        table = Table(title=f"L = {depth}, after {smms} SMMs: training loss | test error, %")
        table.add_column("rule")
        table.add_column("updates", justify="right")
        for rate in result["rate"]:
            table.add_column(str(rate), justify="right")
        for r, rule in enumerate(result["rule"]):
            cells = []
            for k in range(len(result["rate"])):
                loss = result["loss"][d, r, k, :, -1]
                error = 100 * result["test_error"][d, r, k, :, -1]
                cells.append(f"{_spread(loss, 4)} | {_spread(error, 1)}")
            table.add_row(str(rule), str(result["updates"][d, r, 0]), *cells)
        made.append(table)
    made[-1].caption = (
        f"with SGD, iPC cannot be stable above α = {result.attrs['sgd_limit']:.2g} "
        f"(`fullbatch_efficiency.sgd_limit`)"
    )
    return made


def _spread(values: Floats, digits: int) -> str:
    if not np.isfinite(values).all():
        return f"diverged in {int((~np.isfinite(values)).sum())}"
    sd = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.{digits}f}±{sd:.{digits}f}"


def draw(result: Result, path: Path) -> Path:
    """Draw loss and test error over SMMs at the judged rate, and the loss at each best rate."""
    depths, rules = result["depth"], [str(rule) for rule in result["rule"]]
    judged_rate = dict.fromkeys(rules, 0)
    best = {rule: best_rate(result, rule) for rule in rules}
    rows = (("loss", judged_rate, ""), ("test_error", judged_rate, ""), ("loss", best, "best: "))
    figure = Figure(figsize=(2.9 * len(depths) + 1, 6.9), layout="constrained")
    panels = figure.subplots(len(rows), len(depths), sharex=True, sharey="row", squeeze=False)
    for line, (quantity, rates, why) in zip(panels, rows, strict=True):
        for d, axes in enumerate(line):
            _draw_curves(axes, result, quantity, d, rates)
            axes.set_title(f"L = {depths[d]}; {why}{_words(result, rates)}", fontsize=9)
        line[0].set(ylabel="training loss" if quantity == "loss" else "test error, %")
        line[0].legend(frameon=False, fontsize=7)
    for axes in panels[-1]:
        axes.set(xlabel="SMMs executed, as counted")
    title = f"Full batch, {result.attrs['images']} images of {result.attrs['data']}"
    figure.suptitle(f"{title}: mean and range over {len(result['seed'])} seeds")
    return plots.save(figure, path)


def _words(result: Result, rates: dict[str, int]) -> str:
    return "see legend" if len(set(rates.values())) > 1 else str(result["rate"][rates["iPC"]])


def _draw_curves(
    axes: Axes, result: Result, quantity: str, depth: int, rates: dict[str, int]
) -> None:
    chosen = len(set(rates.values())) > 1
    for r, (rule, rate) in enumerate(rates.items()):
        colour, dash, _ = STYLES.get(rule, (plots.COLOURS[5], "-", "o"))
        values = result[quantity][depth, r, rate] * (1 if quantity == "loss" else 100)
        label = f"{rule}: {result['rate'][rate]}" if chosen else rule
        smm = result["smm"][depth, r, rate]
        axes.plot(smm, values.mean(0), dash, color=colour, label=label)
        axes.fill_between(smm, values.min(0), values.max(0), color=colour, alpha=0.15, lw=0)
    if quantity == "loss":
        axes.set(yscale="log")
    axes.grid(alpha=0.25, which="both")
