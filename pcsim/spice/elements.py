"""What a netlist consists of: cells with elements, the waves and noise of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pcsim.native.formula import ZERO, Node
from pcsim.spice.macro import beside_capacitor, transconductor
from pcsim.spice.text import in_spice
from pcsim.spice_settings import Macro
from pcsim.substrate.counter import Law

GM = 1e-6
"""Siemens of all transconductors: a capacitor of time constant tau has gm·tau farads."""


@dataclass(frozen=True)
class Element:
    """What stands at one node of a cell."""

    kind: Literal["capacitor", "current", "value", "sum"]
    """What holds a state, gm times an expression, the voltage of an expression, or 1/gm."""
    name: str
    node: Node = ZERO
    """The expression."""
    learnt: bool = False
    """Of a capacitor: it holds a weight."""
    limited: bool = False
    """Of a current: it moves a soma, which may slew."""

    def spice(self, macro: Macro | None) -> list[str]:
        """Return its lines in ngspice.

        gm is a multiplicity: as a factor of the expression it would be a factor of every
        derivative, each evaluated anew in each iteration, which takes more than twice the time.
        """
        name = self.name
        if self.kind == "sum":
            return [f"R{name} {name} 0 {{1/gm}}"]
        if self.kind == "value":
            return [f"B{name} {name} 0 V={in_spice(self.node)}"]
        if self.kind == "current":
            if macro:
                return transconductor(name, in_spice(self.node), limited=self.limited)
            return [f"B{name} 0 {name} I={in_spice(self.node)} m={{gm}}"]
        lines = [f"C{name} {name} 0 {{c_{name}}} ic={{{name}_start}}"]
        return lines + (beside_capacitor(macro, name, learnt=self.learnt) if macro else [])


@dataclass
class Cell:
    """A subcircuit: pins, parameters with the value of each instance, elements."""

    name: str
    about: str
    pins: list[str] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)

    def text(self, macro: Macro | None) -> str:
        """Return its definition."""
        lines = [line for element in self.elements for line in element.spice(macro)]
        params = "".join(f" {name}=0" for name in self.params)
        head = folded(f".subckt {self.name} {' '.join(self.pins)}{params}")
        return "\n".join((f"* {self.about}", head, *lines, f".ends {self.name}", ""))


@dataclass(frozen=True)
class Wave:
    """A voltage that is given from outside: steps, each reached within `rise` seconds."""

    node: str
    times: Sequence[float]
    """When each value begins; the first at 0."""
    values: Sequence[float]

    def text(self, rise: float) -> str:
        """Return the source, without corners where nothing changes."""
        points = [(0.0, float(self.values[0]))]
        for time, value in zip(self.times[1:], self.values[1:], strict=True):
            if float(value) != points[-1][1]:
                points += [(time, points[-1][1]), (time + rise, float(value))]
        if len(points) == 1:
            return f"V{self.node} {self.node} 0 {points[0][1]!r}"
        return folded(f"V{self.node} {self.node} 0 PWL(", *(f"{t!r} {v!r}" for t, v in points), ")")


@dataclass(frozen=True)
class Hiss:
    """Standard normal numbers that ngspice draws, a new one per `step`."""

    node: str
    step: float

    def text(self, rise: float) -> str:
        """Return the source."""
        return f"V{self.node} {self.node} 0 DC 0 TRNOISE(1 {self.step!r} 0 0)"


@dataclass(frozen=True)
class NoiseSource:
    """Numbers that are held for one time step each, of every unit of a layer."""

    layer: int
    variable: str
    key: str
    law: Law
    of_circuit: bool = False
    """Whether it is the circuit's own noise, not that of hardware."""

    def node(self, unit: int) -> str:
        """Return the node on which the numbers of one unit are given."""
        return f"{self.variable}{self.layer}_{unit}"


def folded(*words: str) -> str:
    """Return one statement in lines of bearable length."""
    lines, line = [], ""
    for word in (each for part in words for each in part.split(" ") if each):
        if len(line) + len(word) > 110:
            lines.append(line)
            line = "+"
        line = f"{line} {word}" if line else word
    return "\n".join((*lines, line))
