"""Time per iPC step of a CNN and of a transformer against forward + backward pass by autograd.

Both do the same products: a prediction, a pull-back and a weight gradient per map, but for the
pull-back to the input. The iPC step also moves states and weights; autograd does not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

from ..common.timing import Job, medians

Row = tuple[str, str, float, float]
GAMMA, ALPHA = 0.1, 1e-9
CNN_BATCH, TEXT_BATCH = 128, 16


class Attention(nn.Module):
    """One block as one would write it with torch.nn."""

    def __init__(self, features: int, intermediate: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(features, features) for _ in range(4))
        self.wide, self.back = nn.Linear(features, intermediate), nn.Linear(intermediate, features)

    def forward(self, h: Tensor) -> Tensor:
        """Return h + attention, then + feed-forward."""
        scores = self.q(h) @ self.k(h).mT / h.shape[-1] ** 0.5
        a = h + self.o(torch.softmax(scores, -1) @ self.v(h))
        result: Tensor = a + self.back(torch.tanh(self.wide(a)))
        return result


class Encoder(nn.Module):
    """The paper's language model: two blocks, one head, 128 features, 8001 tokens."""

    def __init__(self, vocabulary: int = 8001, positions: int = 32, features: int = 128) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, features)
        self.places = nn.Embedding(positions, features)
        self.blocks = nn.Sequential(*(Attention(features, 512) for _ in range(2)))
        self.head, self.output = nn.Linear(features, features), nn.Linear(features, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits (sample, position, token)."""
        h = self.blocks(self.words(tokens) + self.places.weight)
        result: Tensor = self.output(torch.tanh(self.head(h)))
        return result


def by_torch() -> nn.Module:
    """Return the paper's CNN: 64-128-64 channels and two dense layers."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(128, 64, 3, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(1024, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def backpropagate(model: nn.Module, loss: Callable[[Tensor], Tensor], x: Tensor) -> None:
    """One forward and one backward pass; gradients are overwritten, not added up."""
    model.zero_grad()
    loss(model(x)).backward()  # type: ignore[no-untyped-call]


def half_square(y: Tensor, output: Tensor) -> Tensor:
    """Return ½ Σ (y − output)²."""
    return 0.5 * (y - output).square().sum()


def cross_entropy(tokens: Tensor, output: Tensor) -> Tensor:
    """Return the summed cross-entropy of all positions."""
    return functional.cross_entropy(output.flatten(0, 1), tokens.flatten(), reduction="sum")


def ipc_step(network: Network, top: Tensor, datum: Tensor) -> Job:
    """Return a joint step of all states and all weights, with data clamped."""
    params = initial_parameters(network, [0], torch.float32)
    optimizer = Optimizer(OptimizerSpec(), params, ALPHA)
    runner = Discrete(network, params, Schedule(rule="ipc", gamma=GAMMA, fast=False), optimizer)
    runner.start([datum, *[None] * (len(network.nodes) - 2), top])
    return runner.step


def measure() -> list[Row]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(CNN_BATCH, 3, 32, 32, generator=generator)
    labels = torch.randint(10, (CNN_BATCH,), generator=generator)
    y = functional.one_hot(labels, 10).float()
    title = f"CNN 64-128-64 + 2 dense, 32×32×3, batch {CNN_BATCH}"
    jobs: dict[str, Job] = {
        "forward + backward by autograd": partial(
            backpropagate, by_torch(), partial(half_square, y), image
        ),
        "one iPC step": ipc_step(Network.cnn(), image.view(1, CNN_BATCH, -1), y[None]),
    }
    rows = _rows(title, medians(jobs, 25))
    tokens = torch.randint(8001, (TEXT_BATCH, 32), generator=generator)
    target = functional.one_hot(tokens, 8001).float().view(1, TEXT_BATCH, -1)
    title = f"transformer, 2 blocks, 128 features, 8001 tokens, {TEXT_BATCH}×32 positions"
    jobs = {
        "forward + backward by autograd": partial(
            backpropagate, Encoder(), partial(cross_entropy, tokens), tokens
        ),
        "one iPC step": ipc_step(Network.transformer(), tokens[None].float(), target),
    }
    return rows + _rows(title, medians(jobs, 15))


def _rows(title: str, times: dict[str, float]) -> list[Row]:
    first = next(iter(times.values()))
    return [(title, name, 1e3 * seconds, seconds / first) for name, seconds in times.items()]
