"""Pooling: μ = max or mean of f(x) over windows; a maximum remembers where it came from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.activations import Before
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.maps import Pool

aten = torch.ops.aten


def by_pixel(image: Tensor) -> Tensor:
    """Return the image with the channels of a pixel side by side in memory, on a CPU.

    There torch finds maxima of many channels at a time: two to three times faster, copy included.
    """
    return image.contiguous(memory_format=torch.channels_last) if image.is_cpu else image


class PoolKernel:
    """One pooling of one network."""

    def __init__(self, spec: Pool, hooks: MapHooks = IDEAL) -> None:
        self.spec = spec
        self.params: dict[str, Tensor] = {}
        self.hooks = hooks
        self.before = Before(spec.f, hooks)
        self._window = [spec.size, spec.size]
        self._places = self._xi = torch.empty(0)
        self._axes = (0, 0)

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self._axes = (like.shape[0], like.shape[1])
        self.before.allocate(like, self.spec.parent_units[0], False)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x)."""
        self.before.apply(parents[0])

    @property
    def _image(self) -> Tensor:
        return self.before.sent.reshape(-1, *self.spec.image)

    def predict(self) -> Tensor:
        """Return μ."""
        window = self._window
        if self.spec.kind == "max":
            mu, places = aten.max_pool2d_with_indices(by_pixel(self._image), window, window)
            mu, self._places = mu.contiguous(), places.contiguous()
        else:
            mu = aten.avg_pool2d(self._image, window, window)
        result: Tensor = mu.view(*self._axes, -1)
        return result

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self._xi = xi

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return f'(x) ∘ (ξ at the places of the maxima, or spread over the windows)."""
        window, none = self._window, [0, 0]
        xi, image = self._xi.reshape(-1, *self.spec.shape), self._image
        if self.spec.kind == "max":
            v = aten.max_pool2d_with_indices_backward(
                xi, image, window, window, none, [1, 1], False, self._places
            )
        else:
            v = aten.avg_pool2d_backward(xi, image, window, window, none, False, True, None)
        pulled = self.before.pull(v.view(*self._axes, -1), x)
        return pulled if onto is None else onto.add_(pulled)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


@computes(Pool)
def _pool_kernel(
    spec: Pool, params: Params, counter: Counter | None, hooks: MapHooks
) -> PoolKernel:
    return PoolKernel(spec, hooks)


@plain(Pool)
def _plain_pool(spec: Pool, params: Params, parents: Sequence[Tensor]) -> Tensor:
    x = FUNCTIONS[spec.f](parents[0])
    image = x.reshape(-1, *spec.image)
    if spec.kind == "max":
        pooled = functional.max_pool2d(by_pixel(image), spec.size).contiguous()
    else:
        pooled = functional.avg_pool2d(image, spec.size)
    return pooled.view(*x.shape[:2], -1)
