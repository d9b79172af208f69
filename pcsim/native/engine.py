"""The engine `native`: the calls of `pcsim.backends.continuous`, with its steps compiled.

Data, resets, checkpoints and observers see the tensors of the torch engine; only the steps between
two looks are taken by C code, chip by chip, see `pcsim.native.program`. Chips share nothing, so
that results do not depend on how many there are, nor on the threads among which they are divided.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor

from pcsim.backends.planned import Planned
from pcsim.circuit import Circuit
from pcsim.circuits.error import error_seen, prediction_error
from pcsim.circuits.plan import Plan
from pcsim.continuous.delay import DelayLine, whole_steps
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.continuous.flow import Tau
from pcsim.continuous.plan_flow import PlanFlow
from pcsim.continuous.solvers import Name
from pcsim.continuous.spiking import SpikingFlow
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.native.call import WHO, Ready, code
from pcsim.native.program import compose
from pcsim.native.writer import Array, Program
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Seeded
from pcsim.substrate.transform import Transform

SOLVERS = ("euler", "maruyama")


def refuse(network: Network, circuit: Circuit, solver: str, mode: Mode, device: str) -> None:
    """Refuse what has no compiled steps, by name, before anything is built."""
    if solver not in SOLVERS:
        raise UnsupportedError(
            f"{WHO}: solver.name {solver!r}: steps are taken by {' or '.join(SOLVERS)}"
        )
    if device != "cpu":
        raise UnsupportedError(f"{WHO}: run.device {device!r}: code is compiled for the 'cpu'")
    Plan.of(network, circuit, mode, who=WHO)


class Native(Planned):
    """Chips in continuous time, in compiled steps."""

    who = WHO
    trains = True

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
        self._ready: Ready | None = None
        self._calls: dict[tuple[int, str], Ready] = {}
        """Calls that were made ready before, by what they are for."""
        self._codes: dict[tuple[int, str], tuple[Program, ctypes.CDLL]] = {}
        code(self.program_source())

    def program_source(self) -> str:
        """Return the code for one sample with everything clamped."""
        return self._compose(1, "0").source

    @cached_property
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
        self._forget()
        self.note_clamps(state.get("mask"))

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""
        super().stop(chips)
        self._forget()

    def _forget(self) -> None:
        """Make every call ready anew."""
        self._ready = None
        self._calls = {}

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

    def _prepare(self) -> Ready:
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
        if (known := self._calls.get(key)) is not None:
            known.again()
            return known
        self._calls[key] = Ready(self, *self._codes[key])
        return self._calls[key]

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
            if isinstance(self._flow, SpikingFlow):
                seen[f"residual@g{k}"] = prediction_error(layer)
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
            blocks = parts[k].blocks
            if array.part[0] == "m":
                pairs = self.plan.connections[k].trains.values()
                blocks += tuple(block for pair in pairs for block in pair)
            return next(b.drawn[name] for b in blocks if name in b.drawn)
        if array.kind == "memory":
            return self._memory(array.part, name)
        if array.kind == "count":
            return self._flow.events()[f"{name}{k}"]  # type: ignore[union-attr]
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

    def _observe(self, ready: Ready) -> None:
        """Let errors and energies of the torch circuit be those of the last step."""
        flow, seen = self._flow, ready.seen
        if isinstance(flow, PlanFlow):
            flow.saw(seen)
            return
        if isinstance(flow, SpikingFlow):
            for name, residual in seen.items():
                flow.saw(int(name.partition("@g")[2]), residual)
            return
        assert isinstance(flow, ErrorFlow)
        for k in flow.field.costed:
            about = {name: seen.get(f"{name}@g{k}") for name in ("x", "mu", "err", "log_var")}
            flow.saw(k, **about)


DELAYS = ("delay_err", "delay_fb")
