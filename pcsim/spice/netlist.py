"""From a plan to a netlist: states and weights on capacitors, equations as B-sources.

    C dx/dt = gm·force,  C = gm·tau         a state is the voltage of a capacitor, 1 V per unit
    x = expression                          a value is a voltage source
    mu = Σ w r                              a sum is the current of all synapses into 1/gm

Every layer has a cell for its neurons and one for their error dendrites, every array one for its
synapses and one for what teaches them. What was drawn for one device is a parameter of its cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, sqrt
from typing import Any, Literal

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Connection, Group, Plan
from pcsim.circuits.products import quotient
from pcsim.circuits.text import Equation, equations
from pcsim.continuous.plan_program import NOISE
from pcsim.errors import UnsupportedError
from pcsim.native.formula import ZERO, Node, apply, evaluate, names, number, parse, symbol
from pcsim.spice.macro import beside_capacitor, lag, transconductor
from pcsim.spice.macro import cells as macro_cells
from pcsim.spice.text import in_spice
from pcsim.spice_settings import Macro
from pcsim.substrate import Seeded
from pcsim.substrate.counter import Law

WHO = "engine spice"
GM = 1e-6
"""Siemens of all transconductors: a capacitor of time constant tau has gm·tau farads."""
SOMA = {"x", "r", "fired", "slope", "x_seen", "speed", "force", "fb", "fb_line"}
SOMA |= {"td", "apical_in", "v_apical", "v_apical_seen"}
"""What stands in the cell of a neuron; all else of a layer is its error dendrite."""
Value = float | Tensor
Index = tuple[int, ...]


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


class Netlist:
    """All cells and instances of one chip; waves, starts and analysis come from outside."""

    def __init__(
        self,
        plan: Plan,
        circuit: Circuit,
        fixed: Mapping[str, Value],
        *,
        chip: int,
        dt: float,
        free: Sequence[bool],
        macro: Macro | None = None,
    ) -> None:
        """Write the cells.

        Main arguments:
            fixed: what is set once per unit or weight, by `name@part`.
            chip: whose draws are taken.
            free: which units of the datum (layer 0) move.
            macro: what transconductors cannot do; None: ideal ones.
        """
        refuse_plan(plan, circuit)
        self.plan, self.circuit, self.fixed, self.chip, self.dt = plan, circuit, fixed, chip, dt
        self.free, self.macro = list(free), macro
        self.gm = macro.gm if macro else GM
        self.cells: dict[str, Cell] = {}
        self.noise: list[NoiseSource] = []
        self.states: dict[tuple[str, str], str] = {}
        """Variables on capacitors, by part (`g0`, `m0`) and name: the cell that has them."""
        self.taus: list[float] = []
        """Time constants of all states, those of layers first."""
        self._instances: list[tuple[str, str, list[str], dict[str, float]]] = []
        self._links = [_Part(self, f"m{k}", link) for k, link in enumerate(plan.connections)]
        for k, group in enumerate(plan.groups):
            self._layer(k, group)
        self.somas = len(self.taus)
        """So many of the time constants belong to layers."""
        for k, link in enumerate(plan.connections):
            self._array(k, link)
        if macro and macro.bandwidth:
            self.taus.append(lag(macro))

    # ---- layers

    def _layer(self, k: int, group: Group) -> None:
        part = _Part(self, f"g{k}", group)
        held = group.layer.clamped == "always" or (k == 0 and group.layer.clamped == "switched")
        kinds = {True, False} if held and group.layer.clamped != "always" else {held}
        for clamped in sorted(kinds):
            units = [i for i in range(group.units) if self._clamped(k, i) == clamped]
            if units:
                self._cells_of_layer(k, group, part, clamped, units)

    def _clamped(self, k: int, i: int) -> bool:
        layer = self.plan.groups[k].layer
        return layer.clamped == "always" or (layer.clamped == "switched" and not self.free[i])

    def _cells_of_layer(
        self, k: int, group: Group, part: _Part, clamped: bool, units: Sequence[int]
    ) -> None:
        part.let_go(not clamped)
        wanted, outside = self._wanted(k, part, clamped)
        suffix = f"{k}_clamped" if clamped and group.layer.clamped == "switched" else f"{k}"
        of = {name: "neuron" if _of_soma(name) else "error" for name in wanted}
        abouts = {
            "neuron": f"a unit of layer {k}: soma, rate, feedback",
            "error": f"the error dendrite of a unit of layer {k}",
        }
        if group.layer.clamped == "always":
            abouts["neuron"] = f"a unit of the input, layer {k}"
        for kind, about in abouts.items():
            cell = Cell(f"{kind}{suffix}", about)
            values: dict[str, dict[int, float]] = {}
            used: set[str] = set()
            for name in (n for n in wanted if of[n] == kind):
                used |= part.place(cell, name, clamped, values)
                if part.is_state(name, clamped):
                    self.states[f"g{k}", name] = cell.name
            if not cell.elements:
                continue
            own = {name for name in wanted if of[name] == kind}
            elsewhere = {
                name for other in wanted if of[other] != kind for name in part.uses(other, clamped)
            }
            shown = {n for n in own if n in outside or part.is_state(n, clamped) or n in elsewhere}
            cell.pins = sorted(shown | (used - own))
            cell.params = sorted(values)
            self.cells[cell.name] = cell
            for i in units:
                nodes = [part.node(name, i) for name in cell.pins]
                given = {name: by[i] for name, by in values.items()}
                self._instances.append((f"X{kind}{k}_{i}", cell.name, nodes, given))

    def _wanted(self, k: int, part: _Part, clamped: bool) -> tuple[list[str], set[str]]:
        """Return the variables that anybody needs, and those that are seen from outside."""
        outside = {"x"} & set(part.nodes)
        for link in self._links:
            outside |= link.asks(k)
        found = dict.fromkeys(n for n in part.nodes if part.is_state(n, clamped))
        found |= dict.fromkeys(n for n in part.nodes if n in outside)
        queue = list(found)
        while queue:
            for name in part.uses(queue.pop(), clamped):
                if name in part.nodes and name not in found:
                    found[name] = None
                    queue.append(name)
        return [name for name in part.nodes if name in found], outside

    # ---- arrays

    def _array(self, k: int, link: Connection) -> None:
        part = self._links[k]
        post, pre = self.plan.groups[link.post].units, self.plan.groups[link.pre].units
        synapse = Cell(f"synapse{k}", f"a synapse onto layer {k}: the weight, and what it sends")
        learning = Cell(f"learning{k}", f"what teaches a synapse onto layer {k}")
        in_synapse: dict[str, dict[tuple[int, int], float]] = {}
        in_learning: dict[str, dict[tuple[int, int], float]] = {}
        pins: dict[str, None] = {}
        for name in part.nodes:
            if part.is_state(name, False):
                self.states[f"m{k}", name] = synapse.name
                over = part.weights_tau(name)
                in_synapse[f"c_{name}"] = {
                    e: self.gm * (tau if isfinite(tau) else 1.0) for e, tau in over.items()
                }
                in_synapse[f"{name}_start"] = dict.fromkeys(over, 0.0)
                synapse.elements.append(Element("capacitor", name, learnt=True))
                pins[name] = None
                if any(map(isfinite, over.values())):
                    part.teach(learning, name, in_learning)
        for line in part.sums:
            node = part.read(line.text)
            pins |= dict.fromkeys((line.name, *part.named(node)))
            in_synapse |= part.values_of(node)
            in_synapse |= part.drawn(line.name, part.elements())
            synapse.elements.append(Element("current", line.name, node))
        synapse.pins, synapse.params = list(pins), sorted(in_synapse)
        self.cells |= {cell.name: cell for cell in (synapse, learning) if cell.elements}
        for i in range(post):
            for j in range(pre):
                for kind, cell, values in (
                    ("s", synapse, in_synapse),
                    ("l", learning, in_learning),
                ):
                    if cell.elements:
                        nodes = [part.wire(name, i, j) for name in cell.pins]
                        given = {name: by[i, j] for name, by in values.items()}
                        self._instances.append((f"X{kind}{k}_{i}_{j}", cell.name, nodes, given))

    # ---- text

    @property
    def slew(self) -> float:
        """What somas move at most in a second; 0: unlimited."""
        return self.macro.slew_rate if self.macro else 0.0

    def definitions(self) -> Iterator[str]:
        """Yield all cells."""
        if self.macro:
            yield from macro_cells(self.macro, self.dt)
        for cell in self.cells.values():
            yield cell.text(self.macro)

    def instances(self, starts: Mapping[str, float]) -> Iterator[str]:
        """Yield all instances; `starts` are the voltages of capacitors, by node."""
        for name, cell_name, nodes, values in self._instances:
            given = dict(values)
            pins = self.cells[cell_name].pins
            for param in given:
                if param.endswith("_start"):
                    given[param] = starts[nodes[pins.index(param.removesuffix("_start"))]]
            params = "".join(f" {param}={value!r}" for param, value in given.items())
            yield folded(f"{name} {' '.join(nodes)} {cell_name}{params}")

    def capacitors(self) -> Iterator[tuple[str, str, tuple[int, ...], str]]:
        """Yield part, variable, element and node of every state."""
        for part, name in self.states:
            k = int(part[1:])
            if part[0] == "g":
                for i in range(self.plan.groups[k].units):
                    if name != "x" or not self._clamped(k, i):
                        yield part, name, (i,), f"{name}{k}_{i}"
                continue
            link = self.plan.connections[k]
            for i in range(self.plan.groups[link.post].units):
                for j in range(self.plan.groups[link.pre].units):
                    yield part, name, (i, j), f"{name}{k}_{i}_{j}"

    def clamped_nodes(self) -> Iterator[tuple[int, int, str]]:
        """Yield layer, unit and node of everything that is held by a source."""
        for k, group in enumerate(self.plan.groups):
            for i in range(group.units):
                if self._clamped(k, i):
                    yield k, i, f"x{k}_{i}"


def _of_soma(name: str) -> bool:
    return name in SOMA or name.startswith("back_")


def _element(value: Tensor, chip: int, *element: int) -> float:
    """Return what fits (chip, 1, unit) or (chip, post, pre) of one device."""
    row = value[chip if len(value) > 1 else 0]
    place = (0, *element) if len(element) == 1 else element
    for index, size in zip(place, row.shape, strict=True):
        row = row[index if size > 1 else 0]
    return float(row)


class _Part:
    """The symbols of one layer, or of the synapses onto it."""

    def __init__(self, netlist: Netlist, part: str, of: Group | Connection) -> None:
        self.netlist, self.part, self.of = netlist, part, of
        self.k = int(part[1:])
        self.free = True
        own = {name for block in of.blocks for name in (*block.drawn, *block.variables)}
        lines = [line for line in equations(of.text) if line.name not in own]
        self.values: dict[str, Value] = dict(of.constants)
        self.values |= {"second": 1.0, "dt": netlist.dt, "learning_scale": 1.0} | dict(of.constants)
        self.values |= {
            name.removesuffix(f"@{part}"): value
            for name, value in netlist.fixed.items()
            if name.endswith(f"@{part}")
        }
        for block in of.blocks:
            refuse_block(block)
            self.values |= {**block.constants, **block.drawn}
        self.blocks = {block.place.result: block for block in of.blocks}
        self.lines = {
            line.name: line
            for line in lines
            if line.role != "sum" and line.name not in self.values and line.name != "t_before"
        }
        self.sums = [line for line in lines if line.role == "sum"]
        self._positions()
        given = {"free"}
        self.nodes = [name for name in self.lines if name not in given]
        self.inputs: dict[str, NoiseSource] = {}
        for block in of.blocks:
            for noise in block.noise:
                self._hear(NoiseSource(self.k, noise.variable, noise.key, noise.law))
        self._read: dict[str, Node] = {}

    def _hear(self, source: NoiseSource) -> None:
        self.inputs[source.variable] = source
        if source not in self.netlist.noise:
            self.netlist.noise.append(source)

    def _positions(self) -> None:
        """Places along a line, j/n, are numbers of each synapse."""
        if self.part[0] == "m":
            assert isinstance(self.of, Connection)
            groups = self.netlist.plan.groups
            self.shape = (groups[self.of.post].units, groups[self.of.pre].units)
            for name in {"column", "row"} & self.lines.keys():
                del self.lines[name]

    # ---- symbols

    def let_go(self, free: bool) -> None:
        """Write the equations of units that move, or of those that are clamped."""
        self.free = free
        self._read.clear()

    def resolved(self, name: str) -> Node:
        """Return a symbol: a number, a parameter of the cell, or a voltage."""
        if name == "free":
            return number(1.0 if self.free else 0.0)
        if name in ("column", "row") and self.part[0] == "m":
            return symbol(f"{{{name}}}")
        if name == "t":
            return symbol("time")
        if name == "t_before":
            return symbol("{t_before}")
        if (value := self.values.get(name)) is not None:
            if not isinstance(value, Tensor):
                return number(float(value))
            if value[0].numel() == 1:
                return number(float(value.flatten()[self.netlist.chip if len(value) > 1 else 0]))
            return symbol(f"{{{name}}}")
        return symbol(f"v({name})")

    def read(self, text: str, local: Mapping[str, Node] | None = None) -> Node:
        """Read an expression in the scope of this part."""
        bare = names(parse(text))
        known = {name: self.resolved(name) for name in bare} | dict(local or {})
        if self.part[0] == "m":
            known |= {name: self.delivered(name) for name in bare if name in self.blocks}
        return parse(text, known)

    def delivered(self, name: str) -> Node:
        """Return what hardware makes of a signal: all effects of one place in one expression."""
        if name not in self._read:
            # What has no memory but the time since its last use is used all the time.
            since = {held: number(self.netlist.dt) for held in self.blocks[name].memory.values()}
            local: dict[str, Node] = dict(since)
            for statement in self.blocks[name].code.splitlines():
                target, _, text = statement.partition(" = ")
                if target not in since:
                    local[target] = self.read(text, local)
            self._read[name] = local[name]
        return self._read[name]

    def named(self, node: Node) -> list[str]:
        """Return the voltages in an expression."""
        return sorted(n[2:-1] for n in names(node) if n.startswith("v("))

    def values_of(self, node: Node) -> dict[str, dict[tuple[int, int], float]]:
        """Return the parameters in an expression of synapses with their values."""
        found = sorted(n[1:-1] for n in names(node) if n.startswith("{") and n != "{t_before}")
        return {name: {e: self.at(name, *e) for e in self.elements()} for name in found}

    def elements(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(self.shape[0]) for j in range(self.shape[1])]

    def at(self, name: str, *element: int) -> float:
        """Return a value of one device."""
        if name in ("column", "row"):
            axis = 1 if name == "column" else 0
            return (element[axis] + 1) / self.shape[axis]
        value = self.values[name]
        if not isinstance(value, Tensor):
            return float(value)
        return _element(value, self.netlist.chip, *element)

    def asks(self, layer: int) -> set[str]:
        """Return which variables of a layer the synapses read or sum into."""
        assert isinstance(self.of, Connection)
        suffixes = [s for s, k in (("_post", self.of.post), ("_pre", self.of.pre)) if k == layer]
        texts = [line.text for line in self.sums] + [line.name for line in self.sums]
        texts += [line.text for line in self.lines.values() if line.text]
        texts += [text.partition(" = ")[2] for b in self.of.blocks for text in b.code.splitlines()]
        found = {name for text in texts for name in names(parse(text))}
        return {n.removesuffix(s) for s in suffixes for n in found if n.endswith(s)}

    def node(self, name: str, i: int) -> str:
        """Return the node of a variable of unit i."""
        return f"{name}{self.k}_{i}"

    def wire(self, name: str, i: int, j: int) -> str:
        """Return the node of a pin of synapse (i, j)."""
        assert isinstance(self.of, Connection)
        if name.endswith("_post"):
            return f"{name.removesuffix('_post')}{self.of.post}_{i}"
        if name.endswith("_pre"):
            return f"{name.removesuffix('_pre')}{self.of.pre}_{j}"
        return f"{name}{self.k}_{i}_{j}"

    # ---- elements

    def is_state(self, name: str, clamped: bool) -> bool:
        """Whether a variable is the voltage of a capacitor."""
        line = self.lines.get(name)
        return line is not None and line.role == "state" and not (clamped and name == "x")

    def uses(self, name: str, clamped: bool) -> set[str]:
        """Return the voltages that a variable is made of."""
        if (node := self._defined(name, clamped)) is None:
            return set()
        return set(self.named(node))

    def _defined(self, name: str, clamped: bool) -> Node | None:
        line = self.lines[name]
        if name in self.blocks:
            return self.delivered(name)
        if line.role == "value":
            return self.read(line.text)
        return self._force(line) if self.is_state(name, clamped) else None

    def _force(self, line: Equation) -> Node:
        """Return what pulls at a state: τ ds/dt."""
        text = NOISE.sub("", line.text)
        force, over = (self.read(each) for each in quotient(text))
        tau = self._reference(line.name)
        if tau is not over:
            force = apply("mul", force, apply("div", tau, over))
        if text != line.text:
            source = NoiseSource(
                self.k, f"xi_{line.name}", f"soma.{line.name}{self.k}", "normal", True
            )
            self._hear(source)
            size = apply("mul", tau, number(self.netlist.circuit.sigma_x / sqrt(self.netlist.dt)))
            force = apply("add", force, apply("mul", size, symbol(f"v({source.variable})")))
        return force

    def _reference(self, name: str) -> Node:
        """Return the time constant that makes the capacitor of a state."""
        line = self.lines[name]
        over = self.read(quotient(NOISE.sub("", line.text))[1])
        if over is number(1.0) and "tau_x" in self.values:  # dx/dt as hardware lets x move
            return self.resolved("tau_x")
        if line.text.endswith("_change/dt"):  # what hardware makes of a change, per step
            nominal = self.resolved("tau_w")
            return over if nominal.number == inf else nominal
        return over

    def _tau(self, name: str, *element: int) -> float:
        node = self._reference(name)
        known = {n: self.at(n[1:-1], *element) for n in names(node)}
        tau = evaluate(node, known)
        if isfinite(tau):
            self.netlist.taus.append(tau)
        return tau

    def drawn(
        self, name: str, elements: Sequence[Index], most: Mapping[Any, float] | None = None
    ) -> dict[str, dict[Any, float]]:
        """Return offset and limit of the transconductors of a node, by device."""
        macro = self.netlist.macro
        if not macro:
            return {}
        shape = (1, *((1, len(elements)) if self.part[0] == "g" else self.shape))
        like = torch.zeros(shape, dtype=torch.float64)
        source = Seeded(macro.seed, [self.netlist.chip])
        drawn = source.draw(f"macro.{name}.{self.part}", "normal", like, 0) * macro.offset
        offsets = dict(zip(elements, drawn.flatten().tolist(), strict=True))
        by = {e[0] if self.part[0] == "g" else e: value for e, value in offsets.items()}
        return {f"os_{name}": by} | ({f"most_{name}": dict(most)} if most else {})

    def place(
        self, cell: Cell, name: str, clamped: bool, values: dict[str, dict[int, float]]
    ) -> set[str]:
        """Put what makes a variable into a cell; return the voltages that it uses."""
        assert isinstance(self.of, Group)
        units = range(self.of.units)
        node = self._defined(name, clamped)
        used = set()
        if self.is_state(name, clamped):
            taus = {i: self._tau(name, i) for i in units}
            lasting = not any(map(isfinite, taus.values()))
            gm = self.netlist.gm
            values[f"c_{name}"] = {i: gm * (1.0 if lasting else t) for i, t in taus.items()}
            values[f"{name}_start"] = dict.fromkeys(units, 0.0)
            cell.elements.append(Element("capacitor", name, learnt=name == "b"))
            if lasting:
                return {name}
            assert node is not None
            slew = self.netlist.slew if name == "x" else 0.0
            most = {i: slew * tau for i, tau in taus.items()} if slew else None
            values |= self.drawn(name, [(i,) for i in units], most)
            cell.elements.append(Element("current", name, node, limited=bool(most)))
        elif node is not None:
            cell.elements.append(Element("value", name, node))
        elif name != "x":  # a sum: synapses send their currents here
            cell.elements.append(Element("sum", name))
        if node is not None:
            used |= set(self.named(node))
            for param in sorted(n[1:-1] for n in names(node) if n.startswith("{")):
                if param != "t_before":
                    values[param] = {i: self.at(param, i) for i in units}
        return used | {name}

    def weights_tau(self, name: str) -> dict[tuple[int, int], float]:
        """Return the time constant of every weight; infinite where nothing is learnt."""
        return {element: self._tau(name, *element) for element in self.elements()}

    def teach(self, cell: Cell, name: str, values: dict[str, dict[tuple[int, int], float]]) -> None:
        """Put what moves a weight into the cell that teaches it."""
        node = self._force(self.lines[name])
        values |= self.values_of(node)
        cell.pins = sorted({*cell.pins, *self.named(node), name})
        values |= self.drawn(name, self.elements())
        cell.params = sorted(values)
        cell.elements.append(Element("current", name, node))


def refuse_plan(plan: Plan, circuit: Circuit) -> None:
    """Refuse what a netlist has no elements for, by name."""
    for name in ("delay_err", "delay_fb", "look_soma"):
        if getattr(circuit, name):
            raise UnsupportedError(
                f"{WHO}: circuit.{name}: values of whole past steps have no netlist; set it to 0"
            )
    if circuit.transport == "sign":
        raise UnsupportedError(
            f"{WHO}: circuit.transport 'sign': the size of a whole array is no local signal; use "
            f"'shared', 'random' or 'kolen_pollack'"
        )
    for k, group in enumerate(plan.groups):
        if group.layer.categorical or group.layer.shares_rates:
            what = "energy categorical" if group.layer.categorical else "f 'softmax' of its rates"
            raise UnsupportedError(
                f"{WHO}: network node {k}: {what}: a softmax over a layer has no cell here; use a "
                f"Gaussian energy"
            )
        if group.after:
            raise UnsupportedError(
                f"{WHO}: network node {k}: energy.learned: the floor of a variance acts after "
                f"steps, which a netlist does not have; use a fixed variance"
            )


def refuse_block(block: Block) -> None:
    """Refuse effects that remember or draw at every synapse, by name."""
    site = block.place.site
    for key in block.memory:
        if key.startswith("since."):
            continue
        raise UnsupportedError(
            f"{WHO}: hardware {key.split('.')[0]!r} at {site}: it remembers from clock to clock, "
            f"which a netlist without a clock cannot; leave it out, or use run.engine 'native'"
        )
    if block.noise and len(block.shape) == 2:
        raise UnsupportedError(
            f"{WHO}: hardware {block.noise[0].key.split('.')[0]!r} at {site}: noise of every "
            f"synapse in every step would be a source each; leave it out, or use run.engine "
            f"'native'"
        )
