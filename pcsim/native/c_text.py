"""Elementwise expressions in C, from the same text that torch and Brian2 run."""

from __future__ import annotations

import ast
from collections.abc import Mapping

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARED = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
_FUNCTIONS = {
    "abs": "fabs({})",
    "sign": "(({0} > 0) - ({0} < 0))",
    "clip": "fmin(fmax({}, {}), {})",
}


def in_c(text: str, names: Mapping[str, str]) -> str:
    """Return an expression in C; `names` are the C texts of its symbols."""
    return _written(ast.parse(text, mode="eval").body, names)


def _written(node: ast.expr, names: Mapping[str, str]) -> str:
    match node:
        case ast.Name(id=name):
            return names[name]
        case ast.Constant(value=value):
            return repr(value)
        case ast.UnaryOp(operand=operand):
            return f"(-{_written(operand, names)})"
        case ast.BinOp(left=left, op=op, right=right):
            if not any(isinstance(part, ast.Name) for part in ast.walk(node)):
                return repr(float(eval(compile(ast.Expression(node), "<constant>", "eval"))))
            a, b = _written(left, names), _written(right, names)
            return (
                f"pow({a}, {b})" if isinstance(op, ast.Pow) else f"({a} {_OPERATORS[type(op)]} {b})"
            )
        case ast.Call(func=ast.Name(id="int"), args=[ast.Compare() as compared]):
            a, b = (_written(side, names) for side in (compared.left, compared.comparators[0]))
            return f"({a} {_COMPARED[type(compared.ops[0])]} {b} ? 1 : 0)"
        case ast.Call(func=ast.Name(id=name), args=arguments):
            written = [_written(argument, names) for argument in arguments]
            return _FUNCTIONS.get(name, f"{name}({{}})").format(*written)
    raise AssertionError(f"not of the grammar: {ast.unparse(node)}")
