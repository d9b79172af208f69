"""Nonlinearities f and their pull-back v ↦ f'(x)ᵀ v, in place.

What they are stands as text in `pcsim.maps.nonlinearities`. Those that are used most have fused
ATen operations here, held to the text by a test; all others are run from their text.

Every pull-back receives both x and r = f(x), and uses whichever needs no second evaluation of f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pcsim.maps.nonlinearities import row
from pcsim.substrate.expression import Expression

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


def from_text(name: str) -> Nonlinearity:
    """Return a nonlinearity that evaluates its row of the table, or its own expression."""
    known = row(name)
    f, slope = Expression(known.f).bind({}), Expression(known.slope).bind({})

    def apply(x: Tensor, out: Tensor) -> Tensor:
        return out.copy_(f({"x": x}))  # type: ignore[arg-type]

    return Nonlinearity(apply, lambda v, x, r: v.mul_(slope({"x": x, "r": r})))


class _Known(dict[str, Nonlinearity]):
    """Fused nonlinearities by name; any other is made from its text when it is asked for."""

    def __missing__(self, name: str) -> Nonlinearity:
        self[name] = from_text(name)
        return self[name]


FUSED: dict[str, Nonlinearity] = {
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
NONLINEARITIES = _Known(FUSED)
