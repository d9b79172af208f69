"""Every map as plain differentiable torch, on (replica, sample, unit).

The second implementation beside the in-place kernels, for backpropagation and evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.pooling import by_pixel
from pcsim.maps import (
    Convolution,
    Dense,
    Embedding,
    LayerNorm,
    Map,
    Mix,
    Pool,
    Prior,
    Scores,
    Sum,
)
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
Params = dict[str, Tensor]


def plain_map(spec: Map, params: Params, parents: Sequence[Tensor]) -> Tensor:
    """Return μ of a map from the values of its parents."""
    match spec:
        case Dense():
            return _dense(spec, params, parents[0])
        case Convolution():
            return _convolution(spec, params, parents[0])
        case Pool():
            return _pool(spec, FUNCTIONS[spec.f](parents[0]))
        case Embedding():
            return _embedding(spec, params, parents[0])
        case LayerNorm():
            x = FUNCTIONS[spec.f](parents[0])
            x = x.view(*x.shape[:2], spec.positions, spec.features)
            normal = functional.layer_norm(x, (spec.features,), eps=spec.eps)
            gain, b = (params[name][:, None, None] for name in ("gain", "b"))
            return (normal * gain + b).flatten(2)
        case Scores():
            q, k = (_heads(x, spec) for x in parents)
            scores: Tensor = q @ k.mT * (spec.heads / spec.features) ** 0.5
            return (scores.tril() if spec.causal else scores).flatten(2)
        case Mix():
            return _mix(spec, parents[0], parents[1])
        case Sum():
            return torch.stack(list(parents)).sum(0)
        case Prior():
            raise AssertionError("a prior predicts a root, which has no value to follow")


def _dense(spec: Dense, params: Params, x: Tensor) -> Tensor:
    rates = FUNCTIONS[spec.f](x).reshape(x.shape[0], -1, spec.n_in)
    drive: Tensor = torch.matmul(rates, params["w"].mT)
    if spec.bias:
        drive = drive + params["b"].unsqueeze(1)
    return FUNCTIONS[spec.g](drive).view(drive.shape[0], x.shape[1], -1)


def _convolution(spec: Convolution, params: Params, x: Tensor) -> Tensor:
    images = FUNCTIONS[spec.f](x)
    parts = []
    for replica, w in enumerate(params["w"]):
        image = images[replica if len(images) > 1 else 0].view(-1, *spec.image)
        b = params["b"][replica] if spec.bias else None
        parts.append(functional.conv2d(image, w, b, spec.stride, spec.padding).flatten(1))
    return FUNCTIONS[spec.g](parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts))


def _pool(spec: Pool, x: Tensor) -> Tensor:
    image = x.reshape(-1, *spec.image)
    if spec.kind == "max":
        pooled = functional.max_pool2d(by_pixel(image), spec.size).contiguous()
    else:
        pooled = functional.avg_pool2d(image, spec.size)
    return pooled.view(*x.shape[:2], -1)


def _embedding(spec: Embedding, params: Params, x: Tensor) -> Tensor:
    tokens = x.long()
    words = [
        functional.embedding(tokens[replica if len(tokens) > 1 else 0], w)
        for replica, w in enumerate(params["w"])
    ]
    return (torch.stack(words) + params["w_position"].unsqueeze(1)).flatten(2)


def _heads(x: Tensor, spec: Scores | Mix) -> Tensor:
    """Return (replica, sample, head, position, feature of a head)."""
    return x.view(*x.shape[:2], spec.positions, spec.heads, -1).transpose(2, 3)


def _mix(spec: Mix, scores: Tensor, values: Tensor) -> Tensor:
    logits = scores.view(*scores.shape[:2], spec.heads, spec.positions, spec.positions)
    if spec.causal:
        side = spec.positions
        later = torch.ones(side, side, dtype=torch.bool, device=scores.device).triu(1)
        logits = logits.masked_fill(later, float("-inf"))
    mixed: Tensor = functional.softmax(logits, -1) @ _heads(values, spec)
    return mixed.transpose(2, 3).flatten(2)
