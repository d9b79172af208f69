"""Elementwise expressions: one text that torch runs, Brian2 runs, and the documentation prints.

The grammar stands in `pcsim.grammar`.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pcsim.grammar import names_in, parsed
from pcsim.substrate.in_place import functions, rewritten
from pcsim.substrate.simplified import simplified

Value = float | Tensor


def _either(of_tensor: Callable[[Tensor], Tensor], of_number: Callable[[float], float]) -> Any:
    """Return a function of a tensor or a number: constants are folded without tensors."""

    def function(value: Value) -> Value:
        return of_tensor(value) if isinstance(value, Tensor) else of_number(value)

    return function


def _clip(value: Value, low: Value, high: Value) -> Value:
    if isinstance(value, Tensor):
        if isinstance(low, Tensor) != isinstance(high, Tensor):
            return torch.minimum(
                torch.maximum(value, torch.as_tensor(low, dtype=value.dtype)),
                torch.as_tensor(high, dtype=value.dtype),
            )
        return torch.clamp(value, low, high)  # type: ignore[arg-type]
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        like = low if isinstance(low, Tensor) else high
        assert isinstance(like, Tensor)
        return _clip(torch.full_like(like, value), low, high)
    return min(max(value, low), high)


def root(value: Tensor) -> Tensor:
    """Return the square root, exactly rounded."""
    # On CPUs torch's is not, and takes six times as long at exact zeros, where no pulse came.
    if value.device.type != "cpu":
        return torch.sqrt(value)
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.sqrt(value.numpy()))


def _indicator(condition: bool | Tensor, dtype: torch.dtype | None = None) -> Value:
    if not isinstance(condition, Tensor):
        return float(condition)
    return condition.to(dtype or torch.get_default_dtype())


def _precision(symbols: Mapping[str, Value]) -> torch.dtype | None:
    """Return the precision in which a run computes: that of its signals."""
    for value in symbols.values():
        if isinstance(value, Tensor) and value.is_floating_point():
            return value.dtype
    return None


FUNCTIONS: dict[str, Any] = {
    "exp": _either(torch.exp, math.exp),
    "log": _either(torch.log, math.log),
    "sqrt": _either(root, math.sqrt),
    "tanh": _either(torch.tanh, math.tanh),
    "floor": _either(torch.floor, lambda v: float(math.floor(v))),
    "ceil": _either(torch.ceil, lambda v: float(math.ceil(v))),
    "abs": abs,
    "sign": _either(torch.sign, lambda v: float((v > 0) - (v < 0))),
    "clip": _clip,
    "int": _indicator,
}
_IN_PLACE = functions(FUNCTIONS)
_GLOBALS = {"__builtins__": {"__import__": __import__}}
"""Torch may import a part of itself at its first use; an expression has no name for it."""


@lru_cache(maxsize=4096)
def _checked(text: str) -> tuple[str, frozenset[str]]:
    """Return a checked expression as Python writes it, and its symbols without the functions."""
    body = parsed(text).body
    return ast.unparse(body), frozenset(names_in(body))


@dataclass(frozen=True)
class Filled:
    """A function of the symbols that are not fixed."""

    of: Callable[[Mapping[str, Value]], Value]
    names: frozenset[str]
    """What it needs."""
    plain: bool
    """It returns one of its symbols, or a fixed value, itself."""

    def __call__(self, symbols: Mapping[str, Value]) -> Value:
        """Return the value; a number, where it depends on no tensor."""
        return self.of(symbols)


def _evaluator(
    text: str, tree: ast.expr, fixed: Mapping[str, Value]
) -> Callable[[Mapping[str, Value]], Value]:
    """Return a function that evaluates a tree, and computes a part that occurs again only once."""
    body = ast.Expression(rewritten(_Share(tree).visit(tree)))
    code = compile(ast.fix_missing_locations(body), f"<{text}>", "eval")
    scope = _GLOBALS | FUNCTIONS | _IN_PLACE | dict(fixed)
    comparing = "int" in text

    def evaluate(symbols: Mapping[str, Value]) -> Value:
        known = dict[str, Any](symbols)
        if comparing:  # 0 and 1 times a number is rounded to the precision of the 0 and 1
            known["int"] = partial(_indicator, dtype=_precision(symbols))
        return eval(code, scope, known)  # type: ignore[no-any-return]

    return evaluate


class Expression:
    """A checked expression; `names` are the symbols it needs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._plain, self.names = _checked(text)

    @property
    def _tree(self) -> ast.expr:
        """A tree of one's own, to be changed."""
        return ast.parse(self._plain, mode="eval").body

    def bind(self, fixed: Mapping[str, Value]) -> Callable[[Mapping[str, Value]], Value]:
        """Return a function of the other symbols; what depends on `fixed` alone is computed now."""
        hoist = _Hoist(fixed)
        return _evaluator(self.text, hoist.visit(self._tree), dict(fixed) | hoist.values)

    def filled(self, fixed: Mapping[str, Value]) -> Filled:
        """Return the same as `bind`, without what these values make void."""
        hoist = _Hoist(fixed)
        tree, values = simplified(hoist.visit(self._tree), dict(fixed) | hoist.values)
        names, plain = frozenset(names_in(tree)), isinstance(tree, ast.Name)
        return Filled(_evaluator(self.text, tree, values), names, plain)

    def renamed(self, names: Mapping[str, str]) -> str:
        """Return the text with symbols replaced by other text, in brackets where needed."""
        tree = _Rename(names).visit(self._tree)
        return ast.unparse(tree)


