"""The effects of one site on one layer, as one function of the signal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pcsim.substrate.counter import Law
from pcsim.substrate.effect import AGGREGATES, ONCE, WEIGHT_SITES, Effect
from pcsim.substrate.expression import Expression, Filled, Value
from pcsim.substrate.noise import Noise, Seeded

if TYPE_CHECKING:
    from pcsim.native.place import Place


@dataclass
class Clock:
    """Simulated time, shared by all transforms of a population: whole steps of dt."""

    dt: float
    step: int = 0
    first_sample: int = 0
    """Samples before those that are shown, where a long list is shown in parts."""
    began: int = 0
    """The time step to which first memory belongs, whenever a place is first used."""

    @property
    def t(self) -> float:
        """Seconds."""
        return self.step * self.dt


@dataclass(frozen=True)
class _Texts:
    """The expressions of one effect with constants, draws and a time step put in."""

    becomes: Filled
    updates: Mapping[str, Filled]
    noise: Mapping[str, str]
    """Where the noise that they speak of comes from."""


@dataclass(eq=False)
class _Part:
    """One effect at its place."""

    effect: Effect
    fixed: Mapping[str, Value]
    dt: float
    sources: Mapping[str, str]
    """Names of its noise as the source of random numbers knows them."""
    memory: dict[str, Tensor] = field(default_factory=dict)
    _texts: dict[int, _Texts] = field(default_factory=dict)

    def after(self, steps: int) -> _Texts:
        """Return the expressions for a time of so many steps since the last application."""
        steps = steps if self.effect.uses("dt") else 1
        if steps not in self._texts:
            known = dict(self.fixed) | {"dt": steps * self.dt}
            memory = self.effect.memory.items()
            updates = {name: Expression(each.update).filled(known) for name, each in memory}
            becomes = Expression(self.effect.becomes).filled(known)
            names = becomes.names.union(*(update.names for update in updates.values()))
            noise = {name: source for name, source in self.sources.items() if name in names}
            self._texts[steps] = _Texts(becomes, updates, noise)
        return self._texts[steps]


def _whole(value: Value, like: Tensor, *, own: bool) -> Tensor:
    """Return a value in the shape of a signal; `own`: in memory that nobody else holds."""
    if not isinstance(value, Tensor):
        return torch.full_like(like, value)
    if value.shape != like.shape:
        whole = np.broadcast_shapes(value.shape, like.shape)
        return value if value.shape == whole else value.expand(whole).clone()
    return value.clone() if own else value


class Transform:
    """s ← effectₙ(… effect₁(s)), with the noise and memory of each.

    Noise belongs to the time step: a second call in one step sees the same numbers. Memory moves
    with time, not with calls: once per step at the most, with `dt` the time since it last moved.
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
        self.once = all(effect.site in ONCE for effect in effects)
        self._timed = any(effect.uses("t") for effect in effects)
        self.of_weights = any(effect.site in WEIGHT_SITES for effect in effects)
        """Whether the signal is an array of weights; else its second axis is the sample."""
        self.parts = [
            _Part(effect, values, clock.dt, {n: f"{effect.name}.{n}.{key}" for n in effect.noise})
            for effect, values in zip(effects, fixed, strict=True)
        ]
        self.aggregates = tuple(n for n in AGGREGATES if any(e.uses(n) for e in effects))
        """Names of the row sums that must be given as symbols."""
        self.applied = clock.step - 1
        """The time step of the last application; before the first, time passes as in any other."""
        self._passed = 1
        self._place: Place | None = None

    def __call__(self, s: Tensor, **symbols: Value) -> Tensor:
        """Return the signal behind all effects."""
        again = self.clock.step == self.applied
        if not again:
            self._passed, self.applied = self.clock.step - self.applied, self.clock.step
        if self._place and (done := self._in_one_pass(self._place, s, symbols, again)) is not None:
            return done
        for part in self.parts:
            texts = part.after(self._passed)
            scope: dict[str, Value] = {"t": self.clock.t, **symbols, "s": s}
            for name, source in texts.noise.items():
                scope[name] = self._draw(source, part.effect.noise[name], s, self.clock.step)
            if texts.updates:
                fresh = self._begin(part, s)
                if fresh or not again:
                    self._remember(part, texts, scope)
                scope |= part.memory
            # What is handed out may be changed in place; what is held elsewhere must not.
            s = _whole(texts.becomes(scope), s, own=texts.becomes.plain)
        return s

    def compile(self) -> None:
        """Let one pass of compiled code take the place of torch's, where there is a compiler."""
        from pcsim.native.place import Place  # it reads effects

        self._place = Place(self.parts, once=self.once)

    def _in_one_pass(
        self, place: Place, s: Tensor, symbols: Mapping[str, Value], again: bool
    ) -> Tensor | None:
        """Return the signal behind all effects by compiled code, None where there is none."""
        noise = self.noise
        if s.ndim != 3 or s.device.type != "cpu" or not isinstance(noise, Seeded):
            return None
        if again and self.once and any(part.memory for part in self.parts):
            return None
        known = {**symbols, "dt": self._passed * self.clock.dt}
        if self._timed:
            known["t"] = self.clock.t
        if (code := place.code(s, known)) is None:
            return None
        moves = self.begin(s) or not again
        return place.run(code, s, known, (self.clock.step, self._before(s), moves), noise)

    def _before(self, like: Tensor) -> int:
        """Return the elements of each chip before those of a signal."""
        return 0 if self.of_weights else self.clock.first_sample * like.shape[2:].numel()

    def _draw(self, source: str, law: Law, like: Tensor, step: int) -> Tensor:
        return self.noise.draw(source, law, like, step, self._before(like))

    def _remember(self, part: _Part, texts: _Texts, scope: Mapping[str, Value]) -> None:
        """Update all memory of an effect from the memory before."""
        s = scope["s"]
        assert isinstance(s, Tensor)
        before = {**scope, **part.memory}
        for name, update in texts.updates.items():
            # A signal is somebody's live tensor: what is remembered of it is a copy.
            part.memory[name] = _whole(update(before), s, own=update.plain)

    def begin(self, like: Tensor) -> bool:
        """Give every effect its first memory, for a signal of this shape; say if any was given."""
        begun = [self._begin(part, like) for part in self.parts]
        return any(begun)

    def steps_since(self, step: int, *, fresh: bool) -> int:
        """Return the time steps that memory has to move by at `step`; 0: it has moved already.

        `fresh` memory moves by as much as in the application before.
        """
        return step - self.applied or (self._passed if fresh else 0)

    def forget(self) -> None:
        """Let memory start anew at the next application."""
        for part in self.parts:
            part.memory = {}

    def _begin(self, part: _Part, s: Tensor) -> bool:
        """Give an effect its first memory where it has none of this shape; say if it was given."""
        begun = False
        for name in part.effect.memory:
            held = part.memory.get(name)
            if held is None or held.shape != s.shape:
                part.memory[name], begun = self._start(part, name, s), True
        return begun

    def _start(self, part: _Part, name: str, s: Tensor) -> Tensor:
        text, scope = part.effect.memory[name].start, dict[str, Value]()
        laws: dict[str, Law] = {"start_xi": "normal", "start_u": "uniform"}
        for symbol, law in laws.items():
            if symbol in Expression(text).names:
                source = f"{part.effect.name}.{name}.{symbol}.{self.key}"
                scope[symbol] = self._draw(source, law, s, self.clock.began)
        known = {**part.fixed, "dt": self.clock.dt}
        return torch.zeros_like(s) + Expression(text).bind(known)(scope)

    def held(self, name: str) -> Tensor:
        """Return one memory by the name that it has in checkpoints."""
        for part in self.parts:
            for own, value in part.memory.items():
                if name == f"{part.effect.name}.{own}.{self.key}":
                    return value
        raise KeyError(name)

    def memory(self) -> dict[str, Tensor]:
        """Return all memory by name, for checkpoints and records."""
        named = {
            f"{part.effect.name}.{name}.{self.key}": value
            for part in self.parts
            for name, value in part.memory.items()
        }
        return named | {f"applied.{self.key}": torch.tensor(self.applied)}

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        if (applied := memory.get(f"applied.{self.key}")) is not None:
            self.applied = int(applied)
        for part in self.parts:
            for name in part.effect.memory:
                key = f"{part.effect.name}.{name}.{self.key}"
                if key in memory:
                    part.memory[name] = memory[key].clone()
