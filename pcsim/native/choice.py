"""Which engine takes the steps of a run, where the user leaves it open: the faster one, by rule.

The choice is a function of the configuration and of whether there is a compiler, never of a
measurement: the same run is taken by the same engine again.
"""

from __future__ import annotations

from pcsim.circuit import Circuit
from pcsim.config import Schedule
from pcsim.errors import UnsupportedError
from pcsim.kernels.on_chip import followable
from pcsim.kernels.optim import Optimizer
from pcsim.maps import Dense
from pcsim.native.compiler import PROBE, SHORT, library
from pcsim.native.discrete import refuse as refuse_batches
from pcsim.native.engine import refuse
from pcsim.network import Mode, Network
from pcsim.substrate import Chips

PRODUCTS = 5_000_000
"""Multiplications per chip and step from which on torch's matrix products are faster."""
FOLLOWED = 100_000
"""Weights of a clamped input from which on following it is faster than multiplying by it."""
WEIGHTS = 1_000_000
"""Weights from which on a batch of a discrete rule is torch's: they do not stay in the cache."""


def why_torch(
    network: Network,
    circuit: Circuit,
    *,
    solver: str,
    mode: Mode,
    device: str,
    chips: Chips | None,
    steps: int,
    samples: int,
    fast: bool | None,
) -> str:
    """Return why torch takes the steps of a run, "" where compiled code does.

    `fast` is `schedule.fast` where it was set: it speaks of torch's products.
    """
    if fast is not None:
        return "schedule.fast is set, which only torch knows"
    if steps < SHORT:
        return f"a run of {steps} steps is shorter than a compilation pays for ({SHORT})"
    try:
        refuse(network, circuit, solver, mode, device)
    except UnsupportedError as reason:
        return str(reason)
    sizes = [m.n_in * m.n_out for m in (n.map for n in network.nodes) if isinstance(m, Dense)]
    if sum(sizes) * samples > PRODUCTS:
        return "matrix products of this size are faster there"
    follows = circuit.kind != "spiking" and followable(chips)
    if follows and mode == "supervised" and sizes[-1] > FOLLOWED:
        return "a clamped input of this size is followed there, which is faster"
    return library(PROBE).reason


def why_torch_batches(
    network: Network,
    mode: Mode,
    schedule: Schedule | None,
    optimizer: Optimizer,
    *,
    device: str,
    steps: int,
    automatic: bool,
) -> str:
    """Return why torch takes the batches of a discrete rule, "" where compiled code does.

    Without a schedule, the rule is backpropagation.
    """
    if automatic:
        return "the energy is looked at after every step"
    if steps < SHORT:
        return f"a run of {steps} steps is shorter than a compilation pays for ({SHORT})"
    try:
        refuse_batches(network, mode, schedule, optimizer, device)
    except UnsupportedError as reason:
        return str(reason)
    sizes = [m.n_in * m.n_out for m in (n.map for n in network.nodes) if isinstance(m, Dense)]
    if sum(sizes) > WEIGHTS:
        return "matrix products of this size are faster there"
    return library(PROBE).reason
