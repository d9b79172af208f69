"""The circuits in Brian2's own language: text in, text out, nothing is executed here.

States are dimensionless, times carry seconds. The names are those of the rest of pcsim: x, err, mu,
fb, r, w, b, tau_x, tau_err, tau_w. One group of neurons per layer, one set of synapses per map:

    pre  = layer l+1, which predicts         post = layer l, which is predicted
    mu_post, basal_post, inter_in_post       sums over pre   (predictions)
    fb_pre, td_pre, lateral_pre              sums over post  (errors on their way back)

Interneurons that predict layer l stand beside its units, one each, in the same group.
"""

from __future__ import annotations

from pcsim.backends.brian.dendritic_equations import dendritic_layer, dendritic_synapses
from pcsim.backends.brian.error_equations import error_layer, error_synapses
from pcsim.backends.brian.expressions import lines_to_text, rate_lines
from pcsim.backends.brian.layer import Layer
from pcsim.backends.brian.sacramento_equations import sacramento_layer, sacramento_synapses
from pcsim.circuit import Circuit

PLAIN = Layer()


def layer_equations(circuit: Circuit, layer: Layer, *, output: bool = False) -> str:
    """Return the equations of one layer of value neurons; `output`: nothing is below it."""
    if layer.clamped == "always":
        lines = ["x : 1  # clamped from outside", *rate_lines(layer)[:-1]]
    elif circuit.kind == "sacramento":
        lines = sacramento_layer(circuit, layer, output=output)
    else:
        write = dendritic_layer if circuit.kind == "dendritic" else error_layer
        lines = write(circuit, layer)
    return lines_to_text(lines)


def synapse_equations(circuit: Circuit, *, feedback: bool = True, post: Layer = PLAIN) -> str:
    """Return the equations of the synapses between two layers.

    `feedback`: the layer above is free, and needs the errors of the one below; in the dendritic
    circuits its interneurons then have synapses too. `post`: the layer below.
    """
    if circuit.kind == "sacramento":
        return lines_to_text(sacramento_synapses(circuit, feedback=feedback))
    write = dendritic_synapses if circuit.kind == "dendritic" else error_synapses
    return lines_to_text(write(circuit, post, feedback=feedback))
