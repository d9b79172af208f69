"""From a configuration to the engine that integrates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from pcsim import engines
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.config import Config
from pcsim.continuous.flow import Tau
from pcsim.continuous.solvers import SINGLE_STAGE, Draw
from pcsim.engine import Engine
from pcsim.engines import Order
from pcsim.kernels.parameters import Parameters
from pcsim.native.choice import why_torch
from pcsim.network import Network
from pcsim.runner.timing import Timing
from pcsim.substrate import Chips


def engine_for(order: Order) -> Engine:
    """Return the engine of `run.backend` and `run.engine`, with what was ordered."""
    run = order.config.run
    if run.backend == "brian":
        from pcsim.backends.brian.ordered import build  # Brian2 is optional, and slow to import

        return build(order)
    if run.engine != "auto":
        return engines.build(run.engine, order)
    reason = why_torch(
        order.network,
        order.circuit,
        solver=order.config.solver.name,
        mode=order.config.data.mode,
        device=run.device,
        chips=order.chips,
        steps=order.steps,
        samples=order.samples,
        fast=order.fast,
    )
    chosen = replace(order, reason=reason, asked=False)
    return engines.build("torch" if reason else "native", chosen)


def twin_for(
    config: Config,
    network: Network,
    timing: Timing,
    *,
    seeds: Sequence[int],
    tau_x: Sequence[Tau] | None,
    draw: Draw,
    circuit: Circuit,
    chips: Chips | None,
) -> Continuous:
    """Return chips of the same circuit whose label is going to be released, for a read-out.

    Their weights are to be set, and never learn. Multi-stage solvers share their stationary states
    with Euler's rule.
    """
    name = config.solver.name if config.solver.name in SINGLE_STAGE else "euler"
    dtype, device = getattr(torch, config.run.dtype), config.run.device
    flat = torch.zeros(len(seeds), network.parameter_count, dtype=dtype, device=device)
    return Continuous(
        network,
        Parameters(network, flat),
        circuit,
        dt=timing.dt,
        solver_name="maruyama" if circuit.sigma_x else name,
        mode="supervised",
        seeds=seeds,
        tau_x=tau_x,
        draw=draw,
        fast=False,
        chips=chips,
    )
