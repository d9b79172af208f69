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
from pcsim.backends.brian.run import BrianBackend
from pcsim.circuits import Layer, Plan, layer_equations, synapse_equations

__all__ = [
    "RECORD",
    "BrianBackend",
    "Layer",
    "Parts",
    "Plan",
    "build",
    "layer_equations",
    "neurons",
    "synapse_equations",
    "synapses",
]
