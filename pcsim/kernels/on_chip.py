"""What hardware does besides the reads inside the kernels.

time constants    τ ← fabricated per chip and unit
inputs            what is clamped ← encode(data)
somas             dx/dt ← velocity(dx/dt; x)
arrays            W as read, and W ← W + write(ΔW; W)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import torch
from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.kernels.field import Field
from pcsim.kernels.optim import Optimizer
from pcsim.kernels.parameters import Parameters, Views
from pcsim.kernels.samples import ByNode, Trains, requested
from pcsim.network import Network
from pcsim.substrate import Chips, Site
from pcsim.substrate.effect import DOWN, TRAINS
from pcsim.substrate.expression import Value
from pcsim.substrate.transform import Transform

FOLLOWED = frozenset({"tau_x", "tau_err", "velocity", "error", "feedback", "input", "output"})
"""Sites that leave a clamped input's rates and weights alone, so that its drive can be followed."""


def followable(chips: Chips | None) -> bool:
    """Whether the Gram matrix of a clamped input still tells how its drive moves."""
    return chips is None or chips.substrate.sites <= FOLLOWED


def fabricated(
    chips: Chips | None, site: Site, network: Network, nominal: Sequence[Value]
) -> list[Value]:
    """Return the values of all nodes after fabrication: τ (chip, 1, unit) where chips differ."""
    if chips is None or site not in chips.substrate.sites:
        return list(nominal)
    return [
        chips.fabricate(site, index, (node.units,), value)
        for index, (node, value) in enumerate(zip(network.nodes, nominal, strict=True))
    ]


def times_of(params: Parameters, tau_w: Value) -> list[Value]:
    """Return τ_w of every node's weights: a number, or what fits (chip, post, pre)."""
    if not isinstance(tau_w, Tensor):
        return [tau_w] * len(params.of)
    each = params.views(tau_w.expand(params.flat.shape).contiguous())
    return [views["w"].flatten(2) if "w" in views else 0.0 for views in each]


def fabricated_tau_w(chips: Chips | None, params: Parameters, nominal: Value) -> Value:
    """Return τ_w (chip, parameter) where chips differ; biases keep the nominal value."""
    if chips is None or "tau_w" not in chips.substrate.sites:
        return nominal
    flat = torch.ones_like(params.flat) * nominal
    for index, views in enumerate(params.views(flat)):
        if "w" in views:
            array = views["w"].view(*views["w"].shape[:2], -1)
            array.mul_(chips.fabricate("tau_w", index, tuple(array.shape[1:]), 1.0))
    return flat


