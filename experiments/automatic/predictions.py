"""What theory and the paper predict, written down before the study was run.

Each prediction is data: a sentence, where it comes from, and the numbers that decide it. `judge`
in `judging` says afterwards which of them were wrong.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Near:
    """The size at which three points are lost is that of the law, within a factor (or bits)."""

    fault: str
    within: float
    source: str


@dataclass(frozen=True)
class Loses:
    """A fault of one size loses at most, or at least, so many points."""

    fault: str
    size: float
    points: float
    at_most: bool
    source: str
    depth: int = 2
    width: int = 0
    """Hidden units; 0: those of the map."""


@dataclass(frozen=True)
class Steady:
    """The tolerated bits are the same, within so many, at the lowest and the highest given rate."""

    fault: str
    within: float
    source: str


@dataclass(frozen=True)
class Moves:
    """From the shorter to the longer of two presentations the tolerated size grows by a factor."""

    fault: str
    least: float
    most: float
    source: str


@dataclass(frozen=True)
class Apart:
    """One fault needs so many more bits than another, at three points."""

    more: str
    fewer: str
    least: float
    most: float
    source: str


@dataclass(frozen=True)
class Deep:
    """A deep ideal chip loses against one hidden layer, at the chosen time or `long` times it."""

    depth: int
    long: bool
    points: float
    at_most: bool
    source: str


@dataclass(frozen=True)
class Wider:
    """The same noise costs a wide network more than a narrow one, by so many points at least."""

    narrow: int
    wide: int
    points: float
    source: str


Prediction = Near | Loses | Moves | Apart | Deep | Wider | Steady

PREDICTIONS: tuple[Prediction, ...] = (
    Loses("reset", 0.0, 1.0, True, "the paper: nothing is lost by not resetting, given time"),
    Near("noise", 2.0, "law 38: noise of reads heats weights"),
    Moves("noise", 1.5, 3.0, "law 38: at a rate per presentation, tolerated noise grows as √T"),
    Near("line", 2.0, "law 38: noise of a line grows with the root of its fan-in"),
    Near("accumulated", 1.0, "law 24: exact weights are read LSB/2 off"),
    Near("nearest", 1.0, "law 24: what is below half a step is never written"),
    Near("stochastic", 1.0, "law 40: the floor of pulses"),
    Apart("nearest", "accumulated", 4.0, 10.0, "law 24: a write is a hundredth of a weight"),
    Near("pulse", 2.0, "law 40: the floor of pulses, whatever the rate"),
    Near("imbalance", 2.0, "law 41: asymmetric steps drift"),
    Near("bound", 2.0, "law 41: soft bounds pull weights to their middle"),
    Loses("tau", 0.4, 1.0, True, "law 22: time constants move no rest"),
    Loses("gain", 0.4, 3.0, True, "law 43: where data are explained gains move nothing"),
    Near("offset", 2.0, "law 36: offsets are integrated all the time"),
    Moves("offset", 0.15, 0.7, "law 36: tolerated offsets fall as 1/T at a given rate per step"),
    Loses("error_lag", 1.0, 1.0, True, "law 44: stable at any lag, and settled within T"),
    Loses("inter_lag", 4.0, 1.0, True, "law 44: one hidden layer has no unstable lag"),
    Near("delay", 1.5, "law 15: errors that are later than (π/2)/h_max oscillate"),
    Near("retention", 2.0, "law 25: learning balances forgetting"),
    Loses("drift", 0.1, 1.0, True, "drift counts from the last write, and all are written"),
    Deep(8, False, 10.0, False, "slowest mode of a chain: settling time grows as depth²"),
    Deep(8, True, 3.0, True, "four times the time is enough for eight layers"),
    Wider(16, 128, 1.0, "law 38: an output loses in proportion to its fan-in"),
    # What follows was added later, before the points that it speaks of were run.
    Wider(16, 256, 1.0, "law 38: an output loses in proportion to its fan-in"),
    Loses("ideal", 0.0, 1.0, True, "width is harmless", width=256),
    Steady("stochastic", 1.0, "law 40: the floor of pulses does not depend on the rate"),
    Loses("error_lag", 1.0, 3.0, True, "law 12: error units never unstable", depth=4),
    Loses("delay", 0.4, 5.0, False, "law 44: deeper circuits have larger h_max", depth=6),
    Loses("ecram_li", 0.0, 5.0, True, "check: ecram_li trains"),
)
CORNERS: tuple[Prediction, ...] = (
    Loses("reset", 0.0, 1.0, True, "the map: a reset buys nothing"),
    Loses("accumulated", 6.0, 3.0, True, "law 24: what is read is LSB/2 off, however long"),
    Loses("nearest", 12.0, 3.0, False, "law 24: long training wants small writes, which are lost"),
    Loses("offset", 0.003, 3.0, False, "law 36: offsets are integrated a hundred times longer"),
    Loses("imbalance", 0.16, 3.0, False, "law 41: drift goes on, whatever the rate"),
    Loses("noise", 0.12, 3.0, True, "law 38: at a smaller rate noise heats less"),
    Loses("noise", 0.2, 5.0, True, "law 38: at a smaller rate noise heats less"),
    Loses("ideal", 0.0, 4.0, True, "more samples do what more time did", depth=3),
    Loses("ecram_li", 0.0, 5.0, True, "the map: less than that on the digits"),
)
"""Of the full sets, written down before they were run, after the map of the digits."""
