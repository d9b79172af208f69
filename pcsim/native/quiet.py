"""Where nothing happens: the few cheap values that say so, and what is left to compute there.

Most devices get no pulse in most time steps. With the number of pulses at zero, what a device
becomes is a much shorter expression, without its noise:

    s1 = dw floor(s/dw + u)      w ← clip(w + step(w, s1) + size(s1) N(0, 1), low, high)
    s1 = 0:                      w ← clip(w, low, high)

Gates are found, not declared: values such that, all of them zero, no noise and no transcendental
function is left. Where a gate is open, the whole expression is computed: the same numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pcsim.native.formula import ZERO, Node, replaced, walk

COSTS = {"exp": 4, "expm1": 4, "log": 4, "tanh": 4, "pow": 8}
NOISE = 8
CHEAP = 2 * NOISE
"""Most that a gate may cost: two noisy reads decide on the refresh of a pair."""
MOST = 4
"""More gates than this are not looked for."""
TRUTH = ("lt", "le", "gt", "ge")


@dataclass(frozen=True)
class Quiet:
    """Gates, and what some expressions are where all of them are zero."""

    gates: tuple[Node, ...]
    roots: tuple[Node, ...]


def quiet(roots: Sequence[Node], noise: Collection[str], memory: Collection[str]) -> Quiet | None:
    """Return the gates of some expressions, None where none are found that save anything.

    `noise` and `memory` are the symbols that are drawn in every step, and those that are kept.
    """
    present, gates = tuple(roots), list[Node]()
    cost = _cost(present, noise)
    if not cost:
        return None
    candidates = [node for node in walk(*roots) if _may_be_gate(node, noise, memory)]
    while cost and len(gates) < MOST:
        tried = list[tuple[int, int, Node, tuple[Node, ...]]]()
        for gate in candidates:
            left = tuple(replaced(root, {gate: ZERO}) for root in present)
            # Of two that save the same, the outer one: a product of conditions is zero more often.
            tried.append((_cost(left, noise), -len(tried), gate, left))
        least = min(tried, default=None)
        if least is None or least[0] >= cost:
            return None
        cost, _, gate, present = least
        gates.append(gate)
    return Quiet(tuple(gates), present) if not cost else None


def _cost(roots: Sequence[Node], noise: Collection[str]) -> int:
    found = 0
    for node in walk(*roots):
        found += NOISE if node.kind == "symbol" and node.name in noise else 0
        found += COSTS.get(node.kind, 0)
    return found


def _may_be_gate(node: Node, noise: Collection[str], memory: Collection[str]) -> bool:
    """Whether a value is often zero and cheap: a number of pulses, a condition, what is kept."""
    if node.kind == "symbol":
        return node.name in memory
    counted = node.kind == "mul" and any(arg.kind == "floor" for arg in node.args)
    if not (counted or _is_truth(node)):
        return False
    return _cost([node], noise) <= CHEAP


def _is_truth(node: Node) -> bool:
    if node.kind == "mul":
        return all(map(_is_truth, node.args))
    return node.kind in TRUTH or (node.kind == "int" and _is_truth(node.args[0]))
