"""The equations of one layer, or of the synapses onto it, as elements of their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, sqrt
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pcsim.circuits.plan import Connection, Group
from pcsim.circuits.products import quotient
from pcsim.circuits.text import Equation, equations
from pcsim.continuous.plan_program import NOISE
from pcsim.native.formula import Node, apply, evaluate, names, number, parse, symbol
from pcsim.spice.elements import Cell, Element, NoiseSource
from pcsim.spice.refusals import refuse_block
from pcsim.substrate import Seeded

if TYPE_CHECKING:
    from pcsim.spice.netlist import Netlist

Value = float | Tensor
Index = tuple[int, ...]


def _element(value: Tensor, chip: int, *element: int) -> float:
    """Return what fits (chip, 1, unit) or (chip, post, pre) of one device."""
    row = value[chip if len(value) > 1 else 0]
    place = (0, *element) if len(element) == 1 else element
    for index, size in zip(place, row.shape, strict=True):
        row = row[index if size > 1 else 0]
    return float(row)


class Part:
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
        """Return post and pre of every synapse."""
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
