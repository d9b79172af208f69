"""The circuit `dendritic`: soma, basal and apical dendrites, interneurons.

A layer's units and the interneurons that predict them are one group. Hardware reads the error for
the synapses alone, and the feedback is what apical dendrites receive.
"""

from __future__ import annotations

from typing import Literal

from pcsim.circuits import order
from pcsim.circuits.blocks import Place
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Page, no
from pcsim.circuits.section import Circuit, Conductances, Transported
from pcsim.circuits.shared import (
    feedback_base,
    feedback_lines,
    feedback_weight,
    plastic,
    rate_lines,
    rate_places,
    row_sums,
    size_lines,
    soma,
    soma_parameters,
    speed_place,
    write_place,
)
from pcsim.frozen import Duration, NotNegative
from pcsim.network import Mode, Network


class Dendritic(Transported):
    """Soma, basal and apical dendrite, and interneurons that cancel what is predicted."""

    kind: Literal["dendritic"] = "dendritic"
    conductances: Conductances = Conductances()
    """Conductances between compartments."""
    tau_apical: Duration = 0.0
    """Low-pass of the apical branch only; 0 is quasi-static."""
    tau_inter: Duration = 0.0
    """Time constant of the interneurons; 0 is quasi-static."""
    inter_learned: bool = True
    """Interneurons have weights of their own (else they read the forward array)."""
    inter_rate: NotNegative = 1.0
    """Their plasticity relative to the rate that keeps them exact."""
    inhibition: NotNegative = 1.0
    """Gain κ of the inhibitory apical synapses, W_P = −κ W_F; 1 cancels exactly."""
    look_inter: Duration = 0.0
    """Look-ahead time of the interneurons."""
    look_apical: Duration = 0.0
    """Look-ahead time of the apical potential."""


def taught_by(layer: Layer) -> str:
    """Return the dendritic error as the synapses see it."""
    return "err_taught" if "error" in layer.sites else "err"


