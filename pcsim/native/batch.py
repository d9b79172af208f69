"""Compiled batches: the memory that the code of a discrete rule works on, and the call."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits.error import error_seen
from pcsim.circuits.plan import Plan
from pcsim.errors import UnsupportedError
from pcsim.kernels.energy import PrecisionGaussian
from pcsim.kernels.field import Field
from pcsim.kernels.optim import Rate
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Prior
from pcsim.native.batch_program import BITS, HEADER, Batch, compose, used
from pcsim.native.call import WHO, code
from pcsim.native.compiler import PROBE
from pcsim.native.formula import evaluate
from pcsim.native.threads import share
from pcsim.native.writer import Array, Program, Value
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.transform import Transform

if TYPE_CHECKING:
    from collections.abc import Callable

Masks = Sequence[Mapping[str, int]]
"""Which nodes take part in every step, as bits, by the names of `BITS`."""


@dataclass(frozen=True, eq=False)
class Rates:
    """γ and α of all chips, and what goes with them."""

    gamma: Rate
    alpha: Rate
    scale: float
    weight_decay: float

    @property
    def key(self) -> tuple[object, ...]:
        """What a code is written for: numbers, and whether chips differ."""
        rates = (self.gamma, self.alpha)
        known = (id(rate) if isinstance(rate, Tensor) else rate for rate in rates)
        return (*known, self.scale, self.weight_decay)


@dataclass(frozen=True, eq=False)
class _Made:
    """A program with what does not move."""

    rates: Rates
    program: Program
    function: Callable[..., None]
    numbers: np.ndarray
    fixed: dict[str, Value]
    held: dict[int, Tensor | np.ndarray]
    """By the number of an array: what was found once."""
    seen: dict[str, Tensor]


class Batches:
    """Batches of one population, in compiled code."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        mode: Mode,
        chips: Chips | None,
        *,
        backprop: bool = False,
        threads: int | None = None,
    ) -> None:
        """`threads`: chips are divided among so many; None: as many as torch would use."""
        if chips and chips.substrate.effects and not isinstance(chips.noise, Seeded):
            raise UnsupportedError(f"{WHO}: chips.noise: only counted noise (Seeded) is drawn here")
        self.network, self.params, self.mode, self.backprop = network, params, mode, backprop
        self.chips = chips if chips and chips.substrate.effects else None
        self.clock = chips.clock if chips else None
        self.threads = torch.get_num_threads() if threads is None else threads
        self._made: dict[tuple[object, ...], _Made] = {}
        self._scratch: dict[tuple[int, int], Tensor] = {}
        self._plans: dict[tuple[float, float], tuple[Plan, Circuit]] = {}

    @property
    def dt(self) -> float:
        """Return the time of a step in seconds; of ideal chips no number depends on it."""
        return self.clock.dt if self.clock else 1.0

    @cached_property
    def _transforms(self) -> dict[str, Transform]:
        return {made.key: made for made in self.chips.transforms()} if self.chips else {}

    # ---- the code

    def plan(self, scale: float, decay: float) -> tuple[Plan, Circuit]:
        """Return the equations, whose time constants stand for γ and α."""
        if (scale, decay) not in self._plans:
            circuit = Circuit(kind="algebraic", tau_w=1.0, weight_decay=decay)
            made = Plan.of(
                self.network,
                circuit,
                self.mode,
                scale=scale,
                own_tau_w=True,
                chips=self.chips,
                who=WHO,
                trains=True,
            )
            self._plans[scale, decay] = (made, circuit)
        return self._plans[scale, decay]

    def _prepared(self, samples: int, rates: Rates, followed: frozenset[int]) -> _Made:
        key = (samples, followed, *rates.key)
        if key not in self._made:
            if len(self._made) > 8:  # rates that anneal have a code each, mostly the same
                self._made.clear()
            self._made[key] = self._prepare(samples, rates, followed)
        return self._made[key]

    def _prepare(self, samples: int, rates: Rates, followed: frozenset[int]) -> _Made:
        plan, circuit = self.plan(rates.scale, rates.weight_decay)
        fixed = self._fixed(plan, rates)
        dtype = self.params.flat.dtype
        batch = Batch(samples, dtype, self.dt, circuit, followed, self.backprop)
        program = compose(plan, batch, fixed, self._shown(plan, circuit))
        function = code(program.source).batch
        function.restype = None
        values = [evaluate(node, program.constants) for node in program.numbers]
        made = _Made(rates, program, function, np.asarray(values, dtype=np.float64), fixed, {}, {})
        for number, array in enumerate(program.arrays):
            if (found := self._found_once(array, plan, made, samples)) is not None:
                made.held[number] = found
        return made

    def require(self, rates: Rates) -> None:
        """Refuse, before anything runs, what has no equations here, or no compiler."""
        self.plan(rates.scale, rates.weight_decay)
        code(PROBE)

    def _fixed(self, plan: Plan, rates: Rates) -> dict[str, Value]:
        """Return time constants and variances by name and part."""
        like, dt = self.params.flat, self.dt
        tau_w = _time(dt, rates.alpha, like, 1 / rates.scale)
        fixed: dict[str, Value] = {}
        for k, group in enumerate(plan.groups):
            units = group.units
            tau_x: Value = _time(dt, rates.gamma, like)
            if self.chips and "tau_x" in self.chips.substrate.sites:
                tau_x = self.chips.fabricate("tau_x", k, (units,), 1.0) * tau_x
            fixed |= {f"tau_x@g{k}": tau_x, f"tau_b@g{k}": tau_w, f"tau_var@g{k}": tau_w}
            layer = group.layer
            if layer.precision and not layer.learned_variance:
                variance = torch.as_tensor(group.variance, dtype=torch.float64).reshape(1, 1, -1)
                fixed[f"var@g{k}"] = float(variance) if variance.numel() == 1 else variance
        return fixed | {f"tau_w@m{k}": tau_w for k in range(len(plan.connections))}

    def _shown(self, plan: Plan, circuit: Circuit) -> dict[str, str]:
        """Return what observers see of a step, by name and part."""
        seen: dict[str, str] = {}
        for k, group in enumerate(plan.groups):
            layer = group.layer
            if layer.clamped == "always" or layer.predicted_by == "nothing":
                continue
            if k and self.backprop:  # its loss is that of the output
                break
            if not self.backprop:
                seen[f"x@g{k}"] = "x"
            seen[f"err@g{k}"] = error_seen(circuit, layer)
            if layer.predicted_by == "above":
                outside = layer.bias_outside and layer.g == "identity"
                seen[f"mu@g{k}"] = "mu + b" if outside else "mu"
            if layer.learned_variance:
                seen[f"log_var@g{k}"] = "log_var"
        return seen

    # ---- its memory

    def _found_once(
        self, array: Array, plan: Plan, made: _Made, samples: int
    ) -> Tensor | np.ndarray | None:
        """Return an array that stays where it is; None: it is looked up for every batch."""
        like, chips = self.params.flat, self.params.replicas
        if array.kind == "keys":
            assert self.chips
            noise = self.chips.noise
            assert isinstance(noise, Seeded)
            return np.ascontiguousarray(noise.keys(array.part, chips))
        k = int(array.part[1:]) if array.kind != "memory" else 0
        if array.kind == "fixed":
            value = made.fixed[f"{array.name}@{array.part}"]
            assert isinstance(value, Tensor)
            return value.to(like.dtype).contiguous()
        if array.kind == "drawn":
            parts = plan.groups if array.part[0] == "g" else plan.connections
            blocks = parts[k].blocks
            if array.part[0] == "m":
                blocks += tuple(b for pair in plan.connections[k].trains.values() for b in pair)
            drawn = next(b.drawn[array.name] for b in blocks if array.name in b.drawn)
            return drawn.to(like.dtype).contiguous()
        if array.kind == "seen":
            units = self.network.nodes[k].units
            made.seen[f"{array.name}@{array.part}"] = like.new_zeros(chips, samples, units)
            return made.seen[f"{array.name}@{array.part}"]
        if array.kind == "memory" or array.name == "x":
            return None
        views = self.params.of[k]
        return views[array.name] if array.part[0] == "m" else views[array.name].unsqueeze(1)

    def _moving(self, array: Array, states: Sequence[Tensor]) -> Tensor:
        """Return an array that may be another tensor in every batch."""
        like = self.params.flat
        if array.kind == "memory":
            tensor = self._transforms[array.part].held(array.name)
        else:
            tensor = states[int(array.part[1:])]
        if tensor.dtype != like.dtype or not tensor[0].is_contiguous():
            raise UnsupportedError(
                f"{WHO}: {array.name} of {array.part}: memory is not in one piece"
            )
        return tensor

    def _begin(self, plan: Plan, samples: int) -> dict[str, bool]:
        """Give every place its first memory; say which had none."""
        fresh = {}
        for block in plan.blocks:
            if block.place.gate:  # a clamped soma has no velocity
                continue
            shape = block.shape if len(block.shape) == 2 else (samples, *block.shape)
            like = self.params.flat.new_zeros(1).expand(self.params.replicas, *shape)
            fresh[block.place.key] = self._transforms[block.place.key].begin(like)
        return fresh

    # ---- the call

    def run(
        self,
        states: Sequence[Tensor],
        rates: Rates,
        masks: Masks,
        *,
        forward: bool,
        stopped: Tensor,
        shown: int = -1,
        waited: int = 0,
        followed: frozenset[int] = frozenset(),
    ) -> dict[str, Tensor]:
        """Take the steps of a batch; return what is seen of one of them, by name and part.

        Main arguments:
            states: (chip, sample, unit) by node; those that are free move.
            masks: who takes part in every step.
            forward: begin with the feed-forward pass.
            shown: the step that is looked at; the last one, if negative.
            waited: steps between the passes of backpropagation and its writing.
        """
        samples, chips = states[0].shape[1], self.params.replicas
        plan, _ = self.plan(rates.scale, rates.weight_decay)
        fresh = self._begin(plan, samples)
        made = self._prepared(samples, rates, followed)
        program, step = made.program, self.clock.step if self.clock else 0
        places = [self._transforms[key] for key in program.places]
        passed = np.asarray(
            [
                place.steps_since(step, fresh=fresh[key])
                for key, place in zip(program.places, places, strict=True)
            ],
            dtype=np.int64,
        )
        schedule = np.asarray(
            [
                *(shown % len(masks), waited),
                *(row[name] for row in masks for name in BITS),
            ],
            dtype=np.uint64,
        )
        assert len(schedule) == HEADER + len(BITS) * len(masks)
        held = [made.held.get(n) for n in range(len(program.arrays))]
        held = [
            self._moving(array, states) if found is None else found
            for array, found in zip(program.arrays, held, strict=True)
        ]
        pointers, strides = self._addresses(program, held)
        still = stopped.to(torch.uint8).numpy()

        def part(thread: int, first: int, last: int) -> None:
            made.function(
                pointers,
                strides,
                _address(made.numbers),
                _address(passed),
                _address(schedule),
                _address(still),
                ctypes.c_void_p(self._room(thread, program.scratch).data_ptr()),
                ctypes.c_int64(first),
                ctypes.c_int64(last),
                ctypes.c_int64(len(masks)),
                ctypes.c_uint64(step),
                ctypes.c_int(forward),
            )

        share(part, chips, self.threads)
        self._note(plan, step, masks, waited)
        return made.seen

    def _addresses(
        self, program: Program, held: Sequence[Tensor | np.ndarray | None]
    ) -> tuple[ctypes.Array[ctypes.c_void_p], ctypes.Array[ctypes.c_int64]]:
        """Return where arrays are, and how far the rows of chips are apart, checked."""
        chips, pointers, strides = self.params.replicas, [], []
        for array, size, found in zip(program.arrays, program.sizes, held, strict=True):
            if isinstance(found, np.ndarray):
                pointers.append(found.ctypes.data)
                strides.append(1)
                continue
            assert isinstance(found, Tensor)
            if len(found) not in (1, chips) or found[0].numel() != size:
                raise UnsupportedError(
                    f"{WHO}: {array.name} of {array.part}: {tuple(found.shape)} numbers, where "
                    f"the code takes {size} of each of {chips} chips"
                )
            pointers.append(found.data_ptr())
            strides.append(0 if len(found) == 1 else found.stride(0))
        count = max(1, len(pointers))
        return (ctypes.c_void_p * count)(*pointers), (ctypes.c_int64 * count)(*strides)

    def _room(self, thread: int, size: int) -> Tensor:
        if (thread, size) not in self._scratch:
            self._scratch[thread, size] = self.params.flat.new_empty(size + 32)
        return self._scratch[thread, size]

    def _note(self, plan: Plan, step: int, masks: Masks, waited: int) -> None:
        """Take note of when every place was used last."""
        for block in plan.blocks:
            place = block.place
            if place.gate:
                continue
            transform = self._transforms[place.key]
            if self.backprop:
                transform.applied = step + (waited if place.site == "write" else 0)
            elif (last := used(place.site, place.layer, masks)) is not None:
                transform.applied = step + last


def saw(field: Field, seen: Mapping[str, Tensor], nodes: Sequence[int] | None = None) -> None:
    """Let errors and energies of a field be those of a step that somebody else has taken."""
    for k in field.costed if nodes is None else nodes:
        energy, prior = field.energies[k], field.network.nodes[k].map
        assert energy
        x = seen.get(f"x@g{k}", field.x[k])
        mu = seen.get(f"mu@g{k}")
        if mu is None:
            assert isinstance(prior, Prior)
            mu = torch.full_like(x, prior.mean)
        field.knows_errors, field.mu[k] = True, mu
        energy.errors(x, mu)
        if (
            isinstance(energy, PrecisionGaussian)
            and (log_var := seen.get(f"log_var@g{k}")) is not None
        ):
            energy.seen_with(log_var)
        if (err := seen.get(f"err@g{k}")) is not None:
            field.error_was_read(k, err)


def _time(dt: float, rate: Rate, like: Tensor, factor: float = 1.0) -> Value:
    """Return the time constant dt/rate, (chip, 1, 1) where chips differ."""
    if isinstance(rate, Tensor):
        return dt * factor / rate.to(like).view(-1, 1, 1)
    return dt * factor / rate if rate else float("inf")


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
