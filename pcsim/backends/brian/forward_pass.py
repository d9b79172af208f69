"""The feed-forward pass of a Brian2 population: a reset that a chip must be told.

x_l = a_B (W f(x_{l+1}) + b) for free layers from the top down; error units to zero; lagged
interneurons and apical dendrites to their rest at these x.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pcsim.backends.brian.arrays import Arrays
from pcsim.backends.brian.initial_weights import basal_gain
from pcsim.circuit import Circuit
from pcsim.kernels.nonlinearity import NONLINEARITIES

STORED = {"w": "", "w_inter": "inter", "w_fb": "feedback"}
"""Arrays of a map, and what hardware calls them."""


class ForwardPass:
    """Sets the states of a population from its inputs and weights."""

    def __init__(self, arrays: Arrays, circuit: Circuit) -> None:
        self.arrays, self.circuit, self.parts = arrays, circuit, arrays.parts

    def __call__(self) -> None:
        """Set all states."""
        arrays, groups = self.arrays, self.parts.plan.groups
        self._rates: dict[int, Tensor] = {}
        self._read = self._read_arrays()
        for k in reversed(range(len(self.parts.maps))):
            self._rate(k + 1)
            if self.circuit.kind == "dendritic" and self._held(k):
                continue  # the basal line of a clamped soma is not looked at here
            drive = basal_gain(self.circuit, k) * self._delivered(k)
            value = NONLINEARITIES[groups[k].layer.g].apply(drive, torch.empty_like(drive))
            if arrays.has(k, "free"):
                value = torch.where(arrays.read(k, "free") > 0, value, arrays.read(k, "x"))
            arrays.write(k, "x", value)
        for k, group in enumerate(groups):
            if arrays.stored(k, "err"):
                arrays.write(k, "err", torch.zeros(1, 1, 1, dtype=arrays.read(k, "x").dtype))
            if arrays.stored(k, "u"):
                arrays.write(k, "u", arrays.read(k, "x"))
            if group.layer.interneurons:
                self._rest(k)

    def _read_arrays(self) -> dict[tuple[int, str], Tensor]:
        """Return the weights of all arrays as they are presented, each read once."""
        arrays = {}
        for k, link in enumerate(self.parts.maps):
            for name, array in STORED.items():
                if name in link.variables:
                    stored = self.arrays.weights(k, name)
                    arrays[k, name] = self._through(f"weight{k}{array}", stored)
            if self.circuit.transport == "sign" and self.parts.plan.groups[k].layer.sends_feedback:
                w = self.arrays.weights(k, "w")
                signs = w.sign() * w.square().mean((1, 2), keepdim=True).sqrt()
                arrays[k, "w_fb"] = self._through(f"weight{k}feedback", signs)
        return arrays

    def _held(self, k: int) -> bool:
        """Return whether all units of layer k are clamped."""
        return self.arrays.has(k, "free") and not bool((self.arrays.read(k, "free") > 0).any())

    def _rest(self, k: int) -> None:
        """Set lagged interneurons of layer k, and the apical dendrites they reach, to rest."""
        circuit, arrays, groups = self.circuit, self.arrays, self.parts.plan.groups
        if (k, "w_inter") in self._read:
            predicted = groups[k].constants["a_D"] * self._drive(k, "w_inter", "b_inter")
        else:
            predicted = basal_gain(circuit, k) * self._drive(k, "w", "b")
        x = arrays.read(k, "x")
        inter = torch.lerp(predicted, x, circuit.conductances.nudging)
        if arrays.stored(k, "inter"):
            arrays.write(k, "inter", inter)
        if not (circuit.tau_apical or self.parts.on_chip):
            return
        back = self._read.get((k, "w_fb"), self._read[k, "w"])
        sent = groups[k + 1].constants["gain_td"] * (x - circuit.inhibition * inter)
        target = self._through(f"feedback{k}", torch.bmm(sent, back), (sent, back.mT))
        if circuit.tau_apical:
            arrays.write(k + 1, "v_apical", target)

    def _rate(self, k: int) -> Tensor:
        """Return the rates of layer k as they are sent, once per pass."""
        if k not in self._rates:
            f = self.parts.plan.groups[k].layer.f
            assert f is not None
            seen = self._through(f"membrane{k}", self.arrays.read(k, "x"))
            rate = NONLINEARITIES[f].apply(seen, torch.empty_like(seen))
            self._rates[k] = self._through(f"rate{k}", rate)
        return self._rates[k]

    def _drive(self, k: int, weight: str, bias: str) -> Tensor:
        """Return W f(x) + b onto layer k, from the present state."""
        drive = torch.bmm(self._rate(k + 1), self._read[k, weight].mT)
        has_bias = self.parts.plan.groups[k].layer.bias
        return drive + self.arrays.read(k, bias) if has_bias else drive

    def _delivered(self, k: int) -> Tensor:
        """Return the same as the array delivers it."""
        row = self._rate(k + 1), self._read[k, "w"]
        return self._through(f"product{k}", self._drive(k, "w", "b"), row)

    def _through(
        self, key: str, signal: Tensor, row: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return a signal as hardware shows it at this place."""
        on_chip = self.parts.on_chip
        return signal if on_chip is None else on_chip(key, signal, row)
