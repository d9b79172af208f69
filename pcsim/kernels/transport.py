"""Weight transport: what stands for θᵀ on the way back.

    shared         B = θ            one physical array, read from both sides
    random         B fixed          feedback alignment
    sign           B = s·sign(θ),   s = ‖θ‖_F/√(number of weights)
    kolen_pollack  dB = dθ          same update, same decay: (θ − B)(t) = e^{−λt/τ_w}(θ − B)(0)

B has the layout of θ (replica, post, pre), so that the feedback is δ B.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pcsim.kernels.parameters import Parameters, Views, generator
from pcsim.maps import Convolution, Dense

if TYPE_CHECKING:
    from pcsim.circuits.section import Transport

FEEDBACK_KEY = 3
"""First element of the spawn key of initial feedback weights."""


class Feedback:
    """Feedback arrays of a population, node by node; None where the forward array is read."""

    def __init__(
        self, kind: Transport, params: Parameters, seeds: list[int], gain: float = 1.0
    ) -> None:
        self.kind = kind
        self.params = params
        self.flat: Tensor | None = None
        self.of: Views = [{} for _ in params.of]
        self.nodes = tuple(
            index
            for index, node in enumerate(params.network.nodes)
            if isinstance(node.map, Dense | Convolution)
        )
        """The nodes whose weights carry errors back."""
        if kind in ("random", "kolen_pollack"):
            self.flat = torch.zeros_like(params.flat)
            self.of = params.views(self.flat)
            self._draw(seeds, gain)
        elif kind == "sign":
            self.flat = torch.zeros_like(params.flat)
            self.of = params.views(self.flat)
            self.refresh()

    def _draw(self, seeds: list[int], gain: float) -> None:
        for index in self.nodes:
            shape = self.of[index]["w"].shape[1:]
            bound = gain / sqrt(prod(shape[1:]))
            for row, seed in enumerate(seeds):
                rng = generator(seed, FEEDBACK_KEY, index)
                self.of[index]["w"][row] = torch.as_tensor(rng.uniform(-bound, bound, shape))

    def of_node(self, index: int) -> Tensor:
        """Return the array that carries δ of this node back to its parent."""
        return self.params.of[index]["w"] if self.flat is None else self.of[index]["w"]

    def refresh(self) -> None:
        """Follow the forward signs, if that is the kind."""
        if self.kind != "sign":
            return
        for index in self.nodes:
            w = self.params.of[index]["w"]
            size = w.square().mean(tuple(range(1, w.ndim)), keepdim=True).sqrt()
            torch.mul(torch.sign(w), size, out=self.of[index]["w"])

    @property
    def reads_forward(self) -> bool:
        """Whether the feedback is a function of the forward array as it is stored."""
        return self.kind in ("shared", "sign")

    @property
    def learns(self) -> bool:
        """Whether the feedback weights follow the forward update."""
        return self.kind == "kolen_pollack"

    def alignment(self) -> Tensor:
        """Return cos∠(θ, B) (replica, map) at the present θ, 1 for a shared array."""
        self.refresh()
        rows = []
        for index in self.nodes:
            w, b = self.params.of[index]["w"].flatten(1), self.of_node(index).flatten(1)
            rows.append(torch.cosine_similarity(w, b, dim=1))
        return torch.stack(rows, 1)
