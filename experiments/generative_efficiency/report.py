"""Claims, tables and figures of the study `generative_efficiency`, from its stored result."""

from __future__ import annotations

from collections.abc import Sequence
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

BUDGETS = (1 / 3, 2 / 3, 1.0)
"""Parts of the run at which a claim is judged: it must not depend on where one happens to stop."""


def speed_ups(result: Result, rival: int, variant: int, part: float = 1.0) -> Floats:
    """Return iterations of PC / iterations of iPC to PC's lowest energy (data, network, seed).

    Only the first `part` of the iterations is looked at.
    """
    last = max(2, round(part * len(result["iteration"])))
    energy = result["energy"][..., variant, :, :last]
    effort = 1.0 + result["iteration"][:last]
    shape = (energy.shape[0], energy.shape[1], energy.shape[3])
    factors = np.empty(shape)
    for data, network, seed in np.ndindex(shape):
        own, other = (energy[data, network, rule, seed] for rule in (0, rival))
        factors[data, network, seed] = speed_up(effort, own, effort, other)
    return factors


def judge(result: Result) -> list[Claim]:
    """Judge every T at every variant; then what the memory gives back."""
    made = []
    for v, variant in enumerate(result["variant"]):
        for r, rule in enumerate(result["rule"][1:], 1):
            text = f"the energy of iPC falls faster than that of {rule} ({variant})"
            factors = [speed_ups(result, r, v, part) for part in BUDGETS]
            made.append(Claim(text, _faster(factors), _evidence(result, factors)))
    return [*made, _judge_recall(result)]


def _faster(factors: Sequence[Floats]) -> Verdict:
    """Judge by all budgets; where they disagree, nothing is decided."""
    faster = [bool((values > 1).all()) for values in factors]
    return judged(faster[0]) if len(set(faster)) == 1 else Verdict.OPEN


def _evidence(result: Result, factors: Sequence[Floats]) -> str:
    total = len(result["iteration"])
    parts = [
        f"{round(part * total)} iterations: median {np.median(values):.3g}, {values.min():.3g} to "
        f"{values.max():.3g}, faster in {int((values > 1).sum())} of {values.size} runs"
        for part, values in zip(BUDGETS, factors, strict=True)
    ]
    return "iterations of PC / of iPC to PC's lowest energy. " + "; ".join(parts)


def _judge_recall(result: Result) -> Claim:
    memories = list(result["memory"])
    trained, fresh = (memories.index(name) for name in ("iPC", "untrained"))
    mse, right = result["recall_mse"].mean(1), result["recall_right"].mean(1)
    guess = float(result["recall_mse_mean_image"][trained].mean())
    good = mse[trained] < min(guess, mse[fresh]) and right[trained] > right[fresh]
    evidence = (
        f"lower half: mean squared error {mse[trained]:.4f} (mean picture {guess:.4f}, untrained "
        f"{mse[fresh]:.4f}); {100 * right[trained]:.0f} % nearest to the right picture "
        f"(untrained {100 * right[fresh]:.0f} %)"
    )
    return Claim("a model trained with iPC fills in the missing half", judged(bool(good)), evidence)


def tables(result: Result) -> list[Table]:
    """Return the final energies and speed-ups of every model, and the recall."""
    made = []
    last = int(result["iteration"][-1]) + 1
    for v, variant in enumerate(result["variant"]):
        table = Table(title=f"energy F per picture after {last} iterations, mean±sd; {variant}")
        for column in ("pictures", "network", *result["rule"]):
            table.add_column(str(column), justify="right")
        for (d, data), (n, network) in _pairs(result):
            cells = [
                _spread(result["energy"][d, n, r, v, :, -1]) for r in range(len(result["rule"]))
            ]
            table.add_row(data, network, *cells)
        made.append(table)
    table = Table(title="recall of the lower half")
    for column in ("memory", "mean squared error", "of the mean picture", "nearest is right, %"):
        table.add_column(column, justify="right")
    for m, name in enumerate(result["memory"]):
        mse, guess = (result[f"recall_{k}"][m].mean() for k in ("mse", "mse_mean_image"))
        right = 100 * result["recall_right"][m].mean()
        table.add_row(str(name), f"{mse:.4f}", f"{guess:.4f}", f"{right:.0f}")
    return [*made, table]


def _pairs(result: Result) -> list[tuple[tuple[int, str], tuple[int, str]]]:
    data, networks = ([(k, str(n)) for k, n in enumerate(result[a])] for a in ("data", "network"))
    return [(d, n) for d in data for n in networks]


def _spread(values: Floats) -> str:
    if not np.isfinite(values).all():
        return f"diverged in {int((~np.isfinite(values)).sum())}"
    sd = values.std(ddof=1) if len(values) > 1 else 0.0
    return f"{values.mean():.1f}±{sd:.1f}"


def draw(result: Result, path: Path) -> Path:
    """Draw energy over iterations: one row per set and network, one column per variant."""
    rows, variants = _pairs(result), [str(name) for name in result["variant"]]
    size = (4.2 * len(variants) + 1, 3.0 * len(rows) + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(rows), len(variants), sharex=True, sharey="row", squeeze=False)
    for ((d, data), (n, network)), line in zip(rows, panels, strict=True):
        for v, axes in enumerate(line):
            _draw_energies(axes, result, result["energy"][d, n, :, v])
            axes.set_title(f"{data}, {network}; {variants[v]}", fontsize=9)
        line[0].set(ylabel="F per picture")
    for axes in panels[-1]:
        axes.set(xlabel="iterations")
    panels[0, 0].legend(frameon=False, fontsize=8)
    seeds = len(result["seed"])
    figure.suptitle(f"Energy of generative models: mean and range over {seeds} seeds")
    return plots.save(figure, path)


def _draw_energies(axes: Axes, result: Result, energy: Floats) -> None:
    iterations = 1 + result["iteration"]
    for rule, values in zip(result["rule"], energy, strict=True):
        colour, dash, _ = STYLES.get(str(rule), (plots.COLOURS[5], "-", "o"))
        axes.plot(iterations, values.mean(0), dash, color=colour, lw=1.3, label=str(rule))
        low, high = values.min(0), values.max(0)
        axes.fill_between(iterations, low, high, color=colour, alpha=0.15, lw=0)
    axes.set(xscale="log", yscale="log")
    axes.grid(alpha=0.25, which="both")


def draw_recall(result: Result, path: Path) -> Path:
    """Draw originals, what is shown, and what each memory fills in."""
    side = int(result.attrs["picture_side"])
    originals = result["recall_original"][0]
    seen = originals.reshape(len(originals), -1, side, side).copy()
    seen[:, :, side // 2 :] = 0.5
    rows = {"original": originals, "shown": seen}
    rows |= {
        str(name): filled
        for name, filled in zip(result["memory"], result["recall_filled"], strict=True)
    }
    figure = Figure(figsize=(1.05 * len(originals) + 1.2, 1.1 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(originals), squeeze=False)
    for line, (name, pixels) in zip(panels, rows.items(), strict=True):
        for axes, one in zip(line, np.clip(pixels, 0, 1), strict=True):
            picture = one.reshape(-1, side, side).transpose(1, 2, 0)
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
        line[0].set_ylabel(name, rotation=0, ha="right", va="center")
    figure.suptitle("Upper half clamped, lower half filled in")
    return plots.save(figure, path)
