"""Layers whose weights are whole arrays instead of `Synapses`: for batches, products and C++.

The neurons are those of `build`, in the order (chip, sample, unit). The arrays of a map are the
variables of a `NeuronGroup` without equations of motion, in the order (chip, post, pre): they can
be read and monitored like any other. Who moves them is `matrix_products` or `fused`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from brian2 import NeuronGroup, second
from numpy.typing import ArrayLike
from torch import Tensor

from pcsim.backends.brian.build import Parts, basal_gain, neurons
from pcsim.backends.brian.plan import Plan
from pcsim.backends.brian.products import Products
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback


def build_dense(
    plan: Plan,
    circuit: Circuit,
    params: Parameters,
    *,
    samples: int = 1,
    seeds: Sequence[int] = (),
    tau_x: Sequence[ArrayLike] | None = None,
    **options: Any,
) -> Parts:
    """Build neurons and arrays; arguments as in `build`, `samples` share the weights of a chip."""
    chips = params.replicas
    layers = tuple(neurons(group, chips * samples, **options) for group in plan.groups)
    for k, (layer, group) in enumerate(zip(layers, plan.groups, strict=True)):
        if group.layer.clamped != "always":
            tau = np.asarray(circuit.tau_x if tau_x is None else tau_x[k], dtype=np.float64)
            spread = np.broadcast_to(tau, (chips, samples, group.units))
            layer.tau_x = spread.ravel() * second
    feedback = Feedback(
        circuit.transport, params, list(seeds) or list(range(chips)), circuit.feedback_gain
    )
    maps = []
    for link in plan.connections:
        theta, layer = params.of[link.post], layers[link.post]
        gains = {
            "w": basal_gain(circuit, link.post),
            "w_inter": plan.groups[link.post].constants.get("a_D", 1.0),
        }
        names = Products.of(link.text).arrays
        held = NeuronGroup(
            theta["w"].nelement(),
            "\n".join(f"{name} : 1" for name in names),
            name=link.name,
            namespace={},
            **options,
        )
        for name in names:
            start = feedback.of[link.post]["w"] if name == "w_fb" else theta["w"] / gains[name]
            setattr(held, name, _flat(start))
        for name, bias in (("w", "b"), ("w_inter", "b_inter")):
            if bias in layer.variables:
                each = (theta["b"] / gains[name])[:, None].expand(-1, samples, -1)
                setattr(layer, bias, _flat(each))
        maps.append(held)
    return Parts(plan, layers, tuple(maps))


def _flat(tensor: Tensor) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64).ravel()
