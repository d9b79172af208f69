"""Pieces that act at ticks of a clock of the chip, and hold or gather between them.

    read side    tick if floor(t/t_sample) is more than at the last step; the first step is a tick
    write side   tick if floor((t + dt)/t_write) is more than at the last step

Between ticks a sampled signal or noise keeps its value, and requests to write add up until the next
tick writes their sum. Without a period every time step of the run is a tick: the clock of the chip
is then the step of the solver, and what is drawn or lost per tick depends on that step.
"""

from __future__ import annotations

from collections.abc import Collection

from hw_models.numbers import Seconds
from hw_models.piece import Piece
from pcsim.quantity import duration
from pcsim.substrate import Effect, Memory
from pcsim.substrate.effect import DOWN
from pcsim.substrate.expression import Expression

_SAMPLES = "floor(t/period + 1e-6)"
_WRITES = "floor((t + dt)/period + 1e-6)"
_TICK_READ = f"int({_SAMPLES} > ticks)"
_TICK_WRITE = f"int({_WRITES} > ticks)"
_TICK_DOWN = f"{_TICK_WRITE}*(asked_down + {DOWN})"


class Sampled(Piece):
    """A piece that may sample its signal at a clock of its own."""

    t_sample: Seconds | None = None
    """Seconds between two samples, held in between (as every step of the run, where that is
    longer); unset: every time step of the run is a sample."""


class Clocked(Piece):
    """A piece that may write at a clock of its own."""

    t_write: Seconds | None = None
    """Seconds between two writes; requests add up in between (every step of the run writes, where
    that is longer); unset: every time step of the run is a write."""


def held(effect: Effect, period: float | None) -> tuple[Effect, ...]:
    """Return an effect whose output is sampled at ticks and held; its memory moves at ticks."""
    if period is None:
        return (effect,)
    ticking = gated(effect, period, _TICK_READ, _SAMPLES, "-1") if effect.memory else effect
    return (
        ticking,
        Effect(
            name=f"{effect.name}_hold",
            site=effect.site,
            becomes="held",
            constants={"period": period},
            memory={
                "held": Memory(update=f"held + {_TICK_READ}*(s - held)"),
                "ticks": Memory(start="-1", update=_SAMPLES),
            },
            about=f"sampled every {duration(period)} and held",
        ),
    )


def redrawn(effect: Effect, period: float | None, names: Collection[str] = ("xi",)) -> Effect:
    """Return an effect whose noise is redrawn at ticks and keeps its value between them."""
    if period is None:
        return effect
    kept = {name: f"{name}_held" for name in names if name in effect.noise}
    memory = {
        name: Memory(start=m.start, update=Expression(m.update).renamed(kept))
        for name, m in effect.memory.items()
    }
    memory |= {
        new: Memory(update=f"{new} + {_TICK_READ}*({name} - {new})") for name, new in kept.items()
    }
    memory["ticks"] = Memory(start="-1", update=_SAMPLES)
    return effect.model_copy(
        update={
            "becomes": Expression(effect.becomes).renamed(kept),
            "constants": {**effect.constants, "period": period},
            "memory": memory,
            "about": f"{effect.about}; redrawn every {duration(period)}",
        }
    )


def gathered(name: str, period: float | None) -> tuple[Effect, ...]:
    """Return the effect that adds requests up and passes their sum on at ticks."""
    if period is None:
        return ()
    return (
        Effect(
            name=f"{name}_gather",
            site="write",
            becomes="released",
            constants={"period": period},
            memory={
                "released": Memory(update=f"{_TICK_WRITE}*(asked + s)"),
                "asked": Memory(update=f"(1 - {_TICK_WRITE})*(asked + s)"),
                "ticks": Memory(update=_WRITES),
            },
            about=f"requests add up for {duration(period)}",
        ),
    )


def also_down(effect: Effect, period: float | None) -> Effect:
    """Return an effect that speaks of what samples ask for downwards, added up between ticks."""
    if period is None or not effect.uses(DOWN):
        return effect
    released = "released_down"
    renamed = {DOWN: released}
    memory = {
        name: Memory(start=m.start, update=Expression(m.update).renamed({DOWN: _TICK_DOWN}))
        for name, m in effect.memory.items()
    }
    memory |= {
        released: Memory(update=_TICK_DOWN),
        "asked_down": Memory(update=f"(1 - {_TICK_WRITE})*(asked_down + {DOWN})"),
        "ticks": Memory(update=_WRITES),
    }
    return effect.model_copy(
        update={
            "becomes": Expression(effect.becomes).renamed(renamed),
            "constants": {**effect.constants, "period": period},
            "memory": memory,
        }
    )


def at_writes(effect: Effect, period: float | None) -> Effect:
    """Return an effect of the write site that acts at ticks alone; else nothing is written."""
    if period is None:
        return effect
    made = gated(effect, period, _TICK_WRITE, _WRITES, "0")
    memory = {**made.memory, "tick": Memory(update=_TICK_WRITE)}
    return made.model_copy(update={"becomes": f"tick*({effect.becomes})", "memory": memory})


def at_samples(effect: Effect, period: float | None) -> Effect:
    """Return an effect whose memory moves at ticks alone."""
    return effect if period is None else gated(effect, period, _TICK_READ, _SAMPLES, "-1")


def gated(effect: Effect, period: float, tick: str, count: str, start: str) -> Effect:
    """Return an effect whose memory is updated where `tick` is 1."""
    memory = {
        name: Memory(start=m.start, update=f"{name} + {tick}*({m.update} - {name})")
        for name, m in effect.memory.items()
    }
    memory["ticks"] = Memory(start=start, update=count)
    return effect.model_copy(
        update={"constants": {**effect.constants, "period": period}, "memory": memory}
    )


def clock_of(piece: Piece) -> str:
    """Return one sentence on the clock of a piece, or nothing if it has none."""
    for name in ("t_sample", "t_write"):
        if name in type(piece).model_fields:
            if name == "t_write" and getattr(piece, "accumulator", False):
                return ""  # what is written is exact, at any time
            period = getattr(piece, name)
            what = "samples" if name == "t_sample" else "writes"
            if period is None:
                return f"clock: it {what} in every time step of the run ({name} is not set)"
            return f"clock: it {what} every {duration(period)} ({name})"
    return ""
