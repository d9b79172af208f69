"""A circuit as text: what each Brian2 object is, its equations and its constants."""

from __future__ import annotations

import re

from brian2 import Equations

from pcsim.backends.brian.names import mentions
from pcsim.backends.brian.plan import Plan, unit_of
from pcsim.circuit import Circuit
from pcsim.network import Mode, Network


def describe(
    network: Network, circuit: Circuit, mode: Mode = "supervised", *, latex: bool = False
) -> str:
    """Return the equations of all layers and synapses, in Brian2's syntax or in LaTeX."""
    plan = Plan.of(network, circuit, mode)
    parts = []
    for group in plan.groups:
        constants = group.constants | {"tau_x": circuit.tau_x}
        title = f"{group.name}: {group.units} neurons"
        parts.append(_part(title, group.text, constants, latex, group.after))
    for link in plan.connections:
        pre, post = plan.groups[link.pre], plan.groups[link.post]
        title = f"{link.name}: synapses from {pre.name} to {post.name}, all to all"
        parts.append(_part(title, link.text, link.constants, latex))
    for inner in plan.within:
        place = plan.groups[inner.layer].name
        kind = f"a ring per unit that delays by {inner.delay}" if inner.delay else "all to all"
        title = f"{inner.name}: synapses from {place} to itself, {kind}"
        parts.append(_part(title, inner.text, inner.constants, latex, inner.store))
    return "\n".join(parts)


def _part(
    title: str, text: str, constants: dict[str, float], latex: bool, each_step: str = ""
) -> str:
    sign = "%" if latex else "#"
    lines = [f"{sign} {title}"]
    for name, value in constants.items():
        if mentions(text + each_step, name):
            unit = unit_of(name)
            lines.append(f"{sign} {name} = {value:g}{f'*{unit}' if unit else ''}")
    lines += [f"{sign} each step: {each_step}"] if each_step else []
    return "\n".join([*lines, _latex(text) if latex else text])


def _latex(text: str) -> str:
    """Return an align* block; Brian2's own gives dimensionless states the unit rad."""
    rows = []
    for row in str(Equations(text)._repr_latex_()).removeprefix("\\begin{align*}").splitlines():
        kept = row.partition("&&")[0].removesuffix("\\end{align*}").rstrip()
        if "&=" in kept:
            rows.append(re.sub(r"^([a-z]+)_(\w+) ", r"\1_{\2} ", kept))
    return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"
