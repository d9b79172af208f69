"""Convolutions of many replicas, each with filters of its own: W_k ∗ v_k and its two transposes.

Small images of many replicas are one grouped convolution (the replicas are groups of channels), so
that a population of chips costs few operations. Large ones are convolved in turn: each keeps all
cores busy, and a grouped one would have to move the replica axis by a copy. An input that all
replicas share is convolved with the filters of all at once.

Images are (replica, sample, pixel), filters (replica, channel, channel_in, kernel, kernel).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.maps import Convolution

aten = torch.ops.aten
SMALL = 1 << 15
"""Numbers per replica (samples × pixels, in or out) up to which replicas are joined."""


def convolve(v: Tensor, w: Tensor, b: Tensor | None, spec: Convolution) -> Tensor:
    """Return W ∗ v + b (replica, sample, unit)."""
    if not _joined(v, len(w), spec):
        parts = [
            functional.conv2d(
                _images(v, k, spec), w[k], None if b is None else b[k], spec.stride, spec.padding
            )
            for k in range(len(w))
        ]
        return _stacked([part.flatten(1) for part in parts])
    images, groups = _joined_images(v, len(w), spec)
    bias = None if b is None else b.flatten()
    sums = functional.conv2d(
        images, w.flatten(0, 1), bias, spec.stride, spec.padding, groups=groups
    )
    return _apart(sums, len(w))


def pull_back(delta: Tensor, v: Tensor, w: Tensor, spec: Convolution) -> Tensor:
    """Return the transposed convolution of δ with W (replica, sample, pixel)."""
    wanted = (True, False, False)
    if not _joined(delta, len(w), spec):
        parts = [
            _backward(_places(delta, k, spec), _images(v, k, spec), w[k], spec, 1, wanted)[0]
            for k in range(len(w))
        ]
        return _stacked([part.flatten(1) for part in parts])
    errors = _side_by_side(delta, spec.shape)
    images = v.new_empty(1).expand(len(errors), len(w) * spec.image[0], *spec.image[1:])
    pulled = _backward(errors, images, w.flatten(0, 1), spec, len(w), wanted)[0]
    return _apart(pulled, len(w))


def filter_gradient(
    delta: Tensor, v: Tensor, w: Tensor, spec: Convolution, bias: bool
) -> tuple[Tensor, Tensor]:
    """Return Σ_samples, places δ ⋆ v, in the shape of w, and Σ δ (replica, channel) if asked."""
    wanted = (False, True, bias)
    if not _joined(delta, len(w), spec):
        parts = [
            _backward(_places(delta, k, spec), _images(v, k, spec), w[k], spec, 1, wanted)
            for k in range(len(w))
        ]
        sums = _stacked([part[2] for part in parts]) if bias else delta.new_empty(0)
        return _stacked([part[1] for part in parts]), sums
    errors = _side_by_side(delta, spec.shape)
    images, groups = _joined_images(v, len(w), spec)
    _, gradients, sums = _backward(errors, images, w.flatten(0, 1), spec, groups, wanted)
    return gradients.view(w.shape), sums.view(len(w), -1) if bias else sums


def _joined(v: Tensor, replicas: int, spec: Convolution) -> bool:
    return replicas > 1 and v.shape[1] * max(spec.units, *spec.parent_units) <= SMALL


def _joined_images(v: Tensor, replicas: int, spec: Convolution) -> tuple[Tensor, int]:
    """Return images with all channels side by side, and the number of groups: 1 if shared."""
    if v.shape[0] == 1 or v.stride(0) == 0:
        return v[0].view(-1, *spec.image), 1
    return _side_by_side(v, spec.image), replicas


def _side_by_side(v: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return (sample, replica·channel, …)."""
    return v.transpose(0, 1).reshape(v.shape[1], len(v) * shape[0], *shape[1:])


def _apart(joined: Tensor, replicas: int) -> Tensor:
    return joined.view(len(joined), replicas, -1).transpose(0, 1).contiguous()


def _images(v: Tensor, replica: int, spec: Convolution) -> Tensor:
    return v[replica if len(v) > 1 else 0].view(-1, *spec.image)


def _places(delta: Tensor, replica: int, spec: Convolution) -> Tensor:
    return delta[replica].view(-1, *spec.shape)


def _stacked(parts: list[Tensor]) -> Tensor:
    return parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts)


def _backward(
    delta: Tensor,
    v: Tensor,
    w: Tensor,
    spec: Convolution,
    groups: int,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor, Tensor, Tensor]:
    stride, padding = (spec.stride,) * 2, (spec.padding,) * 2
    gradients: tuple[Tensor, Tensor, Tensor] = aten.convolution_backward(
        delta, v, w, [len(w)], stride, padding, (1, 1), False, (0, 0), groups, wanted
    )
    return gradients
