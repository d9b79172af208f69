"""From a network and a circuit to the groups and synapses that Brian2 needs: data, no Brian2.

A plan holds names, sizes, equations and constants; `build` turns it into objects, and
`pcsim equations` prints it. What this backend cannot run is refused by name: see `support`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

from pcsim.backends.brian.categorical_equations import SOFTMAX
from pcsim.backends.brian.dendritic_places import (
    dendritic_synapse_places,
    dendritic_unit_places,
)
from pcsim.backends.brian.equations import layer_equations, synapse_equations
from pcsim.backends.brian.hardware_places import synapse_places, unit_places
from pcsim.backends.brian.hardware_text import Block, block
from pcsim.backends.brian.layer import Layer
from pcsim.backends.brian.names import mentions, refuse_meant
from pcsim.backends.brian.support import refuse, refuse_hardware
from pcsim.backends.brian.within_layer import (
    ARRAY_POWER,
    delay_ring,
    delay_store,
    delayed_errors,
)
from pcsim.circuit import Circuit
from pcsim.energies import Gaussian
from pcsim.maps import Dense, Prior
from pcsim.network import Mode, Network
from pcsim.substrate import Chips, Site
from pcsim.substrate.effect import AGGREGATES

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
    blocks: tuple[Block, ...] = ()
    """What hardware does in every step."""


@dataclass(frozen=True)
class Connection:
    """The synapses from layer `pre` to layer `post`."""

    name: str
    pre: int
    post: int
    text: str
    constants: dict[str, float]
    blocks: tuple[Block, ...] = ()


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
    ) -> Plan:
        """Plan a chain of dense layers; `scale` multiplies what weights learn from."""
        refuse(network, circuit, mode)
        if chips and chips.substrate.effects:
            refuse_hardware(network, circuit, mode, chips)
            own_tau_w |= "tau_w" in chips.substrate.sites
        groups = tuple(
            _group(network, circuit, mode, k, scale, own_tau_w, name, chips)
            for k in range(len(network.nodes))
        )
        connections, within = [], []
        for k in range(len(groups) - 1):
            post = groups[k].layer
            text = synapse_equations(circuit, feedback=post.sends_feedback, post=post)
            shape = (groups[k].units, groups[k + 1].units)
            dendritic = circuit.kind == "dendritic"
            placed = dendritic_synapse_places if dendritic else synapse_places
            places = placed(circuit, post, k, feedback=post.sends_feedback)
            blocks = tuple(block(place, chips, shape) for place in places) if chips else ()
            # Brian2 puts subexpressions of the postsynaptic layer (its errors) into the synapses.
            seen = text + groups[k].text + _code(blocks)
            constants = _used(_constants(network, circuit, k, scale), seen)
            if own_tau_w:
                constants.pop("tau_w")
            made = Connection(
                f"{name}_map{k}", k + 1, k, _declared(text, blocks), constants, blocks
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


def _code(blocks: tuple[Block, ...]) -> str:
    return "".join(f"{each.code}\n" for each in blocks)


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
) -> Group:
    node, holds, top = network.nodes[k], network.holds(mode), len(network.nodes) - 1
    gaussian = node.energy if isinstance(node.energy, Gaussian) else None
    dense = node.map if isinstance(node.map, Dense) else None
    sites = chips.substrate.sites if chips else frozenset()
    heard = k < top and holds[k + 1] == "free"
    layer = Layer(
        f=_nonlinearity(network, circuit, k),
        g=dense.g if dense else "identity",
        predicted_by="above" if dense else "nothing" if node.map is None else "prior",
        clamped=_clamped(holds[k], k, top),
        bias=dense is not None and dense.bias,
        precision=gaussian is not None and not gaussian.unit and node.map is not None,
        learned_variance=gaussian is not None and gaussian.learned and node.map is not None,
        categorical=gaussian is None,
        sends_feedback=heard,
        interneurons=circuit.kind in ("dendritic", "sacramento") and heard,
        own_tau_w=own,
        own=frozenset(name for site, name in PER_UNIT.items() if site in sites),
        sites=sites,
        line_sums=_row_sums(chips, "product"),
        back_sums=_row_sums(chips, "feedback"),
    )
    text = layer_equations(circuit, layer, output=k == 0)
    blocks: tuple[Block, ...] = ()
    if chips:
        placed = dendritic_unit_places if circuit.kind == "dendritic" else unit_places
        places = placed(circuit, layer, k)
        blocks = tuple(block(place, chips, (node.units,)) for place in places)
    constants = _constants(network, circuit, k, scale)
    for each in sorted(layer.own):
        constants.pop(each)
        if mentions(text, each):
            text += f"{each} : {unit_of(each) or 1} (constant)\n"
    floor = FLOOR if layer.learned_variance and layer.clamped != "always" else ""
    used = _used(constants, text + floor + _code(blocks))
    variance = gaussian.variance if gaussian else 1.0
    text = _declared(text, blocks)
    return Group(f"{name}_layer{k}", node.units, layer, text, used, variance, floor, blocks)


def _nonlinearity(network: Network, circuit: Circuit, k: int) -> str | None:
    """Return f of layer k: it stands in the map below; Sacramento's output has one as well."""
    maps = [node.map.f for node in network.nodes[:-1] if isinstance(node.map, Dense)]
    if k:
        return maps[k - 1]
    return maps[0] if circuit.kind == "sacramento" else None


