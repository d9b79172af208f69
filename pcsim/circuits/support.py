"""What has no equations in a plan, refused by the name of the field, with the reason."""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import require_sites
from pcsim.maps import Dense, Prior
from pcsim.maps.nonlinearities import row
from pcsim.network import UNIT_GAUSSIAN, Mode, Network, Node
from pcsim.substrate import Chips

BRIAN = "backend brian"
DENDRITES = ("dendritic", "sacramento")
CHAIN = (
    "only a chain of dense layers is built; the circuits 'algebraic' and 'error_units' of "
    "the torch engine take every network"
)
CARRY = "error units, dendrites and delayed errors carry x − μ, {}"


def no(field: str, reason: str, who: str = BRIAN) -> UnsupportedError:
    """Return the refusal of one field by an engine."""
    return UnsupportedError(f"{who}: {field}: {reason}")


def refuse(network: Network, circuit: Circuit, mode: Mode, who: str = BRIAN) -> None:
    """Refuse what cannot be run; what is left has equations."""
    top = len(network.nodes) - 1
    for k, node in enumerate(network.nodes):
        _refuse_shape(k, node, top, who)
        _refuse_energy(k, node, circuit, who)
        if circuit.kind in DENDRITES and isinstance(node.map, Dense) and node.map.g != "identity":
            raise no(
                "network.convention 'post'",
                f"the neurons of a {circuit.kind} circuit are potentials, before f: use 'pre'",
                who,
            )
    if circuit.kind == "dendritic" and mode == "associative":
        raise no("mode 'associative'", "a dendritic layer cannot be clamped in part", who)
    if circuit.kind == "sacramento":
        _refuse_sacramento(network, mode, who)
    if circuit.kind == "spiking":
        refuse_beyond_events(network, mode, who)


def refuse_hardware(
    network: Network,
    circuit: Circuit,
    mode: Mode,
    chips: Chips,
    who: str = BRIAN,
    *,
    unheard: bool = False,
) -> None:
    """Refuse effects, or combinations with them, that have no equations here."""
    require_sites(chips, circuit, len(chips))
    top_heard = network.holds(mode)[-1] == "free"
    learns = circuit.transport == "kolen_pollack" and not unheard
    if learns and not top_heard and (writes := chips.substrate.at("write")):
        raise no(
            f"hardware {writes[0].name!r} with circuit.transport 'kolen_pollack'",
            "nothing needs the feedback onto a clamped input, so that it has no devices here whose "
            "writes could be followed; use backend 'continuous'",
            who,
        )


def _refuse_shape(k: int, node: Node, top: int, who: str) -> None:
    is_root = node.map is None or isinstance(node.map, Prior)
    if is_root != (k == top) or (not is_root and node.parents != (k + 1,)):
        raise no(f"network node {k}: parents", CHAIN, who)
    dense = isinstance(node.map, Dense) and node.map.positions == 1
    if node.transparent or not (is_root or dense):
        kind = type(node.map).__name__
        raise no(f"network node {k}: map {kind}", CHAIN, who)


def _refuse_energy(k: int, node: Node, circuit: Circuit, who: str) -> None:
    where, computed = f"network node {k}", circuit.kind == "algebraic" and not circuit.delay_err
    if isinstance(node.energy, Categorical):
        if k:
            raise no(f"{where}: energy categorical", "a softmax rate has no equation here", who)
        if not computed:
            raise no(
                f"{where}: energy categorical", CARRY.format("which a softmax is not made of"), who
            )
        return
    assert isinstance(node.energy, Gaussian)
    if node.energy.learned and not computed:
        raise no(f"{where}: energy.learned", CARRY.format("of a fixed variance"), who)
    if circuit.kind in DENDRITES and node.energy != UNIT_GAUSSIAN:
        raise no(f"{where}: energy.variance", f"a {circuit.kind} layer has unit variance", who)


def _refuse_sacramento(network: Network, mode: Mode, who: str = BRIAN) -> None:
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "the sacramento circuit has an input and at most a target", who)
    if any(isinstance(node.map, Dense) and node.map.bias for node in network.nodes):
        raise no("network.bias true", "the sacramento circuit is defined without biases", who)


def refuse_beyond_events(network: Network, mode: Mode, who: str) -> None:
    """Refuse what the spiking circuit has no events for."""
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "the spiking circuit has a clamped input, and a label", who)
    for index, node in enumerate(network.nodes[:-1]):
        where = f"network node {index}"
        if not isinstance(node.map, Dense) or node.parents != (index + 1,):
            raise no(f"{where}: parents", "only a chain of dense layers sends events", who)
        if node.map.positions != 1:
            raise no(f"{where}: map", "layers with positions send no events", who)
        if node.map.g != "identity":
            raise no(
                "network.convention 'post'", "neurons are potentials, before f: use 'pre'", who
            )
        if not row(node.map.f).elementwise:
            raise no(f"network.f {node.map.f!r}", "a rate must depend on its own soma alone", who)
        if not isinstance(node.energy, Gaussian) or not node.energy.unit:
            raise no(f"{where}: energy", "errors are sent as x − μ, of unit variance", who)
    if network.nodes[-1].map is not None:
        raise no("network.prior", "the input is clamped here and needs no prior", who)
