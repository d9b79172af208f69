"""All that a Brian2 network of one's own needs of pcsim, in one line.

    import pcsim.brian as pc

    parts = pc.build(pc.Network.mlp([2, 8, 1]), pc.Dendritic(tau_x=0.01, tau_w=1.0))

`pc.Network` describes layers; the `Network` that runs is Brian2's.
"""

from pcsim.backends.brian import RECORD, BrianBackend, Parts, build
from pcsim.backends.brian.script import script
from pcsim.circuit import Algebraic, Dendritic, Equilibrium, ErrorUnits, Sacramento, Spiking
from pcsim.network import Network

__all__ = [
    "RECORD",
    "Algebraic",
    "BrianBackend",
    "Dendritic",
    "Equilibrium",
    "ErrorUnits",
    "Network",
    "Parts",
    "Sacramento",
    "Spiking",
    "build",
    "script",
]
