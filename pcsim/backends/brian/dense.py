"""Layers whose weights are whole arrays instead of `Synapses`: for batches, products and C++.

The neurons are those of `build`, in the order (chip, sample, unit). The arrays of a map are the
variables of a `NeuronGroup` without equations of motion, in the order (chip, post, pre): they can
be read and monitored like any other. Who moves them is `matrix_products` or `fused`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brian2 import NeuronGroup
from numpy.typing import ArrayLike

from pcsim.backends.brian.build import Parts, neurons, set_times
from pcsim.backends.brian.initial_weights import set_initial_weights
from pcsim.backends.brian.products import Products
from pcsim.circuit import Circuit
from pcsim.circuits.page import no
from pcsim.circuits.plan import Plan
from pcsim.circuits.support import require_sites
from pcsim.kernels.parameters import Parameters
from pcsim.network import Mode
from pcsim.substrate import Chips


def why_not_dense(plan: Plan, own_tau_w: bool) -> str | None:
    """Return why a population cannot be made of whole arrays, or None if it can."""
    if own_tau_w:
        return "time constants per weight"
    if plan.blocks:
        return f"effects of hardware ({plan.blocks[0].place.key})"
    if plan.senders:
        return "events"
    if plan.within:
        return f"synapses within a layer ({plan.within[0].name})"
    return None


def build_dense(
    plan: Plan,
    circuit: Circuit,
    params: Parameters,
    mode: Mode,
    *,
    samples: int = 1,
    own: bool = False,
    seeds: Sequence[int] = (),
    tau_x: Sequence[ArrayLike] | None = None,
    on: Chips | None = None,
    **options: Any,
) -> Parts:
    """Build neurons and arrays; arguments as in `build`, `samples` share the weights of a chip.

    `on`: chips whose time constants alone differ from ideal ones.
    """
    if reason := why_not_dense(plan, own):
        raise no(
            "brian.products, brian.fused",
            f"{reason} are no products of whole layers; switch them off",
        )
    chips = params.replicas
    if on:
        require_sites(on, circuit, chips)
    layers = tuple(neurons(group, chips * samples, **options) for group in plan.groups)
    set_times(layers, plan, params.network, circuit, tau_x, on, (chips, samples))
    maps = tuple(
        NeuronGroup(
            params.of[link.post]["w"].nelement(),
            "\n".join(f"{name} : 1" for name in Products.of(link.text).arrays),
            name=link.name,
            namespace={},
            **options,
        )
        for link in plan.connections
    )
    set_initial_weights(layers, maps, circuit, params, list(seeds) or list(range(chips)), samples)
    return Parts(plan, layers, maps)
