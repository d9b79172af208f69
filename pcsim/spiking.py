"""Leaky graded sigma-delta events: how much of a rate or an error must change before it is sent.

A sender (the soma with its rate r, the apical compartment with its error err) knows what its
receivers believe, ŝ, and sends the whole number k of steps by which the truth s is off:

    dŝ/dt = −ŝ/τ_s        k = floor((s − ŝ)/q + 1/2)        event if k ≠ 0:  ŝ ← ŝ + q k

so that |s − ŝ| ≤ q/2 after every update. Receivers keep sums of their own with the same leak,
dμ/dt = −μ/τ_s, and add w q k at an event. The leak makes μ forget old weights within τ_s; without
it (pure sigma-delta) whatever was added with an old weight stays. The circuit around it is
`error_units` (see `pcsim.circuit`); all other times and the plasticity are the circuit's:

    τ_w dw/dt = err_post r̂_pre

Frozen data, no tensors.
"""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.energies import Gaussian
from pcsim.errors import UnsupportedError
from pcsim.frozen import Frozen, Positive
from pcsim.maps import NONLINEARITIES, Dense
from pcsim.network import Network


class Spiking(Frozen):
    """What is sent instead of rates and errors, and how fast it is forgotten."""

    q: Positive = 0.1
    """Step of the rates f(x), in their own (dimensionless) units: one somatic event sends q k."""
    qe: Positive = 0.05
    """Step of the errors, in units of x: one apical event sends qe k."""
    tau_s: Positive | None = 0.005
    """Seconds in which senders and receivers forget; none: never (pure sigma-delta)."""

    def keep(self, dt: float) -> float:
        """Return the factor by which a trace shrinks in one Euler step of `dt` seconds."""
        return 1.0 if self.tau_s is None else 1 - dt / self.tau_s


def refuse_beyond_events(network: Network, circuit: Circuit) -> None:
    """Refuse what the spiking circuit has no events for, by name and reason."""

    def no(field: str, reason: str) -> UnsupportedError:
        return UnsupportedError(f"spiking circuit: {field}: {reason}")

    if circuit.kind != "error_units":
        raise no(
            f"circuit.kind {circuit.kind!r}",
            "errors need a compartment of their own that sends events; use 'error_units'",
        )
    if circuit.transport != "shared":
        raise no(
            f"circuit.transport {circuit.transport!r}",
            "error events travel back through the forward weights; use 'shared'",
        )
    for name in ("delay_err", "delay_fb", "look_err", "weight_decay", "sigma_x"):
        if getattr(circuit, name):
            raise no(f"circuit.{name}", "has no equation among the events yet; set it to 0")
    for index, node in enumerate(network.nodes[:-1]):
        where = f"network node {index}"
        if not isinstance(node.map, Dense) or node.parents != (index + 1,):
            raise no(f"{where}: parents", "only a chain of dense layers sends events")
        if node.map.g != "identity":
            raise no("network.convention 'post'", "neurons are potentials, before f: use 'pre'")
        if node.map.f == "softmax" or node.map.f not in NONLINEARITIES:
            raise no(f"network.f {node.map.f!r}", "a rate must depend on its own soma alone")
        if not isinstance(node.energy, Gaussian) or not node.energy.unit:
            raise no(f"{where}: energy", "errors are sent as x − μ, of unit variance")
    if network.nodes[-1].map is not None:
        raise no("network.prior", "the input is clamped here and needs no prior")
