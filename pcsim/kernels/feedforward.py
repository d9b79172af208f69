"""The feed-forward pass in plain differentiable torch: for evaluation, and for backpropagation.

It shares no code with the in-place kernels, so that each can check the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.map_kernel import plain_map
from pcsim.kernels.parameters import Parameters, Views
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.maps import Prior
from pcsim.network import Network, Node

__all__ = ["FUNCTIONS", "feedforward", "loss", "outputs"]

CHUNK = 1 << 26
"""Numbers that the largest node of an evaluation may hold at a time."""


def feedforward(network: Network, of: Views, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the value of every node when each equals its prediction; `inputs` go to the roots."""
    values: list[Tensor] = [torch.empty(0)] * len(network.nodes)
    for root, value in zip(network.roots, inputs, strict=True):
        values[root] = value
    for index in reversed(range(len(network.nodes))):
        node = network.nodes[index]
        if node.map and not isinstance(node.map, Prior):
            parents = [values[parent] for parent in node.parents]
            values[index] = plain_map(node.map, of[index], parents)
    return values


def loss(node: Node, params: dict[str, Tensor], target: Tensor, mu: Tensor) -> Tensor:
    """Return E(target, μ) of a clamped node (replica,), summed over samples."""
    if isinstance(node.energy, Categorical):
        rows = (*mu.shape[:2], -1, node.shape[-1])
        log_q = functional.log_softmax(mu.view(rows), -1).view(mu.shape)
        total: Tensor = (torch.special.xlogy(target, target) - target * log_q).sum((1, 2))
        return total
    assert isinstance(node.energy, Gaussian)
    if node.energy.learned:
        log_var = params["log_var"].unsqueeze(1)
    else:
        log_var = torch.as_tensor(node.energy.variance, dtype=mu.dtype, device=mu.device).log()
    return 0.5 * ((target - mu) ** 2 * torch.exp(-log_var) + log_var).sum((1, 2))


@torch.no_grad()
def outputs(network: Network, params: Parameters, inputs: Tensor, chunk: int = 2000) -> Tensor:
    """Return μ⁰ (replica, sample, class) of a network with one input node, in chunks of samples."""
    widest = params.replicas * max(node.units for node in network.nodes)
    chunk = min(chunk, max(1, CHUNK // widest))
    parts = [
        feedforward(network, params.of, (inputs[None, start : start + chunk],))[0]
        for start in range(0, len(inputs), chunk)
    ]
    return torch.cat(parts, 1)
