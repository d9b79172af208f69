"""Are margins where a sweep finds them? Margins of presets beside brute force on other chips.

`pcsim experiment margins` asks `pcsim.margins` for two numbers of one or two presets, then trains
other chips from other seeds at every value of a fine ladder, and finds where the share of good
chips, counted as a check counts them, falls below the yield. It prints the two side by side, writes
`margins.h5` and `margins.png`. Finished runs are kept: interrupted, the same command goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf, isfinite, log2
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from rich.table import Table

import pcsim
from pcsim import config as configuration
from pcsim import plots
from pcsim.check import CHIP, DIGITS, IDEAL, Check, tuning
from pcsim.check.rows import Rows, settings_of
from pcsim.config import Config
from pcsim.provenance import provenance
from pcsim.status import Report
from pcsim.store import Result, Variable
from pcsim.store.parts import Parts
from pcsim.terminal import progress, terminal
from pcsim.variants import Margins
from pcsim.variants.limit import crossing, losses

from ..common.keeping import claim, keep

Array = npt.NDArray[np.floating]
GROW, SHRINK = 1, -1


@dataclass(frozen=True)
class Scale:
    """What is tried."""

    samples: int
    hidden: int
    chips: int
    """Of the check, and of margins (at most eight)."""
    brute: int
    """Other chips, of brute force."""
    seeds: int
    """Of the check and margins, and as many others of brute force."""
    cases: tuple[tuple[str, str, int], ...]
    """Preset, number, and direction."""
    places: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
    """Doublings (or halvings) of brute force."""


CASES = (
    ("ecram_li", "device.dw_min", GROW),
    ("ecram_li", "device.cycle_noise", GROW),
    ("gokmen_vlasov", "device.dw_min", GROW),
    ("gokmen_vlasov", "device.cycle_noise", GROW),
    ("cmos_capacitor", "device.range", SHRINK),
)
PAGE = "margins_study.md"
SCALES = {
    "small": Scale(400, 16, 16, 24, 3, CASES),
    "paper": Scale(1000, 32, 32, 128, 6, CASES),
}


def setting(scale: Scale, preset: str) -> Config:
    """Return the chips of a check: the physical case."""
    return configuration.parse(
        DIGITS
        | {
            "network": {"sizes": [64, scale.hidden, 10]},
            "data": {"name": "digits", "limit": scale.samples},
            "run": {"backend": "continuous", "seeds": list(range(scale.seeds))},
            "hardware": {"preset": preset, "chips": scale.chips},
        }
    )


def others(check: Check, row: str, scale: Scale) -> Config:
    """Return a row of a check on other chips, from other seeds, at the rate that was found."""
    assert check.rates is not None
    made = settings_of(check.config, [row])[row]
    seeds = [100 + seed for seed in range(scale.seeds)]
    fields: dict[str, dict[str, object]] = {"run": {"seeds": seeds}}
    if not made.hardware.ideal:
        fields["hardware"] = {"seed": 1, "chips": scale.brute}
    return tuning.with_rate(configuration.changed(made, fields), check.rates[row].value)


def shares(check: Check, scale: Scale, values: Sequence[float], path: str, rows: Rows) -> Array:
    """Return the share of good chips (value,) of the other population."""
    ideal = np.asarray(rows.run("other seeds, ideal", others(check, IDEAL, scale))["accuracy"])
    reference = ideal.reshape(scale.seeds, -1).mean(1)
    fields = {"grid": {"hardware": {path: list(values)}}}
    varied = configuration.changed(others(check, CHIP, scale), fields)
    accuracy = rows.run(f"brute force, {path}", varied)["accuracy"]
    lost = np.stack([losses(one, reference).mean(0) for one in accuracy])
    return np.asarray((lost <= check.criterion.tolerance + 1e-9).mean(1))


def edge(places: Sequence[float], share: Array, yield_: float, trains: bool = True) -> float:
    """Return the doublings at which the share of good chips falls below the yield; inf: nowhere.

    Where the chip does not train as it is, at which it reaches the yield.
    """
    if trains:
        return crossing(places, [-one for one in share], -yield_)
    best = int(np.argmax(share)) + 1
    return crossing(places[:best], list(share[:best]), yield_ - 2e-9)


def main(out: Path, scale: str) -> None:
    """Measure what is missing, print, store, draw."""
    size = SCALES[scale]
    target, figure = out / "margins.h5", out / "margins.png"
    claim(target, "margins", figure)
    rows = Rows(out / "margins_runs", _watch)
    found: dict[str, Margins] = {}
    for preset in dict.fromkeys(preset for preset, *_ in size.cases):
        found[preset] = pcsim.margins(
            setting(size, preset),
            only=[path for name, path, _ in size.cases if name == preset],
            chips=min(8, size.chips),
            bottleneck=False,
            twins=False,
            watch=_watch,
            rows=rows.folder,
        )
    measured, counted, edges, trains = [], [], [], []
    for preset, path, way in size.cases:
        one = found[preset]
        trains.append(one.trains)
        value = next(n.value for n in one.numbers if n.path == path)
        values = [value * 2.0 ** (way * place) for place in size.places]
        counted.append(shares(one.check, size, values, path, rows))
        edges.append(edge(size.places, counted[-1], one.check.criterion.yield_, one.trains))
        margin = one.of(path, way == GROW)
        ends = (margin.value, margin.low, margin.high) if margin else (inf, 1.0, inf)
        measured.append([log2(end) if isfinite(end) else inf for end in ends])
    names = [f"{preset}: {path}" for preset, path, _ in size.cases]
    result = Result(
        {
            "margin": Variable(("case", "end"), np.array(measured)),
            "brute_force": Variable(("case",), np.array(edges)),
            "share": Variable(("case", "place"), np.array(counted)),
            "way": Variable(("case",), np.array([way for *_, way in size.cases])),
            "trains": Variable(("case",), np.array(trains)),
        },
        {
            "case": np.array(names),
            "end": np.array(["value", "low", "high"]),
            "place": np.array(size.places),
        },
        {**provenance(), "checks": " | ".join(f.check.sentence() for f in found.values())},
    )
    keep(result, target, "margins")
    Parts(out / "margins_runs").forget()
    terminal().print(table(result))
    plots.save(drawn(result), figure)
    terminal().print(f"stored in {target}, figure in {figure}")


@contextmanager
def _watch(row: str) -> Iterator[Report | None]:
    with progress(row) as report:
        yield report


def inside(result: Result) -> Array:
    """Return for each case whether brute force lies in the margin's interval."""
    margin, truth = result["margin"], result["brute_force"]
    last = float(result["place"][-1])
    low, high = np.minimum(margin[:, 1], last), margin[:, 2]
    return np.asarray((low <= truth) & ((truth <= high) | (high >= last)))


