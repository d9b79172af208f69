"""Backpropagation by autograd: the independent baseline.

loss = E⁰(target, μ⁰(feed-forward pass)),   θ ← optimiser(θ, −∂loss/∂θ)
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcsim.errors import ConfigError
from pcsim.kernels.counter import Counter
from pcsim.kernels.feedforward import feedforward, loss
from pcsim.kernels.optim import Optimizer
from pcsim.kernels.parameters import Parameters, Views
from pcsim.maps import Convolution, Dense
from pcsim.network import Network


class Backprop:
    """One population of replicas trained by BP; the same calls as `Discrete`."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        optimizer: Optimizer,
        *,
        counter: Counter | None = None,
    ) -> None:
        if optimizer.direct:
            raise ConfigError("Backprop.optimizer: needs a gradient buffer (in_place=False)")
        self.network = network
        self.params = params
        self.optimizer = optimizer
        self.counter = counter
        self._energy = torch.empty(0)

    def batch(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """One forward pass, one backward pass, one weight update."""
        # A leaf per array: through views of one flat leaf, each layer's gradient would be padded
        # with zeros to the size of all weights, and the time would grow with the depth squared.
        of: Views = [
            {name: view.detach().requires_grad_() for name, view in views.items()}
            for views in self.params.of
        ]
        leaves = [view for views in of for view in views.values()]
        inputs = [value for root in self.network.roots if (value := clamps[root]) is not None]
        with torch.enable_grad():
            values = feedforward(self.network, of, inputs)
            if self.counter:
                self._count(self.counter, values)
            target = clamps[0]
            assert target is not None
            energy = loss(self.network.nodes[0], of[0], target, values[0])
            gradients = torch.autograd.grad(energy.sum(), leaves, materialize_grads=True)
        self._energy = energy.detach()
        into = [view for views in self.optimizer.target[0] for view in views.values()]
        for view, gradient in zip(into, gradients, strict=True):
            torch.mul(gradient, -self.optimizer.scale, out=view)
        nodes = range(len(self.network.nodes))
        self.optimizer.commit(nodes)
        if self.counter:
            self.counter.updated(i for i in nodes if self.network.nodes[i].map)

    def _count(self, counter: Counter, values: list[Tensor]) -> None:
        """Each prediction is one product; so is each gradient that reaches a hidden value."""

        def arrived(_: Tensor) -> None:
            counter.product("backward")

        for index, node in enumerate(self.network.nodes):
            if isinstance(node.map, Dense | Convolution):  # what the kernels count as products
                counter.product("forward")
                if index > 0:
                    values[index].register_hook(arrived)  # type: ignore[no-untyped-call]

    def energy(self) -> Tensor:
        """Return the loss (replica,) of the last batch before its update, summed over samples."""
        return self._energy
