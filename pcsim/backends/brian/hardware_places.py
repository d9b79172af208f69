"""Where hardware acts in the circuits `algebraic` and `error_units`; see the equations there."""

from __future__ import annotations

from pcsim.backends.brian import order
from pcsim.backends.brian.error_equations import (
    error_at_drive,
    error_seen,
    error_unread,
    prediction_sum,
)
from pcsim.backends.brian.expressions import feedback_base, weight_rate
from pcsim.backends.brian.hardware_text import Place
from pcsim.backends.brian.layer import Layer
from pcsim.circuit import Circuit


def unit_places(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return the places among the units of layer k, in the order in which they act."""
    found = rate_places(layer, k)
    if layer.clamped != "always":
        found += _places_of_states(circuit, layer, k)
    return [place for place in found if place.site in layer.sites]


def rate_places(layer: Layer, k: int) -> list[Place]:
    """Return what stands between potentials and the rates that are sent."""
    if layer.f is None:
        return []
    return [
        Place("membrane", k, "x", "x_seen", order.MEMBRANE, "before_start"),
        Place("rate", k, "fired", "r", order.READ),
    ]


def speed_place(layer: Layer, k: int) -> Place:
    """Return what acts on dx/dt; a clamped soma has none."""
    gate, own = "free" if layer.clamped == "switched" else "", {"x": "x"}
    speed = "second*force/tau_x"
    return Place("velocity", k, speed, "speed", order.CHANGE, symbols=own, gate=gate)


def _places_of_states(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    found = []
    if layer.predicted_by == "above":
        line = f"{prediction_sum(layer)}{' + b' if layer.bias else ''}"
        sums = {name: f"line_{name}" for name in layer.line_sums}
        result = "mu" if layer.g == "identity" else "drive"
        found.append(Place("product", k, line, result, order.PRODUCT, symbols=sums))
    if layer.predicted_by != "nothing":
        seen = error_seen(circuit, layer)
        found.append(Place("error", k, error_unread(circuit, layer), seen, order.READ_ERR))
    if layer.f is not None:
        sums = {name: f"back_{name}" for name in layer.back_sums}
        found.append(Place("feedback", k - 1, "fb_line", "fb", order.READ_FB, symbols=sums))
    found.append(speed_place(layer, k))
    return found


def synapse_places(circuit: Circuit, post: Layer, k: int, *, feedback: bool) -> list[Place]:
    """Return the places among the synapses onto layer k."""
    hebb = f"{error_at_drive(circuit, post)}_post*r_pre"
    found = [Place("weight", k, "w", "w_read", order.READ), write_place(circuit, "w", hebb, k)]
    if feedback and circuit.transport != "shared":
        base = feedback_base(circuit)
        found.append(Place("weight", k, base, "w_fb_read", order.READ_ERR, array="feedback"))
        if circuit.transport == "kolen_pollack":
            found.append(write_place(circuit, "w_fb", hebb, k, "feedback"))
    return [place for place in found if place.site in post.sites]


def write_place(circuit: Circuit, name: str, hebb: str, k: int, array: str = "") -> Place:
    """Return what acts on the change of a weight that plasticity asks for."""
    asked = f"dt*{weight_rate(circuit, name, hebb)}"
    known = {"w": name, "tau_w": "(learning_scale*tau_w/second)"}
    return Place("write", k, asked, f"{name}_change", order.CHANGE, symbols=known, array=array)
