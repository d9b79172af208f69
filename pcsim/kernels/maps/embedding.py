"""The embedding: μ_i = W[token i] + w_position[i]; each token's row learns from where it occurred.

learn:  W[token] ← Σ over its occurrences of ξ,   w_position[i] ← Σ_samples ξ_i
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.errors import DataError
from pcsim.kernels.accumulation import accumulate
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain, refuse_hardware
from pcsim.maps import Embedding


class EmbeddingKernel:
    """One embedding of one network."""

    hooks = IDEAL

    def __init__(self, spec: Embedding, params: dict[str, Tensor]) -> None:
        self.spec = spec
        self.params = params
        self._tokens = self._mu = self._xi = torch.empty(0)

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        positions, features = self.spec.positions, self.spec.features
        self._mu = like.new_empty(*like.shape[:2], positions, features)

    def activate(self, *parents: Tensor) -> None:
        """Take token numbers, given as floating point numbers (replica, sample, position)."""
        self._tokens = parents[0].long()
        if self._tokens.min() < 0 or self._tokens.max() >= self.spec.vocabulary:
            raise DataError(
                f"Embedding: token numbers must lie in 0 … {self.spec.vocabulary - 1}, got "
                f"{int(self._tokens.min())} … {int(self._tokens.max())}"
            )

    def predict(self) -> Tensor:
        """Return μ."""
        for replica, w in enumerate(self.params["w"]):
            torch.index_select(
                w, 0, self._tokens[replica].flatten(), out=self._mu[replica].flatten(0, 1)
            )
        self._mu.add_(self.params["w_position"].unsqueeze(1))
        return self._mu.flatten(2)

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self._xi = xi

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Nothing moves a token number."""
        return torch.zeros_like(x) if onto is None else onto

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for both tables."""
        xi = self._xi.view(self._mu.shape)
        for replica, rows in enumerate(into["w"]):
            if beta != 1:
                rows.mul_(beta) if beta else rows.zero_()
            rows.index_add_(
                0, self._tokens[replica].flatten(), xi[replica].flatten(0, 1), alpha=alpha
            )
        accumulate(into["w_position"], xi.sum(1), alpha, beta)


@computes(Embedding)
def _embedding_kernel(
    spec: Embedding, params: Params, counter: Counter | None, hooks: MapHooks
) -> EmbeddingKernel:
    refuse_hardware(spec, hooks)
    return EmbeddingKernel(spec, params)


@plain(Embedding)
def _plain_embedding(spec: Embedding, params: Params, parents: Sequence[Tensor]) -> Tensor:
    tokens = parents[0].long()
    words = [
        functional.embedding(tokens[replica if len(tokens) > 1 else 0], w)
        for replica, w in enumerate(params["w"])
    ]
    return (torch.stack(words) + params["w_position"].unsqueeze(1)).flatten(2)
