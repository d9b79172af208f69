"""Leaving out of an expression what its fixed values make void, with the same result.

A device without spread has one number for all weights, an effect without noise a factor of zero.
One number needs no pass over memory, a product with zero no factors, and noise that vanishes no
draw. What is left out changes no bit of a finite result but the sign of a zero.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch import Tensor

Value = float | Tensor
_ODD = ("sqrt", "tanh", "abs", "sign", "floor", "ceil")
"""Functions that are zero at zero."""


def simplified(tree: ast.expr, known: Mapping[str, Value]) -> tuple[ast.expr, dict[str, Value]]:
    """Return a shorter expression, and the values of the names that it may speak of."""
    values = {name: _one_number(value) for name, value in known.items()}
    short: ast.expr = _Simplify(values).visit(tree)
    return short, values


def _one_number(value: Value) -> Value:
    """Return the number that a tensor holds everywhere, if it is one number (and has values)."""
    if not isinstance(value, Tensor) or value.is_meta:
        return value
    if not value.is_floating_point() or not value.numel():
        return value
    first = value[(0,) * value.ndim]
    return float(first) if bool((value == first).all()) else value


class _Simplify(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def _number(self, node: ast.expr) -> float | None:
        known = self._values.get(node.id) if isinstance(node, ast.Name) else None
        value = node.value if isinstance(node, ast.Constant) else known
        return value if isinstance(value, int | float) else None

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.visit(node.left), self.visit(node.right)
        a, b = self._number(left), self._number(right)
        match node.op:
            case ast.Add() if a == 0:
                return right
            case ast.Add() | ast.Sub() if b == 0:
                return left
            case ast.Mult() if a == 0 or b == 0:
                return ast.Constant(0.0)
            case ast.Mult() if a == 1:
                return right
            case ast.Mult() | ast.Div() if b == 1:
                return left
            case ast.Div() if a == 0:
                return ast.Constant(0.0)
        return ast.BinOp(left, node.op, right)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        arguments = [self.visit(argument) for argument in node.args]
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _ODD and self._number(arguments[0]) == 0:
            return ast.Constant(0.0)
        return ast.Call(node.func, arguments, [])
