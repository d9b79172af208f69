"""What a language model is asked: hidden tokens, or the next token of every position.

    masked        input: the window with some tokens replaced by <mask>;  asked: those tokens
    conditional   input: tokens 0 … n−1 of the window;                    asked: tokens 1 … n

The end of a sentence is neither hidden nor asked for. Where nothing is asked, the target holds
`NOTHING`, and the clamped output a row of zeros, which costs nothing and teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pcsim import metrics
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network

from .text import END, MASK, Tokens

NOTHING = -1
CHUNK = 64
"""Windows that are evaluated at a time: logits are wide."""


@dataclass(frozen=True, eq=False)
class Questions:
    """Input tokens and wanted tokens, both (window, position)."""

    inputs: Tokens
    targets: Tokens

    def __len__(self) -> int:
        return len(self.inputs)

    def at(self, chosen: Tokens | slice) -> Questions:
        """Return some of the windows."""
        return Questions(self.inputs[chosen], self.targets[chosen])


def masked(windows: Tokens, share: float, rng: np.random.Generator) -> Questions:
    """Hide each token with probability `share`, and ask for the hidden ones."""
    tokens = windows[:, :-1]
    hidden = (rng.random(tokens.shape) < share) & (tokens != END)
    return Questions(np.where(hidden, MASK, tokens), np.where(hidden, tokens, NOTHING))


def conditional(windows: Tokens) -> Questions:
    """Ask for the token behind each position."""
    following = windows[:, 1:]
    return Questions(windows[:, :-1], np.where(following == END, NOTHING, following))


def clamps(network: Network, asked: Questions, like: Tensor) -> list[Tensor | None]:
    """Return what each node is clamped to: one-hot or zero rows below, token numbers on top."""
    positions, vocabulary = network.nodes[0].shape
    targets = torch.as_tensor(asked.targets, device=like.device)
    wanted = like.new_zeros(1, len(asked), positions, vocabulary)
    wanted[0].scatter_(2, targets.clamp_min(0)[..., None], (targets >= 0)[..., None].to(like))
    inputs = torch.as_tensor(asked.inputs, device=like.device)[None].to(like)
    free: list[Tensor | None] = [None] * (len(network.nodes) - 2)
    return [wanted.flatten(2), *free, inputs]


@torch.no_grad()
def perplexity(network: Network, params: Parameters, asked: Questions) -> float:
    """Return exp(mean −ln p(wanted token)) over all that is asked, by a feed-forward pass.

    One replica. It is NaN if any logit is.
    """
    total, count = 0.0, 0
    vocabulary = network.nodes[0].shape[-1]
    for start in range(0, len(asked), CHUNK):
        part = asked.at(slice(start, start + CHUNK))
        inputs = torch.as_tensor(part.inputs).to(params.flat)
        logits = outputs(network, params, inputs)[0].view(-1, vocabulary)
        wanted = torch.as_tensor(part.targets, device=logits.device).flatten()
        kept = wanted != NOTHING
        total += float(functional.cross_entropy(logits[kept], wanted[kept], reduction="sum"))
        count += int(kept.sum())
    return float(metrics.perplexity(total / count)) if np.isfinite(total) else float("nan")
