"""Chips: a substrate and a seed give a population, chip k the same in any population size.

    draw of chip k = generator(seed, (k, effect and draw by name, layer))

so that neither the number of chips, nor other effects, nor their order change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Protocol
from zlib import crc32

import numpy as np
import torch
from torch import Tensor

from pcsim.native import SHORT
from pcsim.substrate.effect import WEIGHT_SITES, Draw, Effect, Site, Substrate
from pcsim.substrate.expression import Expression, Value
from pcsim.substrate.noise import Noise
from pcsim.substrate.transform import Clock, Transform

AT_ONCE = 512
"""Chips whose devices are drawn together: what is only on the way to a device is not kept."""


class Remembering(Protocol):
    """Whoever holds memory of effects: a transform, or a backend that computes by itself."""

    def memory(self) -> dict[str, Tensor]:
        """Return all memory by name."""

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Take up the memory of a checkpoint."""


Lists = Mapping[tuple[str, str], Sequence[float]]
"""Constants that differ between replicas: (effect, constant) → one value per replica."""


class Chips:
    """One sampled population with its clock; gives the transforms that a backend puts in place."""

    def __init__(
        self,
        substrate: Substrate,
        ids: Sequence[int],
        *,
        seed: int,
        dt: float,
        noise: Noise,
        lists: Lists | None = None,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        """`ids[k]` is the chip that replica k runs on; several replicas may be on equal chips."""
        self.compiled = False
        self.substrate, self.ids, self.seed = substrate, list(ids), seed
        self.noise = noise
        self.clock = Clock(dt)
        self.lists = dict(lists or {})
        self.dtype, self.device = dtype, device
        self._made: list[Remembering] = []
        self._fixed: dict[tuple[str, int, tuple[int, ...], str], dict[str, Value]] = {}
        """What was drawn for effects, shared with all that look at the same chips."""

    def __len__(self) -> int:
        return len(self.ids)

    def transform(
        self, site: Site, layer: int, shape: tuple[int, ...], array: str = ""
    ) -> Transform | None:
        """Return what happens at a site of a layer, or None where nothing does.

        `shape` is (unit,) or (post, pre); `array` tells several weight arrays of a layer apart.
        """
        effects = self.substrate.at(site)
        if not effects:
            return None
        fixed = [self.shared(effect, layer, shape, array) for effect in effects]
        made = Transform(effects, fixed, f"{site}{layer}{array}", self.noise, self.clock)
        if self.compiled:
            made.compile()
        self._made.append(made)
        return made

    def compile(self, steps: int) -> None:
        """Let compiled code do what torch is asked for, in a run of so many time steps.

        In a short one, it would take longer to compile; where there is no compiler, torch goes on.
        """
        if steps >= SHORT:
            self.compiled = True
            for made in self.transforms():
                made.compile()

    def aside(self) -> Chips:
        """Return the same chips for a look from outside: their noise and clock are their own.

        `catch_up` brings them to the present.
        """
        other = copy(self)
        other._made = []
        other.clock = Clock(self.clock.dt, self.clock.step)
        other.noise = self.noise.apart("read-out")
        return other

    def catch_up(self, chips: Chips) -> None:
        """Take over the time of the chips that run, and what their arrays remember."""
        self.clock.step = self.clock.began = chips.clock.step
        memory = chips.state()
        for transform in self.transforms():
            transform.forget()
            transform.applied = chips.clock.step - 1
            if transform.of_weights:
                transform.restore(memory)

    def show_from(self, sample: int) -> None:
        """Begin a new part of a list of samples: signals of other samples are forgotten."""
        self.clock.first_sample = sample
        for transform in self.transforms():
            if not transform.of_weights:
                transform.forget()
                transform.applied = self.clock.step - 1

    def transforms(self) -> list[Transform]:
        """Return the transforms that were put in place."""
        return [made for made in self._made if isinstance(made, Transform)]

    def unwatched(self) -> Chips:
        """Return the same chips with the same noise, whose memory is somebody else's concern."""
        other = copy(self)
        other._made = []
        return other

    def watch(self, holder: Remembering) -> None:
        """Let `state` and `restore` include the memory that a backend holds."""
        self._made.append(holder)

    def state(self) -> dict[str, Tensor]:
        """Return time and memory, for a checkpoint."""
        memory = {name: value for made in self._made for name, value in made.memory().items()}
        return memory | {"step": torch.tensor(self.clock.step)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        self.clock.step = int(state["step"])
        for made in self._made:
            made.restore(state)

    def fabricate(
        self, site: Site, layer: int, shape: tuple[int, ...], nominal: Value, array: str = ""
    ) -> Value:
        """Return a value that is set once per chip: a number where nothing changes it."""
        value: Value = nominal
        for effect in self.substrate.at(site):
            bound = Expression(effect.becomes).bind(self.fixed(effect, layer, shape, array))
            value = bound({"s": value, "dt": self.clock.dt, "t": 0.0})
        return value

    def shared(
        self, effect: Effect, layer: int, shape: tuple[int, ...], array: str
    ) -> dict[str, Value]:
        """Return what is fixed for an effect at a place, drawn once for all who look there."""
        key = (effect.name, layer, shape, array)
        if key not in self._fixed:
            self._fixed[key] = self._needed(effect, layer, shape, array)
        return self._fixed[key]

    def _needed(
        self, effect: Effect, layer: int, shape: tuple[int, ...], array: str
    ) -> dict[str, Value]:
        """Return of what is fixed what the effect's texts speak of; few chips at a time."""
        texts = [effect.becomes, *(t for m in effect.memory.values() for t in (m.start, m.update))]
        names = frozenset().union(*(Expression(text).names for text in texts))
        whole: dict[str, Value] = {}
        for first in range(0, len(self.ids), AT_ONCE):
            some, rows = copy(self), slice(first, first + AT_ONCE)
            some.ids = self.ids[rows]
            some.lists = {key: values[rows] for key, values in self.lists.items()}
            for name, value in some.fixed(effect, layer, shape, array).items():
                if name not in names:
                    continue
                if isinstance(value, Tensor) and len(some.ids) < len(self.ids):
                    if first == 0:
                        whole[name] = value.new_empty(len(self.ids), *value.shape[1:])
                    room = whole[name]
                    assert isinstance(room, Tensor)
                    room[rows] = value
                else:
                    whole[name] = value
        return whole

    def fixed(
        self, effect: Effect, layer: int, shape: tuple[int, ...], array: str = ""
    ) -> dict[str, Value]:
        """Return constants, draws and parameters of an effect for one layer.

        Each is a number, or a tensor that broadcasts to the signal.
        """
        values: dict[str, Value] = dict(effect.constants)
        for name in effect.constants:
            if (listed := self.lists.get((effect.name, name))) is not None:
                values[name] = self._tensor(np.asarray(listed).reshape(-1, 1, 1))
        for name, draw in effect.draws.items():
            values[name] = self._drawn(effect, name, draw, layer, shape, array)
        for name, text in effect.parameters.items():
            values[name] = Expression(text).bind(values)({})
        return values

    def _drawn(
        self, effect: Effect, name: str, draw: Draw, layer: int, shape: tuple[int, ...], array: str
    ) -> Tensor:
        size = _size(draw, shape, weights=effect.site in WEIGHT_SITES)
        where = 0 if draw.per == "chip" else layer + 1
        what = crc32(f"{effect.drawn_as or effect.name}.{name}.{array}".encode())
        of_chip: dict[int, np.ndarray] = {}
        for chip in self.ids:
            if chip not in of_chip:
                key = np.random.SeedSequence(self.seed, spawn_key=(chip, what, where))
                rng = np.random.default_rng(key)
                normal = draw.law == "normal"
                of_chip[chip] = rng.standard_normal(size) if normal else rng.random(size)
        drawn = np.stack([of_chip[chip] for chip in self.ids])
        if draw.law == "bernoulli":
            listed = self.lists.get((effect.name, name), [draw.probability])
            drawn = (drawn < np.asarray(listed).reshape(-1, 1, 1)).astype(float)
        return self._tensor(drawn)

    def _tensor(self, values: np.ndarray) -> Tensor:
        return torch.as_tensor(values, dtype=self.dtype, device=self.device)

    def advance(self, steps: int = 1) -> None:
        """Let time pass; a backend calls it after every step."""
        self.clock.step += steps


def _size(draw: Draw, shape: tuple[int, ...], *, weights: bool) -> tuple[int, ...]:
    """Return the axes behind the chip axis: (sample, unit) or (post, pre), 1 where shared."""
    if draw.per in ("chip", "layer"):
        return (1, 1)
    if not weights:
        return (1, shape[-1])
    post, pre = shape
    return {"element": (post, pre), "row": (post, 1), "column": (1, pre)}[draw.per]
