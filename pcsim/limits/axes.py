"""Which law speaks of which number of a chip, a circuit or a stream: one table.

An `Axis` names the field of a kind of piece (`read_noise`, `sigma`), or of the circuit or the
stream, what its other fields must be for the law to hold, and the function that gives the limit.
What is in no row has no closed form here. `pcsim specs` and `pcsim margins` quote the limits beside
what they measure; the map (`docs/automatic.md`) compares them with simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

from pcsim.limits import lags
from pcsim.limits.lags import Floats
from pcsim.limits.limit import Limit
from pcsim.limits.unit import Always

Fields = Mapping[str, Any]
"""All fields of a piece, of the circuit or of the stream."""


@dataclass(frozen=True)
class Ground:
    """What limits follow from: a layer with the data, and what weights say that were learnt."""

    layer: Always
    dt: float = 1.0
    """Time step; in the unit of the layer's times, as `tau_x`."""
    tau_x: float = 1.0
    curvature: float = nan
    """h_max of inference with learnt weights; nan where there are none."""
    inter_bound: float = nan
    """`lags.interneuron_lag_bound` of learnt weights."""
    theta0: Floats | None = None
    """Learnt weights (output, hidden) of the output."""


@dataclass(frozen=True)
class Axis:
    """A number, and its law."""

    name: str
    """As the map calls it."""
    kinds: tuple[str, ...]
    """Pieces that have it, or `circuit` or `stream`."""
    number: str
    """Its field."""
    law: int
    """In `docs/theory.md`."""
    limit: Callable[[Ground, Fields], Limit]
    given: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """What other fields must be, one of these, or the law does not hold."""

    def of(self, kind: str, number: str, fields: Fields) -> bool:
        """Return whether this is the row of a number."""
        alike = all(fields.get(name) in values for name, values in self.given.items())
        return kind in self.kinds and number == self.number and alike


def axis_of(kind: str, number: str, fields: Fields) -> Axis | None:
    """Return the row of a number; None: no closed form."""
    return next((one for one in AXES if one.of(kind, number, fields)), None)


# -- limits of one number, from the other fields beside it -----------------------------------------


def _bits(ground: Ground, fields: Fields) -> Limit:
    period = fields.get("t_write")
    return ground.layer.bits(
        float(fields["range"]),
        accumulator=bool(fields["accumulator"]),
        stochastic=fields["rounding"] == "stochastic",
        writes_of=max(1.0, float(period) / ground.dt) if period else 1.0,
    )


def _line(ground: Ground, fields: Fields) -> Limit:
    of_range = fields["reference"] == "range"
    return ground.layer.line_noise(float(fields["range"]) if of_range else None)


def _pulse(ground: Ground, fields: Fields) -> Limit:
    """Return the largest step in units of the device."""
    return ground.layer.granularity(float(fields["cycle_noise"])).over(float(fields["range"]))


def _cycle(ground: Ground, fields: Fields) -> Limit:
    return ground.layer.cycle_noise(float(fields["dw_min"]) * float(fields["range"]))


def _bound(ground: Ground, fields: Fields) -> Limit:
    return ground.layer.bounds().over(float(fields["range"]))


def _offset(ground: Ground, fields: Fields) -> Limit:
    gain = 1 + float(fields["gain_error"])
    return ground.layer.offset(float(fields["full_scale"]), gain)


def _delay(ground: Ground, _: Fields) -> Limit:
    value = lags.delay_limit(ground.curvature) * ground.tau_x
    return Limit(15, "delay of all errors", value)


def _inter_lag(ground: Ground, _: Fields) -> Limit:
    return Limit(44, "lag of interneurons", ground.inter_bound * ground.tau_x)


def _present(ground: Ground, _: Fields) -> Limit:
    if ground.theta0 is None:
        return Limit(42, "carried-over states", nan, at_most=False)
    return ground.layer.shortest(ground.theta0).over(1 / ground.tau_x)


DEVICES = ("constant_device", "linear_device")
"""Devices whose steps are known in closed form."""
PULSED = {"drive": ("pulsed",), "t_write": (None,)}
ROUNDED = {"accumulator": (False,)}
SOFT = {"gamma_up": (1.0,), "gamma_down": (1.0,), "reference": ("zero",)}
STEADY = {"t_sample": (None,)}
LONE = {"chop": (None,), "sleep": (None,), "leak": (0.0,), "per": ("device",)}
BITS = ("quantized_weights",)
CIRCUIT = ("circuit",)
AXES: tuple[Axis, ...] = (
    Axis("noise", ("read_noise",), "sigma", 38, lambda on, _: on.layer.read_noise(),
         STEADY | {"where": ("error", "product"), "relative": (False,)}),
    Axis("line", ("array_read_noise",), "sigma", 38, _line,
         STEADY | {"reference": ("weight", "range")}),
    Axis("accumulated", BITS, "bits", 24, _bits, {"accumulator": (True,)}),
    Axis("nearest", BITS, "bits", 24, _bits, ROUNDED | {"rounding": ("nearest",)}),
    Axis("stochastic", BITS, "bits", 40, _bits, ROUNDED | {"rounding": ("stochastic",)}),
    Axis("pulse", DEVICES, "dw_min", 40, _pulse, PULSED),
    Axis("cycle noise", DEVICES, "cycle_noise", 40, _cycle,
         PULSED | {"cycle_reference": ("step",)}),
    Axis("imbalance", DEVICES[:1], "imbalance", 41, lambda on, _: on.layer.imbalance()),
    Axis("bound", DEVICES[1:], "w_max", 41, _bound, SOFT),
    Axis("tau", ("mismatch",), "sigma", 22, lambda on, _: on.layer.times(), {"of": ("tau_x",)}),
    Axis("offset", ("learning_multiplier",), "offset_spread", 36, _offset, LONE),
    Axis("retention", ("retention",), "lifetime", 25, lambda on, _: on.layer.lifetime(),
         {"per": ("second",), "reference": (0.0,)}),
    Axis("write noise", ("write_noise",), "sigma", 25, lambda on, _: on.layer.write_noise(),
         {"mode": ("walk",), "t_write": (None,)}),
    Axis("error_lag", CIRCUIT, "tau_err", 12, lambda *_: Limit(12, "lag of error units", inf),
         {"kind": ("error_units",)}),
    Axis("inter_lag", CIRCUIT, "tau_inter", 44, _inter_lag, {"kind": ("dendritic",)}),
    Axis("delay", CIRCUIT, "delay_err", 15, _delay),
    Axis("present", ("stream",), "t_pres", 42, _present),
)  # fmt: skip
