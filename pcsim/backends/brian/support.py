"""What the Brian2 backend cannot run, refused by the name of the field, with the reason."""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import require_sites
from pcsim.maps import Dense, Prior
from pcsim.network import UNIT_GAUSSIAN, Mode, Network, Node
from pcsim.substrate import Chips

DENDRITES = ("dendritic", "sacramento")
CARRY = "error units, dendrites and delayed errors carry x − μ, {}"


def no(field: str, reason: str) -> UnsupportedError:
    """Return the refusal of one field."""
    return UnsupportedError(f"backend brian: {field}: {reason}")


def refuse(network: Network, circuit: Circuit, mode: Mode) -> None:
    """Refuse what cannot be run; what is left has equations."""
    top = len(network.nodes) - 1
    for k, node in enumerate(network.nodes):
        _refuse_shape(k, node, top)
        _refuse_energy(k, node, circuit)
        if circuit.kind in DENDRITES and isinstance(node.map, Dense) and node.map.g != "identity":
            raise no(
                "network.convention 'post'",
                f"the neurons of a {circuit.kind} circuit are potentials, before f: use 'pre'",
            )
    if circuit.kind == "dendritic" and mode == "associative":
        raise no("mode 'associative'", "a dendritic layer cannot be clamped in part")
    if circuit.kind == "sacramento":
        _refuse_sacramento(network, mode)


def refuse_hardware(network: Network, circuit: Circuit, mode: Mode, chips: Chips) -> None:
    """Refuse effects, or combinations with them, that have no equations here."""
    require_sites(chips, circuit, len(chips))
    top_heard = network.holds(mode)[-1] == "free"
    learns = circuit.transport == "kolen_pollack"
    if learns and not top_heard and (writes := chips.substrate.at("write")):
        raise no(
            f"hardware {writes[0].name!r} with circuit.transport 'kolen_pollack'",
            "nothing needs the feedback onto a clamped input, so that it has no devices here whose "
            "writes could be followed; use backend 'continuous'",
        )


def _refuse_shape(k: int, node: Node, top: int) -> None:
    is_root = node.map is None or isinstance(node.map, Prior)
    if is_root != (k == top) or (not is_root and node.parents != (k + 1,)):
        raise no(f"network node {k}: parents", "only a chain of dense layers is built")
    dense = isinstance(node.map, Dense) and node.map.positions == 1
    if node.transparent or not (is_root or dense):
        kind = type(node.map).__name__
        raise no(f"network node {k}: map {kind}", "only a chain of dense layers is built")


def _refuse_energy(k: int, node: Node, circuit: Circuit) -> None:
    where, computed = f"network node {k}", circuit.kind == "algebraic" and not circuit.delay_err
    if isinstance(node.energy, Categorical):
        if k:
            raise no(f"{where}: energy categorical", "a softmax rate has no equation here")
        if not computed:
            raise no(f"{where}: energy categorical", CARRY.format("which a softmax is not made of"))
        return
    assert isinstance(node.energy, Gaussian)
    if node.energy.learned and not computed:
        raise no(f"{where}: energy.learned", CARRY.format("of a fixed variance"))
    if circuit.kind in DENDRITES and node.energy != UNIT_GAUSSIAN:
        raise no(f"{where}: energy.variance", f"a {circuit.kind} layer has unit variance")


def _refuse_sacramento(network: Network, mode: Mode) -> None:
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "the sacramento circuit has an input and at most a target")
    if any(isinstance(node.map, Dense) and node.map.bias for node in network.nodes):
        raise no("network.bias true", "the sacramento circuit is defined without biases")
