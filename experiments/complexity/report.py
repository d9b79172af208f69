"""Claims, table and figure of the study `complexity`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots
from pcsim.store import Result

from ..common.claims import Claim, judged
from ..common.styles import STYLES


def full_and_partial(written: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the numbers of updates of all maps, and of some maps only."""
    full = written.all(1)
    return int(full.sum()), int((written.any(1) & ~full).sum())


def judge(result: Result) -> list[Claim]:
    """Set the counts beside the paper's claims."""
    measured, depths = result["products"], result["depth"]
    wrong = int((measured != result["products_closed_form"]).sum())
    where = f"L = {depths[0]} … {depths[-1]}"
    smms = {str(name): row for name, row in zip(result["column"], measured[1], strict=True)}
    slope = np.polyfit(depths, smms["BP"], 1)[0]
    constant = bool((smms["iPC"] == smms["iPC"][0]).all())
    sketches = zip(result["sketch_rule"], result["sketch_updated"], strict=True)
    parts = {str(name): full_and_partial(written) for name, written in sketches}
    return [
        Claim(
            "MM and SMM per weight update follow the table",
            judged(wrong == 0),
            f"{wrong} of {measured.size} counts differ ({where})",
        ),
        Claim(
            "Theorem 1: a full update costs O(1) SMMs with iPC, O(L) with BP",
            judged(constant and abs(slope - 2) < 1e-9),
            f"iPC {smms['iPC'].min():g} to {smms['iPC'].max():g} SMMs, BP grows by {slope:.6g} per "
            f"layer ({where})",
        ),
        Claim(
            "3 layers, first 6 backward SMMs: iPC 5 full and 2 partial updates, BP 3 full",
            judged(parts == {"BP": (3, 0), "iPC": (5, 2)}),
            "; ".join(
                f"{name} {full} full, {part} partial" for name, (full, part) in parts.items()
            ),
        ),
    ]


def tables(result: Result) -> Sequence[Table]:
    """Return the counts at a few depths, with the closed form's difference."""
    made = Table(
        title=f"matrix products per weight update, as counted; PC with T = {result.attrs['T']}"
    )
    for column in ("", "L", *result["column"]):
        made.add_column(str(column), justify="right")
    depths = result["depth"]
    for i, kind in enumerate(result["kind"]):
        for k in [k for k, d in enumerate(depths) if d in (2, 3, 4, 6, 8, 16, 32, 64, 128)]:
            row = [f"{n:g}" for n in result["products"][i, :, k]]
            made.add_row(str(kind), str(depths[k]), *row)
        made.add_section()
    off = np.abs(result["products"] - result["products_closed_form"]).max((0, 2))
    made.add_row("", "off by at most", *[f"{d:g}" for d in off])
    return [made]


def draw(result: Result, path: Path) -> Path:
    """Draw SMMs over depth (points counted, lines closed form), and the sketch for L = 3."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, *right = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    depths = result["depth"]
    for k, column in enumerate(result["column"]):
        if column == "one inference step":
            continue
        colour, _, marker = STYLES[str(column)]
        left.plot(depths, result["products_closed_form"][1, k], color=colour, lw=1)
        left.plot(depths, result["products"][1, k], marker, ms=3.5, color=colour, label=str(column))
    left.set(
        title=f"points: counted; lines: table (PC: T = {result.attrs['T']})",
        xlabel="L, weight matrices",
        ylabel="SMMs per weight update",
        yscale="log",
    )
    ticks = [n for n in (2, 3, 5, 10, 20, 30, 60, 100, 200) if n < 2 * result["products"][1].max()]
    left.set_yticks(ticks, [str(n) for n in ticks])
    left.set_yticks([], minor=True)
    left.grid(alpha=0.25, which="both")
    left.legend(frameon=False)
    for axes, name, written in zip(
        right, result["sketch_rule"], result["sketch_updated"], strict=True
    ):
        _draw_sketch(axes, str(name), written)
    figure.suptitle("Matrix products of one weight update")
    return plots.save(figure, path)


def _draw_sketch(axes: Axes, name: str, written: npt.NDArray[np.bool_]) -> None:
    full, partial = full_and_partial(written)
    for m, nodes in enumerate(written):
        colour = plots.COLOURS[0] if nodes.all() else plots.COLOURS[4]
        for layer, updated in enumerate(nodes):
            face = colour if updated else "none"
            axes.plot(m, layer, "s", ms=17, mfc=face, mec="#888888")
    axes.set(
        title=f"{name}: {full} full, {partial} partial updates",
        xlabel="backward SMMs so far, m\n(blue: full update, orange: partial)",
        xlim=(-0.7, len(written) - 0.3),
        ylim=(-0.6, written.shape[1] - 0.4),
    )
    axes.set_xticks(range(len(written)))
    axes.set_yticks(range(written.shape[1]), [f"$\\theta^{k}$" for k in range(written.shape[1])])
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
