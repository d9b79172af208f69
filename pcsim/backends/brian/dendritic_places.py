"""Where hardware acts in the circuit `dendritic`; see `pcsim.continuous.dendritic`.

The error is read by synapses alone, and the feedback is what apical dendrites receive.
"""

from __future__ import annotations

from pcsim.backends.brian import order
from pcsim.backends.brian.dendritic_equations import INTER_HEBB, taught_by
from pcsim.backends.brian.expressions import feedback_base
from pcsim.backends.brian.hardware_places import rate_places, speed_place, write_place
from pcsim.backends.brian.hardware_text import Place
from pcsim.backends.brian.layer import Layer
from pcsim.circuit import Circuit

GAINS = {
    "power": "gain_td**2*",
    "weighted_power": "gain_td**2*",
    "squared_power": "gain_td**2*",
    "load": "",
    "current": "gain_td*",
    "tapered": "gain_td*",
}
"""What the gain of the top-down path makes of sums over a row; it is positive."""


def dendritic_unit_places(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return the places among the units of layer k."""
    found = rate_places(layer, k)
    if layer.clamped != "always":
        if layer.predicted_by == "above":
            line, sums = "basal_line", {name: f"line_{name}" for name in layer.line_sums}
            line += " + b" if layer.bias else ""
            found.append(Place("product", k, line, "v_basal", order.PRODUCT, symbols=sums))
            found.append(Place("error", k, "err", "err_taught", order.READ_ERR))
        if layer.f is not None:
            sums = {name: f"({GAINS[name]}back_{name})" for name in layer.back_sums}
            target = {"result": "apical_in", "order": order.READ_FB, "symbols": sums}
            found.append(Place("feedback", k - 1, "gain_td*td", **target))  # type: ignore[arg-type]
        found.append(speed_place(layer, k))
    return [place for place in found if place.site in layer.sites]


def dendritic_synapse_places(
    circuit: Circuit, post: Layer, k: int, *, feedback: bool
) -> list[Place]:
    """Return the places among the synapses onto layer k and onto the interneurons beside it."""
    hebb = f"{taught_by(post)}_post*r_pre"
    found = [Place("weight", k, "w", "w_read", order.READ)]
    found.append(write_place(circuit, "w", f"{hebb}/a_B", k))
    if feedback and circuit.inter_learned:
        found.append(Place("weight", k, "w_inter", "w_inter_read", order.READ, array="inter"))
        found.append(write_place(circuit, "w_inter", INTER_HEBB, k, "inter"))
    if feedback and circuit.transport != "shared":
        back = {"order": order.READ_ERR, "array": "feedback"}
        base = feedback_base(circuit)
        found.append(Place("weight", k, base, "w_fb_read", **back))  # type: ignore[arg-type]
        if circuit.transport == "kolen_pollack":
            found.append(write_place(circuit, "w_fb", hebb, k, "feedback"))
    return [place for place in found if place.site in post.sites]
