"""Where hardware enters the kernels: the transforms of one map, one per site, None where ideal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pcsim.network import Network
from pcsim.substrate import Chips
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
    def on_rates(self) -> bool:
        """Whether each chip sends rates of its own, even if all see one clamped input."""
        return self.membrane is not None or self.rate is not None


IDEAL = MapHooks()


def map_hooks(chips: Chips, network: Network, node: int) -> MapHooks:
    """Return the transforms of the map that predicts a node from its parent."""
    parent = network.nodes[node].parents[0]
    units, sources = network.nodes[node].units, network.nodes[parent].units
    return MapHooks(
        membrane=chips.transform("membrane", parent, (sources,)),
        rate=chips.transform("rate", parent, (sources,)),
        weight=chips.transform("weight", node, (units, sources)),
        product=chips.transform("product", node, (units,)),
        feedback=chips.transform("feedback", node, (sources,)),
    )


def row_sums(names: tuple[str, ...], signal: Tensor, weights: Tensor) -> dict[str, Value]:
    """Return the sums of `AGGREGATES` for a signal v at weights (chip, post, pre)."""
    return {name: _ROW_SUMS[name](signal, weights) for name in names}


def _tapered(v: Tensor, w: Tensor) -> Tensor:
    position = torch.arange(1, w.shape[-1] + 1, dtype=v.dtype, device=v.device) / w.shape[-1]
    return (v * (1 - (1 - position) ** 2)) @ w.mT


_ROW_SUMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "power": lambda v, w: v.square().sum(-1, keepdim=True),
    "weighted_power": lambda v, w: v.square() @ w.abs().mT,
    "squared_power": lambda v, w: v.square() @ w.square().mT,
    "load": lambda v, w: w.abs().sum(-1).unsqueeze(1),
    "current": lambda v, w: v.abs() @ w.abs().mT,
    "tapered": _tapered,
}
