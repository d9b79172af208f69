"""Any circuit in motion, from its equations alone: a `Plan`, executed by torch.

A symbol of a layer is a state, a constant, a value with an expression, a sum over synapses, or what
hardware delivers at a place. Each is evaluated when somebody first asks for it in a time step, and
once. Sums over synapses become matrix products (see `pcsim.circuits.products`).

States have the axes (chip, sample, unit), arrays (chip, post, pre). What stands beside the units
but belongs to the arrays (biases) is (chip, unit): it sums what it learns over the samples.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits.conductances import conductances
from pcsim.circuits.kinds import PAGES
from pcsim.circuits.layer import Layer
from pcsim.circuits.plan import LEARNING, PER_UNIT, Connection, Group, Plan
from pcsim.circuits.products import Term, coefficient, quotient, terms
from pcsim.circuits.text import Equation, equations, to_text
from pcsim.continuous.flow import Force, Tau, clamped, reference, set_moving
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import Encoder, fabricated
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.samples import Trains
from pcsim.kernels.transport import Feedback
from pcsim.network import Mode, Network
from pcsim.substrate import Chips
from pcsim.substrate.effect import DOWN, TRAINS
from pcsim.substrate.expression import Expression, Value
from pcsim.substrate.transform import Transform

BESIDE = {"b": "w", "b_inter": "w_inter"}
"""What stands beside the units, and the array it belongs to."""
LABELS = {"x": ("x", 0), "u": ("u", 0), "err": ("err", 0), "inter": ("inter", 1)}
LABELS |= {"v_apical": ("apical", 0)}
"""How variables are called from outside: interneurons by the layer whose they are."""
NOISE = re.compile(r" \+ (?:free\*)?sigma_x\*xi\w*$")
ORDER = {"inter": 0, "v_apical": 1, "err": 2, "x": 3}
"""The order in which forces are listed within a layer."""
Rule = Callable[[], Value]


@lru_cache(maxsize=4096)
def _expression(text: str) -> Expression:
    return Expression(text)


@dataclass(eq=False)
class _Part:
    """The symbols of one layer, or of the synapses onto it."""

    constants: dict[str, Value]
    rules: dict[str, Rule] = field(default_factory=dict)
    now: dict[str, Value] = field(default_factory=dict)
    """What is known at the present state."""

    def value(self, name: str) -> Value:
        """Return a symbol at the present state."""
        found = self.now.get(name)
        if found is None:
            found = self.now[name] = self.rules[name]()
        return found

    def tensor(self, name: str) -> Tensor:
        """Return a symbol that is a tensor."""
        found = self.value(name)
        assert isinstance(found, Tensor)
        return found

    def formula(self, text: str) -> Rule:
        """Return what evaluates an expression here; constants are folded now."""
        names = _expression(text).names
        if len(names) == 1 and text in names and text not in self.constants:
            return lambda: self.value(text)
        bound = _expression(text).bind({n: self.constants[n] for n in names & set(self.constants)})
        needed = tuple(names - set(self.constants))
        return lambda: bound({name: self.value(name) for name in needed})


@dataclass(frozen=True, eq=False)
class _Motion:
    """τ ds/dt = value of one state."""

    label: str
    state: str
    value: Rule
    tau: Tau
    leaky: bool
    noisy: bool


@dataclass(frozen=True, eq=False)
class _Outer:
    """c·S·A·B of one array: S of the synapses, A and B of the neurons; None is 1."""

    gain: float
    synapse: Rule | None
    pre: Rule | None
    post: Rule | None


class _Product(NamedTuple):
    """The same at one state."""

    gain: float
    synapse: Tensor | None
    pre: Tensor | None
    post: Tensor | None


@dataclass(frozen=True, eq=False)
class _Plastic:
    """What moves one array: outer products, through its devices where it has any."""

    layer: int
    name: str
    change: tuple[_Outer, ...]
    write: Transform | None
    symbols: dict[str, Rule]
    trains: Trains | None
    each: bool
    """Whether devices are told what single samples ask for downwards."""


class _Program:
    """A plan with its symbols bound to the tensors of a flow, for one set of clamped layers."""

    def __init__(self, flow: PlanFlow, plan: Plan, holds: Sequence[str], nudged: float) -> None:
        self.flow, self.plan, self.holds = flow, plan, holds
        made = [flow.constants_of(k, group) for k, group in enumerate(plan.groups)]
        self.layers = [_Part(known | {"free": 1.0, "nudged": nudged}) for known in made]
        self.maps = [_Part({**link.constants, **flow.always}) for link in plan.connections]
        self.lines = [equations(group.text) for group in plan.groups]
        self.motions: list[_Motion] = []
        self.beside: list[tuple[int, str, Rule]] = []
        self.plastic: list[_Plastic] = []
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
            part.rules[place.result] = _delivered(hook, signal, symbols)
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

    def _motion(self, k: int, line: Equation) -> _Motion:
        """Split ds/dt = force/over into a value and a time constant with ∂value/∂s = −1."""
        part, text = self.layers[k], NOISE.sub("", line.text)
        force, over = quotient(text)
        label, noisy = label_of(k, line.name), text != line.text
        known = part.constants
        if "velocity" in {place.site for place in self.plan.groups[k].places} and over == "second":
            tau = known["tau_x"]
            speed = part.formula(force)
            return _Motion(label, line.name, lambda: speed() * tau, tau, True, noisy)
        leak = coefficient(force, line.name)
        tau = _expression(over).bind(known)({})
        size = 0.0 if leak is None else -_expression(leak).bind(known)({})
        if not isinstance(size, Tensor) and size == 0:
            return _Motion(label, line.name, part.formula(force), tau, False, noisy)
        value = part.formula(force)
        if not isinstance(size, Tensor) and size == 1:
            return _Motion(label, line.name, value, tau, True, noisy)
        return _Motion(label, line.name, lambda: value() / size, tau / size, True, noisy)

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
                part.constants[name] = _positions(shape, axis, flow.params.flat)
        for place in link.places:
            if place.site == "weight":
                hook = flow.hook(place.site, place.layer, shape, place.array)
                part.rules[place.result] = _delivered(hook, self._of_synapses(k, place.signal), {})
        for line in lines:
            if line.role == "sum":
                target, _, side = line.name.rpartition("_")
                onto = self.layers[link.post if side == "post" else link.pre]
                found = [self._bound(k, term) for term in terms(line.text, arrays)]
                onto.rules[target] = _summed(found, side, "largest" in line.flags)

    def _of_synapses(self, k: int, text: str) -> Rule:
        """Return an expression of synapses that may use what their post neurons share."""
        part, post = self.maps[k], self.layers[k]
        for name in _expression(text).names:
            if name.endswith("_post"):
                part.rules[name] = _shared_by_samples(post, name.removesuffix("_post"))
        return part.formula(text)

    def _bound(self, k: int, term: Term) -> _Outer:
        part, link = self.maps[k], self.plan.connections[k]
        gain = _expression(term.constant).bind(part.constants)({})
        assert not isinstance(gain, Tensor)

        def rule(text: str, owner: _Part) -> Rule | None:
            if text == "1":
                return None
            known = {n: v for n, v in part.constants.items() if n not in owner.constants}
            names = _expression(text).names
            if names <= set(owner.constants) | set(known):
                fixed = _expression(text).bind(known | owner.constants)({})
                return lambda: fixed
            missing = {n: known[n] for n in names & set(known)}
            owner.constants.update(missing)
            return owner.formula(text)

        pre, post = self.layers[link.pre], self.layers[link.post]
        return _Outer(gain, rule(term.synapse, part), rule(term.pre, pre), rule(term.post, post))

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
            self.plastic.append(_Plastic(k, line.name, change, hook, symbols, trains, each))

    def _read_within(self, k: int, text: str, *, ring: bool) -> None:
        if ring:
            raise UnsupportedError(
                f"circuit.kind {self.flow.circuit.kind}: delay lines have no place here"
            )
        for line in equations(text):
            if line.role == "sum":
                target, source = line.name.removesuffix("_post"), line.text
                bare = self.layers[k].formula(re.sub(r"_pre\b", "", source))
                self.layers[k].rules[target] = _over_the_layer(bare)


class PlanFlow:
    """A chain of dense layers whose circuit is known by its equations alone."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        circuit: Circuit,
        mode: Mode,
        *,
        dt: float,
        seeds: list[int],
        scale: float = 1.0,
        tau_x: Sequence[Tau] | None = None,
        chips: Chips | None = None,
    ) -> None:
        """`params` holds θ at the start, and the arrays in physical units from then on."""
        self.network, self.params, self.circuit, self.mode = network, params, circuit, mode
        self.page, self.scale, self.chips = PAGES[circuit.kind], scale, chips
        self.top = len(network.nodes) - 1
        self.always = {"dt": dt, "second": 1.0}
        self._plans: dict[Mode, Plan] = {}
        self.plan(mode)
        self._programs: dict[tuple[Mode, tuple[str, ...], float], _Program] = {}
        self._hooks: dict[tuple[str, int, str], Transform] = {}
        self._trains: dict[tuple[int, str], Trains] = {}
        self._encode = Encoder(chips, network, mode == "supervised")
        self.fabricated = self._fabricate(tau_x)
        """What every unit has as it was made, by name and layer."""
        self._feedback = Feedback(circuit.transport, params, seeds, circuit.feedback_gain)
        self.arrays = self._first_arrays(seeds)
        """All arrays by name, each in the layout of the parameters."""
        self.of = {name: params.views(flat) for name, flat in self.arrays.items()}
        everything = to_text(self.page.synapses(circuit, Layer(sends_feedback=True)))
        learning = {line.name for line in equations(everything) if line.role == "state"}
        own = {*learning, *self.page.drawn(circuit, params, [])}
        self._learning = [name for name in self.arrays if name in own]
        self.weights = [self.arrays[name] for name in self._learning]
        self._state: dict[tuple[int, str], Tensor] = {}
        self._target: Tensor | None = None
        self._residuals: list[Tensor] = []
        self._seen: dict[str, Tensor] = {}
        self.holds: tuple[str, ...] = network.holds(mode)
        self._hook_all(self.plan(mode))

    def plan(self, mode: Mode) -> Plan:
        """Return all equations, as they are in a mode."""
        if mode not in self._plans:
            self._plans[mode] = Plan.of(
                self.network,
                self.circuit,
                mode,
                scale=self.scale,
                chips=self.chips,
                who=f"circuit.kind {self.circuit.kind}",
                written=False,
                unheard=True,
                trains=True,
            )
        return self._plans[mode]

    def _fabricate(self, tau_x: Sequence[Tau] | None) -> dict[str, list[Value]]:
        """Return what every unit has as it was made, by name and layer."""
        circuit, count = self.circuit, self.top + 1
        given = list(tau_x) if tau_x is not None else [circuit.tau_x] * count
        found = {"tau_x": fabricated(self.chips, "tau_x", self.network, given)}
        for site, name in PER_UNIT.items():
            if self.chips and site in self.chips.substrate.sites:
                known = [
                    conductances(circuit, k) | {name: getattr(circuit, name, 0.0)}
                    if name.startswith("tau_")
                    else conductances(circuit, k)
                    for k in range(count)
                ]
                nominal = [values[name] for values in known]
                found[name] = fabricated(self.chips, site, self.network, nominal)
        return found

    def _first_arrays(self, seeds: list[int]) -> dict[str, Tensor]:
        """Return all arrays with their first values; θ is divided where it is stored so."""
        params, found = self.params, {"w": self.params.flat}
        own = self.page.drawn(self.circuit, params, seeds)
        found |= {name: params.flat.clone() for name in self.page.divided if name != "w"}
        for name, constant in self.page.divided.items():
            for k, views in enumerate(params.views(found[name])[: self.top]):
                for array in views.values():
                    array.div_(conductances(self.circuit, k)[constant])
        found |= own
        if self._feedback.flat is not None and self.circuit.transport != "sign":
            found["w_fb"] = self._feedback.flat
        return found

    # -- what a program is bound to ------------------------------------------------------------

    def constants_of(self, k: int, group: Group) -> dict[str, Value]:
        """Return the constants of a layer, as they were made."""
        own = {name: values[k] for name, values in self.fabricated.items()}
        return {**group.constants, **self.always, **own}

    def _hook_all(self, plan: Plan) -> None:
        """Make what hardware does at all places now: a checkpoint finds every memory."""
        for group in plan.groups:
            for place in group.places:
                self.hook(place.site, place.layer, (group.units,), place.array)
        for link in plan.connections:
            shape = (plan.groups[link.post].units, plan.groups[link.pre].units)
            for place in link.places:
                if place.site in ("weight", "write"):
                    self.hook(place.site, place.layer, shape, place.array)

    def hook(self, site: str, layer: int, shape: tuple[int, ...], array: str) -> Transform:
        """Return what hardware does at a place; one object however often it is asked for."""
        key = (site, layer, array)
        if key not in self._hooks:
            assert self.chips
            made = self.chips.transform(site, layer, shape, array)  # type: ignore[arg-type]
            assert made
            self._hooks[key] = made
        return self._hooks[key]

    def trains(self, k: int, shape: tuple[int, int], array: str) -> Trains | None:
        """Return the pulses of the rows and columns of an array, where they send any."""
        if self.chips is None or not self.chips.substrate.sites & set(TRAINS):
            return None
        if (k, array) not in self._trains:
            self._trains[k, array] = Trains(self.chips, k, shape, array)
        return self._trains[k, array]

    def read_state(self, k: int, name: str) -> Rule:
        """Return what reads a state, or the target of the output."""
        if name == "target":
            return lambda: 0.0 if self._target is None else self._target
        return lambda: self._state[k, name]

    def read_beside(self, k: int, name: str) -> Rule:
        """Return what reads a bias, for all samples."""
        views = self.of[BESIDE[name]][k]
        return lambda: views["b"].unsqueeze(1)

    def read_array(self, k: int, name: str) -> Rule:
        """Return what reads an array (chip, post, pre) as it is stored."""
        views = self.of[name][k]
        return lambda: views["w"]

    # -- the flow ------------------------------------------------------------------------------

    @property
    def feedback(self) -> Feedback | None:
        """Feedback weights, where the circuit has a choice of transport."""
        if "w_down" in self.arrays:
            return None
        self._feedback.refresh()
        return self._feedback

    def bind_anew(self) -> None:
        """Take up constants of a plan that were changed."""
        self._programs = {}

    @property
    def _program(self) -> _Program:
        mode: Mode = self.mode if self.holds[-1] == "clamped" else "generative"
        nudged = float(self._target is not None)
        key = (mode, self.holds, nudged)
        if key not in self._programs:
            self._programs[key] = _Program(self, self.plan(mode), self.holds, nudged)
        return self._programs[key]

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data; free states keep their values (or start at zero)."""
        self._clamp(self._encode(clamps))

    def _clamp(self, clamps: Sequence[Tensor | None]) -> None:
        """Clamp data as the chips receive it."""
        kept = {k: self._state[k, "x"] for k in range(self.top + 1) if (k, "x") in self._state}
        like = reference(clamps, list(kept.values()))
        chips, samples = self.params.replicas, like.shape[1]
        if kept and kept[0].shape[1] != samples:
            kept, self._state = {}, {}
        given = list(clamps)
        if self.page.output_fires:  # the output has a target, and is never clamped
            self._target, given[0] = given[0], None
            if given[-1] is None:
                raise UnsupportedError(
                    f"circuit.kind {self.circuit.kind}: the input must be clamped"
                )
        self.holds = tuple("free" if clamp is None else "clamped" for clamp in given)
        for k, (clamp, node) in enumerate(zip(given, self.network.nodes, strict=True)):
            if clamp is not None:
                self._state[k, "x"] = clamp.expand(chips, -1, -1)
            elif k in kept:
                shared = kept[k].stride(0) == 0 and chips > 1
                self._state[k, "x"] = kept[k].clone() if shared or self._clamped(k) else kept[k]
            else:
                self._state[k, "x"] = like.new_zeros(chips, samples, node.units)
        self._was_clamped = tuple(hold == "clamped" for hold in self.holds)
        for motion, k in self._motions():
            if (k, motion.state) not in self._state:
                shape = (chips, samples, self.network.nodes[k].units)
                self._state[k, motion.state] = like.new_zeros(shape)
        self._seen = {}
        self._program.forget()

    _was_clamped: tuple[bool, ...] = ()

    def _clamped(self, k: int) -> bool:
        """Return whether layer k held data before: somebody else's tensor."""
        return bool(self._was_clamped) and self._was_clamped[k]

    def _motions(self) -> list[tuple[_Motion, int]]:
        return [(motion, layer_of(motion.label, motion.state)) for motion in self._program.motions]

    def feedforward(self) -> None:
        """Set free somas to their prediction, the other parts to their rest there."""
        program = self._program
        program.forget()
        for k in reversed(range(self.top)):
            if self.holds[k] == "free" and "x" in program.rest[k]:
                value = program.layers[k].formula(program.rest[k]["x"])()
                self._state[k, "x"].copy_(_tensor(value))
                program.layers[k].now.clear()
        moving = {(k, motion.state) for motion, k in self._motions()}
        for name in dict.fromkeys(name for rest in program.rest for name in rest if name != "x"):
            for k, rest in enumerate(program.rest):
                if name in rest and (k, name) in moving:
                    value = program.layers[k].formula(rest[name])()
                    self._state[k, name].copy_(torch.as_tensor(value))
                    program.layers[k].now.pop(name, None)
        program.forget()

    def forces(self) -> list[Force]:
        """Return the force on every state that moves."""
        program = self._program
        program.forget()
        forces = [
            Force(
                motion.label,
                self._state[k, motion.state],
                _tensor(motion.value()),
                motion.tau,
                motion.leaky,
                motion.noisy,
            )
            for motion, k in self._motions()
        ]
        # What is looked at later belongs to this state, not to the one that it leads to.
        self._residuals = [_tensor(rule()) for rule in program.residuals]
        self._seen = {
            label_of(k, name): program.layers[k].tensor(name) for k, name in program.shown
        }
        return forces

    def value(self, k: int, name: str) -> Value:
        """Return a symbol of layer k, as it is at the last `forces` or else at present."""
        return self._program.layers[k].value(name)

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt, as the devices take it."""
        program = self._program
        moves = [(plastic, self._factors(plastic)) for plastic in program.plastic]
        beside = [(k, name, _tensor(rate()).sum(1)) for k, name, rate in program.beside]
        for plastic, factors in moves:
            array = self.of[plastic.name][plastic.layer]["w"]
            if plastic.trains:
                factors = [_as_pulses(product, plastic.trains, dt) for product in factors]
            if plastic.write is None:
                _add_products(array, factors, dt)
                continue
            asked = _add_products(torch.zeros_like(array), factors, dt)
            known = {name: rule() for name, rule in plastic.symbols.items()}
            if plastic.each:
                without_sign = [_without_sign(product) for product in factors]
                gross = _add_products(torch.zeros_like(array), without_sign, dt)
                known[DOWN] = ((gross - asked) / 2).clamp_(min=0)
            array.add_(plastic.write(asked, **known))
        for k, name, rate in beside:
            self.of[BESIDE[name]][k]["b"].add_(rate, alpha=dt)
        if self.chips:
            self.chips.advance()

    def _factors(self, plastic: _Plastic) -> list[_Product]:
        """Return the factors of the products that move an array, at the present state."""
        return [_Product(o.gain, _at(o.synapse), _at(o.pre), _at(o.post)) for o in plastic.change]

    def follow(self) -> None:
        """No rate looks ahead."""

    def communicate(self) -> None:
        """Signals flow all the time: there are no events."""

    def events(self) -> dict[str, Tensor]:
        """Return no events."""
        return {}

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt of every array that learns, at the state of the last `forces`."""
        program = self._program
        rates = {name: torch.zeros_like(self.arrays[name]) for name in self._learning}
        views = {name: self.params.views(rate) for name, rate in rates.items()}
        for plastic in program.plastic:
            into = views[plastic.name][plastic.layer]["w"]
            _add_products(into, self._factors(plastic), 1.0)
        for k, name, rate in program.beside:
            views[BESIDE[name]][k]["b"].copy_(_tensor(rate()).sum(1))
        return list(rates.values())

    def settle_weights(self) -> None:
        """Nothing is kept back."""

    def settle_rows(self, rows: Tensor) -> None:
        """Nothing is kept back here."""

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back: nothing."""
        return {}

    def theta(self) -> Parameters:
        """Return θ, the weights in the units of the network: a_B W behind a compartment."""
        flat = self.params.flat.clone()
        if self.page.compartments:
            for k, views in enumerate(self.params.views(flat)[: self.top]):
                for array in views.values():
                    array.mul_(conductances(self.circuit, k)["a_B"])
        return Parameters(self.network, flat)

    def stored(self) -> list[Tensor]:
        """Return all that learns."""
        return self.weights

    def energy_by_node(self) -> Tensor:
        """Return ½‖x − v̂_B‖² (chip, layer), summed over samples, at the last `forces`."""
        return torch.stack([0.5 * each.square().sum((1, 2)) for each in self._residuals], 1)

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name."""
        found = {motion.label: self._state[k, motion.state] for motion, k in self._motions()}
        return {name: found[name] for name in sorted(found, key=_listed)}

    def states(self) -> dict[str, Tensor]:
        """Return somas, and errors, interneurons and apical potentials that were computed."""
        named = {f"x{k}": self._state[k, "x"] for k in range(self.top + 1)}
        named |= self.moving() | self._seen
        return {name: named[name] for name in sorted(named, key=_listed)}

    def clamped(self) -> dict[tuple[int, str], Tensor]:
        """Return what is given from outside by layer and name: clamped somas, the target."""
        held = {(k, "x"): self._state[k, "x"] for k, h in enumerate(self.holds) if h == "clamped"}
        if self._target is not None:
            held[0, "target"] = self._target.expand_as(self._state[0, "x"])
        return held

    def held(self, k: int, name: str) -> Tensor:
        """Return the memory of a state of layer k, by its name in the equations."""
        if name in BESIDE:
            return self.of[BESIDE[name]][k]["b"].unsqueeze(1)
        return self._state[k, name]

    @property
    def shown(self) -> list[tuple[int, str]]:
        """Values that are seen from outside, by layer and name."""
        return self._program.shown

    def saw(self, seen: Mapping[str, Tensor]) -> None:
        """Let what is looked at be what somebody else has computed a step from: `name@g1`."""
        depth = range(self.top + 1)
        keys = [f"residual@g{k}" for k in depth]
        self._residuals = [seen[key] for key in keys if key in seen]
        self._seen = {label_of(k, name): seen[f"{name}@g{k}"] for k, name in self.shown}

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""
        x = [self._state[k, "x"] for k in range(self.top + 1)]
        free = [k for k, hold in enumerate(self.holds) if hold == "free"]
        state = self.moving() | clamped(x, free)
        return state | ({} if self._target is None else {"clamp0": self._target})

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
        self._clamp([state.get(f"clamp{k}") for k in range(self.top + 1)])
        set_moving(self.moving(), state)


