"""A datum with the categorical energy: E = KL[p ‖ softmax(μ)], p the label or softmax(x).

    err = p − (Σp) q,    q = exp(logit)/Σ exp(logit)        sent to weights and feedback
    own = p (Σ p ratio − ratio),    ratio = ln p − ln q     moves logits x that are let go

Σp = 1 but for a label that follows its target. The sums run over the layer itself, by synapses from
every unit to every unit of a chip.
"""

from __future__ import annotations

from pcsim.backends.brian.expressions import lines_to_text
from pcsim.backends.brian.layer import Layer

SOFTMAX = lines_to_text(
    [
        "total_q_post = exp(logit_pre) : 1 (summed)",
        "total_p_post = exp(x_pre) : 1 (summed)",
        "mass_post = p_pre : 1 (summed)",
        "mean_ratio_post = p_pre*ratio_pre : 1 (summed)",
    ]
)


def categorical_error(layer: Layer) -> list[str]:
    """Return error and own force of a layer whose units compete; labels are probabilities."""
    prediction = "mu + b" if layer.bias_outside and layer.g == "identity" else "mu"
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
