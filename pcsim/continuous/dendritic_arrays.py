"""The synaptic arrays of a dendritic circuit: basal, interneuron and feedback weights.

Each is stored in physical units and read once per step. They learn by

    τ_w dW_B = e f(x^{l+1})ᵀ/a_B − λ W_B,   τ_w dW_I = ρ e_I f(x^l)ᵀ/(λ_I a_D) − λ W_I

with e = x − v̂_B and e_I what teaches the interneurons; learned feedback follows e f(x^{l+1})ᵀ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.kernels.hooks import MapHooks, row_sums
from pcsim.kernels.on_chip import Array
from pcsim.kernels.parameters import Parameters, Views
from pcsim.kernels.transport import Feedback
from pcsim.substrate import Chips


class DendriticArrays:
    """All weights of a dendritic circuit, as stored, as read, and as they learn."""

    def __init__(
        self,
        params: Parameters,
        circuit: Circuit,
        a_basal: Sequence[float],
        hooks: Sequence[MapHooks],
        *,
        seeds: list[int],
        scale: float,
        chips: Chips | None,
    ) -> None:
        """`params` holds θ, and the basal arrays W_B = θ/a_B from then on."""
        g = circuit.conductances
        self.params, self.circuit, self.scale = params, circuit, scale
        self.depth, self.a_basal, self._hooks = len(hooks), a_basal, hooks
        self.a_inter = g.g_D / (g.g_lk + g.g_D)
        self.feedback = Feedback(circuit.transport, params, seeds, circuit.feedback_gain)
        self.inter_flat = params.flat / self.a_inter
        self.inter = params.views(self.inter_flat)
        for k in range(self.depth):
            for array in params.of[k].values():
                array.div_(a_basal[k])
        self._inter = Array(chips, self.inter, "inter")
        self._back = Array(chips, self.feedback.of, "feedback")
        self.weights = [params.flat]
        """What learns, each (chip, number)."""
        self._learning = [Array(chips, params.of, reads=False)]
        if circuit.inter_learned:
            self.weights.append(self.inter_flat)
            self._learning.append(self._inter)
        if self.feedback.learns and self.feedback.flat is not None:
            self.weights.append(self.feedback.flat)
            self._learning.append(self._back)
        self.w_basal: list[Tensor] = []
        self.w_inter: list[Tensor] = []
        self.w_back: list[Tensor] = []

    def read(self) -> None:
        """Let every array present its weights for this step."""
        self.feedback.refresh()
        layers = range(self.depth)
        self.w_basal = [
            hooks.weight(views["w"]) if hooks.weight else views["w"]
            for hooks, views in zip(self._hooks, self.params.of, strict=False)
        ]
        self.w_inter = self.w_basal
        if self.circuit.inter_learned:
            self.w_inter = [self._inter.read(k) for k in layers]
        self.w_back = self.w_basal
        if self.feedback.flat is not None:
            self.w_back = [self._back.read(k) for k in layers]

    def basal(self, k: int, rate: Tensor) -> Tensor:
        """Return v_B = W_B r + b_B of layer k, as its array gives it."""
        potential = _affine(self.w_basal[k], self.params.of[k].get("b"), rate)
        if hook := self._hooks[k].product:
            potential = hook(potential, **row_sums(hook.aggregates, rate, self.w_basal[k]))
        return potential

    def predicted(self, k: int, rate: Tensor) -> Tensor:
        """Return v̂_I, what the interneurons beside layer k predict of it."""
        if self.circuit.inter_learned:
            gain, views = self.a_inter, self.inter
        else:
            gain, views = self.a_basal[k], self.params.of
        return gain * _affine(self.w_inter[k], views[k].get("b"), rate)

    def fed_back(self, k: int, sent: Tensor, gain: float) -> Tensor:
        """Return gain·B sent, what layer k sends to the apical dendrites above it."""
        back = self.w_back[k]
        if self.feedback.reads_forward:
            gain *= self.a_basal[k]  # the forward array is stored as W_B = θ/a_B
        potential = gain * torch.bmm(sent, back)
        if hook := self._hooks[k].feedback:
            potential = hook(potential, **row_sums(hook.aggregates, gain * sent, back.mT))
        return potential

    def learn(self, dt: float, rates: list[Tensor]) -> None:
        """Do θ ← θ + dt·dθ/dt, as the devices take it."""
        for array, flat, rate in zip(self._learning, self.weights, rates, strict=True):
            if array.writes:
                times = [self.circuit.weight_time] * len(array.of)
                array.write(self.params.views(rate.mul_(dt)), times)
            else:
                flat.add_(rate, alpha=dt)

    def rates(
        self,
        taught: Sequence[Tensor],
        inter_err: Mapping[int, Tensor],
        fired: Sequence[Tensor],
        nudging: float,
    ) -> list[Tensor]:
        """Return dθ/dt of every array that learns.

        `taught[k]` is the dendritic error of layer k as its synapses see it, `inter_err[k + 1]`
        what teaches the interneurons beside it, `fired[k + 1]` the rates above.
        """
        circuit = self.circuit
        errors = dict(enumerate(taught[: self.depth]))
        below = {k - 1: err for k, err in inter_err.items()}
        basal = {k: 1 / self.a_basal[k] for k in errors}
        inter = circuit.inter_rate / ((nudging or 1.0) * self.a_inter)
        found = [self._hebb(self.params.flat, self.params.of, errors, fired, basal)]
        if circuit.inter_learned:
            gains = dict.fromkeys(below, inter)
            found.append(self._hebb(self.inter_flat, self.inter, below, fired, gains))
        if self.feedback.learns and self.feedback.flat is not None:
            gains = dict.fromkeys(errors, 1.0)
            weights_only: Views = [{"w": v["w"]} if "w" in v else {} for v in self.feedback.of]
            found.append(self._hebb(self.feedback.flat, weights_only, errors, fired, gains))
        return found

    def _hebb(
        self,
        flat: Tensor,
        stored: Views,
        errors: Mapping[int, Tensor],
        fired: Sequence[Tensor],
        gains: Mapping[int, float],
    ) -> Tensor:
        """Return [gain·e f(x)ᵀ − λ W]/τ_w of one set of arrays, zero where there is no error."""
        change = torch.zeros_like(flat)
        for k, into in enumerate(self.params.views(change)[: self.depth]):
            if k not in errors:
                continue
            gain = gains[k] * self.scale
            torch.bmm(errors[k].mT, fired[k + 1], out=into["w"])
            into["w"].mul_(gain)
            if "b" in stored[k]:
                torch.mul(errors[k].sum(1), gain, out=into["b"])
            into["w"].sub_(stored[k]["w"], alpha=self.circuit.weight_decay)
        return change / self.circuit.weight_time


def _affine(weights: Tensor, bias: Tensor | None, rate: Tensor) -> Tensor:
    if bias is not None:
        return torch.baddbmm(bias.unsqueeze(1), rate, weights.mT)
    return torch.bmm(rate, weights.mT)
