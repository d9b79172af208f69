"""What every training device shares: step sizes, bounds, spreads, cycle noise, and two drives.

    pulsed       n = floor(|s|/dw + U) whole pulses, E[n·dw] = |s|; each is a step of the law
    continuous   the pulse rate is the drive, dw/dt = rate·step(w): the flow of the law, no clock
    response     Δw = what n pulses (or the flow) lead to + cycle noise, clipped at the own bounds

Conductances are in device units; `range` says which weight of the network is one device unit.
Several pulses in one step follow the law from pulse to pulse (`several`), so that a long step does
what many short ones do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hw_models import several
from hw_models.clock import Clocked, also_down, at_samples, gathered
from hw_models.numbers import (
    Granularity,
    InDevice,
    NotNegative,
    NotPositive,
    Positive,
    Share,
    Spread,
    Weight,
)
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory
from pcsim.substrate.effect import DOWN
from pcsim.substrate.expression import Expression

SpreadLaw = Literal["normal", "lognormal"]
SMALLEST_SHARE = 0.1
"""With a wide normal spread, a bound keeps at least this share of its nominal value."""


@dataclass(frozen=True)
class Law:
    """Step at conductance u, relative to dw_min; `top` and `bottom` are the device's own bounds."""

    up: str
    down: str
    constants: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Values per device, from constants, `top`, `bottom`, and draws."""
    draws: tuple[str, ...] = ()
    affine: tuple[tuple[str, str], tuple[str, str]] | None = None
    """(at u = 0, loss per u) of up and down, where steps are at_zero − loss·u."""
    curve: several.Curve | None = None
    """How the step changes along the way, where it is not affine."""


def affine_law(
    up: tuple[str, str],
    down: tuple[str, str],
    constants: Mapping[str, float],
    parameters: Mapping[str, str],
    draws: tuple[str, ...] = (),
) -> Law:
    """Return the law with steps a − b·u, from (a, b) of either side."""
    rise, fall = (a if b == "0" else f"{a} - {b}*u" for a, b in (up, down))
    return Law(rise, fall, constants, parameters, draws, (up, down))


@dataclass(frozen=True)
class Response:
    """The change of a weight as text, with what the text needs."""

    text: str
    constants: Mapping[str, float]
    draws: Mapping[str, Draw]
    parameters: Mapping[str, str]


class Device(Clocked):
    """A device that learns; each law is a piece of its own."""

    dw_min: Annotated[Granularity, InDevice]
    """Change by one pulse, device units; 0 means no granularity."""
    dw_spread: Spread = 0.0
    """Device-to-device standard deviation of dw_min, relative (of its logarithm if lognormal)."""
    dw_law: SpreadLaw = "normal"
    """Lognormal has its median at dw_min."""
    imbalance: Annotated[float, Field(gt=-1, lt=1, allow_inf_nan=False), Unit("fraction")] = 0.0
    """Makes one side weaker, relative to dw_min: down steps if positive, up steps if negative."""
    imbalance_spread: Spread = 0.0
    """Device-to-device standard deviation of the imbalance; moves both sides apart."""
    w_max: Annotated[Positive, InDevice] = 1.0
    """Upper bound, device units."""
    w_max_spread: Spread = 0.0
    """Device-to-device standard deviation of w_max, relative."""
    w_min: Annotated[NotPositive, InDevice] = -1.0
    """Lower bound, device units."""
    w_min_spread: Spread = 0.0
    """Device-to-device standard deviation of w_min, relative."""
    bounds_law: SpreadLaw = "normal"
    """Law of both bounds from device to device; lognormal has its median at the nominal bound."""
    cycle_noise: Share = 0.0
    """Cycle-to-cycle standard deviation of one pulse, relative to `cycle_reference`."""
    cycle_reference: Literal["step", "dw_min"] = "step"
    """Relative to the step at the present weight (multiplicative) or to dw_min (additive)."""
    cycle_add: Annotated[NotNegative, InDevice] = 0.0
    """Added to the step in the noise of phase-change memory, device units:
    σ = cycle_noise·(|step| + cycle_add + cycle_slope·|u|)."""
    cycle_slope: Share = 0.0
    """See `cycle_add`; relative to the conductance."""
    write_noise: Annotated[NotNegative, Unit("multiples of dw_min")] = 0.0
    """Standard deviation, in dw_min, between stored and seen weight; redrawn at each touch."""
    drive: Literal["pulsed", "continuous"] = "pulsed"
    """Whole pulses by stochastic rounding, or the same law as a rate."""
    samples: Literal["each", "sum"] = "each"
    """Where samples are shown side by side: each writes pulses of its own, first all that go up and
    then all that go down, or only their sum is written (as if it were formed beside the array)."""
    range: Weight = 1.0
    """Weight of the network at one device unit."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if (self.cycle_add or self.cycle_slope) and not self.dw_min:
            raise ValueError(
                "cycle_add and cycle_slope are noise per pulse: dw_min must be above 0"
            )
        if (self.cycle_add or self.cycle_slope) and self.cycle_reference == "dw_min":
            raise ValueError('cycle_add and cycle_slope go with cycle_reference = "step"')
        return self

    @abstractmethod
    def law(self) -> Law:
        """Return the relative steps at conductance u."""

    def zero(self) -> str:
        """Return the conductance that is read as weight zero, from gains, bounds and slopes."""
        return ""

    @property
    def quantum(self) -> float:
        """Weight of the network that one pulse changes."""
        return self.dw_min * self.range

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return pulses (if pulsed), the response, and the apparent weight (if it differs)."""
        made = self.response("s", "w")
        return (
            *gathered(name, self.t_write),
            *self.pulses(name),
            Effect(
                name=name,
                site="write",
                becomes=made.text,
                constants=made.constants,
                draws=made.draws,
                parameters=made.parameters,
                noise={"xi": "normal"},
                about=f"response of a {self.kind.replace('_', ' ')}, clipped at its own bounds",
            ),
            *touched(f"{name}_seen", self.write_noise * self.quantum, self.t_write),
        )

    @property
    def each_sample(self) -> bool:
        """Whether samples side by side write one by one."""
        return self.samples == "each"

    def by_samples(self, name: str) -> tuple[Effect, ...]:
        """Return what goes up, then what goes down from there; each is rounded to pulses."""
        if not self.each_sample:
            return self.effects(name)
        *before, up = (e for e in self.effects(name) if not e.name.endswith("_seen"))
        seen = (e for e in self.effects(name) if e.name.endswith("_seen"))
        risen = [each for each in before if each.name.endswith("_pulses")]
        first = risen[0] if risen else up
        asked = Expression(first.becomes).renamed({"s": f"(s + {DOWN})"})
        first = also_down(first.model_copy(update={"becomes": asked}), self.t_write)
        made = self.response("asked_here", "w_here")
        text = Expression(made.text).renamed({"asked_here": self.falling, "w_here": "(w + s)"})
        noise: dict[str, Literal["normal", "uniform"]] = {"xi": "normal"}
        noise |= {"u": "uniform"} if self.pulsed else {}
        down = Effect(
            name=f"{name}_down",
            site="write",
            becomes=f"s + {text}",
            constants=made.constants,
            draws=made.draws,
            parameters=made.parameters,
            noise=noise,
            drawn_as=name,
            about="the same for what samples ask for downwards",
        )
        gather = [each for each in before if not each.name.endswith("_pulses")]
        rise = [first, *([up] if risen else [])]
        return (*gather, *rise, also_down(down, self.t_write), *seen)

    @property
    def falling(self) -> str:
        """What samples ask for downwards, in whole pulses of a `u` where these are sent."""
        return f"(-(dw*floor({DOWN}/dw + u)))" if self.pulsed else f"(-{DOWN})"

    @property
    def pulsed(self) -> bool:
        """Whether requests are carried out in whole pulses."""
        return self.drive == "pulsed" and self.dw_min > 0

    def pulses(self, name: str) -> tuple[Effect, ...]:
        """Return the rounding of a request to whole pulses, exact in the mean."""
        if not self.pulsed:
            return ()
        return (
            Effect(
                name=f"{name}_pulses",
                site="write",
                becomes="dw*floor(s/dw + u)",
                constants={"dw": self.quantum},
                noise={"u": "uniform"},
                about="whole pulses, stochastically rounded",
            ),
        )

    def response(self, s: str, w: str, tag: str = "", only_up: bool = False) -> Response:
        """Return the change by a request `s` of a device at `w`, both network units.

        `tag` tells devices with draws of their own apart; `only_up` leaves the down branch out.
        """
        constants: dict[str, float] = {
            "range": self.range,
            "dw_spread": self.dw_spread,
            "less_up": abs(min(self.imbalance, 0.0)),
            "less_down": max(self.imbalance, 0.0),
            "imbalance_spread": self.imbalance_spread,
            "w_max": self.w_max,
            "w_max_spread": self.w_max_spread,
            "w_min": self.w_min,
            "w_min_spread": self.w_min_spread,
            "cycle_noise": self.cycle_noise,
            "dw": self.quantum,
        }
        law, zero = self.law(), self.zero()
        gain = varied("dw", self.dw_law, floor=None)
        parameters = {
            "gain_up": f"abs({gain} - less_up + imbalance_spread*d_imbalance)",
            "gain_down": f"abs({gain} - less_down - imbalance_spread*d_imbalance)",
            "top": f"w_max*{varied('w_max', self.bounds_law)}",
            "bottom": f"w_min*{varied('w_min', self.bounds_law)}",
            **law.parameters,
        }
        if zero:
            parameters["zero"] = zero
        u = f"({w}/range + zero)" if zero else f"({w}/range)"
        moved = several.moved(self, law, s, w, zero, only_up)
        parameters |= moved.parameters
        change = moved.text
        if self.cycle_add or self.cycle_slope:
            constants |= {"cycle_add": self.cycle_add, "cycle_slope": self.cycle_slope}
            extra = "range*(cycle_add + cycle_slope*abs(u))"
            change += f" + cycle_noise*sqrt(abs({s})/dw)*{extra}*xi"
        parameters["low"] = "range*(bottom - zero)" if zero else "range*bottom"
        parameters["high"] = "range*(top - zero)" if zero else "range*top"
        text = f"clip({change}, low - {w}, high - {w})"
        drawn = ["d_dw", "d_imbalance", "d_w_max", "d_w_min", *law.draws]
        tagged = {n: f"{n}{tag}" for n in (*drawn, *parameters)}
        return Response(
            text=Expression(text).renamed(tagged | {"u": u}),
            constants=constants | dict(law.constants),
            draws={tagged[n]: Draw() for n in drawn},
            parameters={tagged[n]: Expression(p).renamed(tagged) for n, p in parameters.items()},
        )


def varied(name: str, law: SpreadLaw, floor: float | None = SMALLEST_SHARE) -> str:
    """Return the factor of a parameter that differs between devices: 1 + σd or e^{σd}.

    `floor` is the smallest share of the nominal value that a normal spread leaves.
    """
    if law == "lognormal":
        return f"exp({name}_spread*d_{name})"
    if floor is None:
        return f"(1 + {name}_spread*d_{name})"
    return f"clip(1 + {name}_spread*d_{name}, {floor:g}, 1e6)"


def touched(name: str, sigma: float, t_write: float | None = None) -> tuple[Effect, ...]:
    """Return the error of the seen weight that is redrawn whenever the stored one changes."""
    if not sigma:
        return ()
    seen = Effect(
        name=name,
        site="weight",
        becomes="s + sigma*error",
        constants={"sigma": sigma},
        noise={"xi": "normal"},
        memory={
            "error": Memory(start="start_xi", update="error + int(abs(s - last) > 0)*(xi - error)"),
            "last": Memory(update="s"),
        },
        about="write noise, redrawn when a device is touched",
    )
    return (at_samples(seen, t_write),)
