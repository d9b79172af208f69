"""The circuits `algebraic` and `error_units`: predictions μ, errors, feedback.

    algebraic     tau_x dx/dt = f'(x) fb − err,   err = (x − μ)/var
    error_units   tau_err derr/dt = x − μ − var err
    delay_err     everybody sees the error that was there delay_err ago
    delay_fb      only the feedback is late: err_fb
    look_soma     rates come from x, which is the membrane u ahead of itself

With a nonlinearity g of the prediction (convention `post`), delta = g'(drive) err stands for the
error in feedback and learning. A layer with the categorical energy E = KL[p ‖ softmax(μ)], p the
label or softmax(x):

    err = p − (Σp) q,    q = exp(logit)/Σ exp(logit)        sent to weights and feedback
    own = p (Σ p ratio − ratio),    ratio = ln p − ln q     moves logits x that are let go

Σp = 1 but for a label that follows its target. What leaves a layer of logits are probabilities:

    r = softmax(x)            dx/dt ∝ r (fb − Σ r fb) + own            in place of f'(x) fb

The sums run over the layer itself, by synapses from every unit to every unit of a chip.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

from pydantic import model_validator

from pcsim.circuits import order
from pcsim.circuits.blocks import Place
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Page, Ring
from pcsim.circuits.section import Circuit, Delayed
from pcsim.circuits.shared import (
    array_lines,
    array_places,
    delivered_product,
    feedback_place,
    feedback_sum,
    moved,
    product_place,
    pulled,
    rate,
    rate_lines,
    rate_places,
    size_lines,
    slope,
    softmax_sums,
    soma,
    soma_parameters,
    speed_place,
)
from pcsim.frozen import Duration, Seconds


class Algebraic(Delayed):
    """Errors are exact at every instant: algebra of the states, with no time of their own."""

    kind: Literal["algebraic"] = "algebraic"
    look_soma: Duration = 0.0
    """Look-ahead time of the somas, x̆ = x + τ̂ dx/dt (latent equilibrium when τ̂ = tau_x)."""

    @model_validator(mode="after")
    def _no_delays_ahead(self) -> Self:
        if self.look_soma and (self.delay_err or self.delay_fb):
            raise ValueError("circuit.look_soma cannot be combined with delays")
        return self


class ErrorUnits(Delayed):
    """Errors have a unit of their own, with a time constant."""

    kind: Literal["error_units"] = "error_units"
    tau_err: Seconds
    """Time constant of the error units, seen by soma, feedback and weights alike."""
    look_err: Duration = 0.0
    """Look-ahead time of the errors, ê = e + τ̂ de/dt; τ̂ = tau_err restores ideal."""


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
    lines = error_soma(circuit, layer)
    if layer.predicted_by == "nothing":
        pass
    elif layer.categorical:
        lines += categorical_error(layer)
    else:
        lines += error_lines(circuit, layer)
    if layer.predicted_by == "above":
        lines += _prediction(circuit, layer)
    if layer.f:
        lines += feedback_sum(layer)
    lines += [*rate_lines(layer), *size_lines(circuit, layer), *soma_parameters(layer)]
    if layer.precision and not layer.learned_variance:
        lines.append("var : 1 (constant)")
    return lines


def error_synapses(circuit: Circuit, post: Layer) -> list[str]:
    """Return the equations of the synapses onto a layer."""
    err = error_at_drive(circuit, post)
    sent = f"{'err_fb' if circuit.delay_fb else err}_post"
    return array_lines(circuit, post, f"{err}_post*r_pre", sent, prediction_sum(post))


def error_soma(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equation of the soma: feedback pulls, the own error holds."""
    drift = pulled(layer) if layer.f else ""
    if layer.predicted_by != "nothing":
        own = " + own" if layer.categorical else f" - {error_seen(circuit, layer)}"
        drift = f"{drift}{own}" if drift else own.replace(" ", "").removeprefix("+")
    drift, lines = moved(layer, drift)
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


def prediction_error(layer: Layer) -> str:
    """Return what an error is of: x less its prediction."""
    if layer.predicted_by == "prior":
        return "x - prior"
    return "x - mu - b" if layer.bias_outside and layer.g == "identity" else "x - mu"


