"""Expressions of the equations in the languages of circuits, from the text that all engines run.

In ngspice's, symbols stand as they are: a node is `v(x)`, a number of one device is `{gain}`; in
Verilog-A they are `V(x)` and `gain`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isinf

from pcsim.errors import UnsupportedError
from pcsim.native.formula import Node

_BETWEEN = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COMPARED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_CALLED = {"exp": "exp", "log": "ln", "sqrt": "sqrt", "tanh": "tanh", "abs": "abs"}
_CALLED |= {"floor": "floor", "ceil": "ceil", "sign": "sgn"}
Symbol = Callable[[str], str]
POWERS = 6
"""Whole powers up to this one are written as products: ngspice takes the absolute value else."""


def in_spice(node: Node) -> str:
    """Return an expression as the text of a B-source."""
    return _written(node, str)


def in_verilog(node: Node, symbol: Symbol) -> str:
    """Return an expression in Verilog-A, with symbols by their names there."""
    return _written(node, symbol)


def _written(node: Node, symbol: Symbol) -> str:
    if node.kind == "clip":
        return _clipped(node, symbol)
    args = [_written(arg, symbol) for arg in node.args]
    if node.kind == "number":
        return number(float(node.value))
    if node.kind == "symbol":
        return symbol(node.name)
    if node.kind in _BETWEEN:
        return f"({args[0]}{_BETWEEN[node.kind]}{args[1]})"
    if node.kind in _COMPARED:
        return f"({args[0]} {_COMPARED[node.kind]} {args[1]} ? 1 : 0)"
    if node.kind == "sign" and symbol is not str:  # Verilog-A has no such function
        return f"({args[0]} > 0 ? 1.0 : ({args[0]} < 0 ? -1.0 : 0.0))"
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


def _clipped(node: Node, symbol: Symbol) -> str:
    signal, low, high = node.args
    text = _written(signal, symbol)
    text = text if low.number == -inf else f"max({text},{_written(low, symbol)})"
    return text if high.number == inf else f"min({text},{_written(high, symbol)})"


def _power(node: Node, args: list[str]) -> str:
    power = node.args[1].number
    if power is not None and power == int(power) and 0 < abs(power) <= POWERS:
        product = "*".join([args[0]] * int(abs(power)))
        return f"({product})" if power > 0 else f"(1/({product}))"
    return f"pow({args[0]},{args[1]})"
