"""From a network and a circuit to the groups and synapses that Brian2 needs: data, no Brian2.

A plan holds names, sizes, equations and constants; `build` turns it into objects, and
`pcsim equations` prints it. What this backend cannot run is refused here, by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pcsim.backends.brian.equations import Layer, layer_equations, synapse_equations
from pcsim.circuit import Circuit
from pcsim.energies import Gaussian
from pcsim.errors import UnsupportedError
from pcsim.maps import Dense, Map, Prior
from pcsim.network import UNIT_GAUSSIAN, Mode, Network

SECONDS = ("tau_", "look_")
"""Constants whose names start so are times in seconds; all others are numbers."""


@dataclass(frozen=True)
class Group:
    """One layer: `units` per chip, its equations and the constants in them."""

    name: str
    units: int
    layer: Layer
    text: str
    constants: dict[str, float]
    variance: float | tuple[float, ...] = 1.0


@dataclass(frozen=True)
class Connection:
    """The synapses from layer `pre` to layer `post`."""

    name: str
    pre: int
    post: int
    text: str
    constants: dict[str, float]


@dataclass(frozen=True)
class Plan:
    """All layers from the datum upwards, and the synapses between neighbours."""

    groups: tuple[Group, ...]
    connections: tuple[Connection, ...]

    @classmethod
    def of(
        cls,
        network: Network,
        circuit: Circuit,
        mode: Mode = "supervised",
        *,
        scale: float = 1.0,
        name: str = "pc",
    ) -> Plan:
        """Plan a chain of dense layers; `scale` multiplies what weights learn from."""
        refuse(network, circuit, mode)
        maps = [node.map for node in network.nodes[:-1] if isinstance(node.map, Dense)]
        holds, top = network.holds(mode), len(maps)
        groups, connections = [], []
        for k, node in enumerate(network.nodes):
            energy = node.energy
            assert isinstance(energy, Gaussian)
            layer = Layer(
                f=maps[k - 1].f if k else None,
                predicted_by=_predicted_by(node.map),
                clamped=_clamped(holds[k], k, top),
                bias=isinstance(node.map, Dense) and node.map.bias,
                precision=not energy.unit and node.map is not None,
                interneurons=circuit.kind == "dendritic" and k < top and _free(holds, k + 1),
            )
            constants = _constants(circuit, k, scale)
            if isinstance(node.map, Prior):
                constants["prior"] = node.map.mean
            text = layer_equations(circuit, layer)
            used = {n: value for n, value in constants.items() if mentions(text, n)}
            groups.append(Group(f"{name}_layer{k}", node.units, layer, text, used, energy.variance))
        for k in range(top):
            text = synapse_equations(circuit, feedback=_free(holds, k + 1))
            # Brian2 puts subexpressions of the postsynaptic layer (its errors) into the synapses.
            both = text + groups[k].text
            used = {n: v for n, v in _constants(circuit, k, scale).items() if mentions(both, n)}
            connections.append(Connection(f"{name}_map{k}", k + 1, k, text, used))
        return cls(tuple(groups), tuple(connections))


def refuse(network: Network, circuit: Circuit, mode: Mode) -> None:
    """Refuse what this backend cannot run, with the name of the field and the reason."""

    def no(field: str, reason: str) -> UnsupportedError:
        return UnsupportedError(f"backend brian: {field}: {reason}")

    if circuit.kind == "sacramento":
        raise no("circuit.kind 'sacramento'", "its equations are not written here yet")
    if circuit.transport == "sign":
        raise no(
            "circuit.transport 'sign'",
            "its size is the norm of a whole array at every step, which no synapse knows",
        )
    for name in ("delay_err", "delay_fb"):
        if getattr(circuit, name):
            raise no(f"circuit.{name}", "errors flow here in every step; only spikes have delays")
    if circuit.look_soma:
        raise no("circuit.look_soma", "rates of the last step would need a second state per unit")
    if circuit.sigma_x:
        raise no("circuit.sigma_x", "Brian2 draws noise of its own, which no other backend shares")
    if mode == "associative" and circuit.kind == "dendritic":
        raise no("mode 'associative'", "a dendritic layer cannot be clamped in part")
    for k, node in enumerate(network.nodes):
        where = f"network node {k}"
        kind = type(node.map).__name__
        if node.transparent or not (
            node.map is None
            or isinstance(node.map, Prior)
            or (isinstance(node.map, Dense) and node.map.positions == 1)
        ):
            raise no(f"{where}: map {kind}", "only a chain of dense layers is built")
        if not isinstance(node.energy, Gaussian):
            raise no(f"{where}: energy categorical", "a softmax couples all units of a layer")
        if node.energy.learned:
            raise no(f"{where}: energy.learned", "a variance that learns has no equation here yet")
        if node.map is None or isinstance(node.map, Prior):
            if k < len(network.nodes) - 1:
                raise no(f"{where}: parents", "only a chain of dense layers is built")
            continue
        if node.parents != (k + 1,):
            raise no(f"{where}: parents", "only a chain of dense layers is built")
        if isinstance(node.map, Dense) and node.map.g != "identity":
            raise no("network.convention 'post'", "neurons are potentials, before f: use 'pre'")
        if circuit.kind == "dendritic" and node.energy != UNIT_GAUSSIAN:
            raise no(f"{where}: energy.variance", "a dendritic layer has unit variance")


def _predicted_by(spec: Map | None) -> Literal["above", "prior", "nothing"]:
    if spec is None:
        return "nothing"
    return "prior" if isinstance(spec, Prior) else "above"


def _clamped(hold: str, k: int, top: int) -> Literal["never", "switched", "always"]:
    if hold == "free":
        return "never"
    return "always" if k == top else "switched"


def _free(holds: tuple[str, ...], k: int) -> bool:
    return holds[k] == "free"


def mentions(text: str, name: str) -> bool:
    """Return whether a name stands in the equations as a word of its own."""
    words = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return name in words.split()


def _constants(circuit: Circuit, k: int, scale: float) -> dict[str, float]:
    """Return the constants of layer k and of the synapses onto it; see `pcsim.continuous`."""
    times = {n: getattr(circuit, n) for n in ("tau_err", "tau_apical", "tau_inter", "look_err")}
    times |= {"look_apical": circuit.look_apical, "look_inter": circuit.look_inter}
    # scale·Hebb − λw over τ_w is Hebb − (λ/scale)w over τ_w/scale.
    times["tau_w"] = circuit.weight_time / scale
    g, nudging = circuit.conductances, circuit.conductances.nudging
    totals = [g.g_lk + g.g_B, g.g_lk + g.g_B + g.g_A]  # the output has no apical dendrite
    below = totals[1 if k > 1 else 0]
    gain = totals[1] / g.g_A / (1 - nudging)
    if circuit.transport == "shared":
        gain *= g.g_B / below  # the forward array below is stored as θ/a_B
    a_inter = g.g_D / (g.g_lk + g.g_D)
    return times | {
        "decay": circuit.weight_decay / scale,
        "g_lk": g.g_lk,
        "g_B": g.g_B,
        "g_A": g.g_A,
        "g_total": totals[1 if k else 0],
        "a_B": g.g_B / totals[1 if k else 0],
        "a_D": a_inter,
        "nudging": nudging,
        "kappa": circuit.inhibition,
        "gain_td": gain,
        "rate_inter": circuit.inter_rate / ((nudging or 1.0) * a_inter),
    }
