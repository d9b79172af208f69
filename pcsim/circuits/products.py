"""Synaptic equations as sums of products: a factor of the synapse, of its pre and its post neuron.

    summed over pre     s_post = Σ_pre   c S A B       a matrix times a vector
    summed over post    s_pre  = Σ_post  c S A B       a transposed matrix times a vector
    learning            dS/dt  = Σ c S' A B            an outer product (and decay, with A = B = 1)

Whatever has this form needs no loop over single synapses; an engine finds it in the equations.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from pcsim.errors import UnsupportedError

Side = Literal["constant", "synapse", "pre", "post"]
_SIDES: tuple[Side, ...] = ("constant", "synapse", "pre", "post")


@dataclass(frozen=True)
class Term:
    """A product c·S·A·B; each factor is an expression without suffixes, "1" where there is none."""

    constant: str = "1"
    synapse: str = "1"
    pre: str = "1"
    post: str = "1"


def terms(text: str, arrays: Collection[str], *, apart: bool = False) -> tuple[Term, ...]:
    """Return the products of a synaptic expression; `arrays` are the synapses' own variables.

    `apart`: no constant stands in a factor of the neurons, where it could be one of the product.
    """
    expanded = _expanded(_parsed(text), frozenset(arrays), apart)
    return tuple(_term(factors) for factors in expanded)


def coefficient(text: str, symbol: str) -> str | None:
    """Return c of an expression c·symbol + rest that is linear in it; None where it has none.

    Other symbols count as independent of it.
    """
    factor = _coefficient(_parsed(text), symbol)
    return None if factor is None else ast.unparse(factor)


def quotient(text: str) -> tuple[str, str]:
    """Return numerator and denominator of an expression, which may stand behind factors."""
    node = _parsed(text)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return ast.unparse(node.left), ast.unparse(node.right)
    return ast.unparse(node), "1"


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


_Factors = tuple[tuple[Side, ast.expr], ...]


def _expanded(node: ast.expr, arrays: frozenset[str], apart: bool = False) -> list[_Factors]:
    """Return a sum of products, multiplied out no further than its sides demand."""
    sides = _sides(node, arrays)
    product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
    if len(sides) <= 1 and not (apart and sides and product):
        return [((next(iter(sides), "constant"), _bare(node)),)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        minus: _Factors = (("constant", _parsed("-1")),)
        return [minus + factors for factors in _expanded(node.operand, arrays, apart)]
    if isinstance(node, ast.BinOp):
        left = _expanded(node.left, arrays, apart)
        if isinstance(node.op, ast.Add):
            return left + _expanded(node.right, arrays, apart)
        if isinstance(node.op, ast.Sub):
            return left + _expanded(ast.UnaryOp(ast.USub(), node.right), arrays, apart)
        if isinstance(node.op, ast.Mult):
            return [a + b for a in left for b in _expanded(node.right, arrays, apart)]
        if isinstance(node.op, ast.Div) and len(_sides(node.right, arrays)) <= 1:
            side: Side = next(iter(_sides(node.right, arrays)), "constant")
            inverse = ast.BinOp(ast.Constant(1), ast.Div(), _bare(node.right))
            return [(*factors, (side, inverse)) for factors in left]
    raise UnsupportedError(
        f"circuit: {ast.unparse(node)} is no product of factors of a synapse, its pre neuron and "
        f"its post neuron; write it as a sum of such products"
    )


def _sides(node: ast.AST, arrays: frozenset[str]) -> set[Side]:
    """Return on which sides the symbols of an expression stand."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called}
    sides: set[Side] = set()
    for name in names:
        if name.endswith("_pre"):
            sides.add("pre")
        elif name.endswith("_post"):
            sides.add("post")
        elif name in arrays:
            sides.add("synapse")
    return sides


class _Bare(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        name = node.id.removesuffix("_pre").removesuffix("_post")
        return ast.Name(name, ast.Load())


def _bare(node: ast.expr) -> ast.expr:
    """Return an expression without suffixes."""
    bare: ast.expr = _Bare().visit(ast.parse(ast.unparse(node), mode="eval").body)
    return bare


def _term(factors: _Factors) -> Term:
    def product(side: Side) -> str:
        chosen = [node for where, node in factors if where == side]
        if not chosen:
            return "1"
        return ast.unparse(reduce(lambda a, b: ast.BinOp(a, ast.Mult(), b), chosen))

    return Term(*(product(side) for side in _SIDES))


def _coefficient(node: ast.expr, symbol: str) -> ast.expr | None:
    if isinstance(node, ast.Name):
        return ast.Constant(1) if node.id == symbol else None
    if not any(isinstance(n, ast.Name) and n.id == symbol for n in ast.walk(node)):
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _coefficient(node.operand, symbol)
        return None if inner is None else ast.UnaryOp(ast.USub(), inner)
    if isinstance(node, ast.BinOp):
        left, right = (_coefficient(side, symbol) for side in (node.left, node.right))
        if isinstance(node.op, ast.Add | ast.Sub):
            if right is None:
                return left
            if left is None:
                return right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), right)
            return ast.BinOp(left, node.op, right)
        if isinstance(node.op, ast.Mult) and (left is None or right is None):
            inner, other = (left, node.right) if right is None else (right, node.left)
            assert inner is not None
            return ast.BinOp(inner, ast.Mult(), other)
        if isinstance(node.op, ast.Div) and left is not None and right is None:
            return ast.BinOp(left, ast.Div(), node.right)
    raise UnsupportedError(f"circuit: {ast.unparse(node)} is not linear in {symbol}")
