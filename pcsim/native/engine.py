"""The engine `native`: the calls of `pcsim.backends.continuous`, with its steps compiled.

Data, resets, checkpoints and observers see the tensors of the torch engine; only the steps between
two looks are taken by C code, chip by chip, see `pcsim.native.program`. Chips share nothing, so
that results do not depend on how many there are, nor on the threads among which they are divided.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.circuits.error import error_seen
from pcsim.circuits.plan import Plan
from pcsim.continuous.delay import DelayLine, whole_steps
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.continuous.flow import Flow, Tau
from pcsim.continuous.plan_flow import PlanFlow
from pcsim.continuous.solvers import Name
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.native.compiler import library
from pcsim.native.formula import evaluate
from pcsim.native.program import Array, Program, Value, compose
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


class Native(Continuous):
    """Chips in continuous time, in compiled steps."""

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
        self._pending = 0
        self._flow: Flow | None = None
        refuse(network, circuit, solver_name, mode, params.flat.device.type)
        if chips and not chips.substrate.effects:
            chips = None
        self._noise = noise
        if circuit.sigma_x and noise is None:
            raise ConfigError(f"{WHO}: noise: circuit.sigma_x needs a source of counted noise")
        if chips and not isinstance(chips.noise, Seeded):
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
            fast=False,
            chips=chips,
        )
        self.threads = torch.get_num_threads() if threads is None else threads
        self._own_tau_w = tau_w is not None
        self._tau_x = tau_x
        self._scale = scale
        self._ready: _Ready | None = None
        self._codes: dict[tuple[int, str], tuple[Program, ctypes.CDLL]] = {}
        self._clamps: dict[tuple[int, str], Tensor] = {}
        """What is clamped by layer and name, as it was then: the code reads these copies."""
        self._mask: Tensor | None = None
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

    @property
    def flow(self) -> Flow:
        """The circuit, with all steps taken that were asked for."""
        assert self._flow is not None
        if self._pending:
            self._settle()
        return self._flow

    @flow.setter
    def flow(self, flow: Flow) -> None:
        self._flow = flow

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; all else flows on."""
        holds = self.network.holds(self.mode)
        for k, (clamp, hold) in enumerate(zip(clamps, holds, strict=True)):
            if clamp is not None and hold == "free" and self.circuit.kind == "dendritic":
                raise UnsupportedError(f"{WHO}: clamps[{k}]: layer {k} is free in mode {self.mode}")
            if clamp is None and hold == "clamped" and k == len(holds) - 1:
                raise UnsupportedError(f"{WHO}: clamps[{k}]: an input cannot be let go")
        super().load(clamps, mask, steps)
        self._clamped(mask)

    def _clamped(self, mask: Tensor | None) -> None:
        """Take note of what is clamped now, in memory of its own."""
        flow = self.flow
        self._ready, self._mask = None, mask
        if isinstance(flow, ErrorFlow):
            fixed = [k for k in range(len(flow.field.x)) if k not in flow.field.free]
            held = {(k, "x"): flow.field.x[k] for k in fixed}
        else:
            assert isinstance(flow, PlanFlow)
            held = flow.clamped()
        self._clamps = {key: _copied(state) for key, state in held.items()}

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Let a clamped layer have new values, with nothing else changed."""
        self._settle()
        for name in ("x", "target"):
            if (held := self._clamps.get((index, name))) is not None:
                held.copy_(value.expand_as(held) if len(held) > 1 else value[:1])

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass."""
        super().feedforward()
        self._ready = None

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        super().restore(state)
        self._clamped(state.get("mask"))

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""
        super().stop(chips)
        self._ready = None

    # ---- steps

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Count the steps that a program yields, and take them when somebody looks."""
        for _ in program:
            self._pending += 1
            self.steps += 1
        self._settle()

    def advance(self, steps: int, watch: Callable[[], None] | None = None) -> None:
        """Integrate `steps` time steps; `watch` is called after each."""
        for count in [1] * steps if watch else [steps]:
            self._pending += count
            self.steps += count
            self._settle()
            if watch:
                watch()

    def _settle(self) -> None:
        """Take all steps that were asked for."""
        steps, self._pending = self._pending, 0
        if not steps:
            return
        assert self._flow is not None
        if self._ready is None:
            self._ready = self._prepare()
        self._ready.run(steps, self.steps - steps)
        self._observe(self._ready)

    def _free(self) -> str:
        if self._mask is not None:
            return "mask"
        return "0" if {(0, "x"), (0, "target")} & self._clamps.keys() else "1"

    def _compose(self, samples: int, free: str) -> Program:
        circuit = self.circuit
        delays = {f: whole_steps(f"circuit.{f}", getattr(circuit, f), self.dt) for f in DELAYS}
        return compose(
            self.plan,
            samples=samples,
            dtype=self.params.flat.dtype,
            dt=self.dt,
            free=free,
            fixed=self._fixed,
            seen=self._seen,
            delays=delays,
        )

    @cached_property
    def plan(self) -> Plan:
        """The equations that are compiled."""
        return Plan.of(
            self.network,
            self.circuit,
            self.mode,
            scale=self._scale,
            own_tau_w=self._own_tau_w,
            chips=self.chips,
            who=WHO,
            unheard=True,
        )

    def _prepare(self) -> _Ready:
        """Return the code for what is clamped now, with pointers to everything."""
        flow = self._flow
        assert flow is not None
        samples = self._states[0].shape[1]
        key = (samples, self._free())
        if key not in self._codes:
            program = self._compose(*key)
            self._codes[key] = (program, code(program.source))
        if isinstance(flow, ErrorFlow):
            flow.keep_floors()
        return _Ready(self, *self._codes[key])

    # ---- what the code is given

    @cached_property
    def _fixed(self) -> dict[str, Value]:
        """Return what is set once per unit or weight, by name and part."""
        flow, sites = self._flow, self.chips.substrate.sites if self.chips else frozenset()
        if isinstance(flow, ErrorFlow):
            made = {"tau_x": flow.tau_x}
            made |= {"tau_err": flow.tau_err} if "tau_err" in sites else {}
        else:
            assert isinstance(flow, PlanFlow)
            made = flow.fabricated
        fixed = {f"{name}@g{k}": v for name, values in made.items() for k, v in enumerate(values)}
        for k, group in enumerate(self.plan.groups):
            if group.layer.precision and not group.layer.learned_variance:
                variance = torch.as_tensor(group.variance, dtype=torch.float64).reshape(1, 1, -1)
                fixed[f"var@g{k}"] = float(variance) if variance.numel() == 1 else variance
        if isinstance(flow, ErrorFlow) and isinstance(flow.tau_w, Tensor):
            whole = flow.tau_w.expand(self.params.flat.shape) / self._scale
            for k, views in enumerate(self.params.views(whole.contiguous())):
                names = {"w": f"tau_w@m{k}", "b": f"tau_b@g{k}", "log_var": f"tau_var@g{k}"}
                fixed |= {
                    names[n]: v if n == "w" else v.unsqueeze(1)
                    for n, v in views.items()
                    if n in names
                }
        return fixed

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
                assert self._mask is not None
                shape = self._states[k][:1]
                return (~self._mask).to(self.params.flat.dtype).expand_as(shape)
            value = self._fixed[f"{name}@{array.part}"]
            assert isinstance(value, Tensor)
            return value
        if array.kind == "drawn":
            parts = self.plan.groups if array.part[0] == "g" else self.plan.connections
            return next(b.drawn[name] for b in parts[k].blocks if name in b.drawn)
        if array.kind == "memory":
            return self._memory(array.part, name)
        if array.part[0] == "g" and (k, name) in self._clamps:
            return self._clamps[k, name]
        # A target that is not given pulls at nothing.
        return self._state(k, array.part, "x" if name == "target" else name)

    @property
    def _states(self) -> list[Tensor]:
        """The somas."""
        flow = self._flow
        if isinstance(flow, ErrorFlow):
            return flow.field.x
        assert isinstance(flow, PlanFlow)
        return [flow.held(k, "x") for k in range(len(self.network.nodes))]

    def _state(self, k: int, part: str, name: str) -> Tensor:
        """Return a state or a weight of the torch circuit, by its name in the plan."""
        flow = self._flow
        if isinstance(flow, PlanFlow):
            if part[0] == "m":
                return flow.of[name][k]["w"]
            return flow.held(k, name)
        assert isinstance(flow, ErrorFlow)
        if part[0] == "m":
            return (self.params if name == "w" else flow.feedback).of[k]["w"]
        if name in ("b", "log_var"):
            return self.params.of[k][name].unsqueeze(1)
        return flow.held(k, name)

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


def _copied(state: Tensor) -> Tensor:
    """Return a copy; what all chips share is kept once."""
    return (state[:1] if state.stride(0) == 0 else state).clone(
        memory_format=torch.contiguous_format
    )


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
        samples = engine._states[0].shape[1]
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
        return (chips, self.engine._states[0].shape[1], *shape)

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
