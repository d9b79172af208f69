"""Rewriting an expression so that intermediate results are overwritten instead of copied.

An expression over all weights of a population is limited by memory: every intermediate result that
needs no new memory is a pass saved. The value is the same to the last bit.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_OPERATIONS: dict[type[ast.operator], tuple[str, Callable[..., Tensor]]] = {
    ast.Add: ("_add", torch.add),
    ast.Sub: ("_sub", torch.sub),
    ast.Mult: ("_mul", torch.mul),
    ast.Div: ("_div", torch.div),
}
_UNARY = ("exp", "log", "tanh", "floor", "ceil", "abs", "sign")


_PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
}


def _covers(scratch: Any, other: Any) -> bool:
    """Whether a result of both has the shape and type of the first, which then can hold it."""
    if not isinstance(scratch, Tensor) or not isinstance(other, Tensor):
        return isinstance(scratch, Tensor)
    if other.dtype != scratch.dtype or other.ndim > scratch.ndim:
        return False
    pairs = zip(reversed(other.shape), reversed(scratch.shape), strict=False)
    return all(mine in (1, whole) for mine, whole in pairs)


def _binary(operation: Callable[..., Tensor]) -> Callable[[Any, Any, int], Any]:
    def apply(left: Any, right: Any, scratch: int) -> Any:
        """`scratch` says which operands are intermediate: 1 the left, 2 the right, 3 both."""
        if isinstance(left, Tensor):
            if scratch & 1 and _covers(left, right):
                return operation(left, right, out=left)
            if scratch & 2 and isinstance(right, Tensor) and _covers(right, left):
                return operation(left, right, out=right)
        elif scratch & 2 and isinstance(right, Tensor):
            if commutes:
                return operation(right, left, out=right)
            if operation is torch.sub:  # a quotient by torch is a product with the inverse
                return operation(right.new_full((), left), right, out=right)
        return plain(left, right)

    plain, commutes = _PLAIN[operation.__name__], operation in (torch.add, torch.mul)
    return apply


def _clip(value: Any, low: Any, high: Any) -> Any:
    """Clip an intermediate result where it stands; bounds are both numbers or both tensors."""
    if isinstance(low, Tensor) and not (_covers(value, low) and _covers(value, high)):
        return torch.clamp(value, low, high)
    return torch.clamp(value, low, high, out=value)


def functions(known: dict[str, Any]) -> dict[str, Any]:
    """Return what rewritten expressions call, beside the functions they know already."""

    def unary(name: str) -> Callable[[Any], Any]:
        here, plain = getattr(torch, name), known[name]
        return lambda value: here(value, out=value) if isinstance(value, Tensor) else plain(value)

    def clip(value: Any, low: Any, high: Any) -> Any:
        simple = isinstance(value, Tensor) and isinstance(low, Tensor) == isinstance(high, Tensor)
        return _clip(value, low, high) if simple else known["clip"](value, low, high)

    added: dict[str, Any] = {name: _binary(op) for name, op in _OPERATIONS.values()}
    return added | {f"_{name}": unary(name) for name in _UNARY} | {"_clip": clip}


def rewritten(node: ast.expr) -> ast.expr:
    """Return the expression with calls that overwrite intermediate results."""
    if isinstance(node, ast.BinOp):
        left, right = rewritten(node.left), rewritten(node.right)
        scratch = int(_intermediate(node.left)) + 2 * int(_intermediate(node.right))
        if scratch and type(node.op) in _OPERATIONS:
            name = _OPERATIONS[type(node.op)][0]
            return _call(name, [left, right, ast.Constant(scratch)])
        return ast.BinOp(left, node.op, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        args = [rewritten(arg) for arg in node.args]
        own = node.func.id in (*_UNARY, "clip") and _intermediate(node.args[0])
        return _call(f"_{node.func.id}" if own else node.func.id, args)
    if isinstance(node, ast.NamedExpr):  # used again: it is never overwritten itself
        return ast.NamedExpr(node.target, rewritten(node.value))
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, rewritten(node.operand))
    if isinstance(node, ast.Compare):
        right_sides = [rewritten(one) for one in node.comparators]
        return ast.Compare(rewritten(node.left), node.ops, right_sides)
    return node


def _intermediate(node: ast.expr) -> bool:
    """Whether a value was made inside the expression, and is needed nowhere else."""
    return isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call)


def _call(name: str, args: list[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), args, [])
