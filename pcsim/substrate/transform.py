"""The effects of one site on one layer, as one function of the signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from pcsim.substrate.effect import AGGREGATES, WEIGHT_SITES, Effect
from pcsim.substrate.expression import Expression, Value
from pcsim.substrate.noise import Noise

Bound = Callable[[Mapping[str, Value]], Value]


@dataclass
class Clock:
    """Simulated time, shared by all transforms of a population."""

    dt: float
    t: float = 0.0


@dataclass(eq=False)
class _Part:
    """One effect with its constants and draws put in."""

    effect: Effect
    becomes: Bound
    updates: dict[str, Bound]
    starts: dict[str, Bound]
    noise_names: dict[str, str]
    memory: dict[str, Tensor] = field(default_factory=dict)


class Transform:
    """s ← effectₙ(… effect₁(s)), with the noise and memory of each.

    Noise is drawn and memory updated once per call; a backend calls once per time step.
    """

    def __init__(
        self,
        effects: Sequence[Effect],
        fixed: Sequence[Mapping[str, Value]],
        key: str,
        noise: Noise,
        clock: Clock,
    ) -> None:
        """`fixed` holds constants and draws of each effect; `key` names this place, `rate2`."""
        self.key, self.noise, self.clock = key, noise, clock
        self.of_weights = any(effect.site in WEIGHT_SITES for effect in effects)
        """Whether the signal is an array of weights; else its second axis is the sample."""
        self.parts: list[_Part] = []
        for effect, values in zip(effects, fixed, strict=True):
            known = dict(values) | {"dt": clock.dt}
            self.parts.append(
                _Part(
                    effect,
                    Expression(effect.becomes).bind(known),
                    {n: Expression(m.update).bind(known) for n, m in effect.memory.items()},
                    {n: Expression(m.start).bind(known) for n, m in effect.memory.items()},
                    {n: f"{effect.name}.{n}.{key}" for n in effect.noise},
                )
            )
        self.aggregates = tuple(n for n in AGGREGATES if any(e.uses(n) for e in effects))
        """Names of the row sums that must be given as symbols."""

    def __call__(self, s: Tensor, **symbols: Value) -> Tensor:
        """Return the signal behind all effects."""
        for part in self.parts:
            scope: dict[str, Value] = {"t": self.clock.t, **symbols}
            for name, key in part.noise_names.items():
                scope[name] = self.noise.draw(key, part.effect.noise[name], s)
            if part.updates:
                scope["s"] = s
                self._remember(part, scope)
            value = part.becomes(scope | {"s": s})
            s = value if isinstance(value, Tensor) else torch.full_like(s, value)
        return s

    def _remember(self, part: _Part, scope: dict[str, Value]) -> None:
        """Update all memory of an effect from the memory before."""
        s = scope["s"]
        assert isinstance(s, Tensor)
        self._begin(part, s)
        before = scope | part.memory
        for name, update in part.updates.items():
            value = update(before)
            part.memory[name] = value if isinstance(value, Tensor) else torch.full_like(s, value)
        scope |= part.memory

    def begin(self, like: Tensor) -> None:
        """Give every effect its first memory, for a signal of this shape."""
        for part in self.parts:
            self._begin(part, like)

    def forget(self) -> None:
        """Let memory start anew at the next application."""
        for part in self.parts:
            part.memory = {}

    def _begin(self, part: _Part, s: Tensor) -> None:
        for name, start in part.starts.items():
            held = part.memory.get(name)
            if held is None or held.shape != s.shape:
                part.memory[name] = self._start(part, name, start, s)

    def _start(self, part: _Part, name: str, start: Bound, s: Tensor) -> Tensor:
        scope: dict[str, Value] = {}
        for symbol, law in (("start_xi", "normal"), ("start_u", "uniform")):
            if symbol in Expression(part.effect.memory[name].start).names:
                key = f"{part.effect.name}.{name}.{symbol}.{self.key}"
                scope[symbol] = self.noise.draw(key, law, s)  # type: ignore[arg-type]
        value = start(scope)
        return torch.zeros_like(s) + value

    def memory(self) -> dict[str, Tensor]:
        """Return all memory by name, for checkpoints and records."""
        return {
            f"{part.effect.name}.{name}.{self.key}": value
            for part in self.parts
            for name, value in part.memory.items()
        }

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        for part in self.parts:
            for name in part.updates:
                key = f"{part.effect.name}.{name}.{self.key}"
                if key in memory:
                    part.memory[name] = memory[key].clone()
