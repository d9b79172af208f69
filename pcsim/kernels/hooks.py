"""Where hardware enters the kernels: the transforms of one map, one per site, None where ideal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    """Return Σ_j v_j², Σ_j |w_ij| v_j², Σ_j w_ij² v_j² of a signal v at (chip, post, pre)."""
    if not names:
        return {}
    squared = signal.square()
    sums: dict[str, Value] = {}
    if "power" in names:
        sums["power"] = squared.sum(-1, keepdim=True)
    if "weighted_power" in names:
        sums["weighted_power"] = squared @ weights.abs().mT
    if "squared_power" in names:
        sums["squared_power"] = squared @ weights.square().mT
    return sums
