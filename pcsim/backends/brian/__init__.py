"""Brian2: the circuits as equations, as plain Brian2 objects, and as a backend.

`build` gives `NeuronGroup`s and `Synapses` for your own `Network`; `BrianBackend` runs them with
the calls of the continuous backend; `Plan` holds the text of all equations.
"""

try:
    import brian2 as brian2
except ImportError as error:  # pragma: no cover - depends on what is installed
    from pcsim.errors import UnsupportedError

    raise UnsupportedError(
        f"backend brian: Brian2 cannot be imported ({error}); install it with "
        f"pip install 'pcsim[brian]'"
    ) from error

from pcsim.backends.brian.build import RECORD, Parts, build, neurons, synapses
from pcsim.backends.brian.equations import layer_equations, synapse_equations
from pcsim.backends.brian.layer import Layer
from pcsim.backends.brian.plan import Plan
from pcsim.backends.brian.run import BrianBackend
from pcsim.backends.brian.spiking import (
    SpikingParts,
    build_spiking,
    spiking_neurons,
    spiking_synapses,
)
from pcsim.backends.brian.spiking_equations import SpikingLayer, spiking_layer_equations

__all__ = [
    "RECORD",
    "BrianBackend",
    "Layer",
    "Parts",
    "Plan",
    "SpikingLayer",
    "SpikingParts",
    "build",
    "build_spiking",
    "layer_equations",
    "neurons",
    "spiking_layer_equations",
    "spiking_neurons",
    "spiking_synapses",
    "synapse_equations",
    "synapses",
]
