"""The network: value nodes, the maps that predict them, their energies. Frozen data, no tensors.

Node 0 is the datum or label, the last node the top or input. A node's prediction is computed from
its parents, which always have a larger index, so that F = Σ_l E_l(x^l, μ^l(parents of l)).

A node without an energy is *transparent*: it has no state, its value is its prediction, and errors
pass through it. So every operation is a node, and its energy says whether it is a value node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal, get_args

from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.errors import ConfigError
from pcsim.maps import Dense, Embedding, Map, Prior
from pcsim.maps.nonlinearities import check_nonlinearities
from pcsim.spreading import first_steps

Mode = Literal["supervised", "generative", "associative", "free"]
Hold = Literal["clamped", "free", "masked", "transparent"]
Convention = Literal["pre", "post"]


UNIT_GAUSSIAN = Gaussian()


@dataclass(frozen=True)
class Node:
    """One group of value nodes x^l with its shape, energy, map and parents.

    Without an energy the node is transparent: x^l = μ^l at any time.
    """

    shape: tuple[int, ...]
    map: Map | None = None
    parents: tuple[int, ...] = ()
    energy: Energy | None = UNIT_GAUSSIAN

    @property
    def transparent(self) -> bool:
        """Whether this is an operation on the way, not a value node."""
        return self.energy is None

    @property
    def units(self) -> int:
        """Number of value nodes."""
        return prod(self.shape)

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of everything this node learns."""
        shapes = dict(self.map.parameters) if self.map else {}
        if isinstance(self.energy, Gaussian) and self.energy.learned:
            shapes["log_var"] = (self.units,)
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
            self._check_map(where, node)
            variance = node.energy.variance if isinstance(node.energy, Gaussian) else 1.0
            if isinstance(variance, tuple) and len(variance) != node.units:
                raise ConfigError(
                    f"{where}.energy.variance: has {len(variance)} values, but the node has "
                    f"{node.units} units"
                )
        if self.nodes[0].transparent:
            raise ConfigError("Network.nodes[0].energy: the datum is a value node, it needs one")
        if any(not self.children[index] for index in range(1, len(self.nodes))):
            raise ConfigError("Network.nodes: every node but the first needs a child")

    def __repr__(self) -> str:
        sizes = "-".join("×".join(map(str, node.shape)) for node in reversed(self.nodes))
        maps = dict.fromkeys(type(node.map).__name__ for node in self.nodes if node.map)
        return f"<Network {sizes}: {', '.join(maps)}; {self.parameter_count} parameters>"

    def _check_map(self, where: str, node: Node) -> None:
        spec, parents = node.map, [self.nodes[parent] for parent in node.parents]
        if spec is None or isinstance(spec, Prior):
            if parents or node.transparent:
                raise ConfigError(f"{where}.map: a node with parents, or no energy, needs a map")
            return
        if len(parents) != len(spec.parent_units):
            raise ConfigError(
                f"{where}.parents: {type(spec).__name__} takes {len(spec.parent_units)}, "
                f"got {node.parents}"
            )
        units = tuple(parent.units for parent in parents)
        if (units, node.units) != (spec.parent_units, spec.units):
            raise ConfigError(
                f"{where}.map: {type(spec).__name__} maps {spec.parent_units} to {spec.units} "
                f"units, but its nodes have {units} and {node.units}"
            )
        if isinstance(spec, Embedding) and (parents[0].parents or parents[0].map):
            raise ConfigError(f"{where}.parents: an embedding reads token numbers from an input")

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
            f: nonlinearity by name, or as an expression in x: "x/(1 + abs(x))".
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
        check_nonlinearities("network", f)
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

    @classmethod
    def cnn(cls, **fields: Any) -> Network:
        """Build a convolutional network; the fields are those of `pcsim.architectures.cnn.Cnn`."""
        return cls._of("cnn", fields)

    @classmethod
    def alexnet(cls, **fields: Any) -> Network:
        """Build AlexNet for small images; see `pcsim.architectures.alexnet.AlexNet`."""
        return cls._of("alexnet", fields)

    @classmethod
    def transformer(cls, **fields: Any) -> Network:
        """Build an encoder; see `pcsim.architectures.transformer.Transformer`."""
        return cls._of("transformer", fields)

    @staticmethod
    def _of(kind: str, fields: Mapping[str, Any]) -> Network:
        from pcsim.architectures.choice import build  # architectures are made of networks

        return build(kind, fields)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the nodes it predicts."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for parent in node.parents:
                children[parent].append(index)
        return tuple(tuple(c) for c in children)

    @cached_property
    def uses(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each node, (child, which of its parents this node is), from the top down."""
        uses: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        for index in reversed(range(len(self.nodes))):
            for slot, parent in enumerate(self.nodes[index].parents):
                uses[parent].append((index, slot))
        return tuple(tuple(u) for u in uses)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Nodes without parents: inputs."""
        return tuple(index for index, node in enumerate(self.nodes) if not node.parents)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Longest distance to node 0 in value nodes: Z-IL updates the weights of level t at step t.

        A transparent node has the level of the value node that it predicts.
        """
        level = [0] * len(self.nodes)
        for index in range(1, len(self.nodes)):
            own = 0 if self.nodes[index].transparent else 1
            level[index] = own + max(level[c] for c in self.children[index])
        return tuple(level)

    @property
    def reach(self) -> tuple[int, ...]:
        """First step at which a node can have an error, if only node 0 has one at step 0.

        In a chain this is the distance to node 0. Elsewhere an error also arises where a parent
        has moved, because another child has drawn it.
        """
        return self._spread[0]

    @property
    def stirred(self) -> tuple[int, ...]:
        """First step at which a node's value can differ from that of a feed-forward start."""
        return self._spread[1]

    @cached_property
    def _spread(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        transparent = [node.transparent for node in self.nodes]
        return first_steps(transparent, [node.parents for node in self.nodes], self.children)

    def detour(self, parent: int, child: int) -> int:
        """How many value nodes a longer path from `parent` to the datum has than via `child`."""
        own = 0 if self.nodes[parent].transparent else 1
        return self.levels[parent] - own - self.levels[child]

    @cached_property
    def levelled(self) -> bool:
        """Whether all paths from a free or transparent node to the datum are equally long.

        Only then is Z-IL backpropagation; `pcsim.architectures.levelling` makes any network so.
        """
        return all(
            self.detour(parent, index) == 0
            for index, node in enumerate(self.nodes)
            for parent in node.parents
            if parent not in self.roots
        )

    @property
    def depth(self) -> int:
        """L: the number of value nodes that are predicted on the longest path."""
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
        if inputs == "free" and any(isinstance(node.map, Embedding) for node in self.nodes):
            raise ConfigError(f"mode {mode!r}: token numbers cannot be inferred, only clamped")
        hold: list[Hold] = ["transparent" if n.transparent else "free" for n in self.nodes]
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
