"""Make a network levelled: relays on short cuts, so that all paths to the datum are equally long.

A relay is a value node that is predicted to equal its parent. With one on every step that a short
cut leaves out, errors of all paths arrive at the same time, and Z-IL is backpropagation again.
Relays learn nothing: weights keep their number and order.
"""

from __future__ import annotations

from dataclasses import replace

from pcsim.maps import Sum
from pcsim.network import Network, Node


def levelled(network: Network) -> Network:
    """Return the same function with relays; a network that is levelled already comes back as is."""
    if network.levelled:
        return network
    relays = [_relays(network, index) for index in range(len(network.nodes))]
    # A node's relays come right before it, the one nearest to the datum first.
    place, total = [], 0
    for count in relays:
        total += count
        place.append(total)
        total += 1
    nodes: list[Node] = []
    for index, node in enumerate(network.nodes):
        for left in reversed(range(relays[index])):
            parent = place[index] - left
            nodes.append(Node(node.shape, Sum(node.units, 1), (parent,)))
        parents = tuple(
            place[p] - (0 if p in network.roots else network.detour(p, index)) for p in node.parents
        )
        nodes.append(replace(node, parents=parents))
    return Network(tuple(nodes))


def _relays(network: Network, index: int) -> int:
    """Return how many relays follow a node: as many as its longest detour has.

    Inputs need none: they are clamped, so that no error waits for another there.
    """
    if index in network.roots:
        return 0
    return max((network.detour(index, child) for child in network.children[index]), default=0)
