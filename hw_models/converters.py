"""Converters and event-driven links: ADC and DAC, sigma-delta, send-on-delta.

Converters sample every `t_sample` and hold the value; a link that sends on delta has no clock.
"""

from __future__ import annotations

from typing import Literal

from hw_models.clock import Sampled, held
from hw_models.numbers import NotNegative, Positive, Spread
from hw_models.piece import Piece
from hw_models.quantize import Bits, grid, rounded
from pcsim.substrate import Draw, Effect, Memory

Where = Literal["input", "rate", "error", "product", "feedback", "output"]


class Converter(Sampled):
    """An ADC or DAC of b bits: gain and offset error, mid-tread rounding, clipping at ±range."""

    kind: Literal["converter"] = "converter"
    where: Where
    bits: Bits
    range: Positive = 1.0
    """Largest value that is not clipped, units of the signal."""
    gain_error: Spread = 0.0
    """Device-to-device standard deviation of the gain, relative."""
    offset_error: NotNegative = 0.0
    """Device-to-device standard deviation of the offset, in steps (LSB)."""
    dither: bool = False
    """Subtractive dither: uniform over one step, added before and taken off behind."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return lsb·round((1+gain) s/lsb + offset)."""
        constants = grid(self.bits, self.range)
        constants |= {"gain": self.gain_error, "offset": self.offset_error}
        signal = "s*(1 + gain*g) + offset*o*lsb"
        if self.dither:
            becomes = f"lsb*({rounded(f'{signal} + (u - 0.5)*lsb', 'nearest')} - (u - 0.5))"
        else:
            becomes = f"lsb*{rounded(signal, 'nearest')}"
        converted = Effect(
            name=name,
            site=self.where,
            becomes=becomes,
            constants=constants,
            draws={"g": Draw(), "o": Draw()},
            noise={"u": "uniform"} if self.dither else {},
            about=f"{self.bits}-bit converter, range ±{self.range:g}",
        )
        return held(converted, self.t_sample)


class SigmaDelta(Sampled):
    """First-order sigma-delta: the rounding error is kept and added to the next value.

    The mean over N samples is within lsb/N of the mean of the signal.
    """

    kind: Literal["sigma_delta"] = "sigma_delta"
    where: Where
    step: Positive
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
    where: Where
    delta: NotNegative
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
