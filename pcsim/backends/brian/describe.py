"""A circuit as text: what each Brian2 object is, its equations and its constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

from brian2 import Equations

from pcsim.circuit import Circuit
from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Plan, unit_of
from pcsim.circuits.text import mentions
from pcsim.network import Mode, Network
from pcsim.substrate import Chips


def describe(
    network: Network,
    circuit: Circuit,
    mode: Mode = "supervised",
    *,
    latex: bool = False,
    chips: Chips | None = None,
) -> str:
    """Return the equations of all layers and synapses, in Brian2's syntax or in LaTeX.

    With `chips`, what hardware does in every step stands above the equations it acts on.
    """
    plan = Plan.of(network, circuit, mode, chips=chips)
    parts = []
    for group in plan.groups:
        constants = group.constants | {"tau_x": circuit.tau_x}
        title = f"{group.name}: {group.units} neurons"
        steps = [*_hardware(group.blocks), *([("", group.after)] if group.after else [])]
        events = [f"event {e.name}, if {e.condition}: {e.update}" for e in group.events]
        parts.append(_part(title, group.text, constants, latex, steps, events))
    for link in plan.connections:
        pre, post = plan.groups[link.pre], plan.groups[link.post]
        title = f"{link.name}: synapses from {pre.name} to {post.name}, all to all"
        events = [f"at event {e.name}: {e.arrival}" for e in link.events]
        steps = _hardware(link.blocks)
        parts.append(_part(title, link.text, link.constants, latex, steps, events))
    for inner in plan.within:
        place = plan.groups[inner.layer].name
        kind = f"a ring per unit that delays by {inner.delay}" if inner.delay else "all to all"
        title = f"{inner.name}: synapses from {place} to itself, {kind}"
        steps = [("", inner.store)] if inner.store else []
        parts.append(_part(title, inner.text, inner.constants, latex, steps))
    if chips:
        parts = [_fabricated(chips, "%" if latex else "#"), *parts]
    return "\n".join(part for part in parts if part)


def _fabricated(chips: Chips, sign: str) -> str:
    """Return what is done to a chip before or beside the equations: fabrication, input, output."""
    lines = []
    for effect in chips.substrate.effects:
        if effect.fabricated or effect.site in ("input", "output"):
            when = "once" if effect.fabricated else "outside of Brian2"
            numbers = "".join(f", {n} = {v:g}" for n, v in effect.constants.items())
            head = f"{sign} hardware {effect.name} at {effect.site} ({when}): "
            lines.append(f"{head}s ← {effect.becomes}{numbers}")
    return "".join(f"{line}\n" for line in lines)


def _hardware(blocks: Sequence[Block]) -> list[tuple[str, str]]:
    """Return, for every site, its name with constants, and the statements of every step."""
    lines = []
    for block in blocks:
        numbers = "".join(f", {n} = {v:g}" for n, v in block.constants.items())
        code = "\n".join(part for part in (block.brian_noise, block.code) if part)
        lines.append((f" hardware at {block.place.key}{numbers}", code))
    return lines


def _part(
    title: str,
    text: str,
    constants: dict[str, float],
    latex: bool,
    each_step: Sequence[tuple[str, str]] = (),
    events: Sequence[str] = (),
) -> str:
    sign = "%" if latex else "#"
    lines = [f"{sign} {title}"]
    seen = "\n".join([text, *(code for _, code in each_step), *events])
    for name, value in constants.items():
        if mentions(seen, name):
            unit = unit_of(name)
            lines.append(f"{sign} {name} = {value:g}{f'*{unit}' if unit else ''}")
    for about, code in each_step:
        if about:
            lines.append(f"{sign} each step:{about}")
            lines += [f"{sign}     {statement}" for statement in code.splitlines()]
        else:
            lines.append(f"{sign} each step: {code}")
    lines += [f"{sign} {event}" for event in events]
    return "\n".join([*lines, _latex(text) if latex else text])


def _latex(text: str) -> str:
    """Return an align* block; Brian2's own gives dimensionless states the unit rad."""
    rows = []
    for row in str(Equations(text)._repr_latex_()).removeprefix("\\begin{align*}").splitlines():
        kept = row.partition("&&")[0].removesuffix("\\end{align*}").rstrip()
        if "&=" in kept:
            rows.append(re.sub(r"^([a-z]+)_(\w+) ", r"\1_{\2} ", kept))
    return "\\begin{align*}\n" + " \\\\\n".join(rows) + "\n\\end{align*}\n"
