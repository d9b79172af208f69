"""From a plan to a netlist: states and weights on capacitors, equations as B-sources.

    C dx/dt = gm·force,  C = gm·tau         a state is the voltage of a capacitor, 1 V per unit
    x = expression                          a value is a voltage source
    mu = Σ w r                              a sum is the current of all synapses into 1/gm

Every layer has a cell for its neurons and one for their error dendrites, every array one for its
synapses and one for what teaches them. What was drawn for one device is a parameter of its cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from pcsim.circuit import Circuit
from pcsim.circuits.plan import Connection, Group, Plan
from pcsim.spice.elements import GM, Cell, Element, NoiseSource, folded
from pcsim.spice.macro import cells as macro_cells
from pcsim.spice.macro import lag
from pcsim.spice.part import Part, Value
from pcsim.spice.refusals import refuse_plan
from pcsim.spice_settings import Macro

SOMA = {"x", "r", "fired", "slope", "x_seen", "speed", "force", "fb", "fb_line"}
SOMA |= {"td", "apical_in", "v_apical", "v_apical_seen"}
"""What stands in the cell of a neuron; all else of a layer is its error dendrite."""


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
        self._links = [Part(self, f"m{k}", link) for k, link in enumerate(plan.connections)]
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
        part = Part(self, f"g{k}", group)
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
        self, k: int, group: Group, part: Part, clamped: bool, units: Sequence[int]
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

    def _wanted(self, k: int, part: Part, clamped: bool) -> tuple[list[str], set[str]]:
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
