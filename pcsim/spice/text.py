"""Expressions of the equations in ngspice's language, from the same text that all engines run.

Symbols stand as they are: a node is `v(x)`, a number of one device is `{gain}`.
"""

from __future__ import annotations

from math import inf, isinf

from pcsim.errors import UnsupportedError
from pcsim.native.formula import Node

_BETWEEN = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CALLED = {"exp": "exp", "log": "ln", "sqrt": "sqrt", "tanh": "tanh", "abs": "abs"}
_CALLED |= {"floor": "floor", "ceil": "ceil", "sign": "sgn"}
POWERS = 6
"""Whole powers up to this one are written as products: ngspice takes the absolute value else."""


def in_spice(node: Node) -> str:
    """Return an expression as the text of a B-source."""
    if node.kind == "clip":
        return _clipped(node)
    args = [in_spice(arg) for arg in node.args]
    if node.kind == "number":
        return number(float(node.value))
    if node.kind == "symbol":
        return node.name
    if node.kind in _BETWEEN:
        return f"({args[0]}{_BETWEEN[node.kind]}{args[1]})"
    if node.kind in _COMPARED:
        return f"({args[0]} {_COMPARED[node.kind]} {args[1]} ? 1 : 0)"
    if node.kind in _CALLED:
        return f"{_CALLED[node.kind]}({args[0]})"
    if node.kind == "neg":
        return f"(-{args[0]})"
    if node.kind == "expm1":
        return f"(exp({args[0]})-1)"
    if node.kind == "int":
        return args[0]
    if node.kind == "pow":
        return _power(node, args)
    raise UnsupportedError(f"engine spice: {node.kind!r} has no counterpart in ngspice")


def number(value: float) -> str:
    """Return a number with all its digits."""
    if isinf(value):
        raise UnsupportedError("engine spice: an infinite number in an equation")
    text = repr(float(value))
    return f"({text})" if text.startswith("-") else text


def _clipped(node: Node) -> str:
    signal, low, high = node.args
    text = in_spice(signal)
    text = text if low.number == -inf else f"max({text},{in_spice(low)})"
    return text if high.number == inf else f"min({text},{in_spice(high)})"


def _power(node: Node, args: list[str]) -> str:
    power = node.args[1].number
    if power is not None and power == int(power) and 0 < abs(power) <= POWERS:
        product = "*".join([args[0]] * int(abs(power)))
        return f"({product})" if power > 0 else f"(1/({product}))"
    return f"pow({args[0]},{args[1]})"
