"""Expressions as a graph in which equal parts are one node, simplified while it is built.

The grammar is that of `pcsim.substrate.expression`, with %, == and `not` where delay lines need
them left out: engines know delay lines as such. Rules such as 0·x = 0 hold for finite x.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pcsim.errors import UnsupportedError

Kind = str
"""number, symbol, add, sub, mul, div, neg, pow, lt, le, gt, ge, the name of a function, or `moved`:
what memory becomes, and what it was, for places that may be asked twice in one time step."""


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """A number, a symbol, or an operation on other nodes; equal nodes are the same object."""

    kind: Kind
    args: tuple[Node, ...] = ()
    value: float | str = 0.0

    @property
    def name(self) -> str:
        """The name of a symbol."""
        assert isinstance(self.value, str)
        return self.value

    @property
    def number(self) -> float | None:
        """The value of a number, None for all else."""
        return float(self.value) if self.kind == "number" else None


@lru_cache(maxsize=1 << 17)
def _node(kind: Kind, args: tuple[Node, ...], value: float | str) -> Node:
    return Node(kind, args, value)


def number(value: float) -> Node:
    """Return a number."""
    return _node("number", (), float(value) + 0.0)  # one zero


def symbol(name: str) -> Node:
    """Return a symbol."""
    return _node("symbol", (), name)


ZERO, ONE, TWO = number(0), number(1), number(2)
_COMPARE: dict[Kind, Callable[[float, float], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_OF_NUMBERS: dict[Kind, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b if b else math.copysign(math.inf, a) if a else math.nan,
    "neg": lambda a: -a,
    "pow": lambda a, b: a**b,
    "exp": lambda a: math.exp(a) if a < 709.7 else math.inf,
    "expm1": lambda a: math.expm1(a) if a < 709.7 else math.inf,
    "log": lambda a: math.log(a) if a > 0 else -math.inf if a == 0 else math.nan,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "tanh": math.tanh,
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: float(math.ceil(a)),
    "abs": abs,
    "sign": lambda a: float((a > 0) - (a < 0)),
    "clip": lambda a, low, high: min(max(a, low), high),
    "int": float,
    "moved": lambda new, old: new,
    **{kind: lambda a, b, f=f: float(f(a, b)) for kind, f in _COMPARE.items()},
}
OPERATIONS = tuple(_OF_NUMBERS)


def apply(kind: Kind, *args: Node) -> Node:
    """Return an operation on nodes, simplified."""
    if all(arg.kind == "number" for arg in args):
        return number(_OF_NUMBERS[kind](*(arg.value for arg in args)))
    first, last = args[0], args[-1]
    if kind == "mul":
        if ZERO in args:
            return ZERO
        if first is ONE or last is ONE:
            return last if first is ONE else first
    elif kind == "add" and ZERO in args:
        return last if first is ZERO else first
    elif kind == "sub":
        if last is ZERO:
            return first
        if first is ZERO:
            return apply("neg", last)
    elif kind == "div":
        if first is ZERO or last is ONE:
            return first
        if (half := _saturation(first, last)) is not None:  # 2 tanh(a)/(1 + tanh(a)) = 1 − e^{−2a}
            return apply("neg", apply("expm1", apply("mul", number(-2), half)))
    elif kind == "neg" and first.kind == "neg":
        return first.args[0]
    elif kind == "pow":
        power = last.number
        if power == 1:
            return first
        if power == 2:
            return apply("mul", first, first)
    elif (kind == "moved" and first is last) or (kind == "int" and first.kind == "symbol"):
        return first
    return _node(kind, args, 0.0)


def _saturation(over: Node, under: Node) -> Node | None:
    """Return a of 2 tanh(a) over 1 + tanh(a)."""
    sizes = [arg for arg in under.args if arg.kind == "tanh"] if under.kind == "add" else []
    if sizes and ONE in under.args and over.kind == "mul" and set(over.args) == {TWO, sizes[0]}:
        return sizes[0].args[0]
    return None


_BINARY: dict[type[ast.AST], Kind] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}


def parse(text: str, known: Mapping[str, Node] | None = None) -> Node:
    """Read an expression; `known` symbols stand for other nodes."""
    return _Reader(known or {}).read(ast.parse(text.strip(), mode="eval").body)


class _Reader:
    def __init__(self, known: Mapping[str, Node]) -> None:
        self.known = known

    def read(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            assert isinstance(node.value, int | float)
            return number(node.value)
        if isinstance(node, ast.Name):
            if node.id == "inf":
                return number(math.inf)
            return self.known.get(node.id) or symbol(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return apply(_BINARY[type(node.op)], self.read(node.left), self.read(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return apply("neg", self.read(node.operand))
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _BINARY:
            sides = (self.read(node.left), self.read(node.comparators[0]))
            return apply(_BINARY[type(node.ops[0])], *sides)
        if isinstance(node, ast.Call) and (name := ast.unparse(node.func)) in OPERATIONS:
            return apply(name, *(self.read(arg) for arg in node.args))
        raise UnsupportedError(f"engine native: {ast.unparse(node)!r} cannot be compiled")


def walk(*roots: Node) -> Iterator[Node]:
    """Yield every node below some roots once, arguments first."""
    seen: set[Node] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if node in seen:
            continue
        if ready or not node.args:
            seen.add(node)
            yield node
        else:
            stack.append((node, True))
            stack += [(arg, False) for arg in reversed(node.args)]


def names(*roots: Node) -> set[str]:
    """Return the symbols below some roots."""
    return {node.name for node in walk(*roots) if node.kind == "symbol"}


def replaced(root: Node, by: Mapping[Node, Node]) -> Node:
    """Return an expression with some of its nodes replaced, simplified again."""
    made: dict[Node, Node] = {}
    for node in walk(root):
        if (other := by.get(node)) is not None:
            made[node] = other
        elif not node.args:
            made[node] = node
        else:
            args = tuple(made[arg] for arg in node.args)
            made[node] = node if args == node.args else apply(node.kind, *args)
    return made[root]


def evaluate(root: Node, known: Mapping[str, float]) -> float:
    """Return the value of an expression in numbers."""
    values: dict[Node, float] = {}
    for node in walk(root):
        if node.kind == "number":
            values[node] = float(node.value)
        elif node.kind == "symbol":
            values[node] = known[node.name]
        else:
            values[node] = _OF_NUMBERS[node.kind](*(values[arg] for arg in node.args))
    return values[root]


Side = str
"""pre, post, synapse, or "" for what is the same everywhere."""


@dataclass(frozen=True)
class Term:
    """A product: of constants, of what a synapse, its pre and its post neuron know."""

    constant: Node = ONE
    synapse: Node = ONE
    pre: Node = ONE
    post: Node = ONE

    @property
    def local(self) -> bool:
        """Whether only the synapse itself matters, as in a decay."""
        return self.pre is ONE and self.post is ONE

    def times(self, other: Term, kind: Kind = "mul") -> Term:
        """Return the product (or the quotient) of two terms."""
        return Term(
            apply(kind, self.constant, other.constant),
            apply(kind, self.synapse, other.synapse),
            apply(kind, self.pre, other.pre),
            apply(kind, self.post, other.post),
        )


def terms(root: Node, side: Callable[[str], Side]) -> tuple[Term, ...]:
    """Return an expression as a sum of products; `side` says where a symbol belongs."""
    sides = {side(name) for name in names(root)} - {""}
    if not sides:
        return (Term(constant=root),)
    if len(sides) == 1:
        if root.kind == "mul":  # constants apart, so that a factor is as plain as it can be
            return _products(root, side)
        return (Term(**{sides.pop(): root}),)
    if root.kind in ("add", "sub"):
        left, right = (terms(arg, side) for arg in root.args)
        minus = Term(constant=number(-1))
        return (*left, *(t.times(minus) if root.kind == "sub" else t for t in right))
    if root.kind == "neg":
        minus = Term(constant=number(-1))
        return tuple(t.times(minus) for t in terms(root.args[0], side))
    if root.kind in ("mul", "div"):
        return _products(root, side)
    raise UnsupportedError("engine native: a synapse whose factors cannot be told apart")


def _products(root: Node, side: Callable[[str], Side]) -> tuple[Term, ...]:
    left, right = (terms(arg, side) for arg in root.args)
    if root.kind == "div" and len(right) > 1:
        raise UnsupportedError("engine native: a synapse divides by a sum of several sides")
    return tuple(a.times(b, root.kind) for a in left for b in right)