def dendritic_layer(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of one layer."""
    seen = "v_apical_seen" if circuit.look_apical else "v_apical"
    apical = f"g_A*(slope*{seen} - x)"
    if layer.predicted_by == "above":
        current = "-g_lk*x + g_B*(v_basal - x)" + (f" + {apical}" if layer.f else "")
    elif layer.predicted_by == "prior":
        current = f"g_total*prior - (g_lk + g_B)*x + {apical}"
    else:  # flat prior: a soma without leak
        current = f"g_A*slope*{seen}"
    if "velocity" in layer.sites:
        lines = [soma(circuit, layer, "speed", over="second"), f"force = ({current})/g_total : 1"]
        lines.append("speed : 1  # dx/dt as hardware lets x move, per second")
    else:
        lines = [soma(circuit, layer, current, over="(g_total*tau_x)")]
    if layer.predicted_by == "above":
        lines += _basal(layer)
    elif layer.predicted_by == "prior":
        lines.append("err = x - prior : 1")
    lines += _apical(circuit, layer) if layer.f else []
    lines += _interneuron(circuit, layer) if layer.interneurons else []
    return [*lines, *rate_lines(layer), *size_lines(circuit, layer), *soma_parameters(layer)]


def dendritic_synapses(circuit: Circuit, post: Layer) -> list[str]:
    """Return the equations of the synapses onto a layer, and onto the interneurons beside it."""
    written, read = "write" in post.sites, "weight" in post.sites
    hebb = f"{taught_by(post)}_post*r_pre"
    weight = "w_read" if read else "w"
    lines = plastic(circuit, "w", f"{hebb}/a_B", written=written)
    lines += ["w_read : 1  # w as hardware presents it"] if read else []
    sums = [f"{basal_sum(post)}_post = {weight}*r_pre : 1 (summed)"]
    sums += row_sums("line_{}_post", post.line_sums, "r_pre", weight, "column")
    if post.has_feedback:
        lines += feedback_lines(circuit, hebb, written=written)
    if post.sends_feedback:
        if circuit.inter_learned:
            lines += plastic(circuit, "w_inter", INTER_HEBB, written=written)
            lines += ["w_inter_read : 1"] if read else []
            sums += [f"inter_in_post = w_inter{'_read' if read else ''}*r_pre : 1 (summed)"]
        back = feedback_weight(circuit, post)
        lines += ["w_fb_read : 1"] if back == "w_fb_read" else []
        sent = f"(x_post - kappa*{'inter_seen' if circuit.look_inter else 'inter'}_post)"
        sums += [f"td_pre = {back}*{sent} : 1 (summed)"]
        sums += row_sums("back_{}_pre", post.back_sums, sent, back, "row")
    return lines + sums


INTER_HEBB = "rate_inter*err_inter_post*r_pre"


def basal_sum(layer: Layer) -> str:
    """Return the variable into which the synapses from above are summed."""
    return "basal_line" if "product" in layer.sites else "basal"


def _basal(layer: Layer) -> list[str]:
    line, taught = basal_sum(layer), taught_by(layer)
    lines = ["err = x - a_B*v_basal : 1"]
    if line == "basal":
        lines.append(f"v_basal = {'basal + b' if layer.bias else 'basal'} : 1")
    else:
        lines.append("v_basal : 1  # with b, as hardware delivers it")
        lines += [f"line_{name} : 1" for name in layer.line_sums]
    lines += ["err_taught : 1  # err, as hardware shows it to synapses"] if taught != "err" else []
    lines += [f"db/dt = {taught}/(a_B*tau_w) : 1"] if layer.bias else []
    return [*lines, f"{line} : 1  # a sum over the layer above"]


def apical_target(layer: Layer) -> str:
    """Return what the apical potential relaxes to."""
    return "apical_in" if "feedback" in layer.sites else "gain_td*td"


def _apical(circuit: Circuit, layer: Layer) -> list[str]:
    target = apical_target(layer)
    lines = ["td : 1  # top-down minus inhibition, a sum over the layer below"]
    if "feedback" in layer.sites:
        lines.append("apical_in : 1  # gain_td*td, as hardware delivers it")
        lines += [f"back_{name} : 1" for name in layer.back_sums]
    if not circuit.tau_apical:
        return [f"v_apical = {target} : 1", *lines]
    force = f"({target} - v_apical)/tau_apical"
    if circuit.look_apical:
        lines.append(f"v_apical_seen = v_apical + look_apical*{force} : 1")
    return [f"dv_apical/dt = {force} : 1", *lines]


def inter_target(circuit: Circuit) -> str:
    """Return what an interneuron relaxes to."""
    return "(1 - nudging)*v_inter + nudging*x" if circuit.conductances.nudging else "v_inter"


def dendritic_rest(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return the feed-forward pass: basal predictions, and the other parts at rest with them."""
    rest = {"x": "a_B*v_basal"} if layer.predicted_by == "above" else {}
    if circuit.tau_inter and layer.interneurons:
        rest["inter"] = inter_target(circuit)
    if circuit.tau_apical and layer.f:
        rest["v_apical"] = apical_target(layer)
    return rest


def _interneuron(circuit: Circuit, layer: Layer) -> list[str]:
    """Interneurons of the layer above: one per unit, predicting its x."""
    learned = circuit.inter_learned
    nudged = circuit.conductances.nudging > 0
    rest = inter_target(circuit)
    bias = " + b_inter" if layer.bias else ""
    # Interneurons that read W share its array, but not what hardware does to the basal line.
    basal = (
        "v_basal" if basal_sum(layer) == "basal" else f"(basal_line{' + b' if layer.bias else ''})"
    )
    lines = [f"v_inter = {f'a_D*(inter_in{bias})' if learned else f'a_B*{basal}'} : 1"]
    seen = "inter"
    if not circuit.tau_inter:
        lines.append(f"inter = {rest} : 1")
    else:
        lines.append(f"dinter/dt = ({rest} - inter)/tau_inter : 1")
        if circuit.look_inter:
            lines.append(f"inter_seen = inter + look_inter*({rest} - inter)/tau_inter : 1")
            seen = "inter_seen"
    if learned:
        # What teaches it: its own potential where the unit nudges it, else the unit itself.
        lines.append(f"err_inter = {seen if nudged else 'x'} - v_inter : 1")
        lines += ["db_inter/dt = rate_inter*err_inter/tau_w : 1"] if layer.bias else []
        lines.append("inter_in : 1  # a sum over the layer above")
    return lines


GAINS = {
    "power": "gain_td**2*",
    "weighted_power": "gain_td**2*",
    "squared_power": "gain_td**2*",
    "load": "",
    "current": "gain_td*",
    "tapered": "gain_td*",
    "peak": "gain_td*",
}
"""What the gain of the top-down path makes of sums over a row; it is positive."""


def dendritic_unit_places(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return the places among the units of layer k."""
    places = rate_places(layer, k)
    if layer.clamped != "always":
        if layer.predicted_by == "above":
            line, sums = "basal_line", {name: f"line_{name}" for name in layer.line_sums}
            line += " + b" if layer.bias else ""
            places.append(Place("product", k, line, "v_basal", order.PRODUCT, symbols=sums))
            places.append(Place("error", k, "err", "err_taught", order.READ_ERR))
        if layer.f is not None:
            sums = {name: f"({GAINS[name]}back_{name})" for name in layer.back_sums}
            target = {"result": "apical_in", "order": order.READ_FB, "symbols": sums}
            places.append(Place("feedback", k - 1, "gain_td*td", **target))  # type: ignore[arg-type]
        places.append(speed_place(layer, k))
    return [place for place in places if place.site in layer.sites]


def dendritic_synapse_places(circuit: Circuit, post: Layer, k: int) -> list[Place]:
    """Return the places among the synapses onto layer k and onto the interneurons beside it."""
    hebb = f"{taught_by(post)}_post*r_pre"
    places = [Place("weight", k, "w", "w_read", order.READ)]
    places.append(write_place(circuit, "w", f"{hebb}/a_B", k))
    if post.sends_feedback and circuit.inter_learned:
        places.append(Place("weight", k, "w_inter", "w_inter_read", order.READ, array="inter"))
        places.append(write_place(circuit, "w_inter", INTER_HEBB, k, "inter"))
    if post.has_feedback and circuit.transport != "shared":
        back = {"order": order.READ_ERR, "array": "feedback"}
        base = feedback_base(circuit)
        places.append(Place("weight", k, base, "w_fb_read", **back))  # type: ignore[arg-type]
        if circuit.transport == "kolen_pollack":
            places.append(write_place(circuit, "w_fb", hebb, k, "feedback"))
    return [place for place in places if place.site in post.sites]


def refuse(network: Network, mode: Mode, who: str) -> None:
    """Refuse what a dendritic circuit has no equations for."""
    if mode == "associative":
        raise no("mode 'associative'", "a dendritic layer cannot be clamped in part", who)


DENDRITIC = Page(
    Dendritic,
    "soma, basal and apical dendrites, interneurons",
    dendritic_layer,
    dendritic_synapses,
    dendritic_unit_places,
    dendritic_synapse_places,
    interneurons=True,
    compartments=True,
    divided={"w": "a_B", "w_inter": "a_D"},
    rest=dendritic_rest,
    shown=("err", "inter", "v_apical"),
    sites=frozenset({"g_basal", "g_apical"}),
    potentials=True,
    refuse=refuse,
)
