"""Pieces of C++ for the standalone program: Brian2's arrays by name, and expressions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from brian2 import Clock, Function, NeuronGroup
from brian2.codegen.generators.cpp_generator import CPPNodeRenderer
from brian2.core.variables import DynamicArrayVariable

from pcsim.backends.brian.evaluate import WORD, Formula

HEADERS = ["<cmath>", "<cstdio>", "<cstdlib>", "<string>", "<vector>", '"network.h"']


def pointer(variable: Any) -> str:
    """Return a C++ expression for the first number of a Brian2 variable."""
    if isinstance(variable, DynamicArrayVariable):
        return f"brian::{variable.device.get_array_name(variable, access_data=False)}.data()"
    return f"brian::{variable.device.get_array_name(variable)}"


def number_type(dtype: Any) -> str:
    """Return the C++ name of a floating-point type."""
    return {"float64": "double", "float32": "float"}[np.dtype(dtype).name]


def expression(formula: Formula, index: str) -> str:
    """Return a formula in C++, for the neuron (or synapse) with this index."""

    def word(name: str) -> str:
        if name in formula.arrays:
            return f"{pointer(formula.arrays[name])}[{index}]"
        if name in formula.constants:
            return repr(formula.constants[name])
        return "int" if name == "int_" else name

    text = str(CPPNodeRenderer().render_expr(formula.text))
    return WORD.sub(lambda match: word(match.group()), text)


def called(
    name: str,
    code: str,
    group: NeuronGroup,
    clock: Clock,
    when: str,
    order: int,
    headers: Sequence[str] = (),
) -> None:
    """Let the program call the C++ function `name` once per time step, at this place."""
    function = Function(None, arg_units=[1], return_unit=1, stateless=False)
    function.implementations.add_implementation(
        "cpp", code, name=name, compiler_kwds={"headers": [*HEADERS, *headers]}
    )
    group.namespace[name] = function
    group.run_regularly(
        f"unused = {name}(unused)", clock=clock, when=when, order=order, name=f"{group.name}_{name}"
    )
