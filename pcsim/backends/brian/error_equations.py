"""The circuits `algebraic` and `error_units`: predictions μ, errors, feedback; see equations.py.

    algebraic     tau_x dx/dt = f'(x) fb − err,   err = (x − μ)/var
    error_units   tau_err derr/dt = x − μ − var err
    delay_err     everybody sees the error that was there delay_err ago
    delay_fb      only the feedback is late: err_fb
    look_soma     rates come from x, which is the membrane u ahead of itself

With a nonlinearity g of the prediction (convention `post`), delta = g'(drive) err stands for the
error in feedback and learning.
"""

from __future__ import annotations

from pcsim.backends.brian.categorical_equations import categorical_error
from pcsim.backends.brian.expressions import (
    feedback_lines,
    feedback_weight,
    plastic,
    rate,
    rate_lines,
    size_lines,
    slope,
    soma,
    soma_parameters,
)
from pcsim.backends.brian.layer import Layer
from pcsim.circuit import Circuit
from pcsim.substrate.effect import AGGREGATES
from pcsim.substrate.expression import Expression


def error_seen(circuit: Circuit, layer: Layer) -> str:
    """Return the variable that soma, weights and feedback see as the error of a layer."""
    apart = circuit.look_err or circuit.delay_err or "error" in layer.sites
    return "err_seen" if circuit.kind == "error_units" and apart else "err"


def error_unread(circuit: Circuit, layer: Layer) -> str:
    """Return the same before hardware reads it."""
    return "err_unread" if "error" in layer.sites else error_seen(circuit, layer)


def error_at_drive(circuit: Circuit, layer: Layer) -> str:
    """Return the variable that weights and feedback see."""
    return error_seen(circuit, layer) if layer.g == "identity" else "delta"


def prediction_sum(layer: Layer) -> str:
    """Return the variable into which the synapses from above are summed."""
    name = "mu" if layer.g == "identity" else "drive"
    return f"{name}_line" if "product" in layer.sites else name


