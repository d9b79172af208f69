"""The Brian2 backend: the calls of `pcsim.backends.continuous`, executed by Brian2.

The same circuit, integrated by Euler's rule in float64, one sample at a time; several chips are
populations that share nothing. `parts` and `net` are plain Brian2 objects: add your monitors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from brian2 import Clock, NetworkOperation, second
from brian2 import Network as BrianNetwork
from brian2.codegen.targets import codegen_targets
from numpy.typing import ArrayLike
from torch import Tensor

from pcsim.backends.brian.build import RECORD, build
from pcsim.backends.brian.initial_weights import basal_gain
from pcsim.backends.brian.names import refuse_clashes
from pcsim.circuit import Circuit
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.nonlinearity import NONLINEARITIES
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode, Network

Target = Literal["numpy", "cython"]


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
        name: str = "pcsim",
    ) -> None:
        """Build a population.

        Main arguments:
            params: initial weights (chip, …); they are read, not moved: see `theta`.
            circuit: kind and time constants; `tau_w` must be set there.
            dt: time step in seconds.
            target: how Brian2 generates code, "numpy" (starts at once) or "cython" (compiles).

        Rarely used:
            scale: what the weights' learning signal is multiplied by.
            tau_x: time constants per layer, each a number or an array that fits (chip, 1, unit).
            tau_w: time constants per weight, an array that fits (chip, parameter).
            name: every Brian2 object's name starts with it.
        """
        if dt <= 0:
            raise ConfigError(f"solver.dt: must be positive, got {dt}")
        if params.flat.dtype != torch.float64:
            raise UnsupportedError(
                f"backend brian: run.dtype {params.flat.dtype}: Brian2 computes in float64 here"
            )
        self.network, self.circuit, self.dt, self.mode = network, circuit, dt, mode
        self.chips = params.replicas
        self.steps = 0
        self._clock = Clock(dt=dt * second, name=f"{name}_clock")
        self.parts = build(
            network,
            circuit,
            params,
            mode,
            seeds=seeds,
            scale=scale,
            tau_x=tau_x,
            tau_w=tau_w,
            name=name,
            clock=self._clock,
            dtype=np.float64,
            codeobj_class=_code(target),
        )
        self._moving = [
            {name: group.variables[name] for name in sorted(group.equations.diff_eq_names)}
            for group in self.parts.layers
        ]
        self._before = self._present()
        self._watch: Callable[[], None] | None = None
        notice = {"clock": self._clock, "when": "groups", "order": RECORD}
        self.net = BrianNetwork(
            *self.parts.objects,
            NetworkOperation(self._remember, name=f"{name}_remember", **notice),
            NetworkOperation(self._count, name=f"{name}_count", clock=self._clock, when="end"),
            name=f"{name}_network",
        )

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
        for k, clamp in enumerate(clamps):
            group, held = self.parts.layers[k], self.parts.plan.groups[k].layer.clamped
            if "target" in group.variables:  # sacramento: a target pulls, it does not clamp
                group.target = 0 if clamp is None else self._spread(clamp)
                group.nudged = float(clamp is not None)
                continue
            if clamp is not None:
                group.x = self._spread(clamp)
            if "u" in group.variables and (held == "switched" or not self.steps):
                group.u = group.x[:]  # a membrane starts where its unit stands
            if held == "switched":
                fixed = torch.full((1, 1, 1), clamp is not None) if mask is None else mask
                group.free = 1.0 - self._spread(fixed.expand(-1, -1, len(group) // self.chips))

    def _check(self, k: int, clamp: Tensor) -> None:
        units, shape = self.network.nodes[k].units, tuple(clamp.shape)
        if clamp.ndim != 3 or shape[2] != units or shape[0] not in (1, self.chips):
            raise ConfigError(
                f"BrianBackend.load.clamps[{k}]: expected ({self.chips} or 1, 1, {units}), "
                f"got {shape}"
            )
        if shape[1] != 1:
            raise UnsupportedError(
                f"backend brian: learning.batch {shape[1]}: a synapse has one weight and sees one "
                f"sample at a time (batch 1); use backend continuous for larger batches"
            )
        hidden = self.parts.plan.groups[k].layer.clamped == "never"
        if hidden and self.circuit.kind in ("dendritic", "sacramento"):
            raise UnsupportedError(
                f"backend brian: clamps[{k}]: this layer is free in mode {self.mode!r}; the "
                f"{self.circuit.kind} circuit has no switch to clamp it here"
            )

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass; error units to zero."""
        for k in reversed(range(len(self.parts.maps))):
            group = self.parts.layers[k]
            drive = basal_gain(self.circuit, k) * self._drive(k, "w", "b")
            g = NONLINEARITIES[self.parts.plan.groups[k].layer.g]
            value = self._flat(g.apply(drive, torch.empty_like(drive)))
            held = "free" in group.variables
            group.x = np.where(group.free[:] > 0, value, group.x[:]) if held else value
        for k, group in enumerate(self.parts.layers):
            if "err" in self._moving[k]:
                group.err = 0
            if "u" in self._moving[k]:
                group.u = group.x[:]
            if self.parts.plan.groups[k].layer.interneurons:
                self._rest(k)

    def _rest(self, k: int) -> None:
        """Set lagged interneurons of layer k, and the apical dendrites they reach, to rest."""
        circuit, parts = self.circuit, self.parts
        if "w_inter" in parts.maps[k].variables:
            predicted = parts.plan.groups[k].constants["a_D"] * self._drive(k, "w_inter", "b_inter")
        else:
            predicted = basal_gain(circuit, k) * self._drive(k, "w", "b")
        x = self._read(k, "x")
        inter = torch.lerp(predicted, x, circuit.conductances.nudging)
        if "inter" in self._moving[k]:
            parts.layers[k].inter = self._flat(inter)
        if circuit.tau_apical:
            back = self._weights(k, "w_fb" if "w_fb" in parts.maps[k].variables else "w")
            if circuit.transport == "sign":
                back = back.sign() * back.square().mean((1, 2), keepdim=True).sqrt()
            gain = parts.plan.groups[k + 1].constants["gain_td"]
            target = gain * torch.bmm(x - circuit.inhibition * inter, back)
            parts.layers[k + 1].v_apical = self._flat(target)

    def _drive(self, k: int, weight: str, bias: str) -> Tensor:
        """Return W f(x) + b onto layer k, from the present state."""
        above, f = self._read(k + 1, "x"), self.parts.plan.groups[k + 1].layer.f
        assert f is not None
        rate = NONLINEARITIES[f].apply(above, torch.empty_like(above))
        drive = torch.bmm(rate, self._weights(k, weight).mT)
        return drive + self._read(k, bias) if self.parts.plan.groups[k].layer.bias else drive

    def advance(self, steps: int, watch: Callable[[], None] | None = None) -> None:
        """Integrate `steps` time steps; `watch` is called after each.

        Every call costs Brian2 a tenth of a second before its first step: prefer few long ones.
        """
        self._watch, goal = watch, self.steps + steps
        if steps:
            refuse_clashes(self.net, self.parts.objects)
            self.net.run(steps * self.dt * second, namespace={})
        assert self.steps == goal, f"{self.steps} steps instead of {goal}"

    def _remember(self) -> None:
        """Keep what moves, as it is when errors are known and nothing has moved yet."""
        self._before = self._present()

    def _present(self) -> list[dict[str, np.ndarray]]:
        return [{n: v.get_value().copy() for n, v in group.items()} for group in self._moving]

    def _count(self) -> None:
        self.steps += 1
        if self._watch:
            self._watch()

    @contextmanager
    def _last_step(self) -> Iterator[None]:
        """Put back, for a moment, the states from which the last step was taken."""
        now = self._present()
        try:
            self._write(self._before)
            yield
        finally:
            self._write(now)

    def _write(self, values: list[dict[str, np.ndarray]]) -> None:
        for group, kept in zip(self._moving, values, strict=True):
            for name, value in kept.items():
                group[name].set_value(value)

    def states(self) -> dict[str, Tensor]:
        """Return states (chip, sample, unit), and what was computed from them in the last step.

        A clamped input has no error here, also where the network gives it a prior.
        """
        found, computed = {}, []
        for k, group in enumerate(self.parts.layers):
            for name, shown in (
                ("x", k),
                ("u", k),
                ("err", k),
                ("inter", k + 1),
                ("v_apical", k),
            ):
                label = f"{name.removeprefix('v_')}{shown}"
                if name == "x" or name in self._moving[k]:
                    found[label] = self._read(k, name)
                elif name in group.variables:
                    computed.append((label, k, name))
        with self._last_step():
            return found | {label: self._read(k, name) for label, k, name in computed}

    def theta(self) -> Parameters:
        """Return the weights in the units of the network, in memory of their own."""
        flat = torch.zeros(self.chips, self.network.parameter_count, dtype=torch.float64)
        theta = Parameters(self.network, flat)
        for k in range(len(self.parts.maps)):
            gain = basal_gain(self.circuit, k)
            theta.of[k]["w"].copy_(gain * self._weights(k, "w"))
            if "b" in theta.of[k]:
                theta.of[k]["b"].copy_(gain * self._read(k, "b")[:, 0])
            if "log_var" in theta.of[k]:
                theta.of[k]["log_var"].copy_(self._read(k, "log_var")[:, 0])
        return theta

    def _read(self, k: int, name: str) -> Tensor:
        numbers = np.array(getattr(self.parts.layers[k], name)[:], dtype=np.float64)
        return torch.from_numpy(numbers).view(self.chips, 1, -1)

    def _weights(self, k: int, name: str) -> Tensor:
        """Return a synaptic variable of map k as (chip, post, pre)."""
        post, pre = self.network.nodes[k].units, self.network.nodes[k + 1].units
        numbers = np.array(getattr(self.parts.maps[k], name)[:], dtype=np.float64)
        return torch.from_numpy(numbers).view(self.chips, post, pre)

    def _spread(self, tensor: Tensor) -> np.ndarray:
        return self._flat(tensor.to(torch.float64).expand(self.chips, -1, -1))

    def _flat(self, tensor: Tensor) -> np.ndarray:
        return np.asarray(tensor.detach().cpu().numpy()).reshape(-1)


def _code(target: str) -> Any:
    """Return the class that generates code, for these objects only (no preference is changed)."""
    known = {kind.class_name: kind for kind in codegen_targets if kind.class_name}
    if target not in ("numpy", "cython") or target not in known:
        raise UnsupportedError(
            f"backend brian: target {target!r}: only the runtime targets 'numpy' and 'cython' run "
            f"here; standalone devices are set by whoever owns the script"
        )
    return known[target]
