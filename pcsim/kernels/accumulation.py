"""How gradients are added up: into ← beta·into + alpha·gradient."""

from __future__ import annotations

import torch
from torch import Tensor


def accumulate(into: Tensor, gradient: Tensor, alpha: float, beta: float) -> None:
    """Do into ← beta·into + alpha·gradient; beta = 0 ignores what was there, even NaN."""
    if beta == 0:
        torch.mul(gradient, alpha, out=into)
    elif beta == 1:
        into.add_(gradient, alpha=alpha)
    else:
        into.mul_(beta).add_(gradient, alpha=alpha)
