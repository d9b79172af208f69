"""The Brian2 backend: the calls of `pcsim.backends.continuous`, executed by Brian2.

The same circuit, integrated by Euler's rule; several chips are populations that share nothing.
`parts` are plain Brian2 objects, and so is `net` where Brian2 runs in this process: add your
monitors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from brian2 import Clock, second
from brian2 import Network as BrianNetwork
from numpy.typing import ArrayLike
from torch import Tensor

from pcsim.backends.brian.arrays import Arrays
from pcsim.backends.brian.build import Parts, build
from pcsim.backends.brian.dense import build_dense, why_not_dense
from pcsim.backends.brian.draws import Draw, counted, operation, own_draws
from pcsim.backends.brian.forward_pass import ForwardPass
from pcsim.backends.brian.hardware import set_value
from pcsim.backends.brian.matrix_products import SHARED, MatrixProducts
from pcsim.backends.brian.observe import Population
from pcsim.backends.brian.refusals import refuse_target
from pcsim.backends.brian.runtime import Runtime, code_class
from pcsim.backends.brian.standalone import Building, Standalone
from pcsim.backends.stopped import Stopped
from pcsim.brian_settings import Target
from pcsim.circuit import Circuit
from pcsim.circuits import PAGES
from pcsim.circuits.page import no
from pcsim.circuits.plan import Plan
from pcsim.engine import beyond_limit, of_run
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.on_chip import Encoder, fabricated_tau_w
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Noise

ARRAYS = ("w", "w_fb", "w_inter", "w_pi", "w_down")
"""What a map may hold."""
FLOATS = {torch.float64: np.float64, torch.float32: np.float32}


class BrianBackend:
    """Chips in continuous time, in Brian2."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        *,
        dt: float,
        mode: Mode = "supervised",
        seeds: Sequence[int] = (),
        scale: float = 1.0,
        tau_x: Sequence[ArrayLike] | None = None,
        tau_w: Tensor | None = None,
        target: Target = "numpy",
        dense: bool | None = False,
        folder: str | Path | None = None,
        samples: int = 1,
        chips: Chips | None = None,
        noise: Noise | None = None,
        name: str = "pcsim",
    ) -> None:
        """Build a population.

        Main arguments:
            params: initial weights (chip, …); they are read, not moved: see `theta`. Their type,
                float64 or float32, is that of all arrays.
            circuit: kind and time constants; `tau_w` must be set there.
            dt: time step in seconds.
            target: "numpy" (starts at once), "cython" (compiles), "standalone" (a C++ program).
            dense: whole layers at once instead of `Synapses`: by matrix products, and in
                standalone by one fused pass over the weights; None: where the circuit allows it.

        Rarely used:
            scale: what the weights' learning signal is multiplied by.
            tau_x: time constants per layer, each a number or an array that fits (chip, 1, unit).
            tau_w: time constants per weight, an array that fits (chip, parameter).
            folder: where the standalone program is built; none: a temporary folder.
            samples: how many samples share the weights of a chip (more than one needs `dense`).
            chips: the hardware they are, one per replica; None is ideal hardware.
            noise: source of the circuit's own noise; needed where `circuit.sigma_x` is set.
            name: every Brian2 object's name starts with it.
        """
        if dt <= 0:
            raise ConfigError(f"solver.dt: must be positive, got {dt}")
        if chips and not chips.substrate.effects:
            chips = None
        own = tau_w is not None or (chips is not None and "tau_w" in chips.substrate.sites)
        plan = Plan.of(network, circuit, mode, scale=scale, own_tau_w=own, name=name, chips=chips)
        if dense is None:
            dense = why_not_dense(plan, own) is None
        refuse_target(plan, circuit.kind, target, dense, samples, folder)
        self.network, self.circuit, self.params = network, circuit, params
        self.dt, self.mode = dt, mode
        self.chips, self.samples = params.replicas, samples

        def parts(**options: Any) -> Parts:
            options |= {"dtype": FLOATS[params.flat.dtype], "seeds": seeds, "tau_x": tau_x}
            if dense:
                options |= {"samples": samples, "own": own, "on": chips}
                return build_dense(counted(plan), circuit, params, mode, **options)
            options |= {"tau_w": tau_w, "scale": scale, "name": name}
            options |= {"chips": chips, "noise": False}
            return build(network, circuit, params, mode, **options)

        def draws(parts: Parts) -> list[Draw]:
            like = torch.zeros(self.chips, samples, dtype=params.flat.dtype)
            own = own_draws(parts.layers, noise, like, lambda: self.steps)
            return [*(parts.on_chip.draws if parts.on_chip else ()), *own]

        if target == "standalone":
            building = Building(folder, name, fused=dense, on=chips, draws=draws)
            self._simulator: Standalone | Runtime = Standalone(
                parts, circuit, self.chips, dt, building
            )
            self.parts, arrays = self._simulator.parts, self._simulator.arrays
        else:
            self._clock = Clock(dt=dt * second, name=f"{name}_clock")
            self.parts = parts(clock=self._clock, codeobj_class=code_class(target))
            arrays = Arrays(self.parts, self.chips, samples, set_value)
            objects = self.parts.objects
            if dense:
                by_products = MatrixProducts(self.parts, self.chips, samples, self._clock, name)
                objects = objects + by_products.operations
            if drawn := draws(self.parts):
                objects = [*objects, operation(drawn, self._clock, name)]
            self._simulator = Runtime(
                arrays, ForwardPass(arrays, circuit), objects, self._clock, name, chips
            )
        self._encode = Encoder(chips, network, mode == "supervised")
        self._arrays = arrays
        nominal = circuit.weight_time if tau_w is None else tau_w
        times = fabricated_tau_w(chips, params, nominal)
        self.flow = Population(
            arrays, network, circuit, params, self._simulator, dt=dt, seeds=seeds, tau_w=times
        )
        self._released = False
        self.stopped = Stopped(self.chips)
        self.diverged_at = torch.full((self.chips,), float("nan"), dtype=torch.float64)

    @property
    def net(self) -> BrianNetwork:
        """The Brian2 `Network`; a standalone program has it behind it."""
        return self._simulator.net

    @property
    def steps(self) -> int:
        """Time steps so far."""
        return self._simulator.steps

    @property
    def time(self) -> float:
        """Simulated seconds so far."""
        return self.steps * self.dt

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; all else flows on. `steps` is for other backends: it changes nothing.

        A datum that the mode clamps but that gets None is let go, from its present value. What is
        given for a free layer is its initial value.
        """
        if len(clamps) != len(self.parts.layers):
            raise ConfigError(
                f"BrianBackend.load: {len(clamps)} clamps given for {len(self.parts.layers)} layers"
            )
        if (mask is not None) != (self.mode == "associative"):
            raise ConfigError("BrianBackend.load.mask: is needed in associative mode, only there")
        for k, clamp in enumerate(clamps):
            if clamp is not None:
                self._check(k, clamp)
            elif self.parts.plan.groups[k].layer.clamped == "always":
                raise UnsupportedError(
                    f"backend brian: clamps[{k}]: an input is no dynamic state here and cannot be "
                    f"let go; build with mode='generative' for a top layer that is free"
                )
        for k, clamp in enumerate(self._encode(clamps)):
            held = self.parts.plan.groups[k].layer.clamped
            if self._arrays.has(k, "target"):  # it pulls, it does not clamp
                self._pull(k, clamp)
                continue
            if clamp is not None:
                self._simulator.write(k, "x", clamp)
            if self._arrays.has(k, "u") and (held == "switched" or not self.steps):
                self._simulator.start_membrane(k)
            if held == "switched":
                self._released = clamp is None
                fixed = torch.full((1, 1, 1), clamp is not None) if mask is None else mask
                self._simulator.write(k, "free", 1.0 - fixed.to(self.params.flat.dtype))

    def _pull(self, k: int, target: Tensor | None) -> None:
        zero = torch.zeros(1, 1, 1, dtype=self.params.flat.dtype)
        self._simulator.write(k, "target", zero if target is None else target)
        for layer in range(len(self.parts.layers)):  # whoever hears of it
            if self._arrays.has(layer, "nudged"):
                self._simulator.write(layer, "nudged", zero if target is None else zero + 1)

    def _check(self, k: int, clamp: Tensor) -> None:
        units, shape = self.network.nodes[k].units, tuple(clamp.shape)
        if clamp.ndim != 3 or shape[2] != units or shape[0] not in (1, self.chips):
            raise ConfigError(
                f"BrianBackend.load.clamps[{k}]: expected ({self.chips} or 1, {self.samples}, "
                f"{units}), got {shape}"
            )
        if shape[1] != self.samples:
            seen = "one sample" if self.samples == 1 else f"{self.samples} samples"
            raise UnsupportedError(
                f"backend brian: learning.batch {shape[1]}: this population sees {seen} at a time; "
                f"build it with dense=True and samples={shape[1]}"
            )
        hidden = self.parts.plan.groups[k].layer.clamped == "never"
        if hidden and PAGES[self.circuit.kind].potentials:
            raise UnsupportedError(
                f"backend brian: clamps[{k}]: this layer is free in mode {self.mode!r}; the "
                f"{self.circuit.kind} circuit has no switch to clamp it here"
            )

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Let a clamped layer have new values, with nothing else changed."""
        pulled = self._arrays.has(index, "target")
        self._simulator.write(index, "target" if pulled else "x", value)

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass; error units to zero."""
        self._simulator.feedforward()

    def set_states(self, states: Mapping[str, Tensor]) -> None:
        """Set states that move, by name."""
        for name, value in states.items():
            self._simulator.write(*self.flow.variable(name), value)

    def zero_states(self) -> None:
        """Set every state that moves to zero."""
        zero = torch.zeros(1, 1, 1, dtype=self.params.flat.dtype)
        let_go = ["x0", "u0"] if self._arrays.has(0, "u") else ["x0"]
        names = self.flow.moving_names() + (let_go if self._released else [])
        self.set_states(dict.fromkeys(names, zero))

    def advance(self, steps: int, watch: Callable[[], None] | None = None) -> None:
        """Integrate `steps` time steps; `watch` is called after each.

        Every call costs Brian2 a tenth of a second before its first step: prefer few long ones.
        """
        self.drive(_repeat(steps, watch), steps)

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Take one step whenever the program yields, at most `steps`; it acts between them."""
        self._simulator.drive(program, steps)

    def states(self) -> dict[str, Tensor]:
        """Return states (chip, sample, unit), and what was computed from them in the last step."""
        return self.flow.states()

    def theta(self) -> Parameters:
        """Return the weights in the units of the network, in memory of their own."""
        return self.flow.theta()

    def look_back(self) -> None:
        """Nothing was computed since the last step was taken."""

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""
        if isinstance(self._simulator, Standalone):
            raise no("chips that stop with brian.target 'standalone'", "it runs in one piece")
        self.stopped.add(chips, self._own())
        self._simulator.after_step = self._hold

    def _hold(self) -> None:
        own = self._own()
        self.stopped.hold(own)
        for name, variable in self._moving().items():
            self._arrays.put(variable, own[name])
        if self.parts.on_chip:
            self.parts.on_chip.put_back(own)

    def _own(self) -> dict[str, Tensor]:
        """Return copies of all that moves: states, weights, what devices remember."""
        named = {
            name: torch.from_numpy(np.array(variable.get_value())).view(self.chips, -1)
            for name, variable in self._moving().items()
        }
        return named | (self.parts.on_chip.memory() if self.parts.on_chip else {})

    def _moving(self) -> dict[str, Any]:
        states = {f"{v.name}.{k}": v for k, layer in enumerate(self._arrays.moving) for v in layer}
        events = {f"events.{sender}": v for sender, v in self.parts.counters.items()}
        return states | events | {f"weights.{k}": v for k, v in enumerate(self._learning())}

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and by how many threads."""
        return {"engine": "brian", "threads": 1}

    def mark_diverged(self) -> Tensor:
        """Note the time at which chips are found diverged; return all that are (chip,)."""
        diverged = beyond_limit(self.states(), self.theta().flat)
        self.diverged_at[diverged & self.diverged_at.isnan() & ~self.stopped.chips] = self.time
        return ~self.diverged_at.isnan()

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on but the hardware's own; nothing is changed."""
        self._simulator.settle()
        state = {
            name: torch.from_numpy(np.array(variable.get_value()))
            for name, variable in self._arrays.changing().items()
        }
        for k, before in enumerate(self._simulator.before):
            state |= {f"before{k}.{n}": torch.from_numpy(np.array(v)) for n, v in before.items()}
        return state | of_run(self) | {"released": torch.tensor(self._released)}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        for name, variable in self._arrays.changing().items():
            self._arrays.put(variable, state[name])
        before = [
            {name: state[f"before{k}.{name}"].numpy() for name in now}
            for k, now in enumerate(self._simulator.before)
        ]
        self._simulator.resume(int(state["steps"]), before)
        self.diverged_at.copy_(state["diverged_at"])
        self._released = bool(state["released"])

    def _learning(self) -> list[Any]:
        """Return the variables of maps, and the biases beside the layers' states."""
        learning = [
            link.variables[n] for link in self.parts.maps for n in ARRAYS if n in link.variables
        ]
        return learning + [v for layer in self._arrays.moving for v in layer if v.name in SHARED]


def _repeat(steps: int, watch: Callable[[], None] | None) -> Iterator[None]:
    for _ in range(steps):
        yield
        if watch:
            watch()