def _copy(node: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(node), mode="eval").body


class _Hoist(ast.NodeTransformer):
    """Replace every largest part that needs only fixed symbols by its value."""

    def __init__(self, fixed: Mapping[str, Value]) -> None:
        self.fixed = fixed
        self.values: dict[str, Value] = {}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call):
            if names_in(node) <= set(self.fixed):
                return self._hoisted(node)
            if isinstance(node, ast.Call):
                node.args = [self.visit(arg) for arg in node.args]
                return node
        return self.generic_visit(node)

    def _hoisted(self, node: ast.expr) -> ast.Name:
        name = f"_fixed{len(self.values)}"
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<fixed>", "eval")
        scope = FUNCTIONS | dict(self.fixed)
        self.values[name] = eval(code, dict(_GLOBALS), scope)
        return ast.Name(name, ast.Load())


class _Share(ast.NodeTransformer):
    """Name every part that occurs again, `(_shared0 := abs(s))`, and use the name from then on."""

    def __init__(self, tree: ast.expr) -> None:
        self._keys: dict[int, int] = {}
        _number(tree, self._keys, {})
        self._counts: Counter[int] = Counter()
        self._count(tree)
        self._names: dict[int, str] = {}

    def _count(self, node: ast.AST) -> None:
        """Count uses; what is inside a part that occurs again is used by it once."""
        key = self._keys[id(node)]
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call):
            self._counts[key] += 1
            if self._counts[key] > 1:
                return
        for child in ast.iter_child_nodes(node):
            if id(child) in self._keys:
                self._count(child)

    def visit(self, node: ast.AST) -> Any:
        key = self._keys[id(node)]
        if (name := self._names.get(key)) is not None:
            return ast.Name(name, ast.Load())
        inside = self.generic_visit(node)
        if self._counts[key] < 2:
            return inside
        self._names[key] = f"_shared{len(self._names)}"
        assert isinstance(inside, ast.expr)
        return ast.NamedExpr(ast.Name(self._names[key], ast.Store()), inside)


def _number(node: ast.AST, keys: dict[int, int], known: dict[tuple[object, ...], int]) -> int:
    """Give every node a number, equal for equal parts, from the numbers of what it is made of."""
    made: list[object] = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        values = value if isinstance(value, list) else [value]
        made.append(name)
        for one in values:
            if isinstance(one, ast.AST):
                made.append(_number(one, keys, known))
            else:
                made += [type(one).__name__, one]
    keys[id(node)] = known.setdefault(tuple(made), len(known))
    return keys[id(node)]


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Call(self, node: ast.Call) -> ast.Call:
        node.args = [self.visit(arg) for arg in node.args]
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        text = self.names.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body


def in_parts(text: str, prefix: str) -> tuple[list[str], str]:
    """Return an expression as assignments `prefix0 = …` of its parts, and what is left of it.

    A part is named where it occurs again, or where it is compared and is not plain arithmetic: for
    languages that share nothing by themselves and know little of what they compare.
    """
    tree = _copy(ast.parse(text, mode="eval").body)
    split = _Split(tree, prefix)
    rest = ast.unparse(split.visit(tree))
    return split.assignments, rest


class _Split(ast.NodeTransformer):
    def __init__(self, tree: ast.expr, prefix: str) -> None:
        self._keys: dict[int, int] = {}
        _number(tree, self._keys, {})
        nodes = list(ast.walk(tree))
        parts = [n for n in nodes if isinstance(n, ast.BinOp | ast.Call) and _size(n) > 3]
        counts = Counter(self._keys[id(part)] for part in parts)
        named = {key for key, count in counts.items() if count > 1}
        for node in nodes:
            if isinstance(node, ast.Compare):
                sides = [side for side in (node.left, *node.comparators) if _calls(side)]
                named |= {self._keys[id(side)] for side in sides}
        self._named, self._prefix = named, prefix
        self._names: dict[int, str] = {}
        self.assignments: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        key = self._keys[id(node)]
        if key in self._names:
            return ast.Name(self._names[key], ast.Load())
        inside = self.generic_visit(node)
        if key not in self._named or not isinstance(node, ast.BinOp | ast.UnaryOp | ast.Call):
            return inside
        self._names[key] = f"{self._prefix}{len(self._names)}"
        self.assignments.append(f"{self._names[key]} = {ast.unparse(inside)}")
        return ast.Name(self._names[key], ast.Load())


def _size(node: ast.AST) -> int:
    return sum(isinstance(n, ast.expr) for n in ast.walk(node))


def _calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def unknown(text: str, known: Collection[str]) -> list[str]:
    """Return the symbols of an expression that are not known, in order."""
    return sorted(Expression(text).names - set(known))