def _clamped(hold: str, k: int, top: int) -> Literal["never", "switched", "always"]:
    if hold == "free":
        return "never"
    return "always" if k == top else "switched"


def _within(
    circuit: Circuit, k: int, group: Group, constants: dict[str, float], name: str
) -> list[Within]:
    found = []
    if circuit.transport == "sign" and group.layer.sends_feedback:
        found.append(Within(f"{name}_power{k}", k, ARRAY_POWER, {}))
    if group.layer.categorical:
        found.append(Within(f"{name}_softmax{k}", k, SOFTMAX, {}))
    for delay, (source, target) in delayed_errors(circuit, group.layer).items():
        text = delay_ring(target, delay)
        used = _used(constants, text + group.text)
        found.append(Within(f"{name}_{delay}{k}", k, text, used, delay_store(source), delay))
    return found


def _used(constants: dict[str, float], text: str) -> dict[str, float]:
    return {name: value for name, value in constants.items() if mentions(text, name)}


def unit_of(name: str) -> str:
    """Return the unit of a constant: times in seconds, noise per √second, all else numbers."""
    if name == "sigma_x":
        return "second**-0.5"
    return "second" if name.startswith(("tau_", "look_", "delay_")) else ""


TIMES = ("tau_err", "tau_apical", "look_err", "look_apical", "look_inter", "look_soma")
SAME = ("delay_err", "delay_fb", "sigma_x", "eta_inter", "eta_apical", "eta_down")


def _constants(network: Network, circuit: Circuit, k: int, scale: float) -> dict[str, float]:
    """Return the constants of layer k and of the synapses onto it; see `pcsim.continuous`."""
    found = {name: getattr(circuit, name) for name in TIMES + SAME}
    # scale·Hebb − λw over τ_w is Hebb − (λ/scale)w over τ_w/scale.
    found["tau_w"] = circuit.weight_time / scale
    found["decay"] = circuit.weight_decay / scale
    found["learning_scale"] = scale
    node = network.nodes[k]
    if isinstance(node.map, Prior):
        found["prior"] = node.map.mean
    if isinstance(node.map, Dense):
        found["n_weights"] = node.map.n_in * node.map.n_out
    if isinstance(node.energy, Gaussian):
        found["log_floor"] = log(node.energy.floor)
    return found | _conductances(circuit, k)


def _conductances(circuit: Circuit, k: int) -> dict[str, float]:
    g, nudging = circuit.conductances, circuit.conductances.nudging
    totals = [g.g_lk + g.g_B, g.g_lk + g.g_B + g.g_A]  # the output has no apical dendrite
    below = totals[1 if k > 1 else 0]
    gain = totals[1] / g.g_A / (1 - nudging)
    if circuit.transport in ("shared", "sign"):
        gain *= g.g_B / below  # the forward array below is stored as θ/a_B
    a_inter = g.g_D / (g.g_lk + g.g_D)
    tau_inter = circuit.tau_inter
    if circuit.kind == "sacramento" and not tau_inter:  # interneurons with the somas' capacity
        tau_inter = circuit.tau_x * totals[1] / (g.g_lk + g.g_D + g.g_som)
    return {
        "g_lk": g.g_lk,
        "g_B": g.g_B,
        "g_A": g.g_A,
        "g_som": g.g_som,
        "g_total": totals[1 if k else 0],
        "g_cell": totals[1],
        "a_B": g.g_B / totals[1 if k else 0],
        "a_D": a_inter,
        "nudging": nudging,
        "kappa": circuit.inhibition,
        "gain_td": gain,
        "rate_inter": circuit.inter_rate / ((nudging or 1.0) * a_inter),
        "tau_inter": tau_inter,
    }
