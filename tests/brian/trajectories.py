"""Two simulations side by side: every state and weight of every step, by name.

A Brian2 monitor at RECORD sees the state from which a step is taken, and what is computed from it.
The continuous backend shows states before a step, and computed values after it: these are paired.
"""

from dataclasses import dataclass

import numpy as np
import torch
from brian2 import StateMonitor

from pcsim.backends.brian import RECORD, BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.kernels.parameters import Parameters

DT = 0.1
WEIGHTS = ("w", "w_inter", "w_fb")
NAMES = {
    "x": "x",
    "u": "u",
    "log_var": "log_var",
    "err": "err",
    "inter": "inter",
    "v_apical": "apical",
}


def parameters(network, chips, seed=0, gain=0.7):
    """Weights of a size at which nonlinearities are neither linear nor saturated."""
    rng = np.random.default_rng(seed)
    params = Parameters(
        network, torch.as_tensor(rng.normal(0, 0.3, (chips, network.parameter_count)))
    )
    for node, views in zip(network.nodes, params.of, strict=True):
        if "w" in views:
            views["w"].mul_(gain / 0.3 / node.map.n_in**0.5)
    return params


def clamps(network, mode, chips, seed=0):
    """One sample of data: a tensor per clamped layer, None for the others."""
    rng = np.random.default_rng([seed, 1])
    draws = [torch.as_tensor(rng.standard_normal((chips, 1, n.units))) for n in network.nodes]
    return [x if h != "free" else None for x, h in zip(draws, network.holds(mode), strict=True)]


@dataclass
class Pair:
    """The same chips in both backends, and Brian2 monitors of everything."""

    continuous: Continuous
    brian: BrianBackend
    monitors: list

    def __post_init__(self):
        self.expected = {}

    @classmethod
    def of(
        cls,
        network,
        circuit,
        *,
        chips=2,
        mode="supervised",
        target="numpy",
        gain=0.7,
        on=lambda: None,
        **more,
    ):
        """`on` makes the hardware, once for each backend: noise and memory are its own."""
        params = parameters(network, chips, gain=gain)
        own = Parameters(network, params.flat.clone())
        exact = Continuous(network, own, circuit, dt=DT, mode=mode, fast=False, chips=on(), **more)
        options = {"dt": DT, "mode": mode, "target": target, "chips": on()}
        brian = BrianBackend(network, params, circuit, **options, **more)
        return cls(exact, brian, watch(brian))

    def both(self, call):
        call(self.continuous)
        call(self.brian)

    def advance(self, steps, switch=None):
        """Go on; `switch` clamps, by step, are shown to both without a stop."""
        switch, start = switch or {}, self.brian.steps

        def change():
            if (data := switch.get(self.brian.steps - start)) is not None:
                self.brian.load(data)

        self.brian.advance(steps, change)
        flow = self.continuous.flow
        for step in range(steps):
            if step in switch:
                self.continuous.load(switch[step])
            flow.settle_weights()
            moving = {name: state.clone() for name, state in flow.moving().items()}
            arrays = {name: array.clone() for name, array in _arrays(flow)}
            self.continuous.advance(1)
            for name, state in ({**flow.states(), **moving} | arrays).items():
                self.expected.setdefault(name, []).append(state.numpy().copy())

    def differences(self):
        """Return the largest difference over all steps, for every state and array by name."""
        got = {}
        for k, (layer, link) in enumerate(self.monitors):
            for name in layer.record_variables:
                above = name == "inter"
                label = f"{NAMES.get(name, name)}{k + above}"
                got[label] = getattr(layer, name)
            for name in link.record_variables if link else ():
                got[f"{name}{k}"] = getattr(link, name)
        found = {}
        for label, rows in self.expected.items():
            if label not in got:
                # the feedback onto a clamped input; the membrane of a layer that was let go
                assert label.startswith(("w_fb", "u")), label
                continue
            seen = np.asarray(got[label]).T.reshape(len(rows), -1)
            found[label] = float(np.abs(seen - np.stack(rows).reshape(len(rows), -1)).max())
        assert set(got) == set(found), set(got) ^ set(found)
        return found


def watch(brian):
    """Add monitors of all states and weights; return them per layer (layer, synapses onto it)."""
    made = []
    options = {"record": True, "when": "groups", "order": RECORD, "clock": brian._clock}
    code = {"codeobj_class": brian.parts.layers[0].codeobj_class}
    for k, layer in enumerate(brian.parts.layers):
        names = [n for n in (*NAMES, "b", "b_inter") if n in layer.variables]
        if brian.parts.plan.groups[k].layer.clamped == "switched" and "u" in names:
            names.remove("u")  # torch has a membrane of it only while it is let go
        monitor = StateMonitor(layer, names, name=f"seen{k}", **options, **code)
        link = None
        if k < len(brian.parts.maps):
            source = brian.parts.maps[k]
            names = [n for n in WEIGHTS if n in source.variables]
            link = StateMonitor(source, names, name=f"seen_map{k}", **options, **code)
        made.append((monitor, link))
    brian.net.add([m for pair in made for m in pair if m is not None])
    return made


def _arrays(flow):
    """Yield the arrays of the continuous backend by the names they have in Brian2."""
    for k, views in enumerate(flow.params.of):
        yield from ((f"{name}{k}", array) for name, array in views.items())
        if flow.feedback.flat is not None and "w" in flow.feedback.of[k]:
            yield f"w_fb{k}", flow.feedback.of[k]["w"]
        inter = getattr(flow, "of", {}).get("w_inter")
        if inter and flow.circuit.inter_learned and "w" in inter[k] and flow.holds[k + 1] == "free":
            yield from ((f"{name}_inter{k}", array) for name, array in inter[k].items())