class Encoder:
    """The input site: data on its way to a clamped node; labels are not data."""

    def __init__(self, chips: Chips | None, network: Network, supervised: bool) -> None:
        self._hooks: dict[int, Transform] = {}
        self._chips = chips
        for index, node in enumerate(network.nodes if chips else ()):
            label = supervised and index == 0
            if chips and not label and (hook := chips.transform("input", index, (node.units,))):
                self._hooks[index] = hook

    def __call__(self, clamps: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return what the chips receive, one per chip where they differ."""
        if self._chips is None or not self._hooks:
            return list(clamps)
        count = len(self._chips)
        return [
            value
            if value is None or hook is None
            else hook(value.expand(count, -1, -1)).contiguous()
            for value, hook in ((c, self._hooks.get(i)) for i, c in enumerate(clamps))
        ]


class Somas:
    """The velocity site of every node."""

    def __init__(self, chips: Chips | None, network: Network) -> None:
        self._hooks: dict[int, Transform] = {}
        for index, node in enumerate(network.nodes if chips else ()):
            if chips and (hook := chips.transform("velocity", index, (node.units,))):
                self._hooks[index] = hook

    def force(self, index: int, x: Tensor, force: Tensor, tau: Value) -> Tensor:
        """Return τ dx/dt after hardware has acted on dx/dt."""
        hook = self._hooks.get(index)
        return force if hook is None else hook(force / tau, x=x) * tau


class Array:
    """The devices of one set of weights: forward, interneuron or feedback."""

    def __init__(
        self, chips: Chips | None, of: Views, name: str = "", *, reads: bool = True
    ) -> None:
        """`name` tells separate physical arrays of one layer apart; `reads`: else kernels read."""
        self.of, self._chips = of, chips
        self._reads: dict[int, Transform] = {}
        self._writes: dict[int, Transform] = {}
        self._trains: dict[int, Trains] = {}
        for index, views in enumerate(of if chips else ()):
            if chips and "w" in views:
                shape = tuple(views["w"].flatten(2).shape[1:])
                if reads and (read := chips.transform("weight", index, shape, name)):
                    self._reads[index] = read
                if write := chips.transform("write", index, shape, name):
                    self._writes[index] = write
                if chips.substrate.sites & set(TRAINS):
                    self._trains[index] = Trains(chips, index, (shape[0], shape[1]), name)
        writes = chips.substrate.at("write") if chips else ()
        self._each = any(effect.uses(DOWN) for effect in writes)

    @property
    def writes(self) -> bool:
        """Whether writing differs from adding."""
        return bool(self._writes or self._trains)

    def requests(self, field: Field, nodes: Sequence[int], rate: Value, decay: Value) -> ByNode:
        """Return what each sample asks for of rate·Σ g − decay·w, where that matters.

        Rates are numbers, one per chip, or (chip, parameter).
        """
        if not (self._each or self._trains):
            return {}
        parts = (self._by_node(field, value) for value in (rate, decay))
        of_rate, of_decay = parts
        return {
            index: requested(
                field, self.of, index, self._trains.get(index), of_rate(index), of_decay(index)
            )
            for index in nodes
            if "w" in self.of[index]
        }

    def asked_by(self, field: Field, nodes: Sequence[int], optimizer: Optimizer) -> ByNode:
        """Return what each sample asks for by an optimiser; one that averages cannot say."""
        if not (self._each or self._trains):
            return {}
        if (rule := optimizer.spec.rule) != "sgd":
            raise UnsupportedError(
                f"learning.optimizer {rule!r}: it averages gradients beside the array, so that no "
                f'sample writes pulses of its own; use "sgd", or samples = "sum" of the device'
            )
        alpha = optimizer.alpha
        return self.requests(field, nodes, alpha * optimizer.scale, alpha * optimizer.weight_decay)

    def _by_node(self, field: Field, value: Value) -> Callable[[int], Value]:
        if not isinstance(value, Tensor) or value.shape != field.params.flat.shape:
            return lambda _: value
        views = field.params.views(value.contiguous())
        return lambda index: views[index]["w"]

    def reading(self, index: int) -> Transform:
        """Return what happens to the weights of a layer on their way out, where something does."""
        return self._reads[index]

    def read(self, index: int) -> Tensor:
        """Return the weights of a layer as presented in this step."""
        stored = self.of[index]["w"]
        hook = self._reads.get(index)
        return stored if hook is None else hook(stored.flatten(2)).view(stored.shape)

    def write(
        self,
        changes: Views,
        times: Sequence[Value],
        nodes: Sequence[int] | None = None,
        by_sample: ByNode | None = None,
    ) -> None:
        """Add the changes that plasticity asks for, as the devices take them.

        Main arguments:
            times: τ_w of every node.
            by_sample: what each sample asks for, by node (see `requests`).
        """
        for index in range(len(self.of)) if nodes is None else nodes:
            for name, asked in changes[index].items():
                hook = self._writes.get(index) if name == "w" else None
                target = self.of[index][name]
                if name == "w" and (hook is not None or by_sample):
                    known: dict[str, Value] = {"w": target.flatten(2), "tau_w": times[index]}
                    if by_sample and (each := by_sample.get(index)):
                        asked = asked if each.net is None else each.net
                        known[DOWN] = ((each.gross - asked) / 2).clamp_(min=0).flatten(2)
                    if hook is not None:
                        asked = hook(asked.flatten(2), **known).view(target.shape)
                target.add_(asked)

    def rewrite(
        self,
        params: Parameters,
        before: Tensor,
        nodes: Sequence[int],
        alpha: Value,
        by_sample: ByNode | None = None,
    ) -> None:
        """Take back what an optimiser did to the numbers, and ask the devices for it instead."""
        asked = params.flat - before
        params.flat.copy_(before)
        self.write(params.views(asked), self._times(alpha), nodes, by_sample)

    def _times(self, alpha: Value) -> list[Value]:
        """Return the time constant dt/α that a rate per step stands for, per node."""
        assert self._chips
        dt = self._chips.clock.dt
        if isinstance(alpha, Tensor):
            return [dt / alpha.view(-1, 1, 1)] * len(self.of)
        return [dt / alpha if alpha else inf] * len(self.of)
