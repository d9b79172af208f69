"""What is tried: a chip with one fault of one size, in a network, on a task, shown for so long.

A `Point` is data; `config` says it as a configuration. All axes of the map are lists of points: an
axis of faults varies the size of one, the axes of networks and of presentation time vary an ideal
chip, and a two-dimensional cut varies both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import log2
from typing import Any

from pydantic import Field

from pcsim.config import Config, parse
from pcsim.frozen import Frozen

Changes = dict[str, Any]
INPUTS = {"digits": 64, "xor": 2, "mnist": 784, "fashion_mnist": 784}
OUTPUTS = {"digits": 10, "xor": 2, "mnist": 10, "fashion_mnist": 10}


PIECE = "fault"
"""Name of the piece that is not ideal."""


@dataclass(frozen=True)
class Fault:
    """One way in which a chip is not ideal."""

    title: str
    unit: str
    changes: Callable[[float], Changes]
    """What a size does to a configuration."""
    alike: bool = False
    """Whether chips are all alike: nothing is drawn, in time or between chips."""
    more_is_worse: bool = True
    by_bits: bool = False
    """Whether sizes are told on a scale of their own, not by factors."""
    number: str = ""
    """The number of the chip, the circuit or the stream that the size is."""

    def place(self, size: float) -> float:
        """Return where a size lies, rising with the damage: doublings, or bits."""
        at = size if self.by_bits else log2(size)
        return at if self.more_is_worse else -at

    def size(self, place: float) -> float:
        """Return the size at a place."""
        at = place if self.more_is_worse else -place
        return at if self.by_bits else float(2**at)


def _piece(kind: str, field: str, **others: Any) -> Callable[[float], Changes]:
    def changes(size: float) -> Changes:
        value: Any = int(size) if field == "bits" else size
        return {"hardware": {"pieces": {PIECE: {"kind": kind, **others, field: value}}}}

    return changes


def _of_piece(
    title: str,
    unit: str,
    field: str,
    kind: str,
    others: Changes | None = None,
    alike: bool = False,
) -> Fault:
    changes = _piece(kind, field, **(others or {}))
    return Fault(title, unit, changes, alike, number=f"{PIECE}.{field}")


def _of_bits(title: str, others: Changes | None = None, alike: bool = False) -> Fault:
    changes = _piece("quantized_weights", "bits", **(others or {}))
    return Fault(title, "bits", changes, alike, False, True, f"{PIECE}.bits")


def _of_circuit(title: str, unit: str, field: str, **others: Any) -> Fault:
    def changes(size: float) -> Changes:
        return {"circuit": {**others, field: size}}

    return Fault(title, unit, changes, True, number=f"circuit.{field}")


def _soft(bound: float) -> Changes:
    return _piece("linear_device", "w_max", dw_min=0.0, w_min=-bound)(bound)


FAULTS: dict[str, Fault] = {
    "ideal": Fault("ideal", "", lambda size: {}, alike=True),
    "reset": Fault("feed-forward reset", "", lambda size: {"schedule": {"init": "ff"}}, alike=True),
    "noise": _of_piece("noise of each error", "s", "sigma", "read_noise", {"where": "error"}),
    "line": _of_piece("read noise of weights", "σ/w", "sigma", "array_read_noise"),
    "accumulated": _of_bits("bits, accumulator", alike=True),
    "nearest": _of_bits("bits, rounded writes", {"accumulator": False}, alike=True),
    "stochastic": _of_bits(
        "bits, stochastic writes", {"accumulator": False, "rounding": "stochastic"}
    ),
    "pulse": _of_piece("weight per pulse", "dw", "dw_min", "constant_device"),
    "imbalance": _of_piece(
        "weaker down steps", "imbalance", "imbalance", "constant_device", {"dw_min": 0.0}, True
    ),
    "bound": Fault(
        "soft bounds",
        "largest weight",
        _soft,
        alike=True,
        more_is_worse=False,
        number="fault.w_max",
    ),
    "tau": _of_piece("mismatch of τ_x", "σ", "sigma", "mismatch", {"of": "tau_x"}),
    "gain": _of_piece("mismatch of error gains", "σ", "sigma", "mismatch", {"of": "error_gain"}),
    "offset": _of_piece(
        "offset of the multiplier", "σ of e·r", "offset_spread", "learning_multiplier"
    ),
    "error_lag": _of_circuit("lag of error units", "τ_err/τ_x", "tau_err", kind="error_units"),
    "inter_lag": _of_circuit("lag of interneurons", "τ_inter/τ_x", "tau_inter", kind="dendritic"),
    "delay": _of_circuit("delay of errors", "d/τ_x", "delay_err"),
    "retention": Fault(
        "lifetime of weights",
        "lifetime/τ_x",
        _piece("retention", "lifetime"),
        alike=True,
        more_is_worse=False,
        number="fault.lifetime",
    ),
    "drift": _of_piece(
        "drift since the last write", "exponent ν", "nu", "conductance_drift", {}, True
    ),
    "ecram_li": Fault("devices of ecram_li", "", lambda size: {"hardware": {"preset": "ecram_li"}}),
}
NO_AXES = ("ideal", "reset", "ecram_li")
"""Faults that have no size."""

PRESENTATION = Fault(
    "presentation time",
    "T/τ_x",
    lambda time: {"stream": {"t_pres": time}},
    True,
    False,
    number="stream.t_pres",
)
"""How long a sample is shown, as if it were a fault: too short is bad."""


class Setting(Frozen):
    """How long, on how many, and which sizes of what; times in τ_x."""

    task: str = "digits"
    """The data of all points that name no other."""
    train: int
    tuning_train: int = 0
    """Samples that are learnt while a rate is chosen; 0: all."""
    held_out: int
    """Samples on which rates and the presentation time are chosen."""
    task_test: int = 500
    """Test samples of tasks; of the digits, or at 0, all."""
    seeds: int
    chips: int
    alike_seeds: int
    """Seeds where all chips of a seed are alike: one chip each."""
    tuning_seeds: int = 2
    """Seeds on which a rate is chosen, two chips each."""
    gamma: float = 0.4
    width: int = 32
    worst: float = 0.01
    """The shortest presentation is taken that is worse than the best by this accuracy at most."""
    presents: tuple[float, ...]
    sizes: dict[str, tuple[float, ...]]
    """Sizes of each fault."""
    cut_presents: tuple[float, ...] = ()
    """Other presentation times at which noise and offset are tried."""
    cut_sizes: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Their sizes there."""
    cut_rates: tuple[float, ...] = ()
    """Learning rates per sample at which steps of weights are tried."""
    rate_sizes: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Faults that are tried at these rates, and their sizes."""
    depths: tuple[int, ...] = ()
    """Numbers of weight matrices of an ideal chip, at the chosen time and `long` times it."""
    lag_depths: tuple[int, ...] = ()
    """Those at which lags are tried."""
    lag_sizes: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Faults that are tried at these depths, and their sizes."""
    long: float = 4.0
    longest: float = 16.0
    longest_depths: tuple[int, ...] = ()
    """Depths that are tried at `longest` times the chosen time, too."""
    fine_step: float = 0.1
    fine: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    """Sizes of faults that are tried with a fine time step, too."""
    widths: tuple[int, ...] = ()
    noisy_widths: tuple[int, ...] = ()
    width_noise: float = 0.2
    """Noise of each error at which `noisy_widths` are tried."""
    tasks: tuple[str, ...] = ()
    task_faults: dict[str, float] = Field(default_factory=dict)
    """Size of each fault at which tasks are tried, besides none."""
    devices: tuple[str, ...] = ()
    """Faults without a size."""
    corners: bool = False
    """Whether these are a few points with a figure of their own, and no map."""

    @property
    def training(self) -> str:
        """All that a cell's numbers depend on, besides its point."""
        return repr((self.train, self.held_out, self.task_test, self.seeds, self.chips)) + repr(
            (self.alike_seeds, self.tuning_seeds, self.tuning_train, self.gamma)
        )


