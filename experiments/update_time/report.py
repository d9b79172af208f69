"""Claims, tables and figure of the study `update_time`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, Verdict, judged

Floats = npt.NDArray[np.floating]

BASELINES = ("BP, by hand", "BP, torch.nn")
PARALLEL = "iPC, layers at once"
MARKERS = "osD^vP*"


def ratio(result: Result, baseline: str, threads: int | None = None) -> Floats:
    """Return ms of iPC / ms of BP (samples, hidden layers, width), fastest rounds.

    Without `threads`, each contestant has the number of threads that suits it best.
    """
    names, times = list(result["contestant"]), result["fastest"]
    if threads is None:
        times = times.min(1)
    else:
        times = times[:, list(result["threads"]).index(threads)]
    return np.asarray(times[..., names.index(PARALLEL)] / times[..., names.index(baseline)])


def _choices(result: Result) -> dict[str, int | None]:
    """Return the thread counts that are shown, by their words: each one, and the best of all."""
    counts = [int(count) for count in result["threads"]]
    words: dict[str, int | None] = {f"{n} thread{'s' if n > 1 else ''}": n for n in counts}
    return words | ({"best number of threads each": None} if len(counts) > 1 else {})


def crossovers(widths: Sequence[int], row: Floats) -> str:
    """Say between which widths a row of ratios changes sides of 1."""
    faster = np.asarray(row) < 1
    if faster.all():
        return "iPC faster at every width"
    if not faster.any():
        return "BP faster at every width"
    turns = [
        f"{'iPC' if faster[k] else 'BP'} faster up to {widths[k]}, "
        f"{'iPC' if faster[k + 1] else 'BP'} from {widths[k + 1]}"
        for k in range(len(row) - 1)
        if faster[k] != faster[k + 1]
    ]
    return "; ".join(turns)


def judge(result: Result) -> list[Claim]:
    """Set the updates on one sample beside the paper's claims, each at its best threads."""
    widths, hidden = result["widths"], result["hidden_layers"]
    ratios = {name: ratio(result, name)[0] for name in BASELINES}
    large = {name: float(values[-1, -1]) for name, values in ratios.items()}
    corner = f"{hidden[-1]} × {widths[-1]}"
    said = ", ".join(f"{value:.2f} to {name}" for name, value in large.items())
    strict = ratios[BASELINES[0]]
    exact = bool(hidden[-1] == 32 and widths[-1] == 1024)
    return [
        Claim(
            "32 hidden layers × 1024: an iPC update is 10 times faster than one of BP",
            judged(large[BASELINES[0]] <= 0.1) if exact else Verdict.OPEN,
            f"ratio iPC/BP at {corner}: {said}",
        ),
        _side("iPC is slower than BP on small networks (width ≤ 64)", strict[:, widths <= 64], 1),
        _side("iPC is faster than BP on large networks (width > 64)", strict[:, widths > 64], -1),
    ]


def _side(text: str, ratios: Floats, sign: int) -> Claim:
    """Judge a claim that all these ratios lie above (+1) or below (−1) the line at 1."""
    if not ratios.size:
        return Claim(text, Verdict.OPEN, "no such network was measured")
    agree = np.sign(ratios - 1) == sign
    evidence = (
        f"ratio to {BASELINES[0]}: {ratios.min():.2f} to {ratios.max():.2f}; so in "
        f"{int(agree.sum())} of {agree.size} networks"
    )
    return Claim(text, judged(bool(agree.all())), evidence)


def tables(result: Result) -> list[Table]:
    """Return the ratio over depth × width, one table per batch, threads and baseline."""
    made = []
    widths = [int(width) for width in result["widths"]]
    for baseline, (words, threads) in product(BASELINES, _choices(result).items()):
        values = ratio(result, baseline, threads)
        for i, samples in enumerate(result["samples"]):
            table = Table(title=f"ms of iPC / ms of {baseline}; samples: {samples}; {words}")
            for column in ("hidden layers", *map(str, widths), "crossover over the width"):
                table.add_column(column, justify="right")
            for hidden, row in zip(result["hidden_layers"], values[i], strict=True):
                cells = [f"{value:.2f}" for value in row]
                table.add_row(str(hidden), *cells, crossovers(widths, row))
            made.append(table)
    return [*made, _times(result)]


def _times(result: Result) -> Table:
    widths = result["widths"]
    made = Table(title=f"ms per weight update at width {widths[-1]}, fastest round")
    names = [str(name) for name in result["contestant"]]
    for column in ("samples", "threads", "hidden layers", *names):
        made.add_column(column, justify="right")
    for i, samples in enumerate(result["samples"]):
        for j, used in enumerate(result["threads"]):
            for k, hidden in enumerate(result["hidden_layers"]):
                cells = [f"{value:.3g}" for value in result["fastest"][i, j, k, -1]]
                made.add_row(str(samples), str(used), str(hidden), *cells)
    return made


def draw(result: Result, path: Path) -> Path:
    """Draw the ratio over the width, one line per depth, with the line at 1 (one sample)."""
    # One thread, and the best of each: in between it is the machine that is seen.
    shown = [choice for choice in _choices(result).items() if choice[1] in (1, None)]
    figure = Figure(figsize=(4.6 * len(shown), 7.4), layout="constrained")
    panels = figure.subplots(len(BASELINES), len(shown), sharex=True, sharey="row", squeeze=False)
    for row, baseline in zip(panels, BASELINES, strict=True):
        for axes, (words, threads) in zip(row, shown, strict=True):
            _draw_ratio(axes, result, ratio(result, baseline, threads)[0])
            axes.set(title=f"against {baseline}; {words}")
        row[0].set(ylabel="ms of iPC / ms of BP")
    for axes in panels[-1]:
        axes.set(xlabel="units per layer")
    panels[0, 0].legend(frameon=False, title="hidden layers", ncols=2, fontsize=8)
    figure.suptitle("One weight update on one sample: iPC, all layers in one batched product")
    return plots.save(figure, path)


def _draw_ratio(axes: Axes, result: Result, values: Floats) -> None:
    widths = result["widths"]
    for k, hidden in enumerate(result["hidden_layers"]):
        colour, marker = plots.COLOURS[k % len(plots.COLOURS)], MARKERS[k % len(MARKERS)]
        axes.loglog(widths, values[k], marker=marker, ms=5, color=colour, label=str(hidden))
    axes.axhline(1, color="#444444", lw=1.5, linestyle="--")
    axes.text(
        0.02, 0.03, "below the dashed line iPC is faster", transform=axes.transAxes, fontsize=8
    )
    if 32 in result["hidden_layers"] and 1024 in widths:
        axes.plot(1024, 0.1, "*", ms=13, mfc="none", mec="#444444", label="paper, 32 × 1024")
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.25, which="both")
