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

from typing import Literal

from pcsim.circuits.error import bias_lines, error_lines, error_soma
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import CLAMPED, Event, Page, no
from pcsim.circuits.section import Circuit
from pcsim.circuits.shared import plastic, rate_lines, soma_parameters
from pcsim.energies import Gaussian
from pcsim.frozen import Duration, Positive, Seconds
from pcsim.maps import Dense
from pcsim.maps.nonlinearities import row
from pcsim.network import Mode, Network

SOMA = Event("spike", "soma", "r", "r_hat", step="q", total="mu", onto="post")
APICAL = Event("apical", "apical", "err", "err_hat", step="qe", total="fb", onto="pre")


class Spiking(Circuit):
    """Error units whose rates and errors are sent as events, back through the forward weights."""

    kind: Literal["spiking"] = "spiking"
    tau_err: Seconds
    """Time constant of the errors, seen by soma, feedback and weights alike."""
    tau_s: Duration
    """Time in which senders and receivers forget what was sent; 0: never (pure sigma-delta)."""
    q: Positive = 0.1
    """Step of the rates f(x), in their own units: one somatic event sends q k."""
    qe: Positive = 0.05
    """Step of the errors, in units of x: one apical event sends qe k."""


def events(circuit: Circuit, layer: Layer) -> list[Event]:
    """Return what a layer sends: rates to a layer below, errors to one above that can move."""
    events = [SOMA] if layer.f is not None else []
    return [*events, APICAL] if layer.sends_feedback else events


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


def refuse_beyond_events(network: Network, mode: Mode, who: str) -> None:
    """Refuse what the spiking circuit has no events for."""
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "the spiking circuit has a clamped input, and a label", who)
    for index, node in enumerate(network.nodes[:-1]):
        where = f"network node {index}"
        if not isinstance(node.map, Dense) or node.parents != (index + 1,):
            raise no(f"{where}: parents", "only a chain of dense layers sends events", who)
        if node.map.positions != 1:
            raise no(f"{where}: map", "layers with positions send no events", who)
        if node.map.g != "identity":
            raise no(
                "network.convention 'post'", "neurons are potentials, before f: use 'pre'", who
            )
        if not row(node.map.f).elementwise:
            raise no(f"network.f {node.map.f!r}", "a rate must depend on its own soma alone", who)
        if not isinstance(node.energy, Gaussian) or not node.energy.unit:
            raise no(f"{where}: energy", "errors are sent as x − μ, of unit variance", who)
    if network.nodes[-1].map is not None:
        raise no("network.prior", "the input is clamped here and needs no prior", who)


SPIKING = Page(
    Spiking,
    "rates and errors are sent as graded events, of steps q and qe, that are forgotten in tau_s",
    spiking_layer,
    spiking_synapses,
    source=spiking_source,
    events=events,
    own_tau_w=True,
    instead="error_units",
    refuse=refuse_beyond_events,
)