def error_lines(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the lines that define the error as it is seen; delays and hardware stand between."""
    seen, unread, lines = error_seen(circuit, layer), error_unread(circuit, layer), []
    now = "err_now" if circuit.delay_err else unread
    if circuit.tau_err:
        force = f"{prediction_error(layer)} - {'var*' if layer.precision else ''}err"
        lines.append(f"derr/dt = ({force})/tau_err : 1")
        ahead = f" + look_err*({force})/tau_err" if circuit.look_err else ""
        lines += [f"{now} = err{ahead} : 1"] if now != "err" else []
    else:
        difference = prediction_error(layer)
        lines.append(f"{now} = {f'({difference})/var' if layer.precision else difference} : 1")
    if circuit.delay_err:
        lines.append(f"{unread} : 1  # err_now, as it was delay_err ago")
    if unread != seen:
        lines.append(f"{seen} : 1  # {unread}, as hardware reads it")
    if layer.learned_variance:
        time = "tau_var" if layer.own_tau_w else "tau_w"
        lines += [
            "var = exp(log_var) : 1",
            f"dlog_var/dt = 0.5*(err*({prediction_error(layer)}) - 1)/{time} : 1",
        ]
    return lines


def _prediction(circuit: Circuit, layer: Layer) -> list[str]:
    lines, line = bias_lines(circuit, layer), prediction_sum(layer)
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
    lines += delivered_product(layer, line)
    if circuit.delay_fb and layer.sends_feedback:
        lines.append(f"err_fb : 1  # {error_at_drive(circuit, layer)}, as it was delay_fb ago")
    if layer.own_tau_w and layer.learned_variance:
        lines.append("tau_var : second (constant)")
    return lines


def bias_lines(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equation of the bias, where there is one."""
    if not layer.bias:
        return []
    err, own = error_at_drive(circuit, layer), layer.own_tau_w
    lines = [f"db/dt = {err}/{'tau_b' if own else 'tau_w'} : 1"]
    return [*lines, "tau_b : second (constant)"] if own else lines


SOFTMAX = (
    "total_q_post = exp(logit_pre) : 1 (summed)\n"
    "total_p_post = exp(x_pre) : 1 (summed)\n"
    "mass_post = p_pre : 1 (summed)\n"
    "mean_ratio_post = p_pre*ratio_pre : 1 (summed)\n"
)


def categorical_error(layer: Layer) -> list[str]:
    """Return error and own force of a layer whose units compete; labels are probabilities."""
    outside = layer.bias_outside and layer.g == "identity"
    above = "mu + b" if outside else "mu"
    prediction = "prior" if layer.predicted_by == "prior" else above
    softmax, read = "exp(x)/total_p", "error" in layer.sites
    switched = f"free*{softmax} + (1 - free)*x" if layer.clamped == "switched" else softmax
    return [
        f"{'err_unread' if read else 'err'} = p - mass*q : 1",
        *(["err : 1  # err_unread, as hardware reads it"] if read else []),
        "own = p*(mean_ratio - ratio) : 1",
        f"p = {switched} : 1",
        "q = exp(logit)/total_q : 1",
        "ratio = x - log(total_p) - logit + log(total_q) : 1  # ln p − ln q of logits x",
        f"logit = {prediction} : 1",
        "total_p : 1  # sums over this layer",
        "total_q : 1",
        "mass : 1",
        "mean_ratio : 1",
    ]


def unit_places(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return the places among the units of layer k, in the order in which they act."""
    places = rate_places(layer, k)
    if layer.clamped != "always":
        places += _places_of_states(circuit, layer, k)
    return [place for place in places if place.site in layer.sites]


def _places_of_states(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    places = []
    if layer.predicted_by == "above":
        result = "mu" if layer.g == "identity" else "drive"
        places.append(product_place(layer, k, prediction_sum(layer), result))
    if layer.predicted_by != "nothing":
        seen = error_seen(circuit, layer)
        places.append(Place("error", k, error_unread(circuit, layer), seen, order.READ_ERR))
    if layer.f is not None:
        places.append(feedback_place(layer, k))
    places.append(speed_place(layer, k))
    return places


def synapse_places(circuit: Circuit, post: Layer, k: int) -> list[Place]:
    """Return the places among the synapses onto layer k."""
    return array_places(circuit, post, k, f"{error_at_drive(circuit, post)}_post*r_pre")


def delayed_errors(circuit: Circuit, layer: Layer) -> list[Ring]:
    """Return the delay lines of a layer."""
    rings = []
    if circuit.delay_err and layer.predicted_by != "nothing" and layer.clamped != "always":
        rings.append(Ring("delay_err", "err_now", error_unread(circuit, layer)))
    if circuit.delay_fb and layer.sends_feedback:
        rings.append(Ring("delay_fb", error_at_drive(circuit, layer), "err_fb"))
    return rings


def sums_within(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return the sums over a layer itself, by name."""
    held = layer.predicted_by != "nothing" and layer.clamped != "always"
    sums = {"softmax": SOFTMAX} if layer.categorical and held else {}
    return sums | ({"rates": softmax_sums(layer)} if layer.shares_rates else {})


def error_rest(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return the feed-forward pass: predictions, no errors, membranes where their rates are."""
    rest = {}
    if layer.predicted_by == "above":
        outside = layer.bias_outside and layer.g == "identity"
        rest["x"] = "mu + b" if outside else "mu"
    if circuit.kind == "error_units" and layer.predicted_by != "nothing":
        rest["err"] = "0"
    return rest | ({"u": "x"} if circuit.look_soma else {})


ALGEBRAIC = Page(
    Algebraic,
    "errors are exact at every instant",
    error_layer,
    error_synapses,
    unit_places,
    synapse_places,
    rings=delayed_errors,
    sums_within=sums_within,
    rest=error_rest,
    shown=("err",),
    sites=frozenset({"tau_w"}),
    own_tau_w=True,
    softmax=True,
)
ERROR_UNITS = replace(
    ALGEBRAIC,
    fields=ErrorUnits,
    about="errors have a unit of their own, which follows them with a lag",
)
