"""Checks of a text that somebody else wrote, before anything is computed from it.

The grammar is that of `pcsim.substrate.expression`; beyond it, length and depth are bounded, every
symbol must be known, functions have their number of arguments, and a comparison stands in int(…).
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Collection, Iterable

from pcsim.errors import ConfigError
from pcsim.frozen import LARGEST
from pcsim.substrate.expression import FUNCTIONS, Expression

LONGEST = 1000
"""Characters of one text."""
DEEPEST = 30
"""Nested operations and calls of one text."""
MOST = 64
"""Names that one effect may declare."""
SHOWN = 200
"""Characters of a wrong text that a sentence shows."""
RESERVED = frozenset({"s", "dt", "t", "start_xi", "start_u", *FUNCTIONS})
_ARGUMENTS = {"clip": 3}


def check_names(names: Iterable[str], taken: Collection[str]) -> None:
    """Refuse names that no variable may have, that mean something already, or that occur twice."""
    known = set(taken) | RESERVED
    declared: set[str] = set()
    for name in names:
        plain = name.isascii() and name.isidentifier() and name[0].isalpha()
        if not plain or keyword.iskeyword(name) or len(name) > 40:
            raise ValueError(
                f"{name!r} cannot be a name; use a letter, then letters, digits and _ (at most 40)"
            )
        if name in known:
            raise ValueError(f"{name!r} means something already; choose another name")
        if name in declared:
            raise ValueError(f"{name!r} is declared twice; every name has one meaning")
        declared.add(name)
    if len(declared) > MOST:
        raise ValueError(f"{len(declared)} names are declared; at most {MOST} are allowed")


def check_text(where: str, text: str, known: Collection[str], context: str) -> None:
    """Refuse a text that is too long, outside of the grammar, or about unknown symbols."""
    try:
        _check_text(where, text, known, context)
    except ValueError as error:
        shown = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
        raise ValueError(f"{error}, got {shown!r}") from None


def _check_text(where: str, text: str, known: Collection[str], context: str) -> None:
    if len(text) > LONGEST:
        raise ValueError(f"{where}: has {len(text)} characters; at most {LONGEST} are allowed")
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"{where}: must be one line of plain ASCII text")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check_depth(where, tree)
        names = Expression(text.strip()).names
    except (RecursionError, MemoryError):
        raise ValueError(f"{where}: is nested too deeply; at most {DEEPEST} levels") from None
    except SyntaxError as error:
        raise ValueError(
            f"{where}: must be a text such as 2*s, this is not an expression ({error.msg})"
        ) from None
    except ConfigError as error:
        raise ValueError(f"{where}: {error}") from None
    for node in ast.walk(tree):
        _check_node(where, node)
    _check_comparisons(where, tree)
    if missing := sorted(names - set(known)):
        raise ValueError(
            f"{where}: {', '.join(missing)} is not known {context}; use a text of "
            f"{', '.join(sorted(known))}"
        )


def _check_depth(where: str, tree: ast.expr) -> None:
    pending: list[tuple[ast.AST, int]] = [(tree, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > DEEPEST:
            raise ValueError(f"{where}: is nested too deeply; at most {DEEPEST} levels")
        inner = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        pending += [(n, depth + 1) for n in inner]


def _check_node(where: str, node: ast.AST) -> None:
    if isinstance(node, ast.Constant) and not abs(node.value) <= LARGEST:  # type: ignore[arg-type]
        raise ValueError(f"{where}: {ast.unparse(node)} is beyond {LARGEST:g}")
    power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
    if power and not any(_is_symbol(inner) for inner in ast.walk(node)):
        # Python's whole numbers have no largest one: 9**9**9 would not end.
        raise ValueError(f"{where}: {ast.unparse(node)} is a power of numbers; write its value")
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        wanted = _ARGUMENTS.get(name, 1)
        if len(node.args) != wanted:
            raise ValueError(
                f"{where}: {name} takes {wanted} argument{'s' * (wanted > 1)}, got {len(node.args)}"
            )


def _is_symbol(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id not in FUNCTIONS


def _check_comparisons(where: str, tree: ast.expr) -> None:
    nodes = list(ast.walk(tree))
    inside = set()
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "int":
            if not isinstance(node.args[0], ast.Compare):
                raise ValueError(f"{where}: int takes a comparison, as in int(s > 0)")
            inside.add(id(node.args[0]))
    for node in nodes:
        if isinstance(node, ast.Compare) and (id(node) not in inside or len(node.ops) > 1):
            raise ValueError(
                f"{where}: {ast.unparse(node)} must be one comparison inside int(…), as in "
                f"int(s > 0), which is 1 or 0"
            )
