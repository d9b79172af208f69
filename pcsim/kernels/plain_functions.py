"""Nonlinearities as plain differentiable functions of torch, by name or as an expression in x."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.maps.nonlinearities import row

_TORCH: dict[str, Callable[..., Tensor]] = {
    **{n: getattr(torch, n) for n in ("exp", "log", "sqrt", "tanh", "floor", "ceil", "abs")},
    "sign": torch.sign,
    "clip": torch.clamp,
}
"""What expressions call."""


class _Functions(dict[str, Callable[[Tensor], Tensor]]):
    """Nonlinearities by name; an expression becomes a differentiable function of torch."""

    def __missing__(self, name: str) -> Callable[[Tensor], Tensor]:
        code = compile(row(name).f, f"<{name}>", "eval")

        def function(x: Tensor) -> Tensor:
            # 0 and 1 times a number is rounded to the precision of the 0 and 1.
            names = _TORCH | {"int": lambda truth: truth.to(x.dtype), "x": x}
            return torch.as_tensor(eval(code, {"__builtins__": {}}, names))

        self[name] = function
        return function


FUNCTIONS = _Functions(
    identity=lambda x: x,
    tanh=torch.tanh,
    sigmoid=torch.sigmoid,
    relu=functional.relu,
    leaky_relu=functional.leaky_relu,
    gelu=functional.gelu,
    softmax=lambda x: functional.softmax(x, -1),
)
