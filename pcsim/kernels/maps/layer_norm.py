"""Layer normalisation at each position of a sequence.

    μ = gain ∘ n + b,   n = (r − mean)/√(variance + eps),   r = f(x)
    learn:  gain ← Σ ξ ∘ n,   b ← Σ ξ
    pull:   f'(x) ∘ (v − mean(v) − n mean(v ∘ n)) / √(variance + eps),   v = gain ∘ ξ

Means and variance run over the features of one position.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.accumulation import accumulate
from pcsim.kernels.activations import Before
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.maps import LayerNorm

aten = torch.ops.aten


class LayerNormKernel:
    """One layer normalisation of one network, replica by replica by torch's fused operations."""

    def __init__(self, spec: LayerNorm, params: dict[str, Tensor], hooks: MapHooks = IDEAL) -> None:
        self.spec = spec
        self.params = params
        self.hooks = hooks
        self.before = Before(spec.f, hooks)
        self._xi = self._mu = torch.empty(0)
        self._moments: list[tuple[Tensor, Tensor]] = []

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self.before.allocate(like, self.spec.units, shared_input)
        self._mu = like.new_empty(*like.shape[:2], self.spec.units)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x)."""
        self.before.apply(parents[0])

    def predict(self) -> Tensor:
        """Return μ."""
        features, mu = self.spec.features, self._mu
        self._moments = []
        for replica, (gain, b) in enumerate(
            zip(self.params["gain"], self.params["b"], strict=True)
        ):
            r = self.before.of_replica(replica).reshape(-1, features)
            y, mean, scale = aten.native_layer_norm(r, [features], gain, b, self.spec.eps)
            self._moments.append((mean, scale))
            if len(mu) == 1:
                mu = y.view(self._mu.shape)
            else:
                mu[replica].copy_(y.view(mu.shape[1:]))
        return mu

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self._xi = xi

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return Jᵀ ξ."""
        parts = [
            self._backward(replica, (True, False, False))[0].view(1, *self._mu.shape[1:])
            for replica in range(len(self._mu))
        ]
        pulled = self.before.pull(parts[0] if len(parts) == 1 else torch.cat(parts), x)
        return pulled if onto is None else onto.add_(pulled)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for gain and b."""
        for replica in range(len(self._mu)):
            _, gain, b = self._backward(replica, (False, True, True))
            accumulate(into["gain"][replica], gain, alpha, beta)
            accumulate(into["b"][replica], b, alpha, beta)

    def _backward(
        self, replica: int, wanted: tuple[bool, bool, bool]
    ) -> tuple[Tensor, Tensor, Tensor]:
        features = self.spec.features
        result: tuple[Tensor, Tensor, Tensor] = aten.native_layer_norm_backward(
            self._xi[replica].reshape(-1, features),
            self.before.of_replica(replica).reshape(-1, features),
            [features],
            *self._moments[replica],
            self.params["gain"][replica],
            self.params["b"][replica],
            wanted,
        )
        return result


@computes(LayerNorm)
def _layer_norm_kernel(
    spec: LayerNorm, params: Params, counter: Counter | None, hooks: MapHooks
) -> LayerNormKernel:
    return LayerNormKernel(spec, params, hooks)


@plain(LayerNorm)
def _plain_layer_norm(spec: LayerNorm, params: Params, parents: Sequence[Tensor]) -> Tensor:
    x = FUNCTIONS[spec.f](parents[0])
    x = x.view(*x.shape[:2], spec.positions, spec.features)
    normal = functional.layer_norm(x, (spec.features,), eps=spec.eps)
    gain, b = (params[name][:, None, None] for name in ("gain", "b"))
    return (normal * gain + b).flatten(2)
