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


class ForwardPass:
    """Sets the states of a population from its inputs and weights."""

    def __init__(self, arrays: Arrays, circuit: Circuit) -> None:
        self.arrays, self.circuit, self.parts = arrays, circuit, arrays.parts

    def __call__(self) -> None:
        """Set all states."""
        arrays, groups = self.arrays, self.parts.plan.groups
        self._read_feedback()
        for k in reversed(range(len(self.parts.maps))):
            drive = basal_gain(self.circuit, k) * self._drive(k, "w", "b")
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

    def _rest(self, k: int) -> None:
        """Set lagged interneurons of layer k, and the apical dendrites they reach, to rest."""
        circuit, arrays, groups = self.circuit, self.arrays, self.parts.plan.groups
        if "w_inter" in self.parts.maps[k].variables:
            predicted = groups[k].constants["a_D"] * self._drive(k, "w_inter", "b_inter")
        else:
            predicted = basal_gain(circuit, k) * self._drive(k, "w", "b")
        x = arrays.read(k, "x")
        inter = torch.lerp(predicted, x, circuit.conductances.nudging)
        if arrays.stored(k, "inter"):
            arrays.write(k, "inter", inter)
        if circuit.tau_apical:
            separate = "w_fb" in self.parts.maps[k].variables
            back = arrays.weights(k, "w_fb" if separate else "w")
            if circuit.transport == "sign":
                back = back.sign() * back.square().mean((1, 2), keepdim=True).sqrt()
            gain = groups[k + 1].constants["gain_td"]
            target = gain * torch.bmm(x - circuit.inhibition * inter, back)
            arrays.write(k + 1, "v_apical", target)

    def _drive(self, k: int, weight: str, bias: str) -> Tensor:
        """Return W f(x) + b onto layer k, from the present state, as the chips deliver it."""
        above, f = self.arrays.read(k + 1, "x"), self.parts.plan.groups[k + 1].layer.f
        assert f is not None
        through = self.parts.on_chip or ideal
        seen = through(f"membrane{k + 1}", above)
        rate = NONLINEARITIES[f].apply(seen, torch.empty_like(seen))
        rate = through(f"rate{k + 1}", rate)
        weights = through(f"weight{k}", self.arrays.weights(k, weight))
        drive = torch.bmm(rate, weights.mT)
        if self.parts.plan.groups[k].layer.bias:
            drive = drive + self.arrays.read(k, bias)
        return through(f"product{k}", drive, (rate, weights))

    def _read_feedback(self) -> None:
        """Let separate feedback arrays be read, as every array is: their devices notice."""
        for k, link in enumerate(self.parts.maps):
            if self.parts.on_chip and "w_fb_read" in link.variables:
                sign = self.circuit.transport == "sign"
                back = self.arrays.weights(k, "w" if sign else "w_fb")
                if sign:
                    back = back.sign() * back.square().mean((1, 2), keepdim=True).sqrt()
                self.parts.on_chip(f"weight{k}feedback", back)


def ideal(key: str, signal: Tensor, row: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Return a signal as it is."""
    return signal
