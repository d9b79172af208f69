"""A plan bound to torch: which rule gives each symbol, what moves, what learns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from pcsim.circuits.plan import LEARNING, Connection, Group, Plan
from pcsim.circuits.products import Term, coefficient, quotient, terms
from pcsim.circuits.text import Equation, equations
from pcsim.continuous.flow import Tau
from pcsim.continuous.plan_rules import (
    Outer,
    Part,
    Product,
    Rule,
    delivered,
    expression,
    over_the_layer,
    positions,
    shared_by_samples,
    summed,
)
from pcsim.errors import UnsupportedError
from pcsim.kernels.samples import Trains
from pcsim.substrate.effect import DOWN
from pcsim.substrate.transform import Transform

if TYPE_CHECKING:
    from pcsim.continuous.plan_flow import PlanFlow

BESIDE = {"b": "w", "b_inter": "w_inter"}
"""What stands beside the units, and the array it belongs to."""
LABELS = {"x": ("x", 0), "u": ("u", 0), "err": ("err", 0), "inter": ("inter", 1)}
LABELS |= {"v_apical": ("apical", 0)}
"""How variables are called from outside: interneurons by the layer whose they are."""
NOISE = re.compile(r" \+ (?:free\*)?sigma_x\*xi\w*$")
ORDER = {"inter": 0, "v_apical": 1, "err": 2, "x": 3}
"""The order in which forces are listed within a layer."""


@dataclass(frozen=True, eq=False)
class Motion:
    """τ ds/dt = value of one state."""

    label: str
    state: str
    value: Rule
    tau: Tau
    leaky: bool
    noisy: bool


@dataclass(frozen=True, eq=False)
class Plastic:
    """What moves one array: outer products, through its devices where it has any."""

    layer: int
    name: str
    change: tuple[Outer, ...]
    write: Transform | None
    symbols: dict[str, Rule]
    trains: Trains | None
    each: bool
    """Whether devices are told what single samples ask for downwards."""

    def factors(self) -> list[Product]:
        """Return the factors of the products that move the array, at the present state."""
        return [outer.at_present() for outer in self.change]


class Program:
    """A plan with its symbols bound to the tensors of a flow, for one set of clamped layers."""

    def __init__(self, flow: PlanFlow, plan: Plan, holds: Sequence[str], nudged: float) -> None:
        self.flow, self.plan, self.holds = flow, plan, holds
        constants = [flow.constants_of(k, group) for k, group in enumerate(plan.groups)]
        self.layers = [Part(known | {"free": 1.0, "nudged": nudged}) for known in constants]
        self.maps = [Part({**link.constants, **flow.always}) for link in plan.connections]
        self.lines = [equations(group.text) for group in plan.groups]
        self.motions: list[Motion] = []
        self.beside: list[tuple[int, str, Rule]] = []
        self.plastic: list[Plastic] = []
        for k, link in enumerate(plan.connections):
            self._read_synapses(k, link)
        for inner in plan.within:
            self._read_within(inner.layer, inner.text, ring=bool(inner.delay))
        for k, group in enumerate(plan.groups):
            self._read_layer(k, group)
        for k, link in enumerate(plan.connections):
            self._learn_synapses(k, link)
        self.residuals = [
            self.layers[k].formula(flow.page.residual)
            for k, group in enumerate(plan.groups)
            if group.layer.predicted_by != "nothing" and group.layer.clamped != "always"
        ]
        self.shown = [
            (k, line.name)
            for k, lines in enumerate(self.lines)
            for line in lines
            if line.name in flow.page.shown and line.role == "value"
        ]
        self.rest = [flow.page.rest(flow.circuit, group.layer) for group in plan.groups]

    def forget(self) -> None:
        """Let everything be evaluated anew."""
        for part in (*self.layers, *self.maps):
            part.now.clear()

    # -- layers ------------------------------------------------------------------------------

    def _read_layer(self, k: int, group: Group) -> None:
        part, flow = self.layers[k], self.flow
        for place in group.places:
            hook = flow.hook(place.site, place.layer, (group.units,), place.array)
            signal = part.formula(place.signal)
            symbols = {name: part.formula(text) for name, text in place.symbols.items()}
            part.rules[place.result] = delivered(hook, signal, symbols)
        moves = []
        for line in self.lines[k]:
            if line.role == "value":
                part.rules[line.name] = part.formula(line.text)
            elif line.role == "state" and line.name in BESIDE:
                part.rules[line.name] = flow.read_beside(k, line.name)
                self.beside.append((k, line.name, part.formula(line.text)))
            elif line.role == "state" or line.name in ("x", "target"):
                part.rules[line.name] = flow.read_state(k, line.name)
                held = line.name == "x" and self.holds[k] == "clamped"
                if line.role == "state" and not held:
                    moves.append(line)
        for line in sorted(moves, key=lambda line: ORDER[line.name]):
            self.motions.append(self._motion(k, line))

    def _motion(self, k: int, line: Equation) -> Motion:
        """Split ds/dt = force/over into a value and a time constant with ∂value/∂s = −1."""
        part, text = self.layers[k], NOISE.sub("", line.text)
        force, over = quotient(text)
        label, noisy = label_of(k, line.name), text != line.text
        known = part.constants
        if "velocity" in {place.site for place in self.plan.groups[k].places} and over == "second":
            tau = known["tau_x"]
            speed = part.formula(force)
            return Motion(label, line.name, lambda: speed() * tau, tau, True, noisy)
        leak = coefficient(force, line.name)
        tau = expression(over).bind(known)({})
        size = 0.0 if leak is None else -expression(leak).bind(known)({})
        if not isinstance(size, Tensor) and size == 0:
            return Motion(label, line.name, part.formula(force), tau, False, noisy)
        value = part.formula(force)
        if not isinstance(size, Tensor) and size == 1:
            return Motion(label, line.name, value, tau, True, noisy)
        return Motion(label, line.name, lambda: value() / size, tau / size, True, noisy)

    # -- synapses ----------------------------------------------------------------------------

    def _read_synapses(self, k: int, link: Connection) -> None:
        part, flow = self.maps[k], self.flow
        lines = equations(link.text)
        arrays = {line.name for line in lines if line.role != "sum"}
        shape = (self.plan.groups[link.post].units, self.plan.groups[link.pre].units)
        for name in arrays & set(flow.arrays):
            part.rules[name] = flow.read_array(k, name)
        for name, axis in (("column", 1), ("row", 0)):
            if name in arrays:
                part.constants[name] = positions(shape, axis, flow.params.flat)
        for place in link.places:
            if place.site == "weight":
                hook = flow.hook(place.site, place.layer, shape, place.array)
                part.rules[place.result] = delivered(hook, self._of_synapses(k, place.signal), {})
        for line in lines:
            if line.role == "sum":
                target, _, side = line.name.rpartition("_")
                onto = self.layers[link.post if side == "post" else link.pre]
                found = [self._bound(k, term) for term in terms(line.text, arrays)]
                onto.rules[target] = summed(found, side, "largest" in line.flags)

    def _of_synapses(self, k: int, text: str) -> Rule:
        """Return an expression of synapses that may use what their post neurons share."""
        part, post = self.maps[k], self.layers[k]
        for name in expression(text).names:
            if name.endswith("_post"):
                part.rules[name] = shared_by_samples(post, name.removesuffix("_post"))
        return part.formula(text)

    def _bound(self, k: int, term: Term) -> Outer:
        part, link = self.maps[k], self.plan.connections[k]
        gain = expression(term.constant).bind(part.constants)({})
        assert not isinstance(gain, Tensor)

        def rule(text: str, owner: Part) -> Rule | None:
            if text == "1":
                return None
            known = {n: v for n, v in part.constants.items() if n not in owner.constants}
            names = expression(text).names
            if names <= set(owner.constants) | set(known):
                fixed = expression(text).bind(known | owner.constants)({})
                return lambda: fixed
            missing = {n: known[n] for n in names & set(known)}
            owner.constants.update(missing)
            return owner.formula(text)

        pre, post = self.layers[link.pre], self.layers[link.post]
        return Outer(gain, rule(term.synapse, part), rule(term.pre, pre), rule(term.post, post))

    def _learn_synapses(self, k: int, link: Connection) -> None:
        flow, part = self.flow, self.maps[k]
        lines = equations(link.text)
        arrays = {line.name for line in lines if line.role != "sum"}
        shape = (self.plan.groups[link.post].units, self.plan.groups[link.pre].units)
        writes = {place.result: place for place in link.places if place.site == "write"}
        for line in lines:
            if line.role != "state":
                continue
            place = writes.get(f"{line.name}_change")
            text = line.text if place is None else f"({place.signal})/dt"
            trains = flow.trains(k, shape, LEARNING.get(line.name, line.name))
            products = terms(text, arrays, apart=trains is not None)
            change = tuple(self._bound(k, term) for term in products)
            hook, symbols, each = None, {}, False
            if place is not None:
                hook = flow.hook(place.site, place.layer, shape, place.array)
                each = any(piece.effect.uses(DOWN) for piece in hook.parts)
                known = {name: text for name, text in place.symbols.items() if name != DOWN}
                symbols = {name: part.formula(text) for name, text in known.items()}
            self.plastic.append(Plastic(k, line.name, change, hook, symbols, trains, each))

    def _read_within(self, k: int, text: str, *, ring: bool) -> None:
        if ring:
            raise UnsupportedError(
                f"circuit.kind {self.flow.circuit.kind}: delay lines have no place here"
            )
        for line in equations(text):
            if line.role == "sum":
                target, source = line.name.removesuffix("_post"), line.text
                bare = self.layers[k].formula(re.sub(r"_pre\b", "", source))
                self.layers[k].rules[target] = over_the_layer(bare)


def label_of(k: int, name: str) -> str:
    """Return how a variable of layer k is called from outside."""
    label, shift = LABELS[name]
    return f"{label}{k + shift}"


def layer_of(label: str, name: str) -> int:
    """Return the layer in whose group a variable stands."""
    return int(label.removeprefix(LABELS[name][0])) - LABELS[name][1]


def listed(name: str) -> tuple[int, int]:
    """Return where a variable stands in a list, by its name from outside."""
    kinds = ("x", "u", "err", "inter", "apical")
    label = name.rstrip("0123456789")
    return kinds.index(label), int(name.removeprefix(label))
