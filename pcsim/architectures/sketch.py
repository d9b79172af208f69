"""Draw a network from the input to the output; nodes are numbered the other way round."""

from __future__ import annotations

from pcsim.energies import Energy
from pcsim.maps import Convolution, Map, Pool, Prior, Scores
from pcsim.network import Network, Node


class Sketch:
    """Operations in the order of a forward pass; a later one may use any earlier one."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []

    def root(self, *shape: int) -> int:
        """Add an input; return its number for use as a parent."""
        self._nodes.append(Node(shape))
        return len(self._nodes) - 1

    def add(
        self, spec: Map, *parents: int, energy: Energy | None = None, shape: tuple[int, ...] = ()
    ) -> int:
        """Add an operation, transparent unless it has an energy; return its number."""
        if not shape:
            assert not isinstance(spec, Prior)
            shape = spec.shape if isinstance(spec, Convolution | Pool | Scores) else (spec.units,)
        self._nodes.append(Node(shape, spec, parents, energy))
        return len(self._nodes) - 1

    def shape(self, number: int) -> tuple[int, ...]:
        """Return the shape of a node."""
        return self._nodes[number].shape

    def network(self) -> Network:
        """Return the network: the last operation is the datum, node 0."""
        top = len(self._nodes) - 1
        nodes = [
            Node(node.shape, node.map, tuple(top - p for p in node.parents), node.energy)
            for node in reversed(self._nodes)
        ]
        return Network(tuple(nodes))
