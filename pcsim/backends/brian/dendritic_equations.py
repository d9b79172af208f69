"""The circuit `dendritic`: soma, basal and apical dendrites, interneurons; see equations.py.

The equations are those of `pcsim.continuous.dendritic`; a layer's units and the interneurons that
predict them are one group.
"""

from __future__ import annotations

from pcsim.backends.brian.expressions import (
    feedback_lines,
    feedback_weight,
    plastic,
    rate_lines,
    size_lines,
    soma,
    soma_parameters,
)
from pcsim.backends.brian.layer import Layer
from pcsim.circuit import Circuit


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
    lines = [soma(circuit, layer, current, over="(g_total*tau_x)")]
    if layer.predicted_by == "above":
        lines.append("err = x - a_B*v_basal : 1")
        lines += ["v_basal = basal + b : 1"] if layer.bias else ["v_basal = basal : 1"]
        lines += ["db/dt = err/(a_B*tau_w) : 1"] if layer.bias else []
        lines.append("basal : 1  # a sum over the layer above")
    elif layer.predicted_by == "prior":
        lines.append("err = x - prior : 1")
    lines += _apical(circuit) if layer.f else []
    lines += _interneuron(circuit, layer) if layer.interneurons else []
    return [*lines, *rate_lines(layer), *size_lines(circuit, layer), *soma_parameters(layer)]


def dendritic_synapses(circuit: Circuit, post: Layer, *, feedback: bool) -> list[str]:
    """Return the equations of the synapses onto a layer, and onto the interneurons beside it."""
    lines = plastic(circuit, "w", "err_post*r_pre/a_B")
    sums = ["basal_post = w*r_pre : 1 (summed)"]
    if feedback:
        lines += feedback_lines(circuit, "err_post*r_pre")
        if circuit.inter_learned:
            lines += plastic(circuit, "w_inter", "rate_inter*err_inter_post*r_pre")
            sums += ["inter_in_post = w_inter*r_pre : 1 (summed)"]
        seen = "inter_seen_post" if circuit.look_inter else "inter_post"
        back = feedback_weight(circuit)
        sums += [f"td_pre = {back}*(x_post - kappa*{seen}) : 1 (summed)"]
    return lines + sums


def _apical(circuit: Circuit) -> list[str]:
    lines = ["td : 1  # top-down minus inhibition, a sum over the layer below"]
    if not circuit.tau_apical:
        return ["v_apical = gain_td*td : 1", *lines]
    force = "(gain_td*td - v_apical)/tau_apical"
    if circuit.look_apical:
        lines.append(f"v_apical_seen = v_apical + look_apical*{force} : 1")
    return [f"dv_apical/dt = {force} : 1", *lines]


def _interneuron(circuit: Circuit, layer: Layer) -> list[str]:
    """Interneurons of the layer above: one per unit, predicting its x."""
    learned = circuit.inter_learned
    nudged = circuit.conductances.nudging > 0
    rest = "(1 - nudging)*v_inter + nudging*x" if nudged else "v_inter"
    bias = " + b_inter" if layer.bias else ""
    lines = [f"v_inter = {f'a_D*(inter_in{bias})' if learned else 'a_B*v_basal'} : 1"]
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
