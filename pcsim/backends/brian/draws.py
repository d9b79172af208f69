"""Noise of a Brian2 population by counters: variables that get fresh numbers before every step.

Every number is a function of (seed, source, chip, time step, element), as on every engine. The
runtime targets fetch them from the source of noise. A standalone program contains the text of the
generator, `pcsim/native/counter.c`; it reads keys and the number of its first time step from
`noise.bin`, so that another seed is another file and no other program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
from brian2 import NetworkOperation
from torch import Tensor

from pcsim.backends.brian.cpp_text import number_type, pointer
from pcsim.circuits import order
from pcsim.circuits.plan import Group, Plan
from pcsim.errors import UnsupportedError
from pcsim.substrate import Noise, Seeded
from pcsim.substrate.counter import Law

WHITE = {"white": ("x", 0), "white_inter": ("inter", 1)}
"""Variables of layer k that hold the circuit's own noise, and the states it acts on: their name,
and what is added to k."""
HEADERS = ["<math.h>", "<stdint.h>", "<string.h>"]
"""What the generator includes: Brian2 puts it into a namespace, behind these."""
_XI = re.compile(r"\bsigma_x\*xi(|_inter)\b")


@dataclass(frozen=True, eq=False)
class Draw:
    """A variable that is redrawn before every step."""

    variable: Any
    source: str
    law: Law
    like: Tensor
    """In the shape of the numbers, (chip, …)."""
    noise: Noise
    step: Callable[[], int]
    """The number of the time step to come."""
    gate: Any = None
    """A variable without a positive number in it means that nobody needs this noise."""

    def refresh(self) -> None:
        """Draw for the step to come."""
        if self.gate is None or (self.gate.get_value() > 0).any():
            drawn = self.noise.draw(self.source, self.law, self.like, self.step())
            self.variable.set_value(drawn.numpy().ravel())

    def keys(self) -> np.ndarray:
        """Return one key per chip."""
        if not isinstance(self.noise, Seeded):
            raise UnsupportedError(
                "backend brian: target 'standalone': only counted noise (Seeded) is drawn in the "
                "program; use target 'numpy' or 'cython'"
            )
        return self.noise.keys(self.source, len(self.like))


def counted(plan: Plan) -> Plan:
    """Return a plan whose somas read their white noise from variables, instead of Brian2's xi."""
    return replace(plan, groups=tuple(_counted(group) for group in plan.groups))


def _counted(group: Group) -> Group:
    lines = [f"white{suffix} : 1  # N(0, 1), of this step" for suffix in _XI.findall(group.text)]
    text = _XI.sub(r"sigma_x*white\1/sqrt(dt)", group.text)
    return replace(group, text="\n".join([text.rstrip("\n"), *lines, ""])) if lines else group


def own_draws(
    layers: Sequence[Any], noise: Noise | None, like: Tensor, step: Callable[[], int]
) -> list[Draw]:
    """Return the circuit's own noise; `like` has its type and the axes (chip, sample)."""
    found = []
    for k, layer in enumerate(layers):
        for name, (state, shift) in WHITE.items():
            if name not in layer.variables:
                continue
            if noise is None:
                raise UnsupportedError(
                    "backend brian: noise: circuit.sigma_x needs a source of counted noise, such "
                    "as Seeded(0)"
                )
            shaped = like.new_zeros(*like.shape, len(layer) // like.numel())
            source, gate = f"soma.{state}{k + shift}", layer.variables.get("free")
            gate = gate if name == "white" else None
            drawn = layer.variables[name]
            found.append(Draw(drawn, source, "normal", shaped, noise, step, gate))
    return found


def operation(draws: Sequence[Draw], clock: Any, name: str) -> NetworkOperation:
    """Return what draws the noise of every step in the runtime targets."""

    def refresh() -> None:
        for draw in draws:
            draw.refresh()

    when = {"when": "before_start", "order": order.NOISE}
    return NetworkOperation(refresh, clock=clock, name=f"{name}_noise", **when)


def table(draws: Sequence[Draw], steps: int) -> bytes:
    """Return `noise.bin` for the `steps` time steps that end now: per draw, the first and keys."""
    rows = [np.append(np.uint64(draw.step() - steps), draw.keys()) for draw in draws]
    return b"".join(row.astype(np.uint64).tobytes() for row in rows)


def noise_code(draws: Sequence[Draw]) -> str:
    """Return the function that draws all noise of a step, with the generator before it."""
    text = (files("pcsim.native") / "counter.c").read_text(encoding="utf-8")
    count = sum(1 + len(draw.keys()) for draw in draws)  # refuses what is not counted
    calls = "\n".join(_call(draw) for draw in draws)
    return f"""
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-fast-math", "fp-contract=off")  // the same bits as everywhere
#endif
{text}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
static uint64_t pcsim_table[{count}], pcsim_noise_step = 0;
template <class REAL> static bool pcsim_open(const REAL* gate, int64_t size) {{
    for (int64_t n = 0; n < size; n++)
        if (gate[n] > 0) return true;
    return false;
}}
double pcsim_noise(double unused) {{
    if (pcsim_noise_step == 0) {{
        std::FILE* file = std::fopen((brian::results_dir + "noise.bin").c_str(), "rb");
        if (file == NULL || std::fread(pcsim_table, 8, {count}, file) != {count}) std::exit(6);
        std::fclose(file);
    }}
    const uint64_t* row = pcsim_table;
{calls}
    pcsim_noise_step++;
    return unused;
}}
"""


def _call(draw: Draw) -> str:
    """Return what draws one variable; a row of the table is its first time step and its keys."""
    chips, each = len(draw.like), draw.like[0].numel()
    real = number_type(draw.variable.dtype)
    arguments = f"{pointer(draw.variable)}, row + 1, {chips}, {each}, *row + pcsim_noise_step, 0"
    fill = f"fill_{real}({arguments}, {int(draw.law == 'normal')});"
    if draw.gate is not None:
        fill = f"if (pcsim_open({pointer(draw.gate)}, {draw.gate.size})) {fill}"
    return f"    {fill}\n    row += {1 + chips};"
