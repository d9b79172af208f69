"""What the field asks of a map, and the one place that knows which kernel computes which map.

    predict   μ = map(parents; θ)
    receive   ξ = −∂E/∂μ, the error at the prediction
    pull      (∂μ/∂parent)ᵀ ξ
    learn     (∂μ/∂θ)ᵀ ξ, summed over samples

All of it is local: a kernel sees its parents, its own parameters and its own error.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.kernels.attention import MixKernel, ScoresKernel
from pcsim.kernels.convolution import ConvolutionKernel
from pcsim.kernels.counter import Counter
from pcsim.kernels.dense import DenseKernel
from pcsim.kernels.embedding import EmbeddingKernel
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.layer_norm import LayerNormKernel
from pcsim.kernels.per_position import PerPositionKernel
from pcsim.kernels.pooling import PoolKernel
from pcsim.kernels.total import SumKernel
from pcsim.maps import Convolution, Dense, Embedding, LayerNorm, Map, Mix, Pool, Prior, Scores


class MapKernel(Protocol):
    """One map of one network; it keeps its buffers from step to step."""

    params: dict[str, Tensor]
    hooks: MapHooks
    """What hardware does to this map."""

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device.

        `shared_input`: all replicas share the (clamped) first parent.
        """

    def activate(self, *parents: Tensor) -> None:
        """Take the parents' values; needed again whenever one of them has moved."""

    def predict(self) -> Tensor:
        """Return μ for the present parents and weights; the buffer is reused in the next step."""

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ; it must not change until the next `receive`."""

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return what the error asks of parent number `slot`, whose value is x.

        With `onto` it is added there. The caller may overwrite what is returned.
        """

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for every array named in `into`."""


def map_kernel(
    spec: Map | None, params: dict[str, Tensor], counter: Counter | None, hooks: MapHooks = IDEAL
) -> MapKernel | None:
    """Return the kernel of a map; None for roots, which nothing predicts (or a fixed prior)."""
    match spec:
        case Dense(positions=1):
            return DenseKernel(spec, params, counter, hooks)
        case Convolution():
            return ConvolutionKernel(spec, params, counter, hooks)
        case Pool():
            return PoolKernel(spec, hooks)
        case LayerNorm():
            return LayerNormKernel(spec, params, hooks)
        case None | Prior():
            return None
    if not hooks.ideal:
        raise UnsupportedError(
            f"hardware: arrays, potentials and rates are not modelled for {type(spec).__name__} "
            f"(position by position); effects on errors and states are"
        )
    match spec:
        case Dense():
            return PerPositionKernel(DenseKernel(spec, params, counter), spec.positions)
        case Embedding():
            return EmbeddingKernel(spec, params)
        case Scores():
            return ScoresKernel(spec)
        case Mix():
            return MixKernel(spec)
        case _:
            return SumKernel()
