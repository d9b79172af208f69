"""Symbols of a layer or its synapses in torch: rules, sums over synapses, outer products.

A rule evaluates one symbol at the present state. Sums over synapses become matrix products (see
`pcsim.circuits.products`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.kernels.samples import Trains
from pcsim.substrate.expression import Expression, Value
from pcsim.substrate.transform import Transform

Rule = Callable[[], Value]
"""What evaluates a value at the present state."""


@lru_cache(maxsize=4096)
def expression(text: str) -> Expression:
    """Return the expression of a text; each is parsed once."""
    return Expression(text)


@dataclass(eq=False)
class Part:
    """The symbols of one layer, or of the synapses onto it."""

    constants: dict[str, Value]
    rules: dict[str, Rule] = field(default_factory=dict)
    now: dict[str, Value] = field(default_factory=dict)
    """What is known at the present state."""

    def value(self, name: str) -> Value:
        """Return a symbol at the present state."""
        value = self.now.get(name)
        if value is None:
            value = self.now[name] = self.rules[name]()
        return value

    def tensor(self, name: str) -> Tensor:
        """Return a symbol that is a tensor."""
        value = self.value(name)
        assert isinstance(value, Tensor)
        return value

    def formula(self, text: str) -> Rule:
        """Return what evaluates an expression here; constants are folded now."""
        names = expression(text).names
        if len(names) == 1 and text in names and text not in self.constants:
            return lambda: self.value(text)
        bound = expression(text).bind({n: self.constants[n] for n in names & set(self.constants)})
        needed = tuple(names - set(self.constants))
        return lambda: bound({name: self.value(name) for name in needed})


class Product(NamedTuple):
    """An outer product at one state: c, S, A and B."""

    gain: float
    synapse: Tensor | None
    pre: Tensor | None
    post: Tensor | None


@dataclass(frozen=True, eq=False)
class Outer:
    """c·S·A·B of one array: S of the synapses, A and B of the neurons; None is 1."""

    gain: float
    synapse: Rule | None
    pre: Rule | None
    post: Rule | None

    def at_present(self) -> Product:
        """Return its factors at the present state."""
        synapse, pre, post = (
            None if rule is None else as_tensor(rule())
            for rule in (self.synapse, self.pre, self.post)
        )
        return Product(self.gain, synapse, pre, post)


def as_tensor(value: Value) -> Tensor:
    """Return a value that is a tensor."""
    assert isinstance(value, Tensor)
    return value


def shared_by_samples(post: Part, name: str) -> Rule:
    """Return a symbol of post neurons that is the same for all samples, along the array's rows."""
    return lambda: post.tensor(name)[:, 0, :, None]


def over_the_layer(rule: Rule) -> Rule:
    """Return a sum over all units of a layer."""
    return lambda: as_tensor(rule()).sum(-1, keepdim=True)


def positions(shape: tuple[int, int], axis: int, like: Tensor) -> Tensor:
    """Return the places j/n, j = 1 … n, along one axis of an array."""
    places = torch.arange(1, shape[axis] + 1, dtype=like.dtype, device=like.device) / shape[axis]
    return places if axis else places[:, None]


def delivered(hook: Transform, signal: Rule, symbols: Mapping[str, Rule]) -> Rule:
    """Return a signal as hardware delivers it."""

    def rule() -> Value:
        return hook(as_tensor(signal()), **{name: each() for name, each in symbols.items()})

    return rule


def summed(products: Sequence[Outer], side: str, largest: bool = False) -> Rule:
    """Return a sum over all synapses onto a neuron of one side, or the largest of its terms."""

    def one(outer: Outer) -> Tensor:
        gain, synapse, pre, post = outer.at_present()
        sent, own = (pre, post) if side == "post" else (post, pre)
        if synapse is None:
            assert sent is not None
            total = (sent.amax if largest else sent.sum)(-1, keepdim=True)
        elif sent is None:
            total = synapse.sum(-1 if side == "post" else -2).unsqueeze(1)
        else:
            total = torch.bmm(sent, synapse.mT if side == "post" else synapse)
        total = total if own is None else total * own
        return total if gain == 1 else total * gain

    def rule() -> Value:
        total = one(products[0])
        for outer in products[1:]:
            total = total + one(outer)
        return total

    return rule


def without_sign(product: Product) -> Product:
    """Return what samples ask for, whichever way."""
    factors = (None if factor is None else factor.abs() for factor in product[1:])
    return Product(abs(product.gain), *factors)


def as_pulses(product: Product, trains: Trains, dt: float) -> Product:
    """Return the pulses of rows and columns in place of a product of samples."""
    gain, synapse, pre, post = product
    if pre is None or post is None:
        return product
    if synapse is not None:
        raise UnsupportedError(
            "hardware: pulse trains of rows and columns write one rate, and this circuit learns "
            'with one of each synapse; use lines = "device" of the pulse_train'
        )
    sent, arrived = trains(post if gain > 0 else -post, pre, abs(gain) * dt)
    return Product(1 / dt, None, arrived, sent)


def add_products(into: Tensor, products: Sequence[Product], dt: float) -> Tensor:
    """Add dt·c·S·(B ⊗ A), summed over samples, to an array (chip, post, pre)."""
    for gain, synapse, pre, post in products:
        if pre is None or post is None:
            assert synapse is not None
            into.add_(synapse, alpha=gain * dt)
        elif synapse is None:
            into.baddbmm_(post.mT, pre, alpha=gain * dt)
        else:
            into.addcmul_(synapse, torch.bmm(post.mT, pre), value=gain * dt)
    return into
