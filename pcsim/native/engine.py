"""The engine `native`: the calls of `pcsim.backends.continuous`, with its steps compiled.

Data, resets, checkpoints and observers see the tensors of the torch engine; only the steps between
two looks are taken by C code, chip by chip, see `pcsim.native.program`. Chips share nothing, so
that results do not depend on how many there are, nor on the threads among which they are divided.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.planned import Planned
from pcsim.circuit import Circuit
from pcsim.circuits.error import error_seen
from pcsim.circuits.plan import Plan
from pcsim.continuous.delay import DelayLine, whole_steps
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.continuous.flow import Tau
from pcsim.continuous.plan_flow import PlanFlow
from pcsim.continuous.solvers import Name
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.native.compiler import library
from pcsim.native.formula import evaluate
from pcsim.native.program import Array, Program, compose
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.transform import Transform

WHO = "engine native"
SOLVERS = ("euler", "maruyama")
RANGES = 8
"""Into so many ranges of chips per thread the work is divided, so that no thread waits long."""


def refuse(network: Network, circuit: Circuit, solver: str, mode: Mode, device: str) -> None:
    """Refuse what has no compiled steps, by name, before anything is built."""
    if solver not in SOLVERS:
        raise UnsupportedError(
            f"{WHO}: solver.name {solver!r}: steps are taken by {' or '.join(SOLVERS)}"
        )
    if device != "cpu":
        raise UnsupportedError(f"{WHO}: run.device {device!r}: code is compiled for the 'cpu'")
    if circuit.kind == "spiking":
        raise UnsupportedError(f"{WHO}: circuit.kind 'spiking': events have no compiled steps")
    Plan.of(network, circuit, mode, who=WHO)


class Native(Planned):
    """Chips in continuous time, in compiled steps."""

    who = WHO

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        *,
        dt: float,
        solver_name: Name = "euler",
        mode: Mode = "supervised",
        seeds: Sequence[int] = (),
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        tau_w: Tensor | None = None,
        noise: Seeded | None = None,
        chips: Chips | None = None,
        threads: int | None = None,
    ) -> None:
        """Build a population, as `Continuous` does.

        Main arguments:
            noise: source of the circuit's own noise; needed where `circuit.sigma_x` is set.
            threads: chips are divided among so many; None: as many as torch would use.
        """
        refuse(network, circuit, solver_name, mode, params.flat.device.type)
        self._noise = noise
        if circuit.sigma_x and noise is None:
            raise ConfigError(f"{WHO}: noise: circuit.sigma_x needs a source of counted noise")
        if chips and chips.substrate.effects and not isinstance(chips.noise, Seeded):
            raise UnsupportedError(f"{WHO}: chips.noise: only counted noise (Seeded) is drawn here")
        super().__init__(
            network,
            params,
            circuit,
            dt=dt,
            solver_name=solver_name,
            mode=mode,
            seeds=seeds,
            scale=scale,
            tau_x=tau_x,
            tau_w=tau_w,
            chips=chips,
        )
        self.threads = torch.get_num_threads() if threads is None else threads
        self._ready: _Ready | None = None
        self._codes: dict[tuple[int, str], tuple[Program, ctypes.CDLL]] = {}
        code(self.program_source())

    def program_source(self) -> str:
        """Return the code for one sample with everything clamped."""
        return self._compose(1, "0").source

    @property
    def _transforms(self) -> dict[str, Transform]:
        """What hardware does, by place, with its memory."""
        return {made.key: made for made in self.chips.transforms()} if self.chips else {}

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and by how many threads."""
        return {"engine": "native", "threads": self.threads}

    # ---- what is looked at

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; all else flows on."""
        self.refuse_clamps(clamps)
        super().load(clamps, mask, steps)
        self._ready = None
        self.note_clamps(mask)

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Let a clamped layer have new values, with nothing else changed."""
        self.settle()
        for name in ("x", "target"):
            if (held := self.held_clamps.get((index, name))) is not None:
                held.copy_(value.expand_as(held) if len(held) > 1 else value[:1])

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass."""
        super().feedforward()
        self._ready = None

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        super().restore(state)
        self._ready = None
        self.note_clamps(state.get("mask"))

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""
        super().stop(chips)
        self._ready = None

    # ---- steps

    def settle(self) -> None:
        """Take all steps that were asked for."""
        steps, self.pending = self.pending, 0
        if not steps:
            return
        assert self._flow is not None
        if self._ready is None:
            self._ready = self._prepare()
        self._ready.run(steps, self.steps - steps)
        self._observe(self._ready)

    def _free(self) -> str:
        if self.mask is not None:
            return "mask"
        return "0" if {(0, "x"), (0, "target")} & self.held_clamps.keys() else "1"

    def _compose(self, samples: int, free: str) -> Program:
        circuit = self.circuit
        delays = {f: whole_steps(f"circuit.{f}", getattr(circuit, f), self.dt) for f in DELAYS}
        return compose(
            self.plan,
            samples=samples,
            dtype=self.params.flat.dtype,
            dt=self.dt,
            free=free,
            fixed=self.fixed,
            seen=self._seen,
            delays=delays,
        )

    def _prepare(self) -> _Ready:
        """Return the code for what is clamped now, with pointers to everything."""
        flow = self._flow
        assert flow is not None
        samples = self.somas[0].shape[1]
        key = (samples, self._free())
        if key not in self._codes:
            program = self._compose(*key)
            self._codes[key] = (program, code(program.source))
        if isinstance(flow, ErrorFlow):
            flow.keep_floors()
        return _Ready(self, *self._codes[key])

    # ---- what the code is given

    @cached_property
    def _seen(self) -> dict[str, str]:
        """Return what observers want of the last step, by name and part."""
        seen: dict[str, str] = {}
        for k, group in enumerate(self.plan.groups):
            layer = group.layer
            if layer.clamped == "always" or layer.predicted_by == "nothing":
                continue
            if isinstance(self._flow, PlanFlow):
                seen[f"residual@g{k}"] = self._flow.page.residual
                continue
            seen |= {f"x@g{k}": "x", f"err@g{k}": error_seen(self.circuit, layer)}
            if layer.predicted_by == "above":
                outside = layer.bias_outside and layer.g == "identity"
                seen[f"mu@g{k}"] = "mu + b" if outside else "mu"
            if layer.learned_variance:
                seen[f"log_var@g{k}"] = "log_var"
        if isinstance(self._flow, PlanFlow):
            seen |= {f"{name}@g{k}": name for k, name in self._flow.shown}
        return seen

    def tensor(self, array: Array) -> Tensor:
        """Return the memory that the code works on, (chip, …), a row of length 1 if shared."""
        name = array.name
        if array.kind == "ring":
            return self._line(array).ring[0]
        k = int(array.part[1:]) if array.kind != "memory" else 0
        if array.kind == "fixed":
            if name == "free":
                assert self.mask is not None
                shape = self.somas[k][:1]
                return (~self.mask).to(self.params.flat.dtype).expand_as(shape)
            value = self.fixed[f"{name}@{array.part}"]
            assert isinstance(value, Tensor)
            return value
        if array.kind == "drawn":
            parts = self.plan.groups if array.part[0] == "g" else self.plan.connections
            return next(b.drawn[name] for b in parts[k].blocks if name in b.drawn)
        if array.kind == "memory":
            return self._memory(array.part, name)
        if array.part[0] == "g" and (k, name) in self.held_clamps:
            return self.held_clamps[k, name]
        # A target that is not given pulls at nothing.
        return self.memory_of(k, array.part, "x" if name == "target" else name)

    def _line(self, array: Array) -> DelayLine:
        """Return a delay line of the torch circuit, with room in it."""
        flow, k = self._flow, int(array.part[1:])
        assert isinstance(flow, ErrorFlow)
        line = flow.lines()["late" if array.name == "delay_err" else "late_feedback"][k]
        line.begin(torch.empty_like(flow.field.x[k], memory_format=torch.contiguous_format))
        return line

    def _memory(self, place: str, name: str) -> Tensor:
        """Return what an effect remembers, begun if it never was."""
        return self._transforms[place].held(name)

    # ---- what observers see

    def _observe(self, ready: _Ready) -> None:
        """Let errors and energies of the torch circuit be those of the last step."""
        flow, seen = self._flow, ready.seen
        if isinstance(flow, PlanFlow):
            flow.saw(seen)
            return
        assert isinstance(flow, ErrorFlow)
        for k in flow.field.costed:
            about = {name: seen.get(f"{name}@g{k}") for name in ("x", "mu", "err", "log_var")}
            flow.saw(k, **about)


DELAYS = ("delay_err", "delay_fb")


def code(source: str) -> ctypes.CDLL:
    """Return the compiled code, or refuse with the compiler's reason."""
    made = library(source)
    if made.code is None:
        raise UnsupportedError(f"{WHO}: {made.reason}; run.engine 'torch' needs no compiler")
    return made.code


