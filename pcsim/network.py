"""The network: value nodes, the maps that predict them, their energies. Frozen data, no tensors.

Node 0 is the datum or label, the last node the top or input. A node's prediction is computed from
its parents, which always have a larger index, so that F = Σ_l E_l(x^l, μ^l(parents of l)).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, get_args

from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.errors import ConfigError
from pcsim.maps import NONLINEARITIES, Dense, Map, Prior

Mode = Literal["supervised", "generative", "associative", "free"]
Hold = Literal["clamped", "free", "masked"]
Convention = Literal["pre", "post"]


UNIT_GAUSSIAN = Gaussian()


@dataclass(frozen=True)
class Node:
    """One group of value nodes x^l with its shape, energy, map and parents."""

    shape: tuple[int, ...]
    map: Map | None = None
    parents: tuple[int, ...] = ()
    energy: Energy = UNIT_GAUSSIAN

    @property
    def units(self) -> int:
        """Number of value nodes."""
        return prod(self.shape)

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of everything this node learns."""
        shapes = dict(self.map.parameters) if self.map else {}
        if isinstance(self.energy, Gaussian) and self.energy.learned:
            shapes["log_var"] = self.shape
        return shapes


@dataclass(frozen=True)
class Network:
    """Value nodes in order from the datum (0) to the top (last)."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        """Check that the graph is acyclic and that shapes fit."""
        if len(self.nodes) < 2:
            raise ConfigError("Network.nodes: at least two layers are needed")
        for index, node in enumerate(self.nodes):
            where = f"Network.nodes[{index}]"
            if any(parent <= index or parent >= len(self.nodes) for parent in node.parents):
                raise ConfigError(f"{where}.parents: must point to later nodes, got {node.parents}")
            if isinstance(node.map, Dense):
                self._check_dense(where, node, node.map)
            elif node.parents:
                raise ConfigError(f"{where}.map: a node with parents needs a map")
            variance = node.energy.variance if isinstance(node.energy, Gaussian) else 1.0
            if isinstance(variance, tuple) and len(variance) != node.units:
                raise ConfigError(
                    f"{where}.energy.variance: has {len(variance)} values, but the node has "
                    f"{node.units} units"
                )
        if any(not self.children[index] for index in range(1, len(self.nodes))):
            raise ConfigError("Network.nodes: every node but the first needs a child")

    def _check_dense(self, where: str, node: Node, dense: Dense) -> None:
        if len(node.parents) != 1:
            raise ConfigError(f"{where}.parents: a dense map has one parent, got {node.parents}")
        parent = self.nodes[node.parents[0]]
        if (dense.n_in, dense.n_out) != (parent.units, node.units):
            raise ConfigError(
                f"{where}.map: maps {dense.n_in} to {dense.n_out} units, but its nodes have "
                f"{parent.units} and {node.units}"
            )

    @classmethod
    def mlp(
        cls,
        sizes: Sequence[int],
        f: str = "tanh",
        *,
        output: Energy | None = None,
        hidden: Energy | None = None,
        convention: Convention = "pre",
        f_input: bool = False,
        f_output: bool = False,
        bias: bool = True,
        prior: float | None = None,
    ) -> Network:
        """Build a multilayer network; `sizes` runs from the top (input) to the datum (output).

        Main arguments:
            sizes: e.g. [784, 64, 64, 10].
            f: nonlinearity by name.
            output, hidden: energy of node 0 and of the nodes between; unit Gaussian by default.

        Rarely used:
            convention: "pre" puts nodes before the nonlinearity, μ = W f(x) + b;
                "post" behind it, μ = f(W r + b).
            f_input: in "pre", apply f to the top layer too (else it is fed as it is).
            f_output: in "post", apply f to the prediction of node 0 too.
            prior: mean of a unit Gaussian prior on the top node; None is a flat prior.

        With both options off, the two conventions share one feed-forward function.
        """
        if len(sizes) < 2 or any(int(n) != n or n < 1 for n in sizes):
            raise ConfigError(
                f"network.sizes: give at least two positive whole numbers from input to output, "
                f"e.g. [784, 64, 64, 10]; got {list(sizes)}"
            )
        if f not in NONLINEARITIES:
            raise ConfigError(
                f"network.f: unknown nonlinearity {f!r}; choose one of {', '.join(NONLINEARITIES)}"
            )
        if f_input and convention == "post":
            raise ConfigError("network.f_input: belongs to convention 'pre'")
        if f_output and convention == "pre":
            raise ConfigError("network.f_output: belongs to convention 'post'")
        top = len(sizes) - 1
        n = list(reversed(sizes))
        nodes = []
        for layer in range(top):
            pre = f if convention == "pre" and (layer < top - 1 or f_input) else "identity"
            post = f if convention == "post" and (layer > 0 or f_output) else "identity"
            energy = (output if layer == 0 else hidden) or Gaussian()
            if isinstance(hidden, Categorical) and 0 <= layer < top - 1:
                pre = "softmax"  # what leaves a logit node are probabilities
            nodes.append(
                Node(
                    (n[layer],),
                    Dense(n[layer + 1], n[layer], pre, post, bias),
                    (layer + 1,),
                    energy,
                )
            )
        nodes.append(Node((n[top],), None if prior is None else Prior(prior)))
        return cls(tuple(nodes))

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the nodes it predicts."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for parent in node.parents:
                found[parent].append(index)
        return tuple(tuple(c) for c in found)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Nodes without parents: inputs."""
        return tuple(index for index, node in enumerate(self.nodes) if not node.parents)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Longest distance to node 0: Z-IL updates the weights of level t at step t."""
        return self._distances(max)

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """Shortest distance to node 0: an error that starts there needs this many steps."""
        return self._distances(min)

    def _distances(self, choose: Callable[[list[int]], int]) -> tuple[int, ...]:
        distance = [0] * len(self.nodes)
        for index in range(1, len(self.nodes)):
            distance[index] = 1 + choose([distance[c] for c in self.children[index]])
        return tuple(distance)

    @property
    def depth(self) -> int:
        """L: the number of maps on the longest path."""
        return max(self.levels)

    def holds(self, mode: Mode) -> tuple[Hold, ...]:
        """Which nodes are clamped, free, or clamped in part, by mode.

        supervised: datum and inputs clamped; free: inputs only (a test, or a free run);
        generative: the datum only; associative: part of the datum (a mask given with the data).
        """
        if mode not in get_args(Mode):
            raise ConfigError(f"mode: must be one of {', '.join(get_args(Mode))}, got {mode!r}")
        datum: Mapping[str, Hold] = {"associative": "masked", "free": "free"}
        inputs: Hold = "clamped" if mode in ("supervised", "free") else "free"
        hold: list[Hold] = ["free"] * len(self.nodes)
        for root in self.roots:
            hold[root] = inputs
        hold[0] = datum.get(mode, "clamped")
        if hold[0] == "masked" and not isinstance(self.nodes[0].energy, Gaussian):
            raise ConfigError("mode: associative recall needs a Gaussian energy at the datum")
        return tuple(hold)

    @property
    def parameter_count(self) -> int:
        """Number of learnt scalars."""
        return sum(prod(s) for node in self.nodes for s in node.parameters.values())