def table(result: Result) -> Table:
    """Return margins beside brute force, as factors."""
    made = Table(title="factor at which the verdict changes")
    for column in ("number", "asked", "margin", "interval", "brute force", "inside"):
        made.add_column(column, justify="left" if column in ("number", "asked") else "right")
    rows = zip(
        result["case"],
        result["way"],
        result["trains"],
        result["margin"],
        result["brute_force"],
        inside(result),
        strict=True,
    )
    for name, way, trains, (value, low, high), truth, hit in rows:
        asked = f"{'may' if trains else 'must'} {'grow' if way == GROW else 'shrink'}"
        words = [factor(end, int(way)) for end in (value, low, high, truth)]
        made.add_row(
            str(name),
            asked,
            words[0],
            f"{words[1]} to {words[2]}",
            words[3],
            "yes" if hit else "no",
        )
    return made


def factor(place: float, way: int) -> str:
    """Return doublings as a factor."""
    sign = "×" if way == GROW else "÷"
    return f"{sign}{2**place:.3g}" if isfinite(place) else "beyond"


def drawn(result: Result) -> Figure:
    """Draw the share of good chips over each number, with the margin and its interval."""
    names = result["case"]
    figure = plots.Drawn(figsize=(3.2 * len(names), 3.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(names), sharey=True))
    last = float(result["place"][-1])
    for axes, name, way, (value, low, high), share in zip(
        panels, names, result["way"], result["margin"], result["share"], strict=True
    ):
        axes.plot(result["place"], 100 * share, "o-", color=plots.COLOURS[0], label="brute force")
        axes.axhline(90, color=plots.COLOURS[2], linestyle="--", label="yield")
        axes.axvspan(min(low, last), min(high, last), color=plots.COLOURS[1], alpha=0.25)
        if isfinite(value):
            axes.axvline(value, color=plots.COLOURS[1], label="margin, interval")
        verb = "doublings" if way == GROW else "halvings"
        axes.set(title=plots.plain(str(name).replace(": ", "\n")), xlabel=verb, ylim=(-5, 105))
        axes.grid(alpha=0.25)
    panels[0].set(ylabel="good chips, %")
    panels[0].legend(frameon=False, fontsize="small")
    return figure
