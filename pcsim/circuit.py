"""The circuits by name: how errors are carried, with which time constants. Frozen data, no tensors.

Each is described where its equations are, in `pcsim.circuits`.
"""

from pcsim.circuits.dendritic import Dendritic
from pcsim.circuits.equilibrium import Equilibrium
from pcsim.circuits.error import Algebraic, ErrorUnits
from pcsim.circuits.kinds import BELONGS, KINDS, CircuitConfig, foreign
from pcsim.circuits.sacramento import Sacramento
from pcsim.circuits.section import Circuit, Conductances, Transport
from pcsim.circuits.spiking import Spiking

__all__ = [
    "BELONGS",
    "KINDS",
    "Algebraic",
    "Circuit",
    "CircuitConfig",
    "Conductances",
    "Dendritic",
    "Equilibrium",
    "ErrorUnits",
    "Sacramento",
    "Spiking",
    "Transport",
    "foreign",
]
