"""Where hardware enters the kernels: the transforms of one map, one per site, None where ideal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from pcsim.network import Network
from pcsim.substrate import Chips
from pcsim.substrate.effect import LARGEST
from pcsim.substrate.expression import Value
from pcsim.substrate.transform import Transform


@dataclass(eq=False)
class MapHooks:
    """The sites of one map: potentials and rates of its parent, weights, and both products."""

    membrane: Transform | None = None
    rate: Transform | None = None
    weight: Callable[[Tensor], Tensor] | None = None
    product: Transform | None = None
    feedback: Transform | None = None

    @property
    def ideal(self) -> bool:
        """Whether nothing happens anywhere."""
        return not any((self.on_rates, self.weight, self.product, self.feedback))

    @property
    def on_rates(self) -> bool:
        """Whether each chip sends rates of its own, even if all see one clamped input."""
        return self.membrane is not None or self.rate is not None


IDEAL = MapHooks()


def map_hooks(chips: Chips, network: Network, node: int) -> MapHooks:
    """Return the transforms of the map that predicts a node from its (first) parent.

    Potentials and rates are read at value nodes; what a transparent node passes on was read before.
    Only maps with weights have an array: (post, pre), for a convolution (channel, fan-in).
    """
    target = network.nodes[node]
    if not target.parents:
        return IDEAL
    parent = target.parents[0]
    sources, read = network.nodes[parent].units, not network.nodes[parent].transparent
    hooks = MapHooks(
        membrane=chips.transform("membrane", parent, (sources,)) if read else None,
        rate=chips.transform("rate", parent, (sources,)) if read else None,
    )
    if "w" in target.parameters:
        hooks.weight = chips.transform("weight", node, matrix_shape(target.parameters["w"]))
        hooks.product = chips.transform("product", node, (target.units,))
        hooks.feedback = chips.transform("feedback", node, (sources,))
    return hooks


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return (post, pre) of a weight array as it lies on a chip."""
    return shape[0], prod(shape[1:])


def row_sums(names: tuple[str, ...], signal: Tensor, weights: Tensor) -> dict[str, Value]:
    """Return the sums of `AGGREGATES` for a signal v at weights (chip, post, pre)."""
    return {name: _row_sum(name, signal, weights) for name in names}


def _row_sum(name: str, v: Tensor, w: Tensor) -> Tensor:
    signal, weight = TERMS[name]
    if signal is None:
        return weight(w).sum(-1).unsqueeze(1)
    if name == LARGEST:
        return signal(v).amax(-1, keepdim=True)
    if name == "power":
        return signal(v).sum(-1, keepdim=True)  # without a product by ones
    return signal(v) @ weight(w).mT


def _taper(w: Tensor) -> Tensor:
    position = torch.arange(1, w.shape[-1] + 1, dtype=w.dtype, device=w.device) / w.shape[-1]
    return w * (1 - (1 - position) ** 2)


TERMS: dict[str, tuple[Callable[[Tensor], Tensor] | None, Callable[[Tensor], Tensor]]] = {
    "power": (torch.square, lambda w: torch.ones_like(w[..., :1, :])),
    "weighted_power": (torch.square, torch.abs),
    "squared_power": (torch.square, torch.square),
    "load": (None, torch.abs),
    "current": (torch.abs, torch.abs),
    "tapered": (lambda v: v, _taper),
    "peak": (torch.abs, lambda w: torch.ones_like(w[..., :1, :])),
}
"""Each sum of `AGGREGATES` as a product: what becomes of the signal (None: it does not enter) and
of the weights (…, post, pre)."""
