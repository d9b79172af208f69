"""From a network and a circuit to all its equations: data, which engines run, compile or print.

A plan holds names, sizes, equations and constants of every layer, of the synapses between
neighbours and of the sums within a layer, and what hardware does to them in every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log
from typing import Literal

from pcsim.circuits import order
from pcsim.circuits.blocks import Block, Place, block
from pcsim.circuits.conductances import conductances
from pcsim.circuits.kinds import PAGES
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Event, Page
from pcsim.circuits.section import Circuit
from pcsim.circuits.support import refuse, refuse_hardware
from pcsim.circuits.text import equations, mentions, refuse_meant, to_text
from pcsim.circuits.within import ARRAY_POWER, delay_ring, delay_store
from pcsim.energies import Gaussian
from pcsim.maps import Dense, Prior
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Site
from pcsim.substrate.effect import AGGREGATES, TRAINS

PLAIN = Layer()
PER_UNIT: dict[Site, str] = {
    "tau_err": "tau_err",
    "tau_apical": "tau_apical",
    "tau_inter": "tau_inter",
    "g_basal": "g_B",
    "g_apical": "g_A",
}
"""What is set per unit at fabrication, besides tau_x, and the constant that it replaces."""
FLOOR = "log_var = clip(log_var, log_floor, inf)"
"""After every step: a learned variance never falls below its floor."""


@dataclass(frozen=True)
class Group:
    """One layer: `units` per chip, its equations and the constants in them."""

    name: str
    units: int
    layer: Layer
    text: str
    constants: dict[str, float]
    variance: float | tuple[float, ...] = 1.0
    after: str = ""
    """What is done after every step, in Brian2's language."""
    places: tuple[Place, ...] = ()
    """Where hardware acts in every step, in order."""
    blocks: tuple[Block, ...] = ()
    """What it does there, as statements; empty where an engine asks for places alone."""
    events: tuple[Event, ...] = ()
    """What its units send by events."""


@dataclass(frozen=True)
class Connection:
    """The synapses from layer `pre` to layer `post`."""

    name: str
    pre: int
    post: int
    text: str
    constants: dict[str, float]
    places: tuple[Place, ...] = ()
    blocks: tuple[Block, ...] = ()
    events: tuple[Event, ...] = ()
    """What arrives through these synapses: events of `pre` onto `post`, and the other way."""
    trains: Mapping[str, tuple[Block, Block]] = field(default_factory=dict)
    """By array that learns: the pulses of its rows and columns, where they send any."""


@dataclass(frozen=True)
class Within:
    """Synapses from a layer to itself: a ring per unit that delays, or all to all."""

    name: str
    layer: int
    text: str
    constants: dict[str, float]
    store: str = ""
    """A ring: what it writes at every step, in Brian2's language."""
    delay: str = ""
    """A ring: the field of the circuit that says how long it delays."""


