"""Tables of the map: what a chip must have, predicted beside simulated, and the surprise test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, isnan

from rich.table import Table

from pcsim.store import Result
from pcsim.variants.limit import Estimate, change

from . import laws
from .atlas import Atlas
from .points import FAULTS, NO_AXES, PRESENTATION, Fault, Point

LEVELS = {"1 point": 0.01, "3 points": 0.03, "5 points": 0.05}


def number(value: float, bits: bool = False) -> str:
    """Return a number in two digits, bits with one decimal."""
    if bits:
        return f"{value:.1f}"
    return f"{value:.2g}" if abs(value) < 100 else f"{float(f'{value:.2g}'):.0f}"


def bound(fault: Fault, sizes: Sequence[float], found: Estimate) -> str:
    """Return the size that is tolerated, with its interval, or on which side of all tried it is."""
    if not sizes or isnan(found.value):
        return "–"
    if not inside(found.value):
        return f"beyond {sizes[-1]:g}"
    if fault.place(found.value) <= fault.place(sizes[0]) + 1e-9:
        return f"{'below' if fault.more_is_worse else 'above'} {sizes[0]:g}"
    ends = sorted(one if inside(one) else sizes[-1] for one in (found.low, found.high))
    value, low, high = (number(one, fault.by_bits) for one in (found.value, *ends))
    return f"{value} ({low}–{high})"


def tolerated(atlas: Atlas, points: Sequence[Point], tolerance: float) -> str:
    """Return the size of a fault at which so much accuracy is lost, in words."""
    found = atlas.boundary(points, tolerance)
    return bound(FAULTS[points[0].fault], [one.size for one in points], found) if points else "–"


def inside(size: float) -> bool:
    """Return whether a size is one at all: neither beyond all that were tried nor unknown."""
    return isfinite(size) and size > 0


def axes(atlas: Atlas) -> dict[str, list[Point]]:
    """Return the points along each fault at the chosen presentation time, by a title."""
    found = {f.title: atlas.along(name) for name, f in FAULTS.items() if name not in NO_AXES}
    step = atlas.setting.fine_step
    for name in atlas.setting.fine:
        found[f"{FAULTS[name].title}, dt {step:g} τ_x"] = atlas.along(name, step=step)
    return {name: points for name, points in found.items() if points}


def predicted(atlas: Atlas, points: Sequence[Point], tolerance: float) -> str:
    """Return the predicted size in words."""
    value = atlas.predicted(points, tolerance)
    if isnan(value):
        return "–"
    return number(value, FAULTS[points[0].fault].by_bits) if inside(value) else "no limit"


def error(atlas: Atlas, points: Sequence[Point], tolerance: float) -> float:
    """Return the place of the predicted size minus that of the simulated one; nan: there is none.

    Doublings, or bits: positive where the law promises too much.
    """
    law, found = atlas.predicted(points, tolerance), atlas.boundary(points, tolerance)
    fault = FAULTS[points[0].fault]
    mildest = fault.place(points[0].size)
    if isnan(law) or not inside(law) or not inside(found.value):
        return float("nan")
    if fault.place(found.value) <= mildest + 1e-9:
        return float("nan")
    return fault.place(law) - fault.place(found.value)


def _error_words(atlas: Atlas, points: Sequence[Point], tolerance: float) -> str:
    value = error(atlas, points, tolerance)
    if isnan(value):
        return "–"
    return f"{value:+.1f} bits" if FAULTS[points[0].fault].by_bits else f"×{number(2**value)}"


def rows(result: Result) -> list[dict[str, str]]:
    """Return the lines of the stored table."""
    atlas = Atlas.of(result)
    found = [_presentations(atlas)]
    for title, points in axes(atlas).items():
        name = points[0].fault
        fault, fit = FAULTS[name], atlas.fit(points)
        line = {"fault": title, "size": fault.unit}
        for words, level in LEVELS.items():
            line[words] = tolerated(atlas, points, level)
        line["law"] = _law(name)
        for words, level in LEVELS.items():
            line[f"law: {words}"] = predicted(atlas, points, level)
        for words, level in LEVELS.items():
            line[f"law/simulated: {words}"] = _error_words(atlas, points, level)
        line["fitted: 3 points"] = number(fit.size, fault.by_bits) if fit else "–"
        line["exponent"] = number(fit.exponent) if fit else "–"
        line["misses by"] = f"{100 * fit.error:.1f}" if fit else "–"
        found.append(line)
    return found


def _law(name: str) -> str:
    """Return the number of the law of a fault."""
    found = laws.axis(name)
    return str(found[0].law) if found else "–"


def _presentations(atlas: Atlas) -> dict[str, str]:
    """Return the line of the presentation time of an ideal chip."""
    times, losses = atlas.carrying()
    line = {"fault": PRESENTATION.title, "size": PRESENTATION.unit}
    away = {}
    for words, level in LEVELS.items():
        line[words] = bound(PRESENTATION, times, _shortest(times, losses, level))
        line[f"law: {words}"] = number(_carry_law(atlas, level))
        value = _carrying(atlas, times, losses, level)
        away[f"law/simulated: {words}"] = f"×{number(value)}" if isfinite(value) else "–"
    rest = {"law": _law("present"), **away}
    return line | rest | dict.fromkeys(("fitted: 3 points", "exponent", "misses by"), "–")


def errors(result: Result) -> list[dict[str, str]]:
    """Return how far each law is from the simulation: what `pcsim.limits.errors` reads."""
    atlas = Atlas.of(result)
    found = []
    for name in (name for name in FAULTS if laws.axis(name)):
        points, by_bits = atlas.along(name), FAULTS[name].by_bits
        away = [error(atlas, points, one) for one in LEVELS.values()] if points else []
        sizes = {
            level: value if by_bits else 2**value
            for level, value in zip(LEVELS.values(), away, strict=False)
        }
        found.append(_error(name, by_bits, sizes))
    times, losses = atlas.carrying()
    carried = {level: _carrying(atlas, times, losses, level) for level in LEVELS.values()}
    return [*found, _error("present", False, carried)]


def _error(name: str, by_bits: bool, sizes: Mapping[float, float]) -> dict[str, str]:
    known = laws.axis(name)
    assert known is not None
    line = {"axis": name, "law": str(known[0].law), "unit": "bits" if by_bits else "factor"}
    return line | {
        f"{level:g}": f"{sizes[level]:.2f}" if level in sizes and isfinite(sizes[level]) else ""
        for level in LEVELS.values()
    }


def _shortest(times: Sequence[float], losses: Sequence[Estimate], level: float) -> Estimate:
    """Return the presentation time at which so much is lost."""
    at = change([PRESENTATION.place(time) for time in times], losses, level)
    ends = (PRESENTATION.size(one) if isfinite(one) else 0.0 for one in (at.value, at.low, at.high))
    return Estimate(*ends)


def _carry_law(atlas: Atlas, level: float) -> float:
    column = list(atlas.result["tolerance"]).index(level)
    return float(atlas.result["carry_limit"][column])


def _carrying(
    atlas: Atlas, times: Sequence[float], losses: Sequence[Estimate], level: float
) -> float:
    """Return the simulated over the predicted time, as shorter promises more; nan: unknown."""
    found, law = _shortest(times, losses, level).value, _carry_law(atlas, level)
    known = inside(found) and inside(law) and found < times[0]
    return found / law if known else float("nan")


def tables(result: Result) -> list[Table]:
    """Return what the terminal shows: every point, then the limits."""
    return [*points(result), *_limits(rows(result))]


def points(result: Result) -> list[Table]:
    """Return a table of every point."""
    atlas = Atlas.of(result)
    made = Table(title=f"every point; chosen presentation {atlas.present:g} τ_x")
    for column in ("point", "rate", "accuracy, %", "lost, points", "90 % of chips within"):
        made.add_column(column, justify="left" if column == "point" else "right")
    for point, k in atlas.rows.items():
        loss = atlas.loss(point)
        made.add_row(
            point.name,
            f"{float(atlas.result['rate'][k]):.3g}{'!' if atlas.result['at_end'][k] else ''}",
            f"{100 * atlas.accuracy(point).mean():.1f}",
            f"{100 * loss.value:.1f} ({100 * loss.low:.1f} to {100 * loss.high:.1f})",
            f"{100 * atlas.worst(point):.1f}",
        )
    return [made]


def _limits(lines: Sequence[dict[str, str]]) -> list[Table]:
    parts = {
        "your chip must have": ("fault", "size", *LEVELS),
        "predicted": (
            "fault",
            "law",
            *(f"law: {words}" for words in LEVELS),
            *(f"law/simulated: {words}" for words in LEVELS),
        ),
        "fitted": ("fault", "fitted: 3 points", "exponent", "misses by"),
    }
    found = []
    for title, columns in parts.items():
        made = Table(title=title)
        for column in columns:
            made.add_column(column)
        for line in lines:
            made.add_row(*(line[column] for column in columns))
        found.append(made)
    return found
