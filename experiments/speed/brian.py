"""Time per Euler step of one chip and one sample: Brian2's targets against the torch integrator.

All in float64, from the same weights. A standalone program is called for so many steps that its
start (about 0.02 s) does not count; the time to build it is a row of its own.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import torch

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.engine import Engine
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

from ..common.timing import Job, medians
from .continuous import Row

SIZES, DT = (256, 256, 10), 0.1
CIRCUIT = Circuit(tau_x=1.0, tau_w=1e6)
PLAIN, FUSED = "Brian2 standalone, synapses", "Brian2 standalone, fused"
TORCH, DIRECT = "torch", "torch, direct products"
PRODUCTS, NUMPY = "Brian2 numpy, matrix products", "Brian2 numpy, synapses"
STEPS = {PLAIN: 1500, FUSED: 12000, TORCH: 1500, DIRECT: 1500, PRODUCTS: 1500, NUMPY: 400}


def measure(sizes: tuple[int, ...] = SIZES, rounds: int = 5, share: float = 1.0) -> list[Row]:
    """Return rows (case, contestant, milliseconds, ratio to Brian2's own standalone synapses)."""
    from pcsim.backends.brian import BrianBackend

    network = Network.mlp(sizes)
    engines: dict[str, Engine] = {}
    building: dict[str, float] = {}
    contestants: dict[str, dict[str, Any]] = {
        PLAIN: {"target": "standalone"},
        FUSED: {"target": "standalone", "dense": True},
        PRODUCTS: {"target": "numpy", "dense": True},
        NUMPY: {"target": "numpy"},
    }
    for name, options in contestants.items():
        start = time.perf_counter()
        params = initial_parameters(network, [0], torch.float64)
        engines[name] = BrianBackend(network, params, CIRCUIT, dt=DT, **options)
        building[name] = time.perf_counter() - start
    for name, fast in ((TORCH, True), (DIRECT, False)):
        params = initial_parameters(network, [0], torch.float64)
        engines[name] = Continuous(network, params, CIRCUIT, dt=DT, fast=fast)
    generator = torch.Generator().manual_seed(0)
    shown = [torch.rand(1, 1, n, generator=generator, dtype=torch.float64) for n in sizes[::-1]]
    jobs: dict[str, Job] = {}
    steps = {name: max(10, int(share * count)) for name, count in STEPS.items()}
    for name, engine in engines.items():
        engine.load([shown[0], *[None] * (len(sizes) - 2), shown[-1]])
        engine.feedforward()
        jobs[name] = partial(advance, engine, steps[name])
    times = {name: t / steps[name] for name, t in medians(jobs, rounds).items()}
    shape = "-".join(map(str, sizes))
    rows = [
        (f"Euler step, {shape}, 1 sample, 1 chip, float64", name, 1e3 * t, t / times[PLAIN])
        for name, t in times.items()
    ]
    return rows + [
        (f"building {shape}", name, 1e3 * t, t / building[PLAIN]) for name, t in building.items()
    ]


def advance(engine: Engine, steps: int) -> None:
    """Take steps, and look at the result: a standalone program runs when it is asked for it."""
    engine.drive(iter([None] * steps), steps)
    engine.flow.moving()
