"""Plain Brian2 objects for your own `Network`, with the order inside a time step set right.

    from pcsim.backends.brian import RECORD, build

    parts = build(layers, circuit, parameters)
    net = brian2.Network(parts.objects)
    net.add(StateMonitor(parts.layers[1], ["x", "err"], record=True, when="groups", order=RECORD))

One time step is one Euler step of all states and weights, taken from one and the same state: first
all predictions are summed, then all feedback, then weights move, then neurons. This order is set by
number for every object, because Brian2 breaks ties by the objects' names. Nothing global is
touched: clock, preferences, device and monitors are yours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import NeuronGroup, Synapses, second
from numpy.typing import ArrayLike

from pcsim.backends.brian.plan import SECONDS, Connection, Group, Plan
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback
from pcsim.network import Mode, Network

PREDICT, FEEDBACK, RECORD, WEIGHTS, NEURONS = -4, -3, -2, -1, 0
"""Orders within Brian2's slot `groups`. A monitor at RECORD sees states, sums and weights of the
same instant."""
ORDER_OF_SUM = {
    "mu_post": PREDICT,
    "basal_post": PREDICT,
    "inter_in_post": PREDICT,
    "fb_pre": FEEDBACK,
    "td_pre": FEEDBACK,
}


@dataclass(frozen=True, eq=False)
class Parts:
    """The objects of one population: `layers[k]` from the datum upwards, `maps[k]` onto layer k."""

    plan: Plan
    layers: tuple[NeuronGroup, ...]
    maps: tuple[Synapses, ...]

    @property
    def objects(self) -> list[Any]:
        """Return everything, for a Brian2 `Network`."""
        return [*self.layers, *self.maps]


def neurons(group: Group, chips: int = 1, **options: Any) -> NeuronGroup:
    """Return the neurons of one layer, chip after chip; `options` go to `NeuronGroup`."""
    made = NeuronGroup(
        chips * group.units,
        group.text,
        method="euler",
        **{"name": group.name, "namespace": _namespace(group.constants), "order": NEURONS}
        | options,
    )
    if group.layer.clamped == "switched":
        made.free = 0
    if group.layer.precision:
        made.var = np.tile(np.broadcast_to(np.asarray(group.variance), group.units), chips)
    return made


def synapses(
    connection: Connection,
    pre: NeuronGroup,
    post: NeuronGroup,
    chips: int = 1,
    **options: Any,
) -> Synapses:
    """Return all-to-all synapses within each chip, in the order (chip, post, pre)."""
    made = Synapses(
        pre,
        post,
        connection.text,
        method="euler",
        **{"name": connection.name, "namespace": _namespace(connection.constants)} | options,
    )
    n_pre, n_post = len(pre) // chips, len(post) // chips
    chip, target, source = np.indices((chips, n_post, n_pre)).reshape(3, -1)
    made.connect(i=chip * n_pre + source, j=chip * n_post + target)
    made.state_updater.order = WEIGHTS
    for name, updater in made.summed_updaters.items():
        updater.order = ORDER_OF_SUM[name]
    return made


def build(
    network: Network,
    circuit: Circuit,
    params: Parameters,
    mode: Mode = "supervised",
    *,
    seeds: Sequence[int] = (),
    scale: float = 1.0,
    tau_x: Sequence[ArrayLike] | None = None,
    name: str = "pc",
    **options: Any,
) -> Parts:
    """Build the population of a network, in one or more chips that share nothing.

    Main arguments:
        network, circuit: what is simulated; `circuit.tau_w` must be set.
        params: initial weights (chip, …); they are read, not moved.
        mode: which layers can be clamped. Set `layers[k].x` to clamp; `layers[0].free` lets go.

    Rarely used:
        seeds: of random feedback weights, one per chip.
        tau_x: seconds per layer, each a number or an array that fits (chip, 1, unit).
        name: every object's name starts with it.
        options: for all objects, e.g. `clock`, `dtype`, `codeobj_class`.
    """
    plan = Plan.of(network, circuit, mode, scale=scale, name=name)
    chips = params.replicas
    layers = tuple(neurons(group, chips, **options) for group in plan.groups)
    for k, (layer, group) in enumerate(zip(layers, plan.groups, strict=True)):
        if group.layer.clamped != "always":
            tau = np.asarray(circuit.tau_x if tau_x is None else tau_x[k], dtype=np.float64)
            layer.tau_x = np.broadcast_to(tau, (chips, 1, group.units)).ravel() * second
    maps = tuple(
        synapses(link, layers[link.pre], layers[link.post], chips, **options)
        for link in plan.connections
    )
    parts = Parts(plan, layers, maps)
    back = Feedback(
        circuit.transport, params, list(seeds) or list(range(chips)), circuit.feedback_gain
    )
    for k, (layer, link) in enumerate(zip(layers, maps, strict=False)):
        _set_weights(parts, k, layer, link, params.of[k], circuit)
        if "w_fb" in link.variables:
            link.w_fb = _numbers(back.of[k]["w"])
    return parts


def basal_gain(circuit: Circuit, k: int) -> float:
    """Return a_B of layer k: a dendritic circuit stores W_B = θ/a_B, the others θ itself."""
    if circuit.kind != "dendritic":
        return 1.0
    g = circuit.conductances
    return g.g_B / (g.g_lk + g.g_B + (g.g_A if k else 0.0))


def _set_weights(
    parts: Parts, k: int, layer: NeuronGroup, link: Synapses, theta: Any, circuit: Circuit
) -> None:
    arrays = {"w": basal_gain(circuit, k), "w_inter": parts.plan.groups[k].constants.get("a_D")}
    for name, gain in arrays.items():
        if name in link.variables:
            setattr(link, name, _numbers(theta["w"]) / gain)
        bias = name.replace("w", "b")
        if bias in layer.variables:
            setattr(layer, bias, _numbers(theta["b"]) / gain)


def _numbers(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64).ravel()


def _namespace(constants: dict[str, float]) -> dict[str, Any]:
    return {n: v * second if n.startswith(SECONDS) else v for n, v in constants.items()}
