"""The circuit `sacramento` (Sacramento, Costa, Bengio & Senn 2018); see equations.py.

The equations are those of `pcsim.continuous.sacramento`. Weights of the synapses from layer l+1
(pre) to layer l (post): `w` basal; `w_inter` (W_IP) onto the interneurons beside layer l; and, used
backwards, `w_down` from layer l and `w_pi` (W_PI) from those interneurons to the apical dendrites
of layer l+1.
"""

from __future__ import annotations

from pcsim.backends.brian.expressions import plastic, rate, soma
from pcsim.backends.brian.layer import Layer
from pcsim.circuit import Circuit


def sacramento_layer(circuit: Circuit, layer: Layer, *, output: bool) -> list[str]:
    """Return the equations of pyramidal cells and of the interneurons beside them."""
    assert layer.f is not None
    current = "-g_lk*x + g_B*(basal - x)"
    if not output:
        current += " + g_A*(v_apical - x)"
    elif layer.clamped == "switched":
        current += " + nudged*g_som*(target - x)"
    never = Layer(clamped="never")  # a target only pulls: the soma always moves
    lines = [
        soma(circuit, never, current, over="(g_cell*tau_x)"),
        "err_rate = r - rate_alone : 1",
        f"rate_alone = {rate(layer.f, 'v_alone')} : 1  # of a soma with its basal dendrite only",
        "v_alone = a_B*basal : 1",
        "basal : 1  # a sum over the layer above",
    ]
    if not output:
        lines += [
            "v_apical = td + lateral : 1",
            "td : 1  # top-down, a sum over the layer below",
            "lateral : 1  # inhibition, a sum over this layer's interneurons",
        ]
        lines += [f"rate_td = {rate(layer.f, 'td')} : 1"] if circuit.eta_down else []
    lines += _interneuron(circuit, layer.f) if layer.interneurons else []
    lines += [f"r = {rate(layer.f, 'x')} : 1 (constant over dt)", "tau_x : second (constant)"]
    if output and layer.clamped == "switched":
        lines += ["target : 1", "nudged : 1 (constant)  # 1: there is a target, 0: there is none"]
    return lines


def sacramento_synapses(circuit: Circuit, *, feedback: bool) -> list[str]:
    """Return the equations of four kinds of synapses, or of the basal kind alone."""
    lines = plastic(circuit, "w", "err_rate_post*r_pre")
    sums = ["basal_post = w*r_pre : 1 (summed)"]
    if feedback:
        lines += [
            _relative("w_inter", "eta_inter*err_inter_post*r_pre", circuit.eta_inter),
            _relative("w_pi", "-eta_apical*r_inter_post*v_apical_pre", circuit.eta_apical),
            _relative("w_down", "eta_down*r_post*(r_pre - rate_td_pre)", circuit.eta_down),
        ]
        sums += [
            "inter_in_post = w_inter*r_pre : 1 (summed)",
            "td_pre = w_down*r_post : 1 (summed)",
            "lateral_pre = w_pi*r_inter_post : 1 (summed)",
        ]
    return lines + sums


def _relative(name: str, hebb: str, rate_of_change: float) -> str:
    if not rate_of_change:
        return f"{name} : 1 (constant)"
    return f"d{name}/dt = {hebb}/tau_w : 1 (clock-driven)"


def _interneuron(circuit: Circuit, f: str) -> list[str]:
    noise = " + sigma_x*xi_inter" if circuit.sigma_x else ""
    force = "((1 - nudging)*v_inter + nudging*x - inter)/tau_inter"
    return [
        f"dinter/dt = {force}{noise} : 1",
        "v_inter = a_D*inter_in : 1",
        f"r_inter = {rate(f, 'inter')} : 1",
        f"err_inter = r_inter - {rate(f, 'v_inter')} : 1",
        "inter_in : 1  # a sum over the layer above",
    ]
