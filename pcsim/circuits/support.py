"""What has no equations in a plan, refused by the name of the field, with the reason."""

from __future__ import annotations

from pcsim.circuits.kinds import PAGES
from pcsim.circuits.page import BRIAN, no
from pcsim.circuits.section import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.maps import Dense, Prior
from pcsim.network import UNIT_GAUSSIAN, Mode, Network, Node
from pcsim.substrate import Chips
from pcsim.substrate.effect import COMMON_SITES, TRAINS

LAGS = ("tau_err", "tau_apical", "tau_inter")
"""Time constants of parts that a circuit may have."""
CHAIN = (
    "only a chain of dense layers is built; the circuits 'algebraic' and 'error_units' of "
    "the torch engine take every network"
)
CARRY = "error units, dendrites and delayed errors carry x − μ, {}"


def refuse(network: Network, circuit: Circuit, mode: Mode, who: str = BRIAN) -> None:
    """Refuse what cannot be run; what is left has equations."""
    top, page = len(network.nodes) - 1, PAGES[circuit.kind]
    for k, node in enumerate(network.nodes):
        _refuse_shape(k, node, top, who)
        _refuse_energy(k, node, circuit, who)
        if isinstance(node.map, Dense) and node.map.f == "softmax" and not page.softmax:
            raise no(
                "network.f 'softmax'",
                f"the rate of a unit of a {circuit.kind} circuit depends on this unit alone",
                who,
            )
        if page.potentials and isinstance(node.map, Dense) and node.map.g != "identity":
            raise no(
                "network.convention 'post'",
                f"the neurons of a {circuit.kind} circuit are potentials, before f: use 'pre'",
                who,
            )
    page.refuse(network, mode, who)


def require_sites(chips: Chips, circuit: Circuit, replicas: int) -> None:
    """Refuse, by name, effects at sites that a circuit does not have."""
    kind, page = circuit.kind, PAGES[circuit.kind]
    if page.instead:
        raise UnsupportedError(
            f"circuit.kind {kind}: hardware effects are not available there; use {page.instead}"
        )
    own = page.sites | {"tau_x", "velocity"} | {name for name in LAGS if getattr(circuit, name)}
    chips.substrate.require((COMMON_SITES | own) - page.lacks, f"circuit.kind {kind}")
    if len(chips) != replicas:
        raise ConfigError(f"chips: {len(chips)} given for {replicas} replicas")


def refuse_hardware(
    network: Network,
    circuit: Circuit,
    mode: Mode,
    chips: Chips,
    who: str = BRIAN,
    *,
    unheard: bool = False,
    trains: bool = False,
) -> None:
    """Refuse effects, or combinations with them, that have no equations here."""
    require_sites(chips, circuit, len(chips))
    for effect in chips.substrate.effects if not trains else ():
        if effect.site in TRAINS:
            raise no(
                f"hardware {effect.name!r}",
                "pulse trains that the devices of a row or column share have no equations here; "
                'use run.engine "torch" or "native", or lines = "device"',
                who,
            )
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
        if not computed:
            raise no(
                f"{where}: energy categorical", CARRY.format("which a softmax is not made of"), who
            )
        return
    assert isinstance(node.energy, Gaussian)
    if node.energy.learned and not computed:
        raise no(f"{where}: energy.learned", CARRY.format("of a fixed variance"), who)
    if PAGES[circuit.kind].potentials and node.energy != UNIT_GAUSSIAN:
        raise no(f"{where}: energy.variance", f"a {circuit.kind} layer has unit variance", who)
