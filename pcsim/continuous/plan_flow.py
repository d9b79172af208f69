"""Any circuit in motion, from its equations alone: a `Plan`, executed by torch.

A symbol of a layer is a state, a constant, a value with an expression, a sum over synapses, or what
hardware delivers at a place. Each is evaluated when somebody first asks for it in a time step, and
once. Sums over synapses become matrix products (see `pcsim.circuits.products`).

States have the axes (chip, sample, unit), arrays (chip, post, pre). What stands beside the units
but belongs to the arrays (biases) is (chip, unit): it sums what it learns over the samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits.conductances import conductances
from pcsim.circuits.kinds import PAGES
from pcsim.circuits.layer import Layer
from pcsim.circuits.plan import PER_UNIT, Group, Plan
from pcsim.circuits.text import equations, to_text
from pcsim.continuous.flow import Force, Tau, clamped, reference, set_moving
from pcsim.continuous.plan_program import (
    BESIDE,
    Motion,
    Program,
    label_of,
    layer_of,
    listed,
)
from pcsim.continuous.plan_rules import (
    Rule,
    add_products,
    as_pulses,
    as_tensor,
    without_sign,
)
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import Encoder, fabricated
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.samples import Trains
from pcsim.kernels.transport import Feedback
from pcsim.network import Mode, Network
from pcsim.substrate import Chips
from pcsim.substrate.effect import DOWN, TRAINS
from pcsim.substrate.expression import Value
from pcsim.substrate.transform import Transform


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
        self._programs: dict[tuple[Mode, tuple[str, ...], float], Program] = {}
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
        params, arrays = self.params, {"w": self.params.flat}
        own = self.page.drawn(self.circuit, params, seeds)
        arrays |= {name: params.flat.clone() for name in self.page.divided if name != "w"}
        for name, constant in self.page.divided.items():
            for k, views in enumerate(params.views(arrays[name])[: self.top]):
                for array in views.values():
                    array.div_(conductances(self.circuit, k)[constant])
        arrays |= own
        if self._feedback.flat is not None and self.circuit.transport != "sign":
            arrays["w_fb"] = self._feedback.flat
        return arrays

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
            made = self.chips.transform(site, layer, shape, array)
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
    def _program(self) -> Program:
        mode: Mode = self.mode if self.holds[-1] == "clamped" else "generative"
        nudged = float(self._target is not None)
        key = (mode, self.holds, nudged)
        if key not in self._programs:
            self._programs[key] = Program(self, self.plan(mode), self.holds, nudged)
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

    def _motions(self) -> list[tuple[Motion, int]]:
        return [(motion, layer_of(motion.label, motion.state)) for motion in self._program.motions]

    def feedforward(self) -> None:
        """Set free somas to their prediction, the other parts to their rest there."""
        program = self._program
        program.forget()
        for k in reversed(range(self.top)):
            if self.holds[k] == "free" and "x" in program.rest[k]:
                value = program.layers[k].formula(program.rest[k]["x"])()
                self._state[k, "x"].copy_(as_tensor(value))
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
                as_tensor(motion.value()),
                motion.tau,
                motion.leaky,
                motion.noisy,
            )
            for motion, k in self._motions()
        ]
        # What is looked at later belongs to this state, not to the one that it leads to.
        self._residuals = [as_tensor(rule()) for rule in program.residuals]
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
        moves = [(plastic, plastic.factors()) for plastic in program.plastic]
        beside = [(k, name, as_tensor(rate()).sum(1)) for k, name, rate in program.beside]
        for plastic, factors in moves:
            array = self.of[plastic.name][plastic.layer]["w"]
            if plastic.trains:
                factors = [as_pulses(product, plastic.trains, dt) for product in factors]
            if plastic.write is None:
                add_products(array, factors, dt)
                continue
            asked = add_products(torch.zeros_like(array), factors, dt)
            known = {name: rule() for name, rule in plastic.symbols.items()}
            if plastic.each:
                sizes = [without_sign(product) for product in factors]
                gross = add_products(torch.zeros_like(array), sizes, dt)
                known[DOWN] = ((gross - asked) / 2).clamp_(min=0)
            array.add_(plastic.write(asked, **known))
        for k, name, rate in beside:
            self.of[BESIDE[name]][k]["b"].add_(rate, alpha=dt)
        if self.chips:
            self.chips.advance()

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
            add_products(into, plastic.factors(), 1.0)
        for k, name, rate in program.beside:
            views[BESIDE[name]][k]["b"].copy_(as_tensor(rate()).sum(1))
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
        states = {motion.label: self._state[k, motion.state] for motion, k in self._motions()}
        return {name: states[name] for name in sorted(states, key=listed)}

    def states(self) -> dict[str, Tensor]:
        """Return somas, and errors, interneurons and apical potentials that were computed."""
        named = {f"x{k}": self._state[k, "x"] for k in range(self.top + 1)}
        named |= self.moving() | self._seen
        return {name: named[name] for name in sorted(named, key=listed)}

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
