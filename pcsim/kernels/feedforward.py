"""The feed-forward pass in plain differentiable torch: for evaluation, and for backpropagation.

It shares no code with the in-place kernels, so that each can check the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.energies import Categorical
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters, Views
from pcsim.maps import Dense
from pcsim.network import Network, Node

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "relu": functional.relu,
    "leaky_relu": functional.leaky_relu,
    "gelu": functional.gelu,
    "softmax": lambda x: functional.softmax(x, -1),
}


def feedforward(network: Network, of: Views, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the value of every node when each equals its prediction; `inputs` go to the roots."""
    values: list[Tensor] = [torch.empty(0)] * len(network.nodes)
    for root, value in zip(network.roots, inputs, strict=True):
        values[root] = value
    for index in reversed(range(len(network.nodes))):
        node = network.nodes[index]
        if isinstance(node.map, Dense):
            values[index] = dense(node.map, of[index], values[node.parents[0]])
        elif node.parents:
            raise UnsupportedError(f"feedforward: no rule for the map {type(node.map).__name__}")
    return values


def dense(spec: Dense, params: dict[str, Tensor], x: Tensor) -> Tensor:
    """Return g(W f(x) + b) for (replica, sample, unit)."""
    drive: Tensor = torch.matmul(FUNCTIONS[spec.f](x), params["w"].mT)
    if spec.bias:
        drive = drive + params["b"].unsqueeze(1)
    return FUNCTIONS[spec.g](drive)


def loss(node: Node, params: dict[str, Tensor], target: Tensor, mu: Tensor) -> Tensor:
    """Return E(target, μ) of a clamped node (replica,), summed over samples."""
    if isinstance(node.energy, Categorical):
        log_q = functional.log_softmax(mu, -1)
        total: Tensor = (torch.special.xlogy(target, target) - target * log_q).sum((1, 2))
        return total
    if node.energy.learned:
        log_var = params["log_var"].unsqueeze(1)
    else:
        log_var = torch.as_tensor(node.energy.variance, dtype=mu.dtype, device=mu.device).log()
    return 0.5 * ((target - mu) ** 2 * torch.exp(-log_var) + log_var).sum((1, 2))


@torch.no_grad()
def outputs(network: Network, params: Parameters, inputs: Tensor, chunk: int = 2000) -> Tensor:
    """Return μ⁰ (replica, sample, class) of a network with one input node, in chunks of samples."""
    parts = [
        feedforward(network, params.of, (inputs[None, start : start + chunk],))[0]
        for start in range(0, len(inputs), chunk)
    ]
    return torch.cat(parts, 1)
