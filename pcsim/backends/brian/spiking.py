"""The spiking circuit as plain Brian2 objects for your own `Network`.

    parts = build_spiking(layers, circuit, Spiking(q=0.1, qe=0.05, tau_s=5e-3), weights)
    net = brian2.Network(parts.objects)
    net.run(1 * second)
    parts.events()["soma1"]        # events of every hidden neuron, likewise "apical0"

Layers are `NeuronGroup`s with two kinds of events, maps are `Synapses` with two pathways, counters
are `SpikeMonitor`s and `EventMonitor`s that count only. In one time step, weights move first, then
neurons (slot `groups`); then events are found (`thresholds`), arrive (`synapses`) and are
subtracted from what is still to be sent (`resets`). Nothing global is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import EventMonitor, NeuronGroup, SpikeMonitor, Synapses, second

from pcsim.backends.brian import spiking_equations as text
from pcsim.backends.brian.build import NEURONS, WEIGHTS
from pcsim.backends.brian.spiking_equations import SpikingLayer, spiking_layer_equations
from pcsim.circuit import Circuit
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense
from pcsim.network import Network
from pcsim.spiking import Spiking, refuse_beyond_events


@dataclass(frozen=True, eq=False)
class SpikingParts:
    """`layers[k]` from the output upwards, `maps[k]` onto layer k, `counters` by sender."""

    layers: tuple[NeuronGroup, ...]
    maps: tuple[Synapses, ...]
    counters: dict[str, EventMonitor]
    """`soma1` … for the rates of layer 1 …, `apical0` … for the errors of layer 0 …."""

    @property
    def objects(self) -> list[Any]:
        """Return everything, for a Brian2 `Network`."""
        return [*self.layers, *self.maps, *self.counters.values()]

    def events(self) -> dict[str, np.ndarray]:
        """Return the number of events so far of every neuron, by sender."""
        return {name: np.array(monitor.count[:]) for name, monitor in self.counters.items()}


def spiking_neurons(
    layer: SpikingLayer, circuit: Circuit, spiking: Spiking, units: int, **options: Any
) -> NeuronGroup:
    """Return the neurons of one layer; `options` (name, clock, …) go to `NeuronGroup`."""
    soma: dict[str, Any] = {}
    if layer.f is not None:
        soma = {"threshold": text.SOMA_CONDITION, "reset": text.SOMA_UPDATE}
    made = NeuronGroup(
        units,
        spiking_layer_equations(layer, spiking),
        method="euler",
        events={text.APICAL: text.APICAL_CONDITION} if layer.sends_errors else {},
        **soma,
        **{"namespace": _namespace(circuit, spiking), "order": NEURONS} | options,
    )
    if layer.sends_errors:
        made.run_on_event(text.APICAL, text.APICAL_UPDATE, when="resets")
    return made


def spiking_synapses(
    pre: NeuronGroup, post: NeuronGroup, circuit: Circuit, spiking: Spiking, **options: Any
) -> Synapses:
    """Return all-to-all synapses from the layer above (`pre`), in the order (post, pre).

    Somatic events of `pre` go down, apical events of `post`, where it has any, go up.
    """
    sends_errors = text.APICAL in post.events
    made = Synapses(
        pre,
        post,
        text.PLASTICITY,
        on_pre={"rate": text.RATE_ARRIVES},
        on_post={"error": text.ERROR_ARRIVES} if sends_errors else None,
        on_event={"rate": text.SOMA} | ({"error": text.APICAL} if sends_errors else {}),
        method="euler",
        **{"namespace": _namespace(circuit, spiking)} | options,
    )
    target, source = np.indices((len(post), len(pre))).reshape(2, -1)
    made.connect(i=source, j=target)
    made.state_updater.order = WEIGHTS
    return made


def build_spiking(
    network: Network,
    circuit: Circuit,
    spiking: Spiking,
    params: Parameters,
    *,
    name: str = "pc",
    **options: Any,
) -> SpikingParts:
    """Build one chip; input and output are clamped.

    Main arguments:
        circuit: of the kind `error_units`, with `tau_w` set.
        params: initial weights of one chip; they are read, not moved.

    Rarely used:
        name: every object's name starts with it.
        options: for all objects, e.g. `clock`, `codeobj_class`.

    Set `layers[k].x` to clamp; `layers[0].free = 1` lets the output go.
    """
    refuse_beyond_events(network, circuit)
    if params.replicas != 1:
        raise UnsupportedError(
            f"spiking circuit: {params.replicas} chips: build them one by one, under other names"
        )
    top = len(network.nodes) - 1
    specs = [node.map for node in network.nodes[:-1] if isinstance(node.map, Dense)]
    layers = []
    for k, node in enumerate(network.nodes):
        layer = SpikingLayer(
            f=specs[k - 1].f if k else None,
            predicted=k < top,
            sends_errors=k < top - 1,
            bias=k < top and specs[k].bias,
        )
        made = spiking_neurons(
            layer, circuit, spiking, node.units, name=f"{name}_layer{k}", **options
        )
        if layer.bias:
            made.b = params.of[k]["b"][0].numpy()
        layers.append(made)
    maps = []
    for k in range(top):
        link = spiking_synapses(
            layers[k + 1], layers[k], circuit, spiking, name=f"{name}_map{k}", **options
        )
        link.w = params.of[k]["w"][0].numpy().ravel()
        maps.append(link)
    return SpikingParts(tuple(layers), tuple(maps), _counters(layers, name, options))


def _counters(
    layers: list[NeuronGroup], name: str, options: dict[str, Any]
) -> dict[str, EventMonitor]:
    code = {n: value for n, value in options.items() if n == "codeobj_class"}
    counters = {}
    for k, layer in enumerate(layers):
        if text.SOMA in layer.events:
            counters[f"soma{k}"] = SpikeMonitor(
                layer, record=False, name=f"{name}_soma{k}_events", **code
            )
    for k, layer in enumerate(layers):
        if text.APICAL in layer.events:
            counters[f"apical{k}"] = EventMonitor(
                layer, text.APICAL, record=False, name=f"{name}_apical{k}_events", **code
            )
    return counters


def _namespace(circuit: Circuit, spiking: Spiking) -> dict[str, Any]:
    times = {
        "tau_x": circuit.tau_x,
        "tau_err": circuit.tau_err,
        "tau_w": circuit.weight_time,
        "tau_s": spiking.tau_s,
    }
    known = {n: value * second for n, value in times.items() if value is not None}
    return known | {"q": spiking.q, "qe": spiking.qe}
