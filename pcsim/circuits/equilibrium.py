"""The circuit `equilibrium`: continual equilibrium propagation (Ernoult et al. 2020).

Symmetric synapses between leaky somas; nothing carries errors. Without a target the states come to
rest at a minimum of Hopfield's energy E; a target pulls the output with strength β towards it, and
while it does, weights follow what that changes:

    E = Σ_k [Σ_i ∫ f⁻¹(r) dr − b·r]_k − Σ_k r_kᵀ W_k r_{k+1},        C = ½ |target − r_0|²
    tau_x dx/dt = −∂(E + βC)/∂r = μ + fb − x + β (target − r)         r = f(x), the output's r = x
    tau_w dW/dt = (1/β) tau_x d/dt (r_post r_preᵀ)                    by r_dot = tau_x dr/dt

From rest to rest that adds up to (tau_x/tau_w)/β times the change of r_post r_preᵀ, which is minus
the gradient of the loss, to first order in β, if weights are slow. At dt = tau_x the steps are
x ← W r + Wᵀ r: those of the discrete setting of the paper.

The circuit needs a phase signal: the input must be there without a target first (`stream.t_settle`)
and with one afterwards, and synapses must be told. `nudged` is that signal, at all of them.
Plastic without it, what the nudge has taught is unlearnt while the states relax from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import AfterValidator

from pcsim.circuits.blocks import Place
from pcsim.circuits.layer import Layer
from pcsim.circuits.page import Page, no
from pcsim.circuits.section import Circuit
from pcsim.circuits.shared import (
    array_lines,
    array_places,
    delivered_product,
    feedback_place,
    feedback_sum,
    moved,
    product_place,
    rate_lines,
    rate_places,
    soma,
    soma_parameters,
    speed_place,
)
from pcsim.network import Mode, Network


def _not_zero(value: float) -> float:
    if not value:
        raise ValueError("must not be 0, by which changes are divided")
    return value


class Equilibrium(Circuit):
    """Continual equilibrium propagation: a weak nudge, and weights that follow what it changes."""

    kind: Literal["equilibrium"] = "equilibrium"
    beta: Annotated[float, AfterValidator(_not_zero)] = 0.5
    """Strength β of the nudge, τ_x dx/dt = … + β (target − x) at the output; of either sign."""
    plastic: Literal["nudged", "always"] = "nudged"
    """When weights move: while a target nudges, or always (which needs no signal, and unlearns)."""


def _unclamped(layer: Layer) -> Layer:
    """Return a layer as its soma is: a target only pulls, so that it always moves."""
    f = "identity" if layer.output else layer.f
    return replace(layer, clamped="never", f=f)


def _gate(circuit: Circuit, of: str = "") -> str:
    return f"nudged{of}*" if circuit.plastic == "nudged" else ""


def _sum(layer: Layer) -> str:
    return "mu_line" if "product" in layer.sites else "mu"


def equilibrium_layer(circuit: Circuit, layer: Layer) -> list[str]:
    """Return the equations of one layer."""
    soma_of, nudged = _unclamped(layer), layer.output and layer.clamped == "switched"
    drift, at_hardware = moved(layer, "total - x")
    total = f"mu{' + b' if layer.bias_outside else ''}{'' if layer.output else ' + fb'}"
    total += " + nudged*beta*(target - r)" if nudged else ""
    lines = [
        soma(circuit, soma_of, drift),
        *at_hardware,
        f"total = {total} : 1",
        f"r_dot = slope*({drift}) : 1  # tau_x dr/dt",
        f"gap = {'nudged*(target - r)' if nudged else 'total - x'} : 1  # to target, or rest",
        f"{_sum(layer)} : 1  # a sum over the layer above",
        *delivered_product(layer, _sum(layer)),
        *([] if layer.output else feedback_sum(layer)),
        *rate_lines(soma_of),
        *soma_parameters(soma_of),
    ]
    lines += ["target : 1"] if nudged else []
    if nudged or circuit.plastic == "nudged":
        lines.append("nudged : 1 (constant)  # 1: there is a target, 0: there is none")
    if layer.bias:
        lines.append(f"db/dt = {_gate(circuit)}r_dot/beta/tau_w : 1")
    return lines


def _hebb(circuit: Circuit, post: Layer) -> str:
    """Return τ_x d/dt (r_post r_pre)/β; the rate of a clamped input does not move."""
    change = "r_dot_post*r_pre"
    if post.sends_feedback:
        change = f"({change} + r_post*r_dot_pre)"
    return f"{_gate(circuit, '_post')}{change}/beta"


def equilibrium_synapses(circuit: Circuit, post: Layer) -> list[str]:
    """Return the equations of the synapses onto a layer."""
    return array_lines(circuit, post, _hebb(circuit, post), "r_post", _sum(post))


def unit_places(circuit: Circuit, layer: Layer, k: int) -> list[Place]:
    """Return the places among the units of layer k, in the order in which they act."""
    places = rate_places(_unclamped(layer), k)
    if layer.clamped != "always":
        places.append(product_place(layer, k, _sum(layer), "mu"))
        places += [] if layer.output else [feedback_place(layer, k)]
        places.append(speed_place(_unclamped(layer), k))
    return [place for place in places if place.site in layer.sites]


def synapse_places(circuit: Circuit, post: Layer, k: int) -> list[Place]:
    """Return the places among the synapses onto layer k."""
    return array_places(circuit, post, k, _hebb(circuit, post))


def equilibrium_rest(circuit: Circuit, layer: Layer) -> dict[str, str]:
    """Return the pass without feedback, from which the states relax."""
    return {"x": f"mu{' + b' if layer.bias_outside else ''}"}


def refuse(network: Network, mode: Mode, who: str) -> None:
    """Refuse what has no equilibrium to be nudged from."""
    if mode not in ("supervised", "free"):
        raise no(f"mode {mode!r}", "an equilibrium circuit has an input and at most a target", who)


EQUILIBRIUM = Page(
    Equilibrium,
    "continual equilibrium propagation: symmetric synapses, and weights that follow what a weak "
    "nudge of the output changes",
    equilibrium_layer,
    equilibrium_synapses,
    unit_places,
    synapse_places,
    rest=equilibrium_rest,
    residual="gap",
    output_fires=True,
    phases=True,
    lacks=frozenset({"error"}),
    potentials=True,
    refuse=refuse,
)
