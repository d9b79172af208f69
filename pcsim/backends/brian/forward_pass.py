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
        """Return W f(x) + b onto layer k, from the present state."""
        above, f = self.arrays.read(k + 1, "x"), self.parts.plan.groups[k + 1].layer.f
        assert f is not None
        rate = NONLINEARITIES[f].apply(above, torch.empty_like(above))
        drive = torch.bmm(rate, self.arrays.weights(k, weight).mT)
        has_bias = self.parts.plan.groups[k].layer.bias
        return drive + self.arrays.read(k, bias) if has_bias else drive
