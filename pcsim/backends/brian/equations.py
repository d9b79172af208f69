"""The circuits in Brian2's own language: text in, text out, nothing is executed here.

States are dimensionless, times carry seconds. The names are those of the rest of pcsim: x, err, mu,
fb, r, w, b, tau_x, tau_err, tau_w. One group of neurons per layer, one set of synapses per map:

    pre  = layer l+1, which predicts         post = layer l, which is predicted
    mu_post, basal_post, inter_in_post       sums over pre   (predictions)
    fb_pre, td_pre                           sums over post  (errors on their way back)

Interneurons that predict layer l stand beside its units, one each, in the same group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pcsim.circuit import Circuit
from pcsim.errors import UnsupportedError

SLOPE_BELOW_ZERO = 0.01
"""Of the leaky relu, as everywhere in pcsim."""
RATES: dict[str, tuple[str, str]] = {
    "identity": ("x", "1"),
    "tanh": ("tanh(x)", "1 - r**2"),
    "sigmoid": ("1/(1 + exp(-x))", "r*(1 - r)"),
    "relu": ("x*int(x > 0)", "int(x > 0)"),
    "leaky_relu": (
        f"x*({SLOPE_BELOW_ZERO} + {1 - SLOPE_BELOW_ZERO}*int(x > 0))",
        f"{SLOPE_BELOW_ZERO} + {1 - SLOPE_BELOW_ZERO}*int(x > 0)",
    ),
}
"""f and f' of every nonlinearity, as expressions in x and r = f(x)."""


@dataclass(frozen=True)
class Layer:
    """Where a layer stands in the chain, as far as its equations depend on it."""

    f: str | None = "tanh"
    """Nonlinearity on the way to the layer below; None where there is none (the datum)."""
    predicted_by: Literal["above", "prior", "nothing"] = "above"
    """What its error is measured from; `nothing` is a flat prior."""
    clamped: Literal["never", "switched", "always"] = "never"
    """`switched`: a variable `free` (1 or 0, per unit) says whether x moves."""
    bias: bool = True
    precision: bool = False
    """Whether errors are divided by a variance `var` per unit."""
    interneurons: bool = False
    """dendritic: whether the layer above is free, and so needs interneurons to predict this one."""


def layer_equations(circuit: Circuit, layer: Layer) -> str:
    """Return the equations of one layer of value neurons."""
    if layer.clamped == "always":
        return _text(["x : 1  # clamped from outside", *_rate(layer)[:1]])
    write: dict[str, Callable[[Circuit, Layer], list[str]]] = {
        "algebraic": _algebraic,
        "error_units": _error_units,
        "dendritic": _dendritic,
    }
    return _text([*write[circuit.kind](circuit, layer), *_rate(layer), *_parameters(layer)])


def synapse_equations(circuit: Circuit, *, feedback: bool = True) -> str:
    """Return the equations of the synapses between two layers.

    `feedback`: the layer above is free, and needs the errors of the one below; in the dendritic
    circuit its interneurons then have synapses too.
    """
    back = "w" if circuit.transport == "shared" else "w_fb"
    err = "err_seen_post" if circuit.look_err else "err_post"
    if circuit.kind != "dendritic":
        lines = [_plastic(circuit, "w", f"{err}*r_pre")]
        lines += _feedback_weights(circuit, f"{err}*r_pre") if feedback else []
        lines += ["mu_post = w*r_pre : 1 (summed)"]
        return _text([*lines, *([f"fb_pre = {back}*{err} : 1 (summed)"] if feedback else [])])
    lines = [_plastic(circuit, "w", "err_post*r_pre/a_B")]
    sums = ["basal_post = w*r_pre : 1 (summed)"]
    if feedback:
        lines += _feedback_weights(circuit, "err_post*r_pre")
        if circuit.inter_learned:
            lines += [_plastic(circuit, "w_inter", "rate_inter*err_inter_post*r_pre")]
            sums += ["inter_in_post = w_inter*r_pre : 1 (summed)"]
        seen = "inter_seen_post" if circuit.look_inter else "inter_post"
        sums += [f"td_pre = {back}*(x_post - kappa*{seen}) : 1 (summed)"]
    return _text(lines + sums)


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _rate(layer: Layer) -> list[str]:
    if layer.f is None:
        return []
    if layer.f not in RATES:
        raise UnsupportedError(
            f"backend brian: network.f {layer.f!r} has no elementwise Brian2 expression here; "
            f"choose one of {', '.join(RATES)}"
        )
    rate, slope = RATES[layer.f]
    # x moves at the end of a time step only, so that its rate is needed once per step.
    return [f"r = {rate} : 1 (constant over dt)", f"slope = {slope} : 1"]


