"""Where nothing happens: the few cheap values that say so, and what is left to compute there.

Most devices get no pulse in most time steps. With the number of pulses at zero, what a device
becomes is a much shorter expression, without its noise:

    s1 = dw floor(s/dw + u)      w ← clip(w + step(w, s1) + size(s1) N(0, 1), low, high)
    s1 = 0:                      w ← clip(w, low, high)

Gates are found, not declared: values such that, all of them zero, no noise and no transcendental
function is left. Where a gate is open, the whole expression is computed: the same numbers.

A clock that ticks is a gate that is open for all devices in one step, and for none in the next. So
other gates are looked for behind it, and between two ticks not even those are computed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pcsim.native.formula import ZERO, Node, apply, names, replaced, walk

COSTS = {"exp": 4, "expm1": 4, "log": 4, "tanh": 4, "pow": 8}
NOISE = 8
CHEAP = 2 * NOISE
"""Most that a gate may cost: two noisy reads decide on the refresh of a pair."""
MOST = 4
"""More gates than this are not looked for."""
TIME = frozenset({"now", "t"})
"""Symbols of what is the same for all devices."""
TRUTH = ("lt", "le", "gt", "ge")


@dataclass(frozen=True)
class Quiet:
    """Gates, and what some expressions are where all of them are zero."""

    gates: tuple[Node, ...]
    roots: tuple[Node, ...]
    clock: Quiet | None = None
    """The tick behind which these gates are, and what the expressions are between two ticks."""


def quiet(roots: Sequence[Node], noise: Collection[str], memory: Collection[str]) -> Quiet | None:
    """Return the gates of some expressions, None where none are found that save anything.

    `noise` and `memory` are the symbols that are drawn in every step, and those that are kept.
    """
    candidates = [node for node in walk(*roots) if _may_be_gate(node, noise, memory)]
    ticks = [node for node in candidates if _is_tick(node, noise)]
    others = [node for node in candidates if node not in ticks]
    clock, found = _closed(roots, ticks, noise), _closed(roots, others, noise)
    return replace(found, clock=clock) if found else clock


def _closed(
    roots: Sequence[Node], candidates: Sequence[Node], noise: Collection[str]
) -> Quiet | None:
    """Return those of some gates without which nothing dear is left, None where something is."""
    present, gates = tuple(roots), list[Node]()
    cost = _cost(present, noise)
    if not cost:
        return None
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


def possible(gate: Node, reach: Mapping[str, Node]) -> Node | None:
    """Return a condition without which one on noise cannot hold; None where none is known.

    `reach` gives, by symbol, what the size of a noise cannot exceed. Rounding keeps order, so that
    what holds of numbers holds of rounded ones:

        a + c*xi > b    only if    a + abs(c)*reach > b
    """
    if names(gate).isdisjoint(reach):
        return gate
    if gate.kind in ("mul", "int"):
        parts = [possible(arg, reach) for arg in gate.args]
        return apply(gate.kind, *(p for p in parts if p)) if all(parts) else None
    if gate.kind not in TRUTH:
        return None
    above = gate.kind in ("gt", "ge")
    sides = [_furthest(arg, reach, up=above == (n == 0)) for n, arg in enumerate(gate.args)]
    return apply(gate.kind, *(s for s in sides if s)) if all(sides) else None


def _furthest(node: Node, reach: Mapping[str, Node], *, up: bool) -> Node | None:
    """Return the most (or least) that noise can make of a sum."""
    if names(node).isdisjoint(reach):
        return node
    if node.kind == "symbol":
        return reach[node.name] if up else apply("neg", reach[node.name])
    if node.kind in ("add", "sub", "neg"):
        same = (True, node.kind == "add") if len(node.args) == 2 else (False,)
        parts = [_furthest(a, reach, up=up == s) for a, s in zip(node.args, same, strict=True)]
        return apply(node.kind, *(p for p in parts if p)) if all(parts) else None
    if node.kind == "mul":
        noisy = [arg for arg in node.args if arg.kind == "symbol" and arg.name in reach]
        sure = [arg for arg in node.args if names(arg).isdisjoint(reach)]
        if len(noisy) == len(sure) == 1:
            size = apply("mul", apply("abs", sure[0]), reach[noisy[0].name])
            return size if up else apply("neg", size)
    return None


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


def _is_tick(node: Node, noise: Collection[str]) -> bool:
    """Whether a condition is one on time, and on nothing that is drawn."""
    found = names(node)
    one = node.kind != "mul" and _is_truth(node)
    return one and bool(TIME & found) and found.isdisjoint(noise)


def _is_truth(node: Node) -> bool:
    if node.kind == "mul":
        return all(map(_is_truth, node.args))
    return node.kind in TRUTH or (node.kind == "int" and _is_truth(node.args[0]))
