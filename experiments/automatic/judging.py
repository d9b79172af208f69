"""The surprise test: what was predicted before, and what became of it."""

from __future__ import annotations

from functools import singledispatch
from math import hypot, isnan, log2

from pcsim.store import Result

from ..common.claims import Claim, Verdict, judged
from . import predictions
from .atlas import Atlas
from .points import FAULTS, Point
from .report import error, inside, number, predicted, tolerated

LEVEL = 0.03
"""At which predictions are judged."""


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
    if not all(inside(size) for size in found):
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
    if not all(inside(one) for one in found):
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
    if len(edges) < 2 or any(not inside(f) or f >= e for f, e in zip(found, edges, strict=True)):
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