def _parameters(layer: Layer) -> list[str]:
    lines = ["tau_x : second (constant)"]
    if layer.clamped == "switched":
        lines.append("free : 1 (constant)  # 1: x moves, 0: x is clamped")
    if layer.precision:
        lines.append("var : 1 (constant)")
    return lines


def _soma(layer: Layer, force: str, over: str = "tau_x") -> str:
    gate = "free*" if layer.clamped == "switched" else ""
    return f"dx/dt = {gate}({force})/{over} : 1"


def _difference(layer: Layer) -> str:
    if layer.predicted_by == "prior":
        return "x - prior"
    return "x - mu - b" if layer.bias else "x - mu"


def _inputs(layer: Layer, err: str) -> list[str]:
    """Return bias and sums of the circuits that know predictions and errors only."""
    lines = []
    if layer.predicted_by == "above":
        lines += [f"db/dt = {err}/tau_w : 1"] if layer.bias else []
        lines += ["mu : 1  # prediction, a sum over the layer above"]
    return lines + (["fb : 1  # feedback, a sum over the layer below"] if layer.f else [])


def _drift(layer: Layer, err: str) -> str:
    own = "" if layer.predicted_by == "nothing" else f"-{err}"
    return own if layer.f is None else f"slope*fb {own.replace('-', '- ')}".strip()


def _algebraic(circuit: Circuit, layer: Layer) -> list[str]:
    lines = [_soma(layer, _drift(layer, "err"))]
    if layer.predicted_by != "nothing":
        difference = _difference(layer)
        lines.append(f"err = {f'({difference})/var' if layer.precision else difference} : 1")
    return lines + _inputs(layer, "err")


def _error_units(circuit: Circuit, layer: Layer) -> list[str]:
    err = "err_seen" if circuit.look_err else "err"
    lines = [_soma(layer, _drift(layer, err))]
    if layer.predicted_by != "nothing":
        force = f"{_difference(layer)} - {'var*' if layer.precision else ''}err"
        lines.append(f"derr/dt = ({force})/tau_err : 1")
        if circuit.look_err:
            lines.append(f"err_seen = err + look_err*({force})/tau_err : 1")
    return lines + _inputs(layer, err)


def _dendritic(circuit: Circuit, layer: Layer) -> list[str]:
    seen = "v_apical_seen" if circuit.look_apical else "v_apical"
    apical = f"g_A*(slope*{seen} - x)"
    if layer.predicted_by == "above":
        current = "-g_lk*x + g_B*(v_basal - x)" + (f" + {apical}" if layer.f else "")
    elif layer.predicted_by == "prior":
        current = f"g_total*prior - (g_lk + g_B)*x + {apical}"
    else:  # flat prior: a soma without leak
        current = f"g_A*slope*{seen}"
    lines = [_soma(layer, current, "(g_total*tau_x)")]
    if layer.predicted_by == "above":
        lines.append("err = x - a_B*v_basal : 1")
        lines += ["v_basal = basal + b : 1"] if layer.bias else ["v_basal = basal : 1"]
        lines += ["db/dt = err/(a_B*tau_w) : 1"] if layer.bias else []
        lines.append("basal : 1  # a sum over the layer above")
    elif layer.predicted_by == "prior":
        lines.append("err = x - prior : 1")
    lines += _apical(circuit) if layer.f else []
    return lines + (_interneuron(circuit, layer) if layer.interneurons else [])


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


def _plastic(circuit: Circuit, name: str, hebb: str) -> str:
    if not circuit.weight_decay:
        return f"d{name}/dt = {hebb}/tau_w : 1 (clock-driven)"
    return f"d{name}/dt = ({hebb} - decay*{name})/tau_w : 1 (clock-driven)"


def _feedback_weights(circuit: Circuit, hebb: str) -> list[str]:
    if circuit.transport == "shared":
        return []
    if circuit.transport == "random":
        return ["w_fb : 1 (constant)"]
    return [_plastic(circuit, "w_fb", hebb)]