@dataclass(frozen=True)
class Point:
    """A chip with one fault (or none) in a network, on a task."""

    fault: str
    size: float
    present: float
    """Presentation time, τ_x."""
    rate: float = 0.0
    """Learning rate per sample; 0: chosen on held-out samples."""
    depth: int = 2
    """Weight matrices."""
    width: int = 32
    task: str = "digits"
    step: float = 0.0
    """Time step, τ_x; 0: the setting's."""

    @property
    def name(self) -> str:
        """A name of its own."""
        fixed = f" rate {self.rate:g}" if self.rate else ""
        return (
            f"{self.fault} {self.size:g} T {self.present:g}{fixed} "
            f"{self.depth}x{self.width} {self.task}" + (f" step {self.step:g}" if self.step else "")
        )

    @property
    def sizes(self) -> list[int]:
        """Units from input to output."""
        return [INPUTS[self.task], *[self.width] * (self.depth - 1), OUTPUTS[self.task]]


def config(setting: Setting, point: Point, data: str, seeds: int, chips: int) -> Config:
    """Return a run of a point: one sample at a time, once, nothing reset, all always on.

    `data` is the name or the file of the task's data.
    """
    gamma = point.step or setting.gamma
    steps = setting.train * round(point.present / gamma)
    base: Changes = {
        "network": {"sizes": point.sizes},
        "schedule": {"gamma": gamma, "init": "carry"},
        "stream": {"t_pres": point.present},
        "learning": {"batch": 1, "epochs": 1},
        "data": {
            "name": data,
            "limit": setting.train + setting.held_out,
            "validation": setting.held_out,
            "limit_test": 0 if point.task in ("digits", "xor") else setting.task_test,
        },
        "run": {"backend": "continuous", "engine": "native", "seeds": list(range(seeds))},
        "record": {"predictions": False, "every": max(1, steps // 4)},
        "hardware": {"chips": chips},
    }
    return parse(_merged(base, FAULTS[point.fault].changes(point.size)))


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Changes:
    found = dict(base)
    for name, value in changes.items():
        inside = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = _merged(found[name], value) if inside else value
    return found


# -- which points ----------------------------------------------------------------------------------


def presentations(setting: Setting) -> list[Point]:
    """Return the points that decide how long samples are shown: an ideal chip."""
    return [_point(setting, "ideal", 0.0, time) for time in setting.presents]


def _point(setting: Setting, fault: str, size: float, present: float, **others: Any) -> Point:
    """Return a point of the setting's own network and task, but for what is named."""
    return Point(fault, size, present, **{"width": setting.width, "task": setting.task, **others})


def points(setting: Setting, present: float) -> list[Point]:
    """Return all other points, those first that matter most."""

    def at(fault: str, size: float, time: float = present, **others: Any) -> Point:
        return _point(setting, fault, size, time, **others)

    found = [at("reset", 0.0)]
    for fault, sizes in setting.sizes.items():
        found += [at(fault, size) for size in sizes]
    for rate, (fault, sizes) in product(setting.cut_rates, setting.rate_sizes.items()):
        found += [at(fault, size, rate=rate) for size in sizes]
    for depth in setting.depths:
        found += [at("ideal", 0.0, t, depth=depth) for t in (present, setting.long * present)]
    if setting.fine:
        found.append(at("ideal", 0.0, step=setting.fine_step))
    for fault, sizes in setting.fine.items():
        found += [at(fault, size, step=setting.fine_step) for size in sizes]
    for depth, (fault, sizes) in product(setting.lag_depths, setting.lag_sizes.items()):
        found += [at(fault, size, depth=depth) for size in sizes]
    for time, (fault, sizes) in product(setting.cut_presents, setting.cut_sizes.items()):
        found += [at(fault, size, time) for size in sizes]
    found += [at("ideal", 0.0, width=units) for units in setting.widths]
    found += [at("noise", setting.width_noise, width=units) for units in setting.noisy_widths]
    for task in setting.tasks:
        found.append(at("ideal", 0.0, task=task))
        found += [at(fault, size, task=task) for fault, size in setting.task_faults.items()]
        found.append(at("ideal", 0.0, setting.long * present, task=task))
    found += [at("ideal", 0.0, setting.longest * present, depth=d) for d in setting.longest_depths]
    found += [at(fault, 0.0) for fault in setting.devices]
    known = set(presentations(setting))
    return [point for point in dict.fromkeys(found) if point not in known]


def reference(setting: Setting, point: Point, present: float) -> Point:
    """Return the ideal chip beside which a point loses: same network, same task."""
    if point.fault == "ideal":
        return Point("ideal", 0.0, present, width=setting.width, task=point.task)
    return replace(point, fault="ideal", size=0.0, present=present, rate=0.0)
