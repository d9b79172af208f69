"""The grammar of elementwise expressions: what torch, Brian2 and C understand alike.

+ − * / **, comparisons inside int(…), and a few functions. `int(a > b)` is 1 where the comparison
holds, else 0.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from pcsim.errors import ConfigError

FUNCTIONS = ("exp", "log", "sqrt", "tanh", "floor", "ceil", "abs", "sign", "clip", "int")
_ALLOWED = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.Pow,
    ast.USub,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.Compare,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
)


def parsed(text: str, known: Collection[str] = FUNCTIONS) -> ast.Expression:
    """Return the tree of an expression that calls `known` functions only; refuse all else."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        why = getattr(error, "msg", error)
        raise ConfigError(f"expression {text!r}: is not an expression ({why})") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ConfigError(
                f"expression {text!r}: {type(node).__name__} is not allowed; use + - * / **, "
                f"int(a > b), and {', '.join(known)}"
            )
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
            raise ConfigError(f"expression {text!r}: {node.value!r} is not a number")
        if isinstance(node, ast.Call) and not (
            isinstance(node.func, ast.Name) and node.func.id in known
        ):
            raise ConfigError(
                f"expression {text!r}: unknown function; known are {', '.join(known)}"
            )
    return tree


def names_in(node: ast.AST) -> set[str]:
    """Return the symbols of an expression, without the functions."""
    called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and id(n) not in called}
