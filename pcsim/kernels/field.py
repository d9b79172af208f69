"""The energy F(x, θ) of a network and its gradients, evaluated in place.

    F = Σ_l E_l(x^l, μ^l)             μ^l = map_l(parents of l)
    ξ^l = −∂E_l/∂μ^l                  errors
    d^l = −∂F/∂x^l = own^l + Σ_children Jᵀ ξ^child        drift of the free nodes
    g^l = −∂F/∂θ^l = (∂μ^l/∂θ^l)ᵀ ξ^l                     local (Hebbian) weight change

A transparent node has no E: there x^l = μ^l, and ξ^l = Σ_children Jᵀ ξ^child passes through.

All tensors are (replica, sample, unit). Everything is a function of the state as it was when
`errors` was called; nothing here moves states or weights, so that an update rule can take both
from the same state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcsim.errors import ConfigError
from pcsim.kernels.counter import Counter
from pcsim.kernels.energy import CategoricalKL, EnergyKernel, UnitGaussian, energy_kernel
from pcsim.kernels.hooks import IDEAL, map_hooks
from pcsim.kernels.map_kernel import MapKernel, map_kernel
from pcsim.kernels.parameters import Parameters, Views
from pcsim.maps import Prior
from pcsim.network import Mode, Network
from pcsim.substrate import Chips


class Field:
    """One network with its parameters and one way of clamping it."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        mode: Mode,
        *,
        counter: Counter | None = None,
        chips: Chips | None = None,
    ) -> None:
        self.network = network
        self.params = params
        self.mode = mode
        self.counter = counter
        self._mode_holds = network.holds(mode)
        self.holds = list(self._mode_holds)
        self.maps: list[MapKernel | None] = [
            map_kernel(
                node.map, params.of[i], counter, map_hooks(chips, network, i) if chips else IDEAL
            )
            for i, node in enumerate(network.nodes)
        ]
        self.energies: list[EnergyKernel | None] = [
            energy_kernel(node, hold, params.of[i])
            for i, (node, hold) in enumerate(zip(network.nodes, self.holds, strict=True))
        ]
        self.predicted = tuple(i for i, node in enumerate(network.nodes) if node.map)
        self.costed = tuple(i for i in self.predicted if self.energies[i])
        """Predicted value nodes: those that have an energy."""
        self.transparent = tuple(i for i in self.predicted if not self.energies[i])
        self._error_reads = {
            i: hook
            for i in (self.costed if chips else ())
            if chips and (hook := chips.transform("error", i, (network.nodes[i].units,)))
        }
        self._true_errors: dict[int, Tensor] = {}
        """ε before hardware reads it, where that differs: the energy is that of the network."""
        self.free: tuple[int, ...] = ()
        self.clamped_input: tuple[int, ...] = ()
        self._hold(())
        self.x: list[Tensor] = []
        self.mu: list[Tensor] = [torch.empty(0)] * len(network.nodes)
        self._open_mask: Tensor | None = None
        self._shape: tuple[int, ...] = ()
        self.knows_errors = False
        """Whether ξ was computed since room was made for it."""
        self.reads_errors_late = False
        """Errors pass through units or delays of their own before hardware reads them."""

    def load(
        self, x: Sequence[Tensor | None], mask: Tensor | None = None, released: Sequence[int] = ()
    ) -> None:
        """Take new states, one per value node, and None where a node is transparent.

        `mask` (true = clamped) belongs to associative mode. A clamped tensor may have a replica
        axis of length 1: all replicas then share it. Nodes that the mode clamps can be `released`
        for this load: they are free states then.
        """
        self._hold(released)
        replicas = self.params.replicas
        for index, (value, node) in enumerate(zip(x, self.network.nodes, strict=True)):
            if value is None and node.transparent:
                continue
            if value is None or value.ndim != 3 or value.shape[2] != node.units:
                raise ConfigError(
                    f"Field.x[{index}]: expected (replica, sample, {node.units}), "
                    f"got {'nothing' if value is None else tuple(value.shape)}"
                )
            if value.shape[0] not in (replicas, 1 if self.holds[index] == "clamped" else replicas):
                raise ConfigError(
                    f"Field.x[{index}]: {value.shape[0]} replicas given, {replicas} expected"
                )
        if (mask is not None) != (self.holds[0] == "masked"):
            raise ConfigError("Field.load.mask: is needed in associative mode, and only there")
        like = x[0]
        assert like is not None
        self._open_mask = None if mask is None else (~mask).to(like)
        shared = [value is not None and len(value) == 1 and replicas > 1 for value in x]
        shape = (replicas, *like.shape[1:2], *map(int, shared))
        empty = torch.empty(0)  # until it is predicted
        self.x = [empty if v is None else v.expand(replicas, -1, -1) for v in x]
        if shape != self._shape:
            self._shape, self.knows_errors = shape, False
            self._allocate(shared)
        for index in self.clamped_input:
            kernel = self.maps[index]
            if kernel and not kernel.hooks.on_rates:  # hardware reads once per step, in `predict`
                self._activate(index)

    def _allocate(self, shared: Sequence[bool]) -> None:
        for index in self.predicted:
            kernel, energy = self.maps[index], self.energies[index]
            if kernel:
                kernel.allocate(self.x[0], shared[self.network.nodes[index].parents[0]])
            if energy:
                energy.allocate(self.x[index])

    def holds_room(self, index: int, samples: int) -> bool:
        """Whether the state of this free node has room for so many samples already."""
        return bool(self.x) and self.x[index].shape[1] == samples

    def _hold(self, released: Sequence[int]) -> None:
        self.holds = [
            "free" if index in released else hold for index, hold in enumerate(self._mode_holds)
        ]
        self.free = tuple(i for i, hold in enumerate(self.holds) if hold in ("free", "masked"))
        self.clamped_input = tuple(
            i
            for i in self.predicted
            if (parents := self.network.nodes[i].parents)
            and all(self.holds[p] == "clamped" for p in parents)
        )
        for index, energy in enumerate(self.energies):
            if isinstance(energy, CategoricalKL):
                energy.clamped = self.holds[index] == "clamped"

    def read_weights(self) -> None:
        """Begin a step: every array presents its weights as its devices let it."""
        for kernel in self.maps:
            if kernel:
                kernel.read_weights()

    def feedforward(self) -> None:
        """Set every free node below the roots to its prediction, top down: x^l = μ^l, ξ^l = 0."""
        for index in reversed(self.predicted):
            self.predict((index,))
            if self.network.nodes[index].parents and self.holds[index] == "free":
                self.x[index].copy_(self.mu[index])
            elif self.holds[index] == "masked":
                assert self._open_mask is not None
                self.x[index].lerp_(self.mu[index], self._open_mask)

    def _activate(self, index: int) -> None:
        kernel = self.maps[index]
        assert kernel
        kernel.activate(*(self.x[parent] for parent in self.network.nodes[index].parents))

    def predict(self, nodes: Sequence[int]) -> None:
        """Compute μ of these nodes (in rising order) from the present states and weights."""
        for index in reversed(nodes):  # from the top: transparent parents come first
            kernel = self.maps[index]
            if kernel is None:
                prior = self.network.nodes[index].map
                assert isinstance(prior, Prior)
                self.mu[index] = torch.full_like(self.x[index], prior.mean)
                continue
            if index not in self.clamped_input or kernel.hooks.on_rates:
                self._activate(index)
            self.mu[index] = kernel.predict()
            if self.energies[index] is None:
                self.x[index] = self.mu[index]

    def errors(self, nodes: Sequence[int]) -> None:
        """Compute ξ of these nodes (in rising order) from x and μ."""
        self.knows_errors = True
        for index in nodes:
            energy, kernel = self.energies[index], self.maps[index]
            if energy:
                xi = energy.errors(self.x[index], self.mu[index])
                if index in self._error_reads and not self.reads_errors_late:
                    self.read_error(index)
                if kernel:
                    kernel.receive(xi)
        if self.transparent:
            self.pass_through(nodes)

    def pass_through(self, active: Sequence[int]) -> None:
        """Give each active transparent node the errors of its active children."""
        for index in active:
            kernel = self.maps[index]
            if kernel and self.energies[index] is None:
                xi = self._pulled(index, active)
                assert xi is not None, f"node {index} is active, but none of its children is"
                kernel.receive(xi)

    def _pulled(self, index: int, active: Sequence[int]) -> Tensor | None:
        """Return Σ Jᵀ ξ over the active children of a node."""
        total: Tensor | None = None
        for child, slot in self.network.uses[index]:
            kernel = self.maps[child]
            if child in active and kernel:
                total = kernel.pull(self.x[index], slot, total)
        return total

    def read_error(self, index: int) -> None:
        """Let hardware read ξ of a node; the network's own energy is kept."""
        energy = self.energies[index]
        assert energy
        if index in self._error_reads:
            self._true_errors[index] = energy.xi.clone()
            energy.xi.copy_(self._error_reads[index](energy.xi))

    def error_was_read(self, index: int, signal: Tensor) -> None:
        """Take note of ξ as soma, feedback and plasticity saw it."""
        energy = self.energies[index]
        assert energy
        if index in self._error_reads and not self.reads_errors_late:
            self._true_errors[index] = energy.xi.clone()
        energy.xi.copy_(signal)

    def read_signal(self, index: int, signal: Tensor) -> Tensor:
        """Return an error signal of a node as hardware reads it."""
        hook = self._error_reads.get(index)
        return signal if hook is None else hook(signal)

    def drift(self, nodes: Sequence[int], active: Sequence[int]) -> list[tuple[int, Tensor]]:
        """Return d^l of these free nodes; nodes that are not `active` are known to have ξ = 0."""
        result = []
        for index in nodes:
            total = self._pulled(index, active)
            energy = self.energies[index] if index in active else None
            if energy:
                total = energy.own() if total is None else energy.add_own(total)
            if total is None:
                continue
            result.append((index, self.hold_masked(index, total)))
        return result

    @property
    def mask(self) -> Tensor | None:
        """Return what is clamped of a node that is clamped in part, as given to `load`."""
        return None if self._open_mask is None else self._open_mask == 0

    def free_units(self, index: int) -> Tensor | None:
        """Return 1 where units move, 0 where they are clamped, of a node clamped in part."""
        if self.holds[index] != "masked":
            return None
        assert self._open_mask is not None
        return self._open_mask

    def hold_masked(self, index: int, drift: Tensor) -> Tensor:
        """Return the drift in place, zero where a node is clamped in part."""
        free = self.free_units(index)
        return drift if free is None else drift.mul_(free)

    def learn(self, nodes: Sequence[int], into: Views, alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·g for these nodes (g summed over samples)."""
        for index in nodes:
            kernel, energy = self.maps[index], self.energies[index]
            if kernel:
                kernel.learn(into[index], alpha, beta)
            if energy:
                energy.learn(into[index], alpha, beta)

    def has_error(self, index: int) -> bool:
        """Whether ξ of a predicted node differs from zero somewhere, at the state of `errors`."""
        energy = self.energies[index]
        if energy:
            return bool(energy.xi.any())
        return any(self.has_error(child) for child in self.network.children[index])

    def energy_by_node(self) -> Tensor:
        """Return E_l (replica, predicted value node), summed over samples, at that of `errors`."""
        return torch.stack([self.energy_of(index) for index in self.costed], 1)

    def energy_of(self, index: int) -> Tensor:
        """Return E (replica,) of one node, summed over samples, at the state of `errors`."""
        energy = self.energies[index]
        assert energy
        if isinstance(energy, UnitGaussian) and index in self._true_errors:
            return energy.cost(self._true_errors[index])
        return energy.total()

    def energy(self) -> Tensor:
        """Return F (replica,), summed over samples, at the state of `errors`."""
        return self.energy_by_node().sum(1)
