"""The circuit `spiking`: error units that send rates and errors as leaky graded sigma-delta events.

A sender (the soma with its rate r, the apical compartment with its error err) knows what its
receivers believe, ŝ, and sends the whole number k of steps by which the truth s is off:

    dŝ/dt = −ŝ/τ_s        k = floor((s − ŝ)/q + 1/2)        event if k ≠ 0:  ŝ ← ŝ + q k

so that |s − ŝ| ≤ q/2 after every update. Receivers keep sums of their own with the same leak,
dμ/dt = −μ/τ_s, and add w q k at an event. The leak makes μ forget old weights within τ_s; without
it (pure sigma-delta) whatever was added with an old weight stays. Soma and error are those of
`error_units`; weights see what is believed of the rate:

    τ_w dw/dt = err_post r̂_pre

    r, r_hat, k_soma        rate, what receivers believe of it, steps by which that is off
    err, err_hat, k_apical  the same of the error, in the apical compartment
    mu, fb                  what events from above and below leave behind, w q k each
"""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.circuits.error import bias_lines, error_lines, error_soma
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import CLAMPED, Event, Page
from pcsim.circuits.shared import plastic, rate_lines, soma_parameters

SOMA = Event("spike", "soma", "r", "r_hat", step="q", total="mu", onto="post")
APICAL = Event("apical", "apical", "err", "err_hat", step="qe", total="fb", onto="pre")


def events(circuit: Circuit, layer: Layer) -> list[Event]:
    """Return what a layer sends: rates to a layer below, errors to one above that can move."""
    found = [SOMA] if layer.f is not None else []
    return [*found, APICAL] if layer.sends_feedback else found


def spiking_layer(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of one layer."""
    lines = [*error_soma(circuit, layer), *error_lines(circuit, layer)]
    lines += bias_lines(circuit, layer)
    lines += [_trace(circuit, "mu", "prediction, left by somatic events of the layer above")]
    if layer.f is not None:
        lines += [_trace(circuit, "fb", "feedback, left by apical events of the layer below")]
    # Not constant over dt: the threshold must see the rate after the soma has moved.
    lines += rate_lines(layer, once=False)
    return [*lines, *_sending(circuit, layer), *soma_parameters(layer)]


def spiking_source(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of a clamped input."""
    return [CLAMPED, *rate_lines(layer, once=False)[:-1], *_sending(circuit, layer)]


def spiking_synapses(circuit: Circuit, post: Layer) -> list[str]:
    """Return the equation of the synapses onto a layer; all else comes by events."""
    lines = plastic(circuit, "w", "err_post*r_hat_pre")
    return [*lines, "tau_w : second (constant)"] if post.own_tau_w else lines


def _sending(circuit: Circuit, layer: Layer) -> list[str]:
    lines = []
    for event in events(circuit, layer):
        believed = f"what the layer {'below' if event.onto == 'post' else 'above'} believes of"
        lines += [_trace(circuit, event.belief, f"{believed} {event.signal}"), event.line]
    return lines


def _trace(circuit: Circuit, name: str, about: str) -> str:
    leak = f"-{name}/tau_s" if circuit.tau_s else "0/second"
    return f"d{name}/dt = {leak} : 1  # {about}"


SPIKING = Page(
    "spiking",
    "rates and errors are sent as graded events, of steps q and qe, that are forgotten in tau_s",
    spiking_layer,
    spiking_synapses,
    source=spiking_source,
    events=events,
)
