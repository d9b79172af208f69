"""Equations of a Brian2 group, evaluated by numpy without generating code.

Brian2's expressions are Python. What a group computes from its states (errors, rates, potentials)
is inlined down to stored arrays, so that it can be evaluated in microseconds, on states of any
instant, and be written as C++ by `fused`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from brian2.core.variables import ArrayVariable, Subexpression

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "abs": np.abs,
    "sign": np.sign,
    "clip": np.clip,
    "int": lambda truth: np.asarray(truth).astype(np.int64),
}
"""What the equations of pcsim call."""
WORD = re.compile(r"\b[A-Za-z_]\w*\b")


def words(expression: str) -> set[str]:
    """Return the names in an expression, without those of functions."""
    return {name for name in WORD.findall(expression) if name not in FUNCTIONS}


def inlined(group: Any, expression: str) -> str:
    """Return an expression in which only stored arrays and constants of the group are left."""

    def stored(match: re.Match[str]) -> str:
        name = match.group()
        variable = group.variables.get(name)
        if isinstance(variable, Subexpression):
            return f"({inlined(group, variable.expr)})"
        return name

    return WORD.sub(stored, expression)


class Formula:
    """An expression of one group, to be evaluated on its stored arrays."""

    def __init__(
        self, group: Any, expression: str, given: Mapping[str, float] | None = None
    ) -> None:
        """`given`: constants that the group does not know."""
        self.text = inlined(group, expression)
        self.arrays: dict[str, ArrayVariable] = {}
        self.constants: dict[str, float] = {}
        """In SI units."""
        for name in sorted(words(self.text)):
            variable = group.variables.get(name)
            if name == "dt":
                self.constants[name] = float(group.clock.dt_)
            elif isinstance(variable, ArrayVariable):
                self.arrays[name] = variable
            else:
                known = group.namespace if name in group.namespace else given or {}
                self.constants[name] = float(known[name])
        self._fixed: dict[str, Any] = {**FUNCTIONS, **self.constants}
        self._code = compile(self.text, f"<{group.name}: {expression}>", "eval")

    def __call__(self, instead: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """Return the present value per neuron; `instead` replaces arrays by name."""
        arrays = {name: variable.get_value() for name, variable in self.arrays.items()}
        names = self._fixed | arrays | {n: v for n, v in (instead or {}).items() if n in arrays}
        return np.asarray(eval(self._code, {"__builtins__": {}}, names))
