"""Associative recall: a trained generative model sees half of a picture and fills in the rest.

The upper half of x⁰ is clamped, the lower half and all layers above are free, weights are fixed:
x ← x − γ ∂F/∂x until the time is up. Controls: a network that was never trained, and the mean of
all training pictures as a guess.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.frozen import Frozen
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable

from .images import ImageSet

Memory = Literal["iPC", "PC, T = 8", "untrained"]
MEMORIES: tuple[Memory, ...] = ("iPC", "PC, T = 8", "untrained")


class RecallSetting(Frozen):
    """How the memory is trained and asked."""

    width: int = 256
    depth: int = 4
    alpha: float = 1e-3
    """Of Adam: plain SGD at the paper's rate would need far longer to store a hundred pictures."""
    gamma: float = 0.1
    """Small enough for the relaxation to be stable at every stage of the training."""
    iterations: int = 4000
    recall_steps: int = 4000
    shown: int = 8
    """Pictures kept for the figure."""


def upper_half(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Return the mask (pixel,) of the upper half of a picture."""
    mask = np.zeros(shape, dtype=bool)
    mask[:, : shape[1] // 2] = True
    return mask.reshape(-1)


def memory(setting: RecallSetting, kind: Memory, pixels: Tensor) -> tuple[Network, Parameters]:
    """Train a generative model on the pictures, each with states of its own that are kept."""
    network = Network.mlp([setting.width] * setting.depth + [pixels.shape[1]], f_input=True)
    params = initial_parameters(network, [0], pixels.dtype)
    steps = 0 if kind == "untrained" else setting.iterations
    options = {"rule": "ipc", "T": 1} if kind == "iPC" else {"rule": "pc", "T": 8}
    schedule = Schedule.model_validate({**options, "gamma": setting.gamma, "init": "carry"})
    optimizer = Optimizer(OptimizerSpec("adam"), params, setting.alpha)
    run = Discrete(network, params, schedule, optimizer, mode="generative", seeds=[0])
    for _ in range(steps // schedule.T):
        run.batch([pixels[None], *[None] * setting.depth])
    return network, params


def fill_in(
    setting: RecallSetting, network: Network, params: Parameters, pixels: Tensor, mask: Tensor
) -> Tensor:
    """Return the pictures with everything outside the mask filled in by relaxation."""
    # Weights are written after the last step of `batch` only, which is never called.
    schedule = Schedule(rule="pc", T=1, gamma=setting.gamma, pc_update_at="after")
    idle = Optimizer(OptimizerSpec(), params, 0.0)
    run = Discrete(network, params, schedule, idle, mode="associative", seeds=[1])
    seen = torch.where(mask, pixels, 0.5)[None]
    run.start([seen, *[None] * setting.depth], mask.expand(1, *pixels.shape))
    for _ in range(setting.recall_steps):
        run.step()
    return run.field.x[0][0]


def recall(setting: RecallSetting, kind: Memory, images: ImageSet) -> Result:
    """Train, ask, and measure the unseen half of every picture."""
    pixels = torch.as_tensor(images.pixels)
    mask = torch.as_tensor(upper_half(images.shape))
    filled = fill_in(setting, *memory(setting, kind, pixels), pixels, mask)
    guess, truth = filled[:, ~mask].numpy(), images.pixels[:, ~mask.numpy()]
    distances = np.linalg.norm(guess[:, None] - truth[None], axis=2)
    shown = np.linspace(0, len(truth) - 1, setting.shown).astype(int)
    variables = {
        "recall_mse": Variable(("image",), ((guess - truth) ** 2).mean(1)),
        "recall_mse_mean_image": Variable(("image",), ((truth.mean(0) - truth) ** 2).mean(1)),
        "recall_right": Variable(("image",), distances.argmin(1) == np.arange(len(truth))),
        "recall_filled": Variable(("shown", "pixel"), filled[torch.as_tensor(shown)].numpy()),
        "recall_original": Variable(("shown", "pixel"), images.pixels[shown]),
    }
    return Result(variables)