def label_of(k: int, name: str) -> str:
    """Return how a variable of layer k is called from outside."""
    label, shift = LABELS[name]
    return f"{label}{k + shift}"


def layer_of(label: str, name: str) -> int:
    """Return the layer in whose group a variable stands."""
    return int(label.removeprefix(LABELS[name][0])) - LABELS[name][1]


def _listed(name: str) -> tuple[int, int]:
    kinds = ("x", "u", "err", "inter", "apical")
    label = name.rstrip("0123456789")
    return kinds.index(label), int(name.removeprefix(label))


def _tensor(value: Value) -> Tensor:
    assert isinstance(value, Tensor)
    return value


def _at(rule: Rule | None) -> Tensor | None:
    return None if rule is None else _tensor(rule())


def _shared_by_samples(post: _Part, name: str) -> Rule:
    """Return a symbol of post neurons that is the same for all samples, along the array's rows."""
    return lambda: post.tensor(name)[:, 0, :, None]


def _over_the_layer(rule: Rule) -> Rule:
    """Return a sum over all units of a layer."""
    return lambda: _tensor(rule()).sum(-1, keepdim=True)


def _positions(shape: tuple[int, int], axis: int, like: Tensor) -> Tensor:
    """Return the places j/n, j = 1 … n, along one axis of an array."""
    places = torch.arange(1, shape[axis] + 1, dtype=like.dtype, device=like.device) / shape[axis]
    return places if axis else places[:, None]


