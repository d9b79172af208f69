"""From a configuration to the engine that integrates it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.config import Config
from pcsim.continuous.flow import Tau
from pcsim.continuous.solvers import SINGLE_STAGE, Draw
from pcsim.engine import Engine
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import Parameters
from pcsim.native.choice import why_torch
from pcsim.native.engine import Native
from pcsim.network import Network
from pcsim.runner.timing import Timing
from pcsim.spice.engine import Spice
from pcsim.spice.engine import refuse as refuse_netlist
from pcsim.substrate import Chips, Seeded


def engine_for(
    config: Config,
    network: Network,
    params: Parameters,
    timing: Timing,
    *,
    seeds: Sequence[int],
    samples: int,
    steps: int,
    scale: float,
    tau_x: Sequence[Tau] | None,
    tau_w: Tensor | None,
    draw: Draw,
    noise: Seeded,
    chips: Chips | None = None,
) -> Engine:
    """Return the engine of `run.backend`, with these initial weights and time constants.

    `steps` are those of the whole run; `draw` gives the circuit's own noise to torch, `noise` is
    where it comes from.
    """
    common: dict[str, Any] = {
        "dt": timing.dt,
        "mode": config.data.mode,
        "seeds": seeds,
        "scale": scale,
        "tau_x": tau_x,
        "tau_w": tau_w,
        "chips": chips,
    }
    population = (network, params, timing.circuit)
    if config.run.backend == "brian":
        _refuse(config)
        from pcsim.backends.brian import BrianBackend  # Brian2 is optional, and slow to import

        brian = config.brian
        common |= {"target": brian.target, "dense": brian.dense, "folder": brian.folder or None}
        return BrianBackend(*population, samples=samples, **common)
    if config.run.engine == "spice":
        refuse_netlist(network, timing.circuit, samples, config.run.device)
        common |= {"folder": config.spice.folder or None, "macro": config.spice.macro}
        trnoise = config.spice.noise == "trnoise"
        return Spice(
            *population, noise=noise, reltol=config.spice.reltol, trnoise=trnoise, **common
        )
    common["solver_name"] = config.solver.name
    reason = "run.engine asks for it"
    if config.run.engine == "auto":
        reason = why_torch(
            network,
            timing.circuit,
            solver=config.solver.name,
            mode=config.data.mode,
            device=config.run.device,
            chips=chips,
            steps=steps,
            samples=samples,
            fast=config.schedule.fast if "fast" in config.schedule.model_fields_set else None,
        )
    if config.run.engine == "native" or not reason:
        if chips:
            chips.compile(steps)  # for read-outs, which step in torch
        return Native(*population, noise=noise, **common)
    if chips and config.run.engine == "auto":
        chips.compile(steps)
    engine = Continuous(*population, draw=draw, fast=config.schedule.fast, **common)
    engine.reason = reason
    return engine


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


def _refuse(config: Config) -> None:
    """Refuse what a run on Brian2 cannot honour, with the name of the field and the reason."""

    def no(field: str, reason: str) -> UnsupportedError:
        return UnsupportedError(f"backend brian: {field}: {reason}")

    if config.solver.name != "euler":
        raise no(
            f"solver.name {config.solver.name!r}",
            "sums over synapses are made once per time step, so that only 'euler' is itself here",
        )
    if config.circuit.sigma_x:
        raise no(
            "circuit.sigma_x",
            "Brian2 draws noise from generators that belong to the whole process, so "
            "solver.noise_seed could not be honoured; use BrianBackend from Python",
        )
    if config.run.device != "cpu":
        raise no(f"run.device {config.run.device!r}", "Brian2 computes on the 'cpu'")
    if config.run.automatic and config.brian.target == "standalone":
        raise no(
            "run.automatic with brian.target 'standalone'",
            "the energy is judged after every step, and the program shows nothing between its "
            "start and its end; use target 'numpy' or 'cython'",
        )
