"""Few levels: weights on a grid, on given levels, or as a pair of conductances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Clocked, Sampled, at_writes, gathered
from hw_models.numbers import Finite, InState, InWeights, Positive, Spread, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.substrate import Draw, Effect, Memory

Bits = Annotated[int, Field(ge=2, le=32)]
Level = Annotated[Finite, InWeights]
Rounding = Literal["nearest", "stochastic"]


def rounded(signal: str, rounding: Rounding) -> str:
    """Return the grid index of a signal in units of lsb, within ±m."""
    dither = "0.5" if rounding == "nearest" else "u"
    return f"clip(floor(({signal})/lsb + {dither}), -m, m)"


def grid(bits: int, span: float) -> dict[str, float]:
    """Return the constants of a symmetric grid: 2^bits − 1 levels from −span to span, zero one."""
    m = 2 ** (bits - 1) - 1
    return {"lsb": span / m, "m": float(m)}


def balanced_sum(terms: Sequence[str]) -> str:
    """Return the sum with brackets in pairs: its depth is the logarithm of the number of terms."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({balanced_sum(terms[:middle])} + {balanced_sum(terms[middle:])})"


class QuantizedWeights(Clocked):
    """Weights of b bits: 2^b − 1 levels, evenly spaced from −range to range, zero among them.

    With an accumulator the stored weight is exact and only what the array presents is rounded.
    Without, each write is rounded: nearest loses every update below half a step, so that `t_write`
    decides what is lost.
    """

    kind: Literal["quantized_weights"] = "quantized_weights"
    EXAMPLE: ClassVar[Fields] = {
        "bits": 6,
        "range": 1.0,
        "accumulator": False,
        "rounding": "stochastic",
        "t_write": "1 s",
    }
    bits: Bits
    """Word length with its sign: 2^bits − 1 levels."""
    range: Weight = 1.0
    """Largest weight, network units."""
    rounding: Rounding = "nearest"
    """To the nearest level, or at random so that the mean is exact (writes only)."""
    accumulator: bool = True
    """Whether updates are added up in high precision beside the array."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.accumulator and self.rounding == "stochastic":
            raise ValueError(
                "an accumulator's read is rounded to nearest; stochastic is for writes"
            )
        if self.accumulator and self.t_write is not None:
            raise ValueError("t_write is for accumulator = false; an accumulator adds all the time")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return lsb·round(s/lsb), at the read or at the write."""
        constants = grid(self.bits, self.range)
        if self.accumulator:
            return (
                Effect(
                    name=name,
                    site="weight",
                    becomes=f"lsb*{rounded('s', 'nearest')}",
                    constants=constants,
                    about=f"{self.bits}-bit weights read from an exact accumulator",
                ),
            )
        written = Effect(
            name=name,
            site="write",
            becomes=f"lsb*{rounded('w + s', self.rounding)} - w",
            constants=constants,
            noise={"u": "uniform"} if self.rounding == "stochastic" else {},
            about=f"{self.bits}-bit weights, each write rounded ({self.rounding})",
        )
        return (*gathered(name, self.t_write), at_writes(written, self.t_write))


class WeightLevels(Piece):
    """Weights that can take only listed values; reads give the nearest one."""

    kind: Literal["weight_levels"] = "weight_levels"
    EXAMPLE: ClassVar[Fields] = {"levels": [-1.0, -0.5, 0.0, 0.5, 1.0]}
    levels: Annotated[
        tuple[Annotated[Finite, InWeights], ...], Field(min_length=2, max_length=1024, strict=False)
    ]
    """Ascending, network units."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if list(self.levels) != sorted(set(self.levels)):
            raise ValueError(f"levels must ascend without repetition, got {list(self.levels)}")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the lowest level plus every step whose midpoint is passed."""
        pairs = list(zip(self.levels, self.levels[1:], strict=False))
        constants = {"lowest": self.levels[0]}
        terms = ["lowest"]
        for k, (low, high) in enumerate(pairs):
            constants |= {f"step_{k}": high - low, f"middle_{k}": (low + high) / 2}
            terms.append(f"step_{k}*int(s > middle_{k})")
        return (
            Effect(
                name=name,
                site="weight",
                becomes=balanced_sum(terms),
                constants=constants,
                about=f"{len(self.levels)} weight levels",
            ),
        )


