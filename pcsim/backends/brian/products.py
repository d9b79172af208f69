"""Synaptic equations as products of three factors: of the synapse, of its pre and its post neuron.

    summed over pre     s_post = Σ_pre   S·A        a matrix times a vector
    summed over post    s_pre  = Σ_post  S·B        a transposed matrix times a vector
    learning            dS/dt  = Σ S'·A·B           an outer product (and decay, with A = B = 1)

Whatever has this form needs no loop over single synapses. The factors are found in the equations
themselves, so that every circuit that can be written with them is covered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import sympy
from brian2 import Equations
from brian2.equations.equations import DIFFERENTIAL_EQUATION, SUBEXPRESSION
from brian2.parsing.sympytools import str_to_sympy, sympy_to_str

from pcsim.errors import UnsupportedError

SUFFIX = re.compile(r"_(pre|post)\b")


@dataclass(frozen=True)
class Term:
    """A product S·A·B; each factor is an expression in Brian2's syntax, without suffixes."""

    synapse: str
    pre: str
    post: str

    @property
    def local(self) -> bool:
        """Whether only the synapse itself matters, as in a decay."""
        return self.pre == self.post == "1"


@dataclass(frozen=True)
class Products:
    """One set of synapses: what it sums on either side, and how its arrays move."""

    arrays: tuple[str, ...]
    onto_post: dict[str, tuple[Term, ...]]
    onto_pre: dict[str, tuple[Term, ...]]
    learning: dict[str, tuple[Term, ...]]

    @classmethod
    def of(cls, text: str) -> Products:
        """Read the equations of a `Synapses` object."""
        equations = Equations(text)
        arrays = tuple(n for n, eq in equations.items() if eq.type != SUBEXPRESSION)
        onto_post: dict[str, tuple[Term, ...]] = {}
        onto_pre: dict[str, tuple[Term, ...]] = {}
        learning: dict[str, tuple[Term, ...]] = {}
        for name, equation in equations.items():
            if equation.type == DIFFERENTIAL_EQUATION:
                learning[name] = factors(equation.expr.code, arrays)
            elif "summed" in equation.flags:
                side = onto_post if name.endswith("_post") else onto_pre
                target = name.removesuffix("_post").removesuffix("_pre")
                side[target] = factors(equation.expr.code, arrays)
            elif equation.type == SUBEXPRESSION:
                raise UnsupportedError(
                    f"backend brian: products: a synapse computes {name!r} by itself; switch "
                    f"brian.products and brian.fused off"
                )
        return cls(arrays, onto_post, onto_pre, learning)


def factors(expression: str, arrays: tuple[str, ...]) -> tuple[Term, ...]:
    """Return the terms of a sum; those that differ in one neuron's factor only are joined."""
    one = sympy.Integer(1)
    terms: dict[tuple[str, str], sympy.Expr] = {}
    for product in sympy.Add.make_args(sympy.expand(str_to_sympy(expression))):
        sides = dict.fromkeys(("synapse", "pre", "post", "constant"), one)
        for factor in sympy.Mul.make_args(product):
            sides[_side(factor, expression, arrays)] *= factor
        # Constants are those of the map, which its post neurons share.
        sides["post" if sides["post"] != one else "synapse"] *= sides["constant"]
        key = (str(sympy_to_str(sides["synapse"])), _bare(sides["pre"]))
        terms[key] = terms.get(key, sympy.Integer(0)) + sides["post"]
    return tuple(Term(synapse, pre, _bare(post)) for (synapse, pre), post in terms.items())


def _side(factor: sympy.Expr, expression: str, arrays: tuple[str, ...]) -> str:
    """Return where a factor belongs."""
    names = {str(symbol) for symbol in factor.free_symbols}
    sides = {
        "pre": any(name.endswith("_pre") for name in names),
        "post": any(name.endswith("_post") for name in names),
        "synapse": any(name in arrays for name in names),
    }
    found = [side for side, present in sides.items() if present]
    if len(found) > 1:
        raise UnsupportedError(
            f"backend brian: products: {expression!r} is no product of what the synapse, its pre "
            f"and its post neuron know; switch brian.products and brian.fused off"
        )
    return found[0] if found else "constant"


def _bare(expression: sympy.Expr) -> str:
    return SUFFIX.sub("", str(sympy_to_str(expression)))
