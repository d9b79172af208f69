"""The spiking circuit in Brian2's language: text in, text out. See `pcsim.spiking` for the model.

    r, r_hat, k_soma        rate, what receivers believe of it, steps by which that is off
    err, err_hat, k_apical  the same of the error, in the apical compartment
    mu, fb                  what events from above and below leave behind, w q k each

Events: `spike` (soma) and `apical`. States are dimensionless, times carry seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.backends.brian.expressions import RATES, rate, slope
from pcsim.errors import UnsupportedError
from pcsim.spiking import Spiking

SOMA, APICAL = "spike", "apical"
"""Names of the two events of a layer; the first is what Brian2 calls a threshold's."""
SOMA_CONDITION, SOMA_UPDATE = "abs(k_soma) > 0.5", "r_hat += q*k_soma"
APICAL_CONDITION, APICAL_UPDATE = "abs(k_apical) > 0.5", "err_hat += qe*k_apical"
RATE_ARRIVES = "mu_post += w*q*k_soma_pre"
ERROR_ARRIVES = "fb_pre += w*qe*k_apical_post"
PLASTICITY = "dw/dt = err_post*r_hat_pre/tau_w : 1 (clock-driven)\n"


@dataclass(frozen=True)
class SpikingLayer:
    """Where a layer stands in the chain, as far as its equations depend on it."""

    f: str | None = "tanh"
    """Nonlinearity on the way to the layer below; None where there is none (the output)."""
    predicted: bool = True
    """Whether a layer above predicts it; False is a clamped input, which has no error."""
    sends_errors: bool = True
    """Whether the layer above can move, and so needs its errors."""
    bias: bool = True


def spiking_layer_equations(layer: SpikingLayer, spiking: Spiking) -> str:
    """Return the equations of one layer."""

    def trace(name: str, of: str) -> str:
        if spiking.tau_s is None:
            return f"{name} : 1  # {of}"
        return f"d{name}/dt = -{name}/tau_s : 1  # {of}"

    lines = []
    if not layer.predicted:
        lines += ["x : 1  # clamped from outside"]
    elif layer.f is None:
        lines += ["dx/dt = -free*err/tau_x : 1", "free : 1 (constant)  # 1: x moves, 0: clamped"]
    else:
        lines += ["dx/dt = (slope*fb - err)/tau_x : 1"]
        lines += [trace("fb", "feedback, left by apical events of the layer below")]
    if layer.predicted:
        lines += [f"derr/dt = (x - mu{' - b' if layer.bias else ''} - err)/tau_err : 1"]
        lines += ["db/dt = err/tau_w : 1"] if layer.bias else []
        lines += [trace("mu", "prediction, left by somatic events of the layer above")]
    if layer.f is not None:
        if layer.f not in RATES:
            raise UnsupportedError(
                f"spiking circuit: network.f {layer.f!r} has no elementwise Brian2 expression "
                f"here; choose one of {', '.join(RATES)}"
            )
        # Not constant over dt: the threshold must see the rate after the soma has moved.
        lines += [f"r = {rate(layer.f, 'x')} : 1"]
        lines += [f"slope = {slope(layer.f, 'x', 'r')} : 1"] if layer.predicted else []
        lines += [trace("r_hat", "what the layer below believes of r")]
        lines += ["k_soma = floor((r - r_hat)/q + 0.5) : 1"]
    if layer.sends_errors:
        lines += [trace("err_hat", "what the layer above believes of err")]
        lines += ["k_apical = floor((err - err_hat)/qe + 0.5) : 1"]
    return "\n".join(lines) + "\n"