class _Ready:
    """Code with pointers to everything that it works on."""

    def __init__(self, engine: Native, program: Program, library: ctypes.CDLL) -> None:
        self.engine, self.program = engine, program
        self._function = library.advance
        self._function.restype = None
        self.seen: dict[str, Tensor] = {}
        self._held: list[object] = []
        chips, like = engine.params.replicas, engine.params.flat
        self._fresh = self._begin()
        pointers, strides = [], []
        for array, size in zip(program.arrays, program.sizes, strict=True):
            if array.kind == "keys":
                keys = self._keys(array.part, chips)
                self._held.append(keys)
                pointers.append(keys.ctypes.data)
                strides.append(1)
                continue
            tensor = self._seen(array) if array.kind == "seen" else self._laid_out(array, like)
            if len(tensor) not in (1, chips) or tensor[0].numel() != size:
                raise UnsupportedError(
                    f"{WHO}: {array.name} of {array.part}: {tuple(tensor.shape)} numbers, where "
                    f"the code takes {size} of each of {chips} chips"
                )
            self._held.append(tensor)
            pointers.append(tensor.data_ptr())
            strides.append(0 if len(tensor) == 1 else tensor.stride(0))
        self._pointers = (ctypes.c_void_p * max(1, len(pointers)))(*pointers)
        self._strides = np.asarray(strides, dtype=np.int64)
        numbers = [evaluate(node, program.constants) for node in program.numbers]
        self._numbers = np.asarray(numbers, dtype=np.float64)
        self._stopped = engine.stopped.chips.to(torch.uint8).numpy().copy()
        self._scratch: dict[int, Tensor] = {}

    def _keys(self, source: str, chips: int) -> np.ndarray:
        engine = self.engine
        noise = engine._noise if source.startswith("soma.") else engine.chips.noise  # type: ignore
        assert isinstance(noise, Seeded)
        return np.ascontiguousarray(noise.keys(source, chips))

    def _seen(self, array: Array) -> Tensor:
        engine = self.engine
        k, like = int(array.part[1:]), engine.params.flat
        units = engine.network.nodes[k].units
        samples = engine.somas[0].shape[1]
        made = like.new_zeros(like.shape[0], samples, units)
        self.seen[f"{array.name}@{array.part}"] = made
        return made

    def _laid_out(self, array: Array, like: Tensor) -> Tensor:
        """Return the memory of an array; what moves must be what the circuit holds."""
        tensor = self.engine.tensor(array)
        if array.kind in ("fixed", "drawn"):
            return tensor.to(like.dtype).contiguous()
        if tensor.dtype != like.dtype or not tensor[0].is_contiguous():
            raise UnsupportedError(
                f"{WHO}: {array.name} of {array.part}: memory is not in one piece"
            )
        if len(tensor) > 1 and tensor.stride(0) == 0:
            raise UnsupportedError(f"{WHO}: {array.name} of {array.part}: chips share what moves")
        return tensor

    def _begin(self) -> dict[str, bool]:
        """Give every place its first memory; say which had none."""
        engine, fresh = self.engine, {}
        for block in engine.plan.blocks:
            made = engine._transforms[block.place.key]
            like = engine.params.flat.new_zeros(1).expand(self._shape(block.shape))
            fresh[block.place.key] = made.begin(like)
        return fresh

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        chips = self.engine.params.replicas
        if len(shape) == 2:
            return (chips, *shape)
        return (chips, self.engine.somas[0].shape[1], *shape)

    def run(self, steps: int, before: int) -> None:
        """Take steps, the first of which is number `before` of the run."""
        engine, program = self.engine, self.program
        hardware = engine.chips
        step = hardware.clock.step if hardware else 0
        places = [engine._transforms[key] for key in program.places]
        passed = np.asarray(
            [
                made.steps_since(step, fresh=self._fresh[key])
                for key, made in zip(program.places, places, strict=True)
            ],
            dtype=np.int64,
        )
        self._fresh = dict.fromkeys(self._fresh, False)
        lines = [engine._line(Array("ring", f"g{k}", name)) for name, k in program.rings]
        positions = np.asarray([line.position for line in lines], dtype=np.int64)
        chips = engine.params.replicas

        def part(thread: int, first: int, last: int) -> None:
            if thread not in self._scratch:
                self._scratch[thread] = engine.params.flat.new_empty(program.scratch + 32)
            self._function(
                self._pointers,
                _address(self._strides),
                _address(self._numbers),
                _address(passed),
                _address(positions),
                _address(self._stopped),
                ctypes.c_void_p(self._scratch[thread].data_ptr()),
                ctypes.c_int64(first),
                ctypes.c_int64(last),
                ctypes.c_int64(steps),
                ctypes.c_uint64(step),
                ctypes.c_uint64(before),
                ctypes.c_int64(chips),
            )

        threads = min(engine.threads, chips)
        if threads <= 1:
            part(0, 0, chips)
        else:
            bounds = np.linspace(0, chips, threads + 1).astype(int).tolist()
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, range(threads), bounds[:-1], bounds[1:]))
        for line in lines:
            line.position = (line.position + steps) % (line.steps + 1)
        if hardware:
            hardware.advance(steps)
            for block in engine.plan.blocks:
                if not (block.place.gate and engine._free() == "0"):
                    engine._transforms[block.place.key].applied = step + steps - 1


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)
