"""An expression in x by a user: checked, with the rows that it calls written out, and its slope.

The slope is derived by sympy. Where f has a kink (abs, clip, int(a > b)) it is that of one side.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy
from sympy.printing.str import StrPrinter

from pcsim.errors import ConfigError
from pcsim.grammar import FUNCTIONS, names_in, parsed
from pcsim.maps.nonlinearities import NONLINEARITIES, Row

_LARGE = 1000.0
"""Values up to this size, on both sides, at which f and its slope must be numbers."""
X, R = sympy.symbols("x r", real=True)
_NUMPY: dict[str, Any] = {
    name: getattr(np, name) for name in FUNCTIONS if name != "int"
}  # fmt: skip
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARED = {ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<="}
_ROWS = {name: one for name, one in NONLINEARITIES.items() if one.plain and name not in FUNCTIONS}


def _function(name: str, *slopes: Callable[..., Any]) -> Any:
    """Return a function that sympy leaves alone, with its derivative by each argument."""

    def fdiff(self: Any, argindex: int = 1) -> Any:
        return slopes[argindex - 1](*self.args)

    return type(name, (sympy.Function,), {"fdiff": fdiff, "nargs": (len(slopes),), "is_real": True})


def _flat(*arguments: Any) -> Any:
    return sympy.Integer(0)


# What sympy knows by other rules (a delta for the derivative of a sign) has plain ones here.
_INDICATORS = {s: _function(f"compared{k}", _flat, _flat) for k, s in enumerate(_COMPARED.values())}
_SIGN = _function("sign", _flat)
_KNOWN: dict[str, Any] = {
    "exp": sympy.exp,
    "log": sympy.log,
    "sqrt": sympy.sqrt,
    "tanh": sympy.tanh,
    "floor": _function("floor", _flat),
    "ceil": _function("ceil", _flat),
    "sign": _SIGN,
    "abs": _function("abs", lambda u: _SIGN(u)),
    "clip": _function(
        "clip",
        lambda u, low, high: _INDICATORS[">"](u, low) * _INDICATORS["<"](u, high),
        lambda u, low, high: _INDICATORS["<="](u, low),
        lambda u, low, high: _INDICATORS[">="](u, high),
    ),
}


def _row_function(name: str, row: Row) -> Any:
    return _function(name, lambda u: _slope(row).subs({R: _CALLED[name](u), X: u}))


def _slope(row: Row) -> Any:
    if row.slope:
        return _symbolic(ast.parse(row.slope, mode="eval").body)
    return _symbolic(ast.parse(row.f, mode="eval").body).diff(X)


_CALLED: dict[str, Any] = {name: _row_function(name, one) for name, one in _ROWS.items()}


class _Printer(StrPrinter):  # type: ignore[misc]
    """Writes what every engine reads; rows of the table are written out."""

    def _print_Function(self, expr: Any) -> str:  # noqa: N802
        name = type(expr).__name__
        arguments = [self._print(argument) for argument in expr.args]
        for sign, indicator in _INDICATORS.items():
            if isinstance(expr, indicator):
                return f"int({arguments[0]} {sign} {arguments[1]})"
        if name in _ROWS:
            return f"({_ROWS[name].at(f'({arguments[0]})')})"
        return f"{name}({', '.join(arguments)})"

    def _print_Rational(self, expr: Any) -> str:  # noqa: N802
        return repr(expr.p / expr.q)

    def _print_Float(self, expr: Any) -> str:  # noqa: N802
        return repr(float(expr))

    def _print_Abs(self, expr: Any) -> str:  # noqa: N802
        return f"abs({self._print(expr.args[0])})"

    def _print_Exp1(self, expr: Any) -> str:  # noqa: N802
        return "exp(1)"


def derived(text: str) -> tuple[str, str]:
    """Return f(x) as every engine reads it and its slope in x and r; refuse what is no f."""
    try:
        tree = parsed(text, (*FUNCTIONS, *_ROWS)).body
    except ConfigError as error:
        raise ConfigError(f"nonlinearity {text!r}: {str(error).split(': ', 1)[-1]}") from None
    strange = sorted(names_in(tree) - {"x"})
    if strange or "x" not in names_in(tree):
        names = f"knows no {', '.join(strange)}" if strange else "does not depend on x"
        raise ConfigError(f"nonlinearity {text!r}: {names}; it is an expression in x alone")
    try:
        slope, f = slope_of(tree), _written_out(tree)
        _check_numbers(f, "f", f)
        _check_numbers(f, f"the slope {slope!r}", slope)
    except ConfigError as error:
        raise ConfigError(f"nonlinearity {text!r}: {error}") from None
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ConfigError(f"nonlinearity {text!r}: cannot be evaluated ({error})") from None
    return f, slope


def slope_of(tree: ast.expr) -> str:
    """Return the derivative of an expression in x, in x and r where r is the expression."""
    symbolic = _symbolic(tree)
    slope = symbolic.diff(X)
    return str(_Printer().doprint(slope if symbolic.is_Atom else slope.subs(symbolic, R)))


def _symbolic(node: ast.expr) -> Any:
    """Return an expression of our grammar as sympy has it."""
    match node:
        case ast.Name(id="x"):
            return X
        case ast.Name():
            return R
        case ast.Constant(value=value):
            return sympy.Integer(value) if isinstance(value, int) else sympy.Float(repr(value))
        case ast.UnaryOp(operand=operand):
            return -_symbolic(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _OPERATORS[type(op)](_symbolic(left), _symbolic(right))
        case ast.Call(func=ast.Name(id="int"), args=[ast.Compare(ops=[op]) as compared]):
            sides = (compared.left, *compared.comparators)
            return _INDICATORS[_COMPARED[type(op)]](*map(_symbolic, sides))
        case ast.Call(func=ast.Name(id=name), args=arguments) if name != "int":
            return (_KNOWN | _CALLED)[name](*map(_symbolic, arguments))
    raise ConfigError(f"{ast.unparse(node)!r}: one comparison stands inside int(…), as int(x > 0)")


def _written_out(tree: ast.expr) -> str:
    """Return the text, unchanged but for the rows that it calls."""

    class WriteOut(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.expr:
            node.args = [self.visit(argument) for argument in node.args]
            if not isinstance(node.func, ast.Name) or node.func.id not in _ROWS:
                return node
            text = _ROWS[node.func.id].at(f"({ast.unparse(node.args[0])})")
            return ast.parse(text, mode="eval").body

    return ast.unparse(WriteOut().visit(tree))


def _check_numbers(f: str, what: str, text: str) -> None:
    """Refuse what is no number somewhere."""
    near, far = np.linspace(-10, 10, 2001), np.geomspace(10, _LARGE, 200)
    for dtype in (np.float32, np.float64):
        x = np.concatenate([-far[::-1], near, far]).astype(dtype)
        value = _value(text, {"x": x, "r": _value(f, {"x": x})})
        wrong = ~np.isfinite(value)
        if not wrong.any():
            continue
        first = np.where(wrong, np.abs(x), np.inf).argmin()
        raise ConfigError(
            f"{what} is {value[first]:g} at x = {x[first]:g}; f must have a value and a slope for "
            f"all x from -{_LARGE:g} to {_LARGE:g} ({', '.join(_ROWS)} and tanh may be called, and "
            f"do not overflow)"
        )


def _value(text: str, symbols: dict[str, Any]) -> np.ndarray:
    names = _NUMPY | symbols | {"int": lambda truth: truth.astype(symbols["x"].dtype)}
    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(text, {"__builtins__": {}}, names), symbols["x"].shape)
