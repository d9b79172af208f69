"""What is seen of a Brian2 population from outside: the names and shapes of the torch backend.

States that move are shown as they are; what is computed from them (algebraic errors, quasi-static
compartments, energies) belongs to the state from which the last step was taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.brian.arrays import Arrays
from pcsim.backends.brian.initial_weights import basal_gain
from pcsim.circuit import Circuit
from pcsim.circuits import PAGES
from pcsim.kernels.energy import energy_kernel
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback
from pcsim.maps import Prior
from pcsim.network import Network
from pcsim.substrate.expression import Value

SHOWN = {
    "x": ("x", 0),
    "u": ("u", 0),
    "err": ("err", 0),
    "inter": ("inter", 1),
    "v_apical": ("apical", 0),
}
"""Variables of layer k and the names they are shown by, with what is added to k."""
TRACES = {name: (name, 0) for name in ("r_hat", "err_hat", "mu", "fb")}
"""The same where they are states of their own: what events leave behind."""
VARIABLES = {shown: (name, shift) for name, (shown, shift) in (SHOWN | TRACES).items()}


class Steps(Protocol):
    """Whoever takes the steps."""

    before: list[dict[str, np.ndarray]]
    """What moves in each layer, as it was before the last step."""

    @property
    def steps(self) -> int:
        """Time steps so far."""

    def settle(self) -> None:
        """Take all steps that were asked for, so that arrays are up to date."""


class Population:
    """A Brian2 population, to be looked at."""

    def __init__(
        self,
        arrays: Arrays,
        network: Network,
        circuit: Circuit,
        params: Parameters,
        simulator: Steps,
        *,
        dt: float,
        seeds: Sequence[int],
        tau_w: Value,
    ) -> None:
        """`tau_w` in seconds: a number, or what fits (chip, parameter)."""
        self._arrays, self._simulator, self._tau_w = arrays, simulator, tau_w
        self.network, self.circuit, self._dt = network, circuit, dt
        self._start = Parameters(network, params.flat.detach().clone())
        self._seeds = list(seeds) or list(range(params.replicas))

    def states(self) -> dict[str, Tensor]:
        """Return states (chip, sample, unit), and what was computed from them in the last step.

        A clamped input has no error here, also where the network gives it a prior.
        """
        self._simulator.settle()
        arrays, states, computed = self._arrays, {}, {}
        for k, before in enumerate(self._simulator.before):
            for name, (shown, shift) in (SHOWN | TRACES).items():
                if name == "x" or name in before:
                    states[f"{shown}{k + shift}"] = arrays.read(k, name)
                elif name not in TRACES and arrays.has(k, name):
                    computed[f"{shown}{k + shift}"] = arrays.read(k, name, before)
        return states | computed

    def events(self) -> dict[str, Tensor]:
        """Return the events so far (chip, unit), by sender."""
        self._simulator.settle()
        return {
            sender: torch.from_numpy(counts).view(len(self._start.flat), -1)
            for sender, counts in self._arrays.parts.events().items()
        }

    def moving(self) -> dict[str, Tensor]:
        """Return copies of the states that move, by name."""
        self._simulator.settle()
        return {label: self._arrays.read(*self.variable(label)) for label in self.moving_names()}

    def moving_names(self) -> list[str]:
        """Return the names of the states that move when no layer is let go."""
        names = []
        for name, (shown, shift) in (SHOWN | TRACES).items():
            for k, before in enumerate(self._simulator.before):
                held = name in ("x", "u") and self._arrays.has(k, "free")
                if name in before and not held:
                    names.append(f"{shown}{k + shift}")
        return names

    def variable(self, label: str) -> tuple[int, str]:
        """Return layer and variable of a name such as `x1`."""
        shown = label.rstrip("0123456789")
        name, shift = VARIABLES[shown]
        return int(label.removeprefix(shown)) - shift, name

    def theta(self) -> Parameters:
        """Return the weights in the units of the network, in memory of their own."""
        self._simulator.settle()
        arrays, theta = self._arrays, Parameters(self.network, torch.zeros_like(self._start.flat))
        for k in range(len(arrays.parts.maps)):
            gain = basal_gain(self.circuit, k)
            theta.of[k]["w"].copy_(gain * arrays.weights(k, "w"))
            if "b" in theta.of[k]:
                theta.of[k]["b"].copy_(gain * arrays.read(k, "b")[:, 0])
            if "log_var" in theta.of[k]:
                theta.of[k]["log_var"].copy_(arrays.read(k, "log_var")[:, 0])
        return theta

    def stored(self) -> list[Tensor]:
        """Return every array that learns, in the order and layout of the torch engine.

        Zero stands where Brian2 has no array: onto a clamped input, which hears nothing.
        """
        self._simulator.settle()
        circuit, arrays = self.circuit, self._arrays
        names = ["w", "w_inter", "w_pi", "w_down"] if circuit.kind == "sacramento" else ["w"]
        names += ["w_inter"] if circuit.kind == "dendritic" and circuit.inter_learned else []
        names += ["w_fb"] if circuit.transport == "kolen_pollack" else []
        found = []
        for name in names:
            flat = torch.zeros_like(self._start.flat)
            beside = {"w": ("b", "log_var"), "w_inter": ("b_inter",)}.get(name, ())
            for k, link in enumerate(arrays.parts.maps):
                views = self._start.views(flat)[k]
                if name in link.variables:
                    views["w"].copy_(arrays.weights(k, name))
                for each in beside:
                    if arrays.has(k, each):
                        views[each.removesuffix("_inter")].copy_(arrays.read(k, each)[:, 0])
            found.append(flat)
        return found

    def energy_by_node(self) -> Tensor:
        """Return E_l (chip, predicted node), summed over samples, of the last step."""
        self._simulator.settle()
        totals = []
        for k, node in enumerate(self.network.nodes):
            if node.map is not None:
                x, mu, own = self._compared(k)
                released = self._arrays.has(k, "free") and bool(
                    (self._arrays.read(k, "free") > 0).all()
                )
                kernel = energy_kernel(node, "free" if released or k else "clamped", own)
                assert kernel  # every layer of a chain is a value node
                kernel.allocate(x)
                kernel.errors(x, mu)
                totals.append(kernel.total())
        return torch.stack(totals, 1)

    def _compared(self, k: int) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Return x and its prediction in the last step, and the learned variance."""
        arrays, before = self._arrays, self._simulator.before[k]
        spec, x = self.network.nodes[k].map, arrays.read(k, "x", before)
        learned = arrays.has(k, "log_var")
        own = {"log_var": arrays.read(k, "log_var", before)[:, 0]} if learned else {}
        if isinstance(spec, Prior):
            return x, torch.full_like(x, spec.mean), own
        if (away := PAGES[self.circuit.kind].residual) != "err":
            return x, x - arrays.read(k, away, before), own
        if not arrays.has(k, "mu"):
            return x, x - arrays.read(k, "err", before), own
        mu = arrays.read(k, "mu", before)
        outside = arrays.stored(k, "mu") and arrays.parts.plan.groups[k].layer.bias_outside
        return x, mu + arrays.read(k, "b", before) if outside else mu, own

    @property
    def feedback(self) -> Feedback | None:
        """Feedback weights, where they are arrays of their own.

        Nothing needs those onto a clamped input, so Brian2 has none: fixed ones are as they were
        drawn, and Kolen–Pollack's follow from θ − B = (1 − λ dt/τ_w)ⁿ (θ − B)(0), by weight.
        """
        circuit = self.circuit
        if circuit.transport == "shared":
            return None
        theta = self.theta()
        gain = circuit.feedback_gain
        drawn = Feedback(circuit.transport, self._start, self._seeds, gain)
        now = Feedback(circuit.transport, theta, self._seeds, gain)
        once = 1 - circuit.weight_decay * self._dt / (self._tau_w * torch.ones_like(theta.flat))
        kept = theta.views(once**self._simulator.steps)
        for k, link in enumerate(self._arrays.parts.maps):
            if "w_fb" in link.variables:
                now.of[k]["w"].copy_(self._arrays.weights(k, "w_fb"))
            elif now.learns:
                start = self._start.of[k]["w"] - drawn.of[k]["w"]
                now.of[k]["w"].copy_(theta.of[k]["w"] - kept[k]["w"] * start)
        return now
