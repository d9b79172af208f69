"""Nonlinearities f and their pull-back v ↦ f'(x)ᵀ v, each as one fused ATen operation.

Every pull-back receives both x and r = f(x), and uses whichever needs no second evaluation of f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

aten = torch.ops.aten
LEAK = 0.01
"""Slope of the leaky relu for negative input, torch's default."""


@dataclass(frozen=True)
class Nonlinearity:
    """r = f(x) written to `out`, and v ← f'(x)ᵀ v in place."""

    apply: Callable[[Tensor, Tensor], Tensor]
    pull: Callable[[Tensor, Tensor, Tensor], Tensor]


def _softmax_pull(v: Tensor, x: Tensor, r: Tensor) -> Tensor:
    # Jᵀv = r∘(v − Σ r v): subtract first so that v is overwritten only once it has been read.
    v -= (r * v).sum(-1, keepdim=True)
    return v.mul_(r)


NONLINEARITIES: dict[str, Nonlinearity] = {
    "identity": Nonlinearity(lambda x, out: out.copy_(x), lambda v, x, r: v),
    "tanh": Nonlinearity(
        lambda x, out: torch.tanh(x, out=out),
        lambda v, x, r: aten.tanh_backward.grad_input(v, r, grad_input=v),
    ),
    "sigmoid": Nonlinearity(
        lambda x, out: torch.sigmoid(x, out=out),
        lambda v, x, r: aten.sigmoid_backward.grad_input(v, r, grad_input=v),
    ),
    "relu": Nonlinearity(
        lambda x, out: torch.clamp_min(x, 0, out=out),
        lambda v, x, r: aten.threshold_backward.grad_input(v, x, 0, grad_input=v),
    ),
    "leaky_relu": Nonlinearity(
        lambda x, out: aten.leaky_relu.out(x, LEAK, out=out),
        lambda v, x, r: aten.leaky_relu_backward.grad_input(v, x, LEAK, False, grad_input=v),
    ),
    "gelu": Nonlinearity(
        lambda x, out: aten.gelu.out(x, approximate="none", out=out),
        lambda v, x, r: aten.gelu_backward.grad_input(v, x, approximate="none", grad_input=v),
    ),
    "softmax": Nonlinearity(lambda x, out: torch.softmax(x, -1, out=out), _softmax_pull),
}