class ConductancePair(Piece):
    """A weight as a difference of conductances: w = range·(G⁺ − G⁻)/(G_max − G_min).

    The side that is not needed rests at G_min. Each conductance has `levels` values in its window
    and a fixed relative error; what rests at G_min has it too. Several pairs share a weight equally
    and fill one after the other: n pairs of two levels have 2n + 1 values.
    """

    kind: Literal["conductance_pair"] = "conductance_pair"
    EXAMPLE: ClassVar[Fields] = {"levels": 32, "on_off": 20.0, "spread": "5 %"}
    levels: Annotated[int, Field(ge=2, le=2**31)] = 256
    """Values that one conductance can take."""
    on_off: Annotated[float, Field(gt=1, le=1e9, allow_inf_nan=False)] = 10.0
    """G_max/G_min."""
    spread: Spread = 0.0
    """Device-to-device standard deviation of a conductance, relative to itself."""
    range: Weight = 1.0
    """Weight at G⁺ = G_max, G⁻ = G_min, network units."""
    pairs: Annotated[int, Field(ge=1, le=64)] = 1
    """Pairs per weight, read together."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return range·(q⁺(1+σp) − q⁻(1+σn) + off·σ(p−n)), q the quantized fractions; mean over
        pairs."""
        numbers = range(self.pairs)
        single = self.pairs == 1
        draws = [("p", "n") if single else (f"p_{k}", f"n_{k}") for k in numbers]
        terms = [
            self._pair(k, plus, minus) for k, (plus, minus) in zip(numbers, draws, strict=True)
        ]
        constants = {
            "range": self.range,
            "top": self.levels - 1.0,
            "off": 1 / (self.on_off - 1),
            "spread": self.spread,
        }
        return (
            Effect(
                name=name,
                site="weight",
                becomes=f"range*{terms[0]}" if single else f"range/pairs*{balanced_sum(terms)}",
                constants=constants if single else constants | {"pairs": float(self.pairs)},
                draws={one: Draw() for both in draws for one in both},
                about="differential pair of conductances within a window"
                if single
                else f"{self.pairs} differential pairs of conductances, filled in turn",
            ),
        )

    def _pair(self, k: int, plus: str, minus: str) -> str:
        """Return what pair k presents, in units of a full one."""
        up, down = "s/range", "-s/range"
        if self.pairs > 1:
            up, down = f"s*pairs/range - {k}", f"-s*pairs/range - {k}"
        above, below = (f"floor(clip({one}, 0, 1)*top + 0.5)/top" for one in (up, down))
        return f"(({above} + off)*(1 + spread*{plus}) - ({below} + off)*(1 + spread*{minus}))"


class QuantizedStates(Sampled):
    """Potentials on a grid, as in digital neuromorphic chips: x ← lsb·round((x + ∫ s dt)/lsb).

    The chip updates its states every `t_sample`, by what the equations ask for in between.
    """

    kind: Literal["quantized_states"] = "quantized_states"
    EXAMPLE: ClassVar[Fields] = {"bits": 16, "range": 8.0, "rounding": "stochastic"}
    PLACE: ClassVar[Place] = "converter"
    bits: Bits
    """Word length with its sign: 2^bits − 1 levels."""
    range: Annotated[Positive, InState]
    """Largest potential, network units."""
    rounding: Rounding = "nearest"
    """To the nearest level, or at random so that the mean is exact."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the velocity that leads to the grid point."""
        made = Effect(
            name=name,
            site="velocity",
            becomes=f"(lsb*{rounded('x + dt*s', self.rounding)} - x)/dt",
            constants=grid(self.bits, self.range),
            noise={"u": "uniform"} if self.rounding == "stochastic" else {},
            about=f"{self.bits}-bit states, {self.rounding} rounding",
        )
        if self.t_sample is None:
            return (made,)
        tick = "int(floor((t + dt)/period + 1e-6) > ticks)"
        constants = {**made.constants, "period": self.t_sample}
        total = rounded("x + moved", self.rounding)
        memory = {
            "moved": Memory(update="dt*s + (1 - tick)*moved"),
            "tick": Memory(update=tick),
            "ticks": Memory(update="floor((t + dt)/period + 1e-6)"),
        }
        clocked = {"becomes": f"tick*(lsb*{total} - x)/dt", "constants": constants}
        return (made.model_copy(update={**clocked, "memory": memory}),)
