"""Tables of the map: what a chip must have, predicted beside simulated, and the surprise test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from math import hypot, isfinite, isnan, log2

from rich.table import Table

from pcsim.store import Result
from pcsim.variants.limit import Estimate, change

from ..common.claims import Claim, Verdict, judged
from . import laws, predictions
from .atlas import Atlas
from .points import FAULTS, NO_AXES, PRESENTATION, Fault, Point

LEVELS = {"1 point": 0.01, "3 points": 0.03, "5 points": 0.05}
LEVEL = 0.03
"""At which predictions are judged."""


def number(value: float, bits: bool = False) -> str:
    """Return a number in two digits, bits with one decimal."""
    if bits:
        return f"{value:.1f}"
    return f"{value:.2g}" if abs(value) < 100 else f"{float(f'{value:.2g}'):.0f}"


def bound(fault: Fault, sizes: Sequence[float], found: Estimate) -> str:
    """Return the size that is tolerated, with its interval, or on which side of all tried it is."""
    if not sizes or isnan(found.value):
        return "–"
    if not _inside(found.value):
        return f"beyond {sizes[-1]:g}"
    if fault.place(found.value) <= fault.place(sizes[0]) + 1e-9:
        return f"{'below' if fault.more_is_worse else 'above'} {sizes[0]:g}"
    ends = sorted(one if _inside(one) else sizes[-1] for one in (found.low, found.high))
    value, low, high = (number(one, fault.by_bits) for one in (found.value, *ends))
    return f"{value} ({low}–{high})"


def tolerated(atlas: Atlas, points: Sequence[Point], tolerance: float) -> str:
    """Return the size of a fault at which so much accuracy is lost, in words."""
    found = atlas.boundary(points, tolerance)
    return bound(FAULTS[points[0].fault], [one.size for one in points], found) if points else "–"


def _inside(size: float) -> bool:
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
    return number(value, FAULTS[points[0].fault].by_bits) if _inside(value) else "no limit"


def error(atlas: Atlas, points: Sequence[Point], tolerance: float) -> float:
    """Return the place of the predicted size minus that of the simulated one; nan: there is none.

    Doublings, or bits: positive where the law promises too much.
    """
    law, found = atlas.predicted(points, tolerance), atlas.boundary(points, tolerance)
    fault = FAULTS[points[0].fault]
    mildest = fault.place(points[0].size)
    if isnan(law) or not _inside(law) or not _inside(found.value):
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
    if atlas.setting.corners:
        return []
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
    known = _inside(found) and _inside(law) and found < times[0]
    return found / law if known else float("nan")


def tables(result: Result) -> list[Table]:
    """Return what the terminal shows: every point, then the limits."""
    return [_points(Atlas.of(result)), *_limits(rows(result))]


def _points(atlas: Atlas) -> Table:
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
    return made


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


# -- what was predicted ----------------------------------------------------------------------------


def judge(result: Result) -> list[Claim]:
    """Return every prediction with what became of it."""
    atlas = Atlas.of(result)
    wanted = predictions.CORNERS if atlas.setting.corners else predictions.PREDICTIONS
    return [_judge(one, atlas) for one in wanted]


def _open(text: str) -> Claim:
    return Claim(text, Verdict.OPEN, "not measured, or beyond the sizes that were tried")


@singledispatch
def _judge(one: predictions.Prediction, atlas: Atlas) -> Claim:
    raise TypeError(one)


@_judge.register
def _(one: predictions.Near, atlas: Atlas) -> Claim:
    fault = FAULTS[one.fault]
    unit = f"{one.within:g} bits" if fault.by_bits else f"a factor of {one.within:g}"
    text = f"{fault.title}: three points are lost within {unit} of the law ({one.source})"
    points = atlas.along(one.fault)
    away = error(atlas, points, LEVEL) if points else float("nan")
    if isnan(away):
        return _open(text)
    allowed = one.within if fault.by_bits else log2(one.within)
    simulated = tolerated(atlas, points, LEVEL)
    seen = f"law {predicted(atlas, points, LEVEL)}, simulated {simulated}"
    return Claim(text, judged(abs(away) <= allowed), seen)


@_judge.register
def _(one: predictions.Loses, atlas: Atlas) -> Claim:
    fault, way = FAULTS[one.fault], "at most" if one.at_most else "at least"
    size = f" {one.size:g}" if one.size else ""
    where = f", {one.depth} weight layers" if one.depth > 2 else ""
    where += f", {one.width} hidden units" if one.width else ""
    text = f"{fault.title}{size}{where} loses {way} {one.points:g} points ({one.source})"
    along = atlas.along(one.fault, depth=one.depth, width=one.width)
    points = [p for p in along if p.size == one.size]
    return _of_loss(text, atlas, points, one.points, one.at_most)


def _of_loss(text: str, atlas: Atlas, points: list[Point], limit: float, at_most: bool) -> Claim:
    if not points:
        return _open(text)
    loss = atlas.loss(points[0])
    seen = f"{100 * loss.value:.1f} points ({100 * loss.low:.1f} to {100 * loss.high:.1f})"
    level = limit / 100
    if loss.low <= level <= loss.high:
        return Claim(text, Verdict.OPEN, seen)
    return Claim(text, judged((loss.value < level) == at_most), seen)


@_judge.register
def _(one: predictions.Moves, atlas: Atlas) -> Claim:
    fault = FAULTS[one.fault]
    short, long = (f(atlas.setting.cut_presents, default=0.0) for f in (min, max))
    text = (
        f"{fault.title}: from {short:g} to {long:g} τ_x the tolerated size changes by "
        f"{one.least:g} to {one.most:g} times ({one.source})"
    )
    times = (short, long)
    lines = [atlas.along(one.fault, present=time) for time in times]
    found = [atlas.boundary(p, LEVEL, time).value for p, time in zip(lines, times, strict=True)]
    if not all(_inside(size) for size in found):
        return _open(text)
    ratio = found[1] / found[0]
    edges = [found[k] <= lines[k][0].size * (1 + 1e-9) for k in (0, 1)]
    signs = ["at most " if edge else "" for edge in edges]
    ends = " and ".join(f"{sign}{number(size)}" for sign, size in zip(signs, found, strict=True))
    seen = f"{ends}: {'at least ' if edges[0] else ''}{ratio:.2f} times, against ideal at that time"
    if edges[1] or (edges[0] and ratio <= one.most):
        return Claim(text, Verdict.OPEN, seen)
    return Claim(text, judged(one.least <= ratio <= one.most), seen)


@_judge.register
def _(one: predictions.Apart, atlas: Atlas) -> Claim:
    more, fewer = FAULTS[one.more].title, FAULTS[one.fewer].title
    text = f"{more} need {one.least:g} to {one.most:g} more than {fewer} ({one.source})"
    lines = [atlas.along(name) for name in (one.more, one.fewer)]
    found = [atlas.boundary(points, LEVEL).value for points in lines]
    if not all(_inside(one) for one in found):
        return _open(text)
    gap = found[0] - found[1]
    seen = f"{number(found[0])} and {number(found[1])} bits"
    return Claim(text, judged(one.least <= gap <= one.most), seen)


@_judge.register
def _(one: predictions.Steady, atlas: Atlas) -> Claim:
    rates = [find(atlas.setting.cut_rates, default=0.0) for find in (min, max)]
    text = (
        f"{FAULTS[one.fault].title}: at rates of {rates[0]:g} and {rates[1]:g} per sample the "
        f"tolerated bits are the same within {one.within:g} ({one.source})"
    )
    lines = [atlas.along(one.fault, rate=rate) for rate in rates]
    found = [atlas.boundary(points, LEVEL).value for points in lines]
    edges = [p[0].size for p in lines if p]
    if len(edges) < 2 or any(not _inside(f) or f >= e for f, e in zip(found, edges, strict=True)):
        return _open(text)
    seen = f"{number(found[0], bits=True)} and {number(found[1], bits=True)} bits"
    return Claim(text, judged(abs(found[1] - found[0]) <= one.within), seen)


@_judge.register
def _(one: predictions.Deep, atlas: Atlas) -> Claim:
    time, way = f"{atlas.setting.long:g} times the" if one.long else "the", _way(one.at_most)
    text = (
        f"{one.depth} weight layers lose {way} {one.points:g} points against two, at {time} "
        f"chosen presentation ({one.source})"
    )
    present = atlas.present * (atlas.setting.long if one.long else 1)
    points = atlas.along("ideal", present=present, depth=one.depth)
    return _of_loss(text, atlas, points, one.points, one.at_most)


@_judge.register
def _(one: predictions.Wider, atlas: Atlas) -> Claim:
    text = (
        f"noise of {atlas.setting.width_noise:g} costs {one.wide} hidden units at least "
        f"{one.points:g} points more than {one.narrow} ({one.source})"
    )
    lines = [
        [p for p in atlas.along("noise", width=w) if p.size == atlas.setting.width_noise]
        for w in (one.narrow, one.wide)
    ]
    if not all(lines):
        return _open(text)
    narrow, wide = (atlas.loss(points[0]) for points in lines)
    seen = f"{100 * narrow.value:.1f} and {100 * wide.value:.1f} points"
    more = wide.value - narrow.value
    doubt = hypot(wide.high - wide.value, narrow.high - narrow.value)
    if abs(more - one.points / 100) <= doubt:
        return Claim(text, Verdict.OPEN, f"{seen}, difference known to {100 * doubt:.1f}")
    return Claim(text, judged(more >= one.points / 100), seen)


def _way(at_most: bool) -> str:
    return "at most" if at_most else "at least"
