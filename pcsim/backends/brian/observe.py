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
from pcsim.backends.brian.build import basal_gain
from pcsim.circuit import Circuit
from pcsim.kernels.energy import PrecisionGaussian, UnitGaussian, energy_kernel
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback
from pcsim.maps import Prior
from pcsim.network import Network

SHOWN = {"x": ("x", 0), "err": ("err", 0), "inter": ("inter", 1), "v_apical": ("apical", 0)}
"""Variables of layer k and the names they are shown by, with what is added to k."""
VARIABLES = {shown: (name, shift) for name, (shown, shift) in SHOWN.items()}


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
    ) -> None:
        self._arrays, self._simulator = arrays, simulator
        self.network, self.circuit, self._dt = network, circuit, dt
        self._start = Parameters(network, params.flat.detach().clone())
        self._seeds = list(seeds) or list(range(params.replicas))

    def states(self) -> dict[str, Tensor]:
        """Return states (chip, sample, unit), and what was computed from them in the last step.

        A clamped input has no error here, also where the network gives it a prior.
        """
        self._simulator.settle()
        arrays, found, computed = self._arrays, {}, {}
        for k, before in enumerate(self._simulator.before):
            for name, (shown, shift) in SHOWN.items():
                if name == "x" or name in before:
                    found[f"{shown}{k + shift}"] = arrays.read(k, name)
                elif arrays.has(k, name):
                    computed[f"{shown}{k + shift}"] = arrays.read(k, name, before)
        return found | computed

    def moving(self) -> dict[str, Tensor]:
        """Return copies of the states that move, by name."""
        self._simulator.settle()
        return {label: self._arrays.read(*self.variable(label)) for label in self.moving_names()}

    def moving_names(self) -> list[str]:
        """Return the names of the states that move when no layer is let go."""
        names, groups = [], self._arrays.parts.plan.groups
        for name, (shown, shift) in SHOWN.items():
            for k, before in enumerate(self._simulator.before):
                if name in before and not (name == "x" and groups[k].layer.clamped != "never"):
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
        return theta

    def energy_by_node(self) -> Tensor:
        """Return E_l (chip, predicted node), summed over samples, of the last step."""
        self._simulator.settle()
        totals = []
        for k, node in enumerate(self.network.nodes):
            if node.map is not None:
                kernel = energy_kernel(node, "free", {})
                assert isinstance(kernel, UnitGaussian | PrecisionGaussian)
                totals.append(kernel.cost(self._difference(k)))
        return torch.stack(totals, 1)

    def _difference(self, k: int) -> Tensor:
        """Return ε = x − μ of node k in the last step."""
        arrays, before = self._arrays, self._simulator.before[k]
        spec = self.network.nodes[k].map
        if isinstance(spec, Prior):
            return arrays.read(k, "x", before) - spec.mean
        if not arrays.has(k, "mu"):
            return arrays.read(k, "err", before)
        error = arrays.read(k, "x", before) - arrays.read(k, "mu")
        return error - arrays.read(k, "b", before) if arrays.has(k, "b") else error

    @property
    def feedback(self) -> Feedback | None:
        """Feedback weights, where they are arrays of their own.

        Nothing needs those onto a clamped input, so Brian2 has none: fixed ones are as they were
        drawn, and Kolen–Pollack's follow from θ − B = (1 − λ dt/τ_w)ⁿ (θ − B)(0).
        """
        circuit = self.circuit
        if circuit.transport == "shared":
            return None
        theta = self.theta()
        gain = circuit.feedback_gain
        drawn = Feedback(circuit.transport, self._start, self._seeds, gain)
        now = Feedback(circuit.transport, theta, self._seeds, gain)
        kept = (1 - circuit.weight_decay * self._dt / circuit.weight_time) ** self._simulator.steps
        for k, link in enumerate(self._arrays.parts.maps):
            if "w_fb" in link.variables:
                now.of[k]["w"].copy_(self._arrays.weights(k, "w_fb"))
            elif now.learns:
                start = self._start.of[k]["w"] - drawn.of[k]["w"]
                now.of[k]["w"].copy_(theta.of[k]["w"] - kept * start)
        return now