@dataclass(frozen=True)
class Plan:
    """All layers from the datum upwards, and the synapses between neighbours and within layers."""

    groups: tuple[Group, ...]
    connections: tuple[Connection, ...]
    within: tuple[Within, ...] = ()

    @property
    def on_chip(self) -> tuple[Group | Connection, ...]:
        """Whatever hardware can act on: layers, then the synapses between them."""
        return (*self.groups, *self.connections)

    @property
    def senders(self) -> list[tuple[Event, int]]:
        """All events with the layer that sends them: those that go down, then those that go up."""
        sent = [(event, k) for k, group in enumerate(self.groups) for event in group.events]
        return sorted(sent, key=lambda each: each[0].onto == "pre")

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All that hardware does in every step."""
        return tuple(block for part in self.on_chip for block in part.blocks)

    @classmethod
    def of(
        cls,
        network: Network,
        circuit: Circuit,
        mode: Mode = "supervised",
        *,
        scale: float = 1.0,
        own_tau_w: bool = False,
        name: str = "pc",
        chips: Chips | None = None,
        who: str = "backend brian",
        written: bool = True,
        unheard: bool = False,
        trains: bool = False,
    ) -> Plan:
        """Plan a chain of dense layers.

        `scale` multiplies what weights learn from; `who` is named where something is refused;
        `written`: what hardware does is written as statements, with the draws of these chips;
        `unheard`: feedback that learns does so onto a clamped layer too, where nothing hears it;
        `trains`: whoever asks knows what to do with pulse trains of rows and columns.
        """
        refuse(network, circuit, mode, who)
        page = PAGES[circuit.kind]
        if chips and chips.substrate.effects:
            refuse_hardware(network, circuit, mode, chips, who, unheard=unheard, trains=trains)
            own_tau_w |= "tau_w" in chips.substrate.sites
        groups = tuple(
            _group(network, circuit, mode, k, scale, own_tau_w, name, chips, written, unheard)
            for k in range(len(network.nodes))
        )
        connections, within = [], []
        for k in range(len(groups) - 1):
            post = groups[k].layer
            text = to_text(page.synapses(circuit, post))
            shape = (groups[k].units, groups[k + 1].units)
            places = tuple(page.synapse_places(circuit, post, k)) if chips else ()
            blocks = _written(places, chips, shape) if written else ()
            events = tuple(e for e in groups[k + 1].events if e.onto == "post")
            events += tuple(e for e in groups[k].events if e.onto == "pre")
            # Brian2 puts subexpressions of the postsynaptic layer (its errors) into the synapses.
            seen = text + groups[k].text + _code(places, blocks)
            seen += "".join(e.arrival for e in events)
            constants = _used(_constants(network, circuit, k, scale), seen)
            if own_tau_w:
                constants.pop("tau_w")
            made = Connection(
                f"{name}_map{k}",
                k + 1,
                k,
                _declared(text, blocks),
                constants,
                places,
                blocks,
                events,
                _trains(chips, k, text, shape) if written else {},
            )
            connections.append(made)
        for k, group in enumerate(groups):
            constants = _constants(network, circuit, k, scale)
            within += _within(circuit, k, group, constants, name)
        return cls(groups, tuple(connections), tuple(within))


def _declared(text: str, blocks: tuple[Block, ...]) -> str:
    """Return the equations with the variables of hardware, each declared once."""
    refuse_meant(text, blocks)
    lines = dict.fromkeys(line for each in blocks for line in each.lines)
    return text + "".join(f"{line}\n" for line in lines)


LEARNING = {"w": "", "w_inter": "inter", "w_fb": "feedback"}
"""Arrays that may learn, and what hardware calls them."""


def _trains(
    chips: Chips | None, k: int, text: str, shape: tuple[int, int]
) -> dict[str, tuple[Block, Block]]:
    """Return the pulses of rows and columns of every array that learns; "s" is their signal."""
    if chips is None or not chips.substrate.sites & set(TRAINS):
        return {}
    learning = [line.name for line in equations(text) if line.role == "state"]
    trains = {}
    for name in learning:
        row, column = (
            block(
                Place(site, k, "s", "sent", order.CHANGE, symbols={"rate": "rate"}, array=array),
                chips,
                (units,),
            )
            for site, units in zip(TRAINS, shape, strict=True)
            for array in (LEARNING.get(name, name),)
        )
        trains[name] = (row, column)
    return trains


def _written(
    places: tuple[Place, ...], chips: Chips | None, shape: tuple[int, ...]
) -> tuple[Block, ...]:
    return tuple(block(place, chips, shape) for place in places) if chips else ()


def _code(places: tuple[Place, ...], blocks: tuple[Block, ...]) -> str:
    """Return all that hardware reads besides the equations."""
    read = [" ".join((place.signal, *place.symbols.values(), place.gate)) for place in places]
    return "".join(f"{each}\n" for each in (*read, *(b.code for b in blocks)))


def _row_sums(chips: Chips | None, site: Site) -> tuple[str, ...]:
    effects = chips.substrate.at(site) if chips else ()
    return tuple(name for name in AGGREGATES if any(effect.uses(name) for effect in effects))


def _group(
    network: Network,
    circuit: Circuit,
    mode: Mode,
    k: int,
    scale: float,
    own: bool,
    name: str,
    chips: Chips | None,
    written: bool,
    unheard: bool,
) -> Group:
    node, holds, top = network.nodes[k], network.holds(mode), len(network.nodes) - 1
    gaussian = node.energy if isinstance(node.energy, Gaussian) else None
    dense = node.map if isinstance(node.map, Dense) else None
    sites = chips.substrate.sites if chips else frozenset()
    heard = k < top and holds[k + 1] == "free"
    page = PAGES[circuit.kind]
    constants = _constants(network, circuit, k, scale)
    layer = Layer(
        f=_nonlinearity(network, page, k),
        output=k == 0,
        g=dense.g if dense else "identity",
        predicted_by="above" if dense else "nothing" if node.map is None else "prior",
        clamped=_clamped(holds[k], k, top),
        bias=dense is not None and dense.bias,
        precision=gaussian is not None and not gaussian.unit and node.map is not None,
        learned_variance=gaussian is not None and gaussian.learned and node.map is not None,
        categorical=gaussian is None,
        sends_feedback=heard,
        keeps_feedback=unheard and k < top and circuit.transport == "kolen_pollack",
        interneurons=page.interneurons and heard,
        own_tau_w=own,
        own=frozenset(n for site, n in PER_UNIT.items() if site in sites and n in constants),
        sites=sites,
        line_sums=_row_sums(chips, "product"),
        back_sums=_row_sums(chips, "feedback"),
    )
    text = layer_equations(circuit, layer)
    places = tuple(page.unit_places(circuit, layer, k)) if chips else ()
    blocks = _written(places, chips, (node.units,)) if written else ()
    for each in sorted(layer.own):
        constants.pop(each, None)
        if mentions(text, each):
            text += f"{each} : {unit_of(each) or 1} (constant)\n"
    floor = FLOOR if layer.learned_variance and layer.clamped != "always" else ""
    used = _used(constants, text + floor + _code(places, blocks))
    variance = gaussian.variance if gaussian else 1.0
    text = _declared(text, blocks)
    sent = tuple(page.events(circuit, layer))
    label = f"{name}_layer{k}"
    return Group(label, node.units, layer, text, used, variance, floor, places, blocks, sent)


def layer_equations(circuit: Circuit, layer: Layer) -> str:
    """Return the equations of one layer of value neurons."""
    page = PAGES[circuit.kind]
    return to_text((page.source if layer.clamped == "always" else page.layer)(circuit, layer))


def synapse_equations(circuit: Circuit, post: Layer = PLAIN) -> str:
    """Return the equations of the synapses onto a layer."""
    return to_text(PAGES[circuit.kind].synapses(circuit, post))


def _nonlinearity(network: Network, page: Page, k: int) -> str | None:
    """Return f of layer k: it stands in the map below; an output that fires has the same."""
    maps = [node.map.f for node in network.nodes[:-1] if isinstance(node.map, Dense)]
    if k:
        return maps[k - 1]
    return maps[0] if page.output_fires else None


def _clamped(hold: str, k: int, top: int) -> Literal["never", "switched", "always"]:
    if hold == "free":
        return "never"
    return "always" if k == top else "switched"


def _within(
    circuit: Circuit, k: int, group: Group, constants: dict[str, float], name: str
) -> list[Within]:
    sums = []
    if circuit.transport == "sign" and group.layer.sends_feedback:
        sums.append(Within(f"{name}_power{k}", k, ARRAY_POWER, {}))
    page = PAGES[circuit.kind]
    for kind, text in page.sums_within(circuit, group.layer).items():
        sums.append(Within(f"{name}_{kind}{k}", k, text, {}))
    for ring in page.rings(circuit, group.layer):
        text = delay_ring(ring.target, ring.delay)
        used = _used(constants, text + group.text)
        store = delay_store(ring.source)
        sums.append(Within(f"{name}_{ring.delay}{k}", k, text, used, store, ring.delay))
    return sums


def _used(constants: dict[str, float], text: str) -> dict[str, float]:
    return {name: value for name, value in constants.items() if mentions(text, name)}


def unit_of(name: str) -> str:
    """Return the unit of a constant: times in seconds, noise per √second, all else numbers."""
    if name == "sigma_x":
        return "second**-0.5"
    return "second" if name.startswith(("tau_", "look_", "delay_")) else ""


TIMES = ("tau_err", "tau_apical", "look_err", "look_apical", "look_inter", "look_soma", "tau_s")
SAME = (
    "delay_err",
    "delay_fb",
    "sigma_x",
    "eta_inter",
    "eta_apical",
    "eta_down",
    "q",
    "qe",
    "beta",
)


def _constants(network: Network, circuit: Circuit, k: int, scale: float) -> dict[str, float]:
    """Return the constants of layer k and of the synapses onto it; by name."""
    own = type(circuit).model_fields
    constants: dict[str, float] = {n: getattr(circuit, n) for n in TIMES + SAME if n in own}
    # scale·Hebb − λw over τ_w is Hebb − (λ/scale)w over τ_w/scale.
    constants["tau_w"] = circuit.weight_time / scale
    constants["decay"] = circuit.weight_decay / scale
    constants["learning_scale"] = scale
    node = network.nodes[k]
    if isinstance(node.map, Prior):
        constants["prior"] = node.map.mean
    if isinstance(node.map, Dense):
        constants["n_weights"] = node.map.n_in * node.map.n_out
    if isinstance(node.energy, Gaussian):
        constants["log_floor"] = log(node.energy.floor)
    return constants | conductances(circuit, k)
