"""What the field asks of a map, and who computes which map: files of `pcsim.kernels.maps`.

    predict   μ = map(parents; θ)
    receive   ξ = −∂E/∂μ, the error at the prediction
    pull      (∂μ/∂parent)ᵀ ξ
    learn     (∂μ/∂θ)ᵀ ξ, summed over samples

All of it is local: a kernel sees its parents, its own parameters and its own error. Beside its
kernel every map has a plain, differentiable form on (replica, sample, unit), for backpropagation
and evaluation; it is the second implementation that the kernel is held to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.maps import Map, Prior


class MapKernel(Protocol):
    """One map of one network; it keeps its buffers from step to step."""

    params: dict[str, Tensor]
    hooks: MapHooks
    """What hardware does to this map."""

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device.

        `shared_input`: all replicas share the (clamped) first parent.
        """

    def activate(self, *parents: Tensor) -> None:
        """Take the parents' values; needed again whenever one of them has moved."""

    def predict(self) -> Tensor:
        """Return μ for the present parents and weights; the buffer is reused in the next step."""

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ; it must not change until the next `receive`."""

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return what the error asks of parent number `slot`, whose value is x.

        With `onto` it is added there. The caller may overwrite what is returned.
        """

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for every array named in `into`."""


Params = dict[str, Tensor]
Make = Callable[[Any, Params, Counter | None, MapHooks], MapKernel]
Plain = Callable[[Any, Params, Sequence[Tensor]], Tensor]
_Make = TypeVar("_Make", bound=Callable[..., MapKernel])
_Plain = TypeVar("_Plain", bound=Callable[..., Tensor])
_KERNELS: dict[type, Make] = {}
_PLAIN: dict[type, Plain] = {}


def computes(spec: type) -> Callable[[_Make], _Make]:
    """Register a function that makes the kernel of a map."""

    def register(make: _Make) -> _Make:
        _KERNELS[spec] = make
        return make

    return register


def plain(spec: type) -> Callable[[_Plain], _Plain]:
    """Register the plain form of a map."""

    def register(function: _Plain) -> _Plain:
        _PLAIN[spec] = function
        return function

    return register


@cache
def _found() -> None:
    """Let every file of `pcsim.kernels.maps` register its map."""
    package = import_module("pcsim.kernels.maps")
    for module in iter_modules(package.__path__):
        import_module(f"pcsim.kernels.maps.{module.name}")


def map_kernel(
    spec: Map | None, params: Params, counter: Counter | None, hooks: MapHooks = IDEAL
) -> MapKernel | None:
    """Return the kernel of a map; None for roots, which nothing predicts (or a fixed prior)."""
    if spec is None or isinstance(spec, Prior):
        return None
    _found()
    return _KERNELS[type(spec)](spec, params, counter, hooks)


def plain_map(spec: Map, params: Params, parents: Sequence[Tensor]) -> Tensor:
    """Return μ of a map from the values of its parents."""
    _found()
    return _PLAIN[type(spec)](spec, params, parents)


def refuse_hardware(spec: Map, hooks: MapHooks) -> None:
    """Refuse arrays of hardware in a map that has no place for them."""
    if not hooks.ideal:
        raise UnsupportedError(
            f"hardware: arrays, potentials and rates are not modelled for {type(spec).__name__} "
            f"(position by position); effects on errors and states are"
        )
