"""Converters and event-driven links: ADC and DAC, sigma-delta, send-on-delta.

Converters sample every `t_sample` and hold the value; a link that sends on delta has no clock.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import model_validator

from hw_models.clock import Sampled, held
from hw_models.numbers import InSignal, NotNegative, Positive, Spread
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from hw_models.quantize import Bits, grid, rounded
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory

Where = Literal["input", "rate", "error", "product", "feedback", "output"]


def refuse_auto_range(where: str) -> None:
    """Refuse a range that follows the input where a constant line is among the inputs."""
    if where != "feedback":
        raise ValueError(
            f'auto_range is for where = "feedback", got {where!r}: sums of rates are read with '
            "their biases, whose line is always at 1"
        )


class Converter(Sampled):
    """An ADC or DAC of b bits: gain and offset error, mid-tread rounding, clipping at ±range."""

    kind: Literal["converter"] = "converter"
    EXAMPLE: ClassVar[Fields] = {
        "where": "product",
        "bits": 8,
        "range": 4.0,
        "gain_error": "1 %",
        "t_sample": "100 ms",
    }
    PLACE: ClassVar[Place] = "converter"
    where: Where
    """Signal that is converted: clamped inputs, rates, errors, array sums in either direction, or
    the read-out."""
    bits: Bits
    """Resolution with its sign: 2^bits − 1 levels from −range to range."""
    range: Annotated[Positive, InSignal] = 1.0
    """Largest value that is not clipped, units of the signal."""
    gain_error: Spread = 0.0
    """Device-to-device standard deviation of the gain, relative."""
    offset_error: Annotated[NotNegative, Unit("steps (LSB)")] = 0.0
    """Device-to-device standard deviation of the offset, in steps (LSB)."""
    auto_range: bool = False
    """Whether the range, and the step with it, follows the largest error that enters the array, at
    any time: ±range·max|δ|. For `where = "feedback"`."""
    dither: bool = False
    """Subtractive dither: uniform over one step, added before and taken off behind."""

    @model_validator(mode="after")
    def _ranges_errors(self) -> Self:
        if self.auto_range:
            refuse_auto_range(self.where)
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return lsb·round((1+gain) s/lsb + offset), of s over the largest input if auto_range."""
        constants = grid(self.bits, self.range)
        constants |= {"gain": self.gain_error, "offset": self.offset_error}
        read = "s/(peak + 1e-30)" if self.auto_range else "s"
        signal = f"{read}*(1 + gain*g) + offset*o*lsb"
        if self.dither:
            becomes = f"lsb*({rounded(f'{signal} + (u - 0.5)*lsb', 'nearest')} - (u - 0.5))"
        else:
            becomes = f"lsb*{rounded(signal, 'nearest')}"
        if self.auto_range:
            becomes = f"peak*({becomes})"
        converted = Effect(
            name=name,
            site=self.where,
            becomes=becomes,
            constants=constants,
            draws={"g": Draw(), "o": Draw()},
            noise={"u": "uniform"} if self.dither else {},
            about=f"{self.bits}-bit converter, range ±{self.range:g}"
            + " times the largest error" * self.auto_range,
        )
        return held(converted, self.t_sample)


class SigmaDelta(Sampled):
    """First-order sigma-delta: the rounding error is kept and added to the next value.

    The mean over N samples is within lsb/N of the mean of the signal.
    """

    kind: Literal["sigma_delta"] = "sigma_delta"
    EXAMPLE: ClassVar[Fields] = {"where": "rate", "step": 0.1, "t_sample": "50 ms"}
    PLACE: ClassVar[Place] = "converter"
    where: Where
    """Signal that is modulated: clamped inputs, rates, errors, array sums in either direction, or
    the read-out."""
    step: Annotated[Positive, InSignal]
    """Size of one step (LSB), units of the signal."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return lsb·round((s + e)/lsb), e ← s + e − that."""
        modulated = Effect(
            name=name,
            site=self.where,
            becomes="s + before - kept",
            constants={"lsb": self.step},
            memory={
                "before": Memory(update="kept"),
                "kept": Memory(update="s + kept - lsb*floor((s + kept)/lsb + 0.5)"),
            },
            about="first-order sigma-delta modulator",
        )
        return held(modulated, self.t_sample)


class SendOnDelta(Piece):
    """Event-driven link: the receiver holds the last value sent; a change of δ sends a new one."""

    kind: Literal["send_on_delta"] = "send_on_delta"
    EXAMPLE: ClassVar[Fields] = {"where": "rate", "delta": 0.05}
    PLACE: ClassVar[Place] = "converter"
    where: Where
    """Signal that is sent as events: clamped inputs, rates, errors, array sums in either direction,
    or the read-out."""
    delta: Annotated[NotNegative, InSignal]
    """Change that triggers an event, units of the signal."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the held value, renewed where |s − held| ≥ δ."""
        sends = "int(abs(s - held) >= delta)"
        return (
            Effect(
                name=name,
                site=self.where,
                becomes="held",
                constants={"delta": self.delta},
                memory={"held": Memory(update=f"held*(1 - {sends}) + s*{sends}")},
                about="send-on-delta events",
            ),
        )
