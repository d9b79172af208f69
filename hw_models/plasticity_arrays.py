"""Weights held by more than one device: pairs of one-way devices, and a fast array that transfers.

The second array lives in the memory of an effect, one value per weight.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Clocked, also_down, at_writes, gathered
from hw_models.numbers import InDevice, NotNegative, Positive
from hw_models.order import Place
from hw_models.piece import Fields
from hw_models.plasticity import TrainingDevice
from hw_models.plasticity_device import Device
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory
from pcsim.substrate.effect import DOWN
from pcsim.substrate.expression import Expression


class DevicePair(Clocked):
    """w = g⁺ − g⁻ of two devices that can only be raised; a refresh undoes their wear.

    Once per write the pair is read (with an error of `refresh_read`) and checked: if the larger
    conductance is above `refresh_at` and the smaller above `refresh_floor` of the window 0 … w_max,
    both are reset and the difference is written anew by open-loop pulses through the device,
    |w|/`refresh_step` of them and at most `refresh_pulses`: nobody looks where they lead. The
    request of that write waits for the next.
    The memory holds both conductances; what they share is min(g⁺, g⁻), and the rest is w.
    """

    kind: Literal["device_pair"] = "device_pair"
    EXAMPLE: ClassVar[Fields] = {
        "device": {"kind": "power_device", "dw_min": 0.01, "w_min": 0.0},
        "refresh_at": "75 %",
        "refresh_floor": "25 %",
    }
    device: TrainingDevice
    """Both devices; bounds 0 … w_max, only its up steps are used."""
    refresh_at: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False), Unit("fraction")] = 0.75
    """Share of the nominal w_max above which the larger one must be; 1 never refreshes."""
    refresh_floor: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False), Unit("fraction")] = 0.25
    """Share of the nominal w_max above which the smaller one must be."""
    refresh_noise: Annotated[NotNegative, InDevice] = 0.0
    """Standard deviation of a conductance after its reset, device units; none is below zero."""
    refresh_read: Annotated[NotNegative, InDevice] = 0.0
    """Standard deviation of the read of each conductance that decides on a refresh, device
    units; drawn anew at every write."""
    refresh_step: Annotated[Positive, InDevice] | None = None
    """What a refresh takes a pulse for when it counts how many to send, device units; unset:
    dw_min."""
    refresh_pulses: Annotated[int, Field(ge=1, le=10**6)] = 31
    """Most pulses that a refresh sends."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.device.w_min != 0:
            raise ValueError(f"device.w_min must be 0 in a pair, got {self.device.w_min:g}")
        if self.refresh_floor >= self.refresh_at:
            raise ValueError(
                f"refresh_floor must be below refresh_at, got {self.refresh_floor:g} and "
                f"{self.refresh_at:g}"
            )
        without_clock(self.device)
        return self

    @property
    def each_sample(self) -> bool:
        """Whether samples side by side write one by one: both devices of a pair are then raised."""
        return self.device.each_sample

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the change of g⁺ − g⁻ with both as memory."""
        return self._effects(name, "")

    def by_samples(self, name: str) -> tuple[Effect, ...]:
        """Return the same where g⁺ takes all that goes up, and g⁻ all that goes down."""
        return self._effects(name, self.device.falling.replace("u)", "u_down)"))

    def _effects(self, name: str, falling: str) -> tuple[Effect, ...]:
        """`falling`: what is asked for downwards beside s, or nothing."""
        worn = "((g_plus + g_minus - abs(g_plus - g_minus))/2)"
        larger, smaller = f"{worn} + abs(w)", worn
        if self.refresh_read:
            larger, smaller = (
                f"{read} + misread*xi_{name}"
                for read, name in ((larger, "read_larger"), (smaller, "read_smaller"))
            )
        full = f"(int({larger} > limit)*int({smaller} > least))"
        pulses = (
            "dw*clip(floor(abs(w)/per_pulse + u_refresh), 0, most)"
            if self.device.dw_min
            else "abs(w)"
        )
        texts = {}
        waiting = {} if falling else {"waiting": Memory(update=f"{full}*(s + waiting)")}
        for side, sign in (("plus", ""), ("minus", "-")):
            base = f"((1 - {full})*({worn} + clip({sign}w, 0, 1e30)) + {full}*reset_{side})"
            wanted = f"clip({sign}(s + waiting), 0, 1e30)"
            if falling:
                own = "" if side == "plus" else f" - {falling}"
                rise = "s" if self.device.pulsed else f"(s + {DOWN})"
                wanted = f"(clip({sign}{rise}, 0, 1e30){own} + waiting_{side})"
                waiting[f"waiting_{side}"] = Memory(update=f"{full}*{wanted}")
            asked = f"({wanted}*(1 - {full}) + {full}*int({sign}w > 0)*{pulses})"
            reset = f"clip(refresh_noise*xi_{side}, 0, 1e30)"
            made = self.device.response("asked_here", "g_here", f"_{side}", only_up=True)
            names = {"asked_here": asked, "g_here": base, "xi": f"xi_cycle_{side}"}
            text = f"{base} + {Expression(made.text).renamed(names)}"
            texts[side] = Expression(text).renamed({f"reset_{side}": reset}), made
        (plus, of_plus), (minus, of_minus) = texts["plus"], texts["minus"]
        scale = self.device.w_max * self.device.range
        never = self.refresh_at == 1
        noise: dict[str, Literal["normal", "uniform"]] = {
            "xi_cycle_plus": "normal",
            "xi_cycle_minus": "normal",
            "xi_plus": "normal",
            "xi_minus": "normal",
        }
        if self.device.dw_min:
            noise["u_refresh"] = "uniform"
        if self.refresh_read:
            noise |= {"xi_read_larger": "normal", "xi_read_smaller": "normal"}
        if falling and self.device.pulsed:
            noise["u_down"] = "uniform"
        pair = Effect(
            name=name,
            site="write",
            becomes="g_plus - g_minus - w",
            constants=dict(of_plus.constants)
            | {
                "limit": 1e30 if never else self.refresh_at * scale,
                "least": self.refresh_floor * scale,
                "refresh_noise": self.refresh_noise * self.device.range,
                "most": float(self.refresh_pulses),
                "per_pulse": (self.refresh_step or self.device.dw_min) * self.device.range,
            }
            | ({"misread": self.refresh_read * self.device.range} if self.refresh_read else {}),
            draws=dict(of_plus.draws) | dict(of_minus.draws),
            parameters=dict(of_plus.parameters) | dict(of_minus.parameters),
            noise=noise,
            memory={
                "g_plus": Memory(update=plus),
                "g_minus": Memory(update=minus),
                **waiting,
            },
            about="difference of two one-way devices, refreshed when both are worn",
        )
        return (
            *gathered(name, self.t_write),
            *_rising(self.device.pulses(name), falling, self.t_write),
            also_down(at_writes(pair, self.t_write), self.t_write),
        )


class FastArray(Clocked):
    """Tiki-Taka-style transfer: a fast array takes the updates, a slow one holds the weight.

        a ← a + response(s; a)          at each write, on the fast devices
        w ← w + rate·a                  every `every` writes (asked of the pieces that follow)

    With `reference = "symmetry"` the fast devices are read relative to their symmetry points, to
    which activity without a mean pulls them: noise averages out before it reaches the weight.
    With an `update_accumulator` behind it, whose threshold is a pulse of the slow devices, it is
    Tiki-Taka of the second kind: a digital buffer h ← h + rate·a releases whole pulses.

    Chopped, c = ±1 changes after every `chop` transfers: the fast devices take c·s, and c·(a − ref)
    is transferred. What they return by themselves (the error of a reference) then adds up to
    nothing over two halves. With `follow_reference` ref is the mean of a in the half before, so
    that it is left out at once; without, it is 0.
    """

    kind: Literal["fast_array"] = "fast_array"
    REQUESTS = "gathers"
    EXAMPLE: ClassVar[Fields] = {
        "device": {"kind": "linear_device", "dw_min": 0.002},
        "rate": "10 %",
        "every": 2,
    }
    PLACE: ClassVar[Place] = "transfer"
    device: TrainingDevice
    """The fast devices."""
    rate: Annotated[Positive, Unit("fraction")]
    """Share of the fast weight that one transfer asks for."""
    every: Annotated[int, Field(ge=1, le=10**9)] = 1
    """Writes (of t_write each) per transfer."""
    in_turn: bool = False
    """Whether columns are transferred one after the other, each every `every` writes at a phase of
    its own (drawn per column), or all at once."""

    chop: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Transfers after which the fast devices change the sign of what they take and give; unset:
    never."""
    follow_reference: bool = False
    """Whether the mean of the fast weight over one half period of chopping is what it is read
    relative to in the next."""

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        without_clock(self.device)
        if self.follow_reference and self.chop is None:
            raise ValueError("follow_reference takes the mean of half a period: set chop")
        return self

    @property
    def each_sample(self) -> bool:
        """Whether samples side by side write one by one, on the fast devices."""
        return self.device.each_sample

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the transfer; the memory holds the fast weight and counts writes."""
        return self._effects(name, "")

    def by_samples(self, name: str) -> tuple[Effect, ...]:
        """Return the same where fast devices go up, and then down from there."""
        return self._effects(name, self.device.falling.replace("u)", "u_down)"))

    def _effects(self, name: str, falling: str) -> tuple[Effect, ...]:
        """`falling`: what is asked for downwards beside s, or nothing."""
        made = self.device.response("asked_here", "fast")
        sense = "1" if self.chop is None else "(1 - 2*int(turn >= half))"
        changed = f"fast + {Expression(made.text).renamed({'asked_here': f'({sense}*s)'})}"
        noise: dict[str, Literal["normal", "uniform"]] = {"xi": "normal"}
        if falling:
            rise = "(s + down)" if not self.device.pulsed else "s"
            if self.chop is not None:  # what went up goes down in the other half
                first = f"int(turn < half)*{rise} - int(turn >= half)*{falling}"
                falling = f"(int(turn < half)*{falling} - int(turn >= half)*{rise})"
                rise = f"({first})"
            risen = f"(fast + {Expression(made.text).renamed({'asked_here': rise})})"
            by = {"asked_here": falling, "fast": risen, "xi": "xi_down"}
            changed = f"{risen} + {Expression(made.text).renamed(by)}"
            noise |= {"xi_down": "normal"}
            noise |= {"u_down": "uniform"} if self.device.pulsed else {}
        phase = {"phase": Draw(law="uniform", per="column")} if self.in_turn else {}
        begin = "floor(phase*every)" if self.in_turn else "0"
        constants = {"rate": self.rate, "every": float(self.every)}
        given, chopped = "fast", dict[str, Memory]()
        if self.chop is not None:
            constants["half"] = float(self.chop * self.every)
            chopped = {
                "sense": Memory(start="1", update=sense),
                "turn": Memory(update="(turn + 1)*int(turn + 1 < 2*half)"),
            }
            given = "sense*fast"
        if self.follow_reference:
            fresh = "(int(turn <= 0) + int(turn >= half)*int(turn <= half))"
            chopped |= {
                "reference_now": Memory(
                    update=f"reference_now + {fresh}*(total/half - reference_now)"
                ),
                "total": Memory(update=f"(1 - {fresh})*total + fast"),
            }
            given = "sense*(fast - reference_now)"
        transfer = Effect(
            name=name,
            site="write",
            becomes=f"rate*{given}*int(count < 1)",
            constants=dict(made.constants) | constants,
            draws={**made.draws, **phase},
            parameters=made.parameters,
            noise=noise,
            memory={
                "fast": Memory(update=changed),
                "count": Memory(start=begin, update="(count + 1)*int(count + 1 < every)"),
                **chopped,
            },
            about="fast array, transferred to the slow one",
        )
        return (
            *gathered(name, self.t_write),
            *_rising(self.device.pulses(name), falling, self.t_write),
            also_down(at_writes(transfer, self.t_write), self.t_write),
        )


def _rising(pulses: tuple[Effect, ...], falling: str, period: float | None) -> tuple[Effect, ...]:
    """Return the rounding to pulses of all that is asked for upwards, or of the sum."""
    if not falling:
        return pulses
    upward = {"s": f"(s + {DOWN})"}
    return tuple(
        also_down(
            each.model_copy(update={"becomes": Expression(each.becomes).renamed(upward)}), period
        )
        for each in pulses
    )


def without_clock(device: Device, *, seen: bool = False) -> None:
    """Refuse a clock of the device inside, or write noise that is not `seen`: not heeded there."""
    if device.t_write is not None:
        raise ValueError("device.t_write: set t_write of the piece that holds the device")
    if device.beside:
        raise ValueError("device.before, device.after: set them for the piece that holds it")
    if device.write_noise and not seen:
        raise ValueError(
            'device.write_noise is not seen here; add a piece write_noise with mode = "seen"'
        )