def _delivered(hook: Transform, signal: Rule, symbols: Mapping[str, Rule]) -> Rule:
    """Return a signal as hardware delivers it."""

    def rule() -> Value:
        return hook(_tensor(signal()), **{name: each() for name, each in symbols.items()})

    return rule


def _summed(products: Sequence[_Outer], side: str, largest: bool = False) -> Rule:
    """Return a sum over all synapses onto a neuron of one side, or the largest of its terms."""

    def one(outer: _Outer) -> Tensor:
        synapse, pre, post = _at(outer.synapse), _at(outer.pre), _at(outer.post)
        sent, own = (pre, post) if side == "post" else (post, pre)
        if synapse is None:
            assert sent is not None
            total = (sent.amax if largest else sent.sum)(-1, keepdim=True)
        elif sent is None:
            total = synapse.sum(-1 if side == "post" else -2).unsqueeze(1)
        else:
            total = torch.bmm(sent, synapse.mT if side == "post" else synapse)
        total = total if own is None else total * own
        return total if outer.gain == 1 else total * outer.gain

    def rule() -> Value:
        total = one(products[0])
        for outer in products[1:]:
            total = total + one(outer)
        return total

    return rule


def _without_sign(product: _Product) -> _Product:
    """Return what samples ask for, whichever way."""
    factors = (None if factor is None else factor.abs() for factor in product[1:])
    return _Product(abs(product.gain), *factors)


def _as_pulses(product: _Product, trains: Trains, dt: float) -> _Product:
    """Return the pulses of rows and columns in place of a product of samples."""
    gain, synapse, pre, post = product
    if pre is None or post is None:
        return product
    if synapse is not None:
        raise UnsupportedError(
            "hardware: pulse trains of rows and columns write one rate, and this circuit learns "
            'with one of each synapse; use lines = "device" of the pulse_train'
        )
    sent, arrived = trains(post if gain > 0 else -post, pre, abs(gain) * dt)
    return _Product(1 / dt, None, arrived, sent)


def _add_products(into: Tensor, products: Sequence[_Product], dt: float) -> Tensor:
    """Add dt·c·S·(B ⊗ A), summed over samples, to an array (chip, post, pre)."""
    for gain, synapse, pre, post in products:
        if pre is None or post is None:
            assert synapse is not None
            into.add_(synapse, alpha=gain * dt)
        elif synapse is None:
            into.baddbmm_(post.mT, pre, alpha=gain * dt)
        else:
            into.addcmul_(synapse, torch.bmm(post.mT, pre), value=gain * dt)
    return into