def error_layer(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of one layer."""
    lines = _soma(circuit, layer)
    if layer.categorical:
        lines += categorical_error(layer)
    elif layer.predicted_by != "nothing":
        lines += _error(circuit, layer)
    if layer.predicted_by == "above":
        lines += _prediction(circuit, layer)
    if layer.f:
        lines += _feedback(layer)
    lines += [*rate_lines(layer), *size_lines(circuit, layer), *soma_parameters(layer)]
    if layer.precision and not layer.learned_variance:
        lines.append("var : 1 (constant)")
    return lines


def error_synapses(circuit: Circuit, post: Layer, *, feedback: bool) -> list[str]:
    """Return the equations of the synapses onto a layer."""
    err = error_at_drive(circuit, post)
    hebb = f"{err}_post*r_pre"
    written, read = "write" in post.sites, "weight" in post.sites
    lines = plastic(circuit, "w", hebb, written=written)
    if post.own_tau_w:
        lines.append("tau_w : second (constant)")
    lines += ["w_read : 1  # w as hardware presents it"] if read else []
    weight = "w_read" if read else "w"
    sums = [f"{prediction_sum(post)}_post = {weight}*r_pre : 1 (summed)"]
    sums += row_sums("line_{}_post", post.line_sums, "r_pre", weight, "column")
    if feedback:
        lines += feedback_lines(circuit, hebb, written=written)
        back = feedback_weight(circuit, post)
        lines += ["w_fb_read : 1  # the feedback weight, likewise"] if back == "w_fb_read" else []
        sent = f"{'err_fb' if circuit.delay_fb else err}_post"
        line = "fb_line" if "feedback" in post.sites else "fb"
        sums.append(f"{line}_pre = {back}*{sent} : 1 (summed)")
        sums += row_sums("back_{}_pre", post.back_sums, sent, back, "row")
    return lines + sums


def row_sums(
    name: str, wanted: tuple[str, ...], signal: str, weight: str, position: str
) -> list[str]:
    """Return the sums over a row that effects need, as further summed variables."""
    lines = [f"{position} : 1 (constant)  # place along the line, j/n"]
    lines = lines if any("position" in AGGREGATES[each] for each in wanted) else []
    known = {"v": signal, "w": weight, "position": position}
    for each in wanted:
        text = Expression(AGGREGATES[each]).renamed(known)
        lines.append(f"{name.format(each)} = {text} : 1 (summed)")
    return lines


def _feedback(layer: Layer) -> list[str]:
    if "feedback" not in layer.sites:
        return ["fb : 1  # feedback, a sum over the layer below"]
    return [
        "fb_line : 1  # feedback, a sum over the layer below",
        "fb : 1  # the same as hardware delivers it",
        *(f"back_{name} : 1" for name in layer.back_sums),
    ]


def _soma(circuit: Circuit, layer: Layer) -> list[str]:
    if layer.categorical:
        drift = "own"
    elif layer.f is None:
        drift = f"-{error_seen(circuit, layer)}"
    elif layer.predicted_by == "nothing":
        drift = "slope*fb"
    else:
        drift = f"slope*fb - {error_seen(circuit, layer)}"
    lines = []
    if "velocity" in layer.sites:
        lines = [f"force = {drift} : 1", "speed : 1  # dx/dt as hardware lets x move, per second"]
        drift = "speed*tau_x/second"
    if not circuit.look_soma:
        return [soma(circuit, layer, drift), *lines]
    gate = "free*" if layer.clamped == "switched" else ""
    return [
        soma(circuit, layer, "x + drift - u", state="u"),
        # Over one step of dt, x becomes what stands before the minus sign.
        f"dx/dt = {gate}(u + look_soma*(x + drift - u)/tau_x - x)/dt : 1",
        f"drift = {drift} : 1",
        *lines,
    ]


def _difference(layer: Layer) -> str:
    if layer.predicted_by == "prior":
        return "x - prior"
    return "x - mu - b" if layer.bias_outside and layer.g == "identity" else "x - mu"


def _error(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the lines that define the error as it is seen; delays and hardware stand between."""
    seen, unread, lines = error_seen(circuit, layer), error_unread(circuit, layer), []
    now = "err_now" if circuit.delay_err else unread
    if circuit.kind == "error_units":
        force = f"{_difference(layer)} - {'var*' if layer.precision else ''}err"
        lines.append(f"derr/dt = ({force})/tau_err : 1")
        ahead = f" + look_err*({force})/tau_err" if circuit.look_err else ""
        lines += [f"{now} = err{ahead} : 1"] if now != "err" else []
    else:
        difference = _difference(layer)
        lines.append(f"{now} = {f'({difference})/var' if layer.precision else difference} : 1")
    if circuit.delay_err:
        lines.append(f"{unread} : 1  # err_now, as it was delay_err ago")
    if unread != seen:
        lines.append(f"{seen} : 1  # {unread}, as hardware reads it")
    if layer.learned_variance:
        time = "tau_var" if layer.own_tau_w else "tau_w"
        lines += [
            "var = exp(log_var) : 1",
            f"dlog_var/dt = 0.5*(err*({_difference(layer)}) - 1)/{time} : 1",
        ]
    return lines


def _prediction(circuit: Circuit, layer: Layer) -> list[str]:
    err, lines = error_at_drive(circuit, layer), []
    if layer.bias:
        lines.append(f"db/dt = {err}/{'tau_b' if layer.own_tau_w else 'tau_w'} : 1")
    line = prediction_sum(layer)
    if layer.g == "identity":
        lines.append(f"{line} : 1  # prediction, a sum over the layer above")
    else:
        total = "total" if layer.bias_outside else "drive"
        lines += ["total = drive + b : 1"] if layer.bias_outside else []
        lines += [
            f"mu = {rate(layer.g, total)} : 1  # prediction",
            f"delta = ({slope(layer.g, total, 'mu')})*{error_seen(circuit, layer)} : 1",
            f"{line} : 1  # a sum over the layer above",
        ]
    if "product" in layer.sites:
        lines.append(f"{line.removesuffix('_line')} : 1  # with b, as hardware delivers it")
        lines += [f"line_{name} : 1" for name in layer.line_sums]
    if circuit.delay_fb and layer.sends_feedback:
        lines.append(f"err_fb : 1  # {err}, as it was delay_fb ago")
    if layer.own_tau_w:
        lines += ["tau_b : second (constant)"] if layer.bias else []
        lines += ["tau_var : second (constant)"] if layer.learned_variance else []
    return lines
