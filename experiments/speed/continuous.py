"""Time per Euler step of the continuous backend, against bounds and another integrator.

(a) the matrix products of the same step done by torch alone; (b) torchdiffeq's Euler on the same
right-hand side (only where that package is installed; it is not a dependency); (c) one population
of chips against single chips; and following a clamped input against multiplying by it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network

from ..common.timing import Job, medians

Row = tuple[str, str, float, float]
DT, STEPS = 0.1, 20
CIRCUIT = Circuit(tau_x=1.0, tau_w=1e6)


def population(sizes: tuple[int, ...], chips: int, samples: int, fast: bool = True) -> Continuous:
    """Return chips with random data clamped."""
    network = Network.mlp(sizes)
    params = initial_parameters(network, list(range(chips)), torch.float32)
    engine = Continuous(network, params, CIRCUIT, dt=DT, fast=fast)
    generator = torch.Generator().manual_seed(0)
    top = torch.rand(chips, samples, sizes[0], generator=generator)
    label = torch.rand(chips, samples, sizes[-1], generator=generator)
    engine.load([label, *[None] * (len(sizes) - 2), top])
    engine.feedforward()
    return engine


def products_alone(params: Parameters, samples: int) -> Job:
    """Return a job: the products of one direct step (prediction, feedback, outer), nothing else."""
    jobs: list[Callable[[], object]] = []
    maps = [views["w"] for views in params.of if "w" in views]
    for k, w in enumerate(maps):
        chips, n_out, n_in = w.shape
        rate, error = torch.rand(chips, samples, n_in), torch.rand(chips, samples, n_out)
        out, back = torch.empty_like(error), torch.empty_like(rate)
        scratch = torch.empty_like(w)
        jobs.append(partial(torch.bmm, rate, w.mT, out=out))
        jobs.append(partial(torch.baddbmm, w, error.mT, rate, alpha=1e-9, out=scratch))
        if k < len(maps) - 1:
            jobs.append(partial(torch.bmm, error, w, out=back))

    def run() -> None:
        for job in jobs:
            job()

    return run


def by_torchdiffeq(engine: Continuous) -> Job | None:
    """Return STEPS Euler steps of the same flow by torchdiffeq, or None if it is not installed."""
    try:
        odeint: Any = importlib.import_module("torchdiffeq").odeint
    except ImportError:
        return None
    flow = engine.flow
    engine.flow.forces()

    def rates(_: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        forces = {force.name: force for force in flow.forces()}
        for name, value in zip(sorted(forces), state, strict=False):
            forces[name].state.copy_(value)
        for weights, value in zip(flow.weights, state[len(forces) :], strict=True):
            weights.copy_(value)
        forces = {force.name: force for force in flow.forces()}
        moved = [forces[name].value / forces[name].tau for name in sorted(forces)]
        return (*moved, *flow.weight_rates())

    names = sorted(force.name for force in flow.forces())
    start = tuple(flow.moving()[name].clone() for name in names)
    start += tuple(weights.clone() for weights in flow.weights)
    times = torch.linspace(0, DT * STEPS, STEPS + 1)
    return lambda: odeint(rates, start, times, method="euler")


def measure() -> list[Row]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    rows: list[Row] = []
    for sizes, samples, chips in (((784, 256, 256, 10), 64, 1), ((64, 32, 10), 1, 1000)):
        engine = population(sizes, chips, samples)
        direct = population(sizes, chips, samples, fast=False)
        shape = "-".join(map(str, sizes))
        title = f"Euler step, {shape}, {samples} samples, {chips} chips"
        jobs: dict[str, Job] = {
            "matrix products by torch": products_alone(engine.params, samples),
            "pcsim": partial(engine.advance, STEPS),
            "pcsim, direct products": partial(direct.advance, STEPS),
        }
        other = by_torchdiffeq(population(sizes, chips, samples, fast=False))
        if other:
            jobs["torchdiffeq, Euler"] = other
        times = medians(jobs, 15)
        for name in list(times)[1:]:
            times[name] /= STEPS
        rows += _ratios(title, times)
    return rows + _chips() + _single_sample()


def _ratios(title: str, times: dict[str, float]) -> list[Row]:
    first = next(iter(times.values()))
    return [(title, name, 1e3 * seconds, seconds / first) for name, seconds in times.items()]


def _chips() -> list[Row]:
    """Cost of one step against the number of chips, per chip and relative to a single run."""
    engines = {chips: population((64, 32, 10), chips, 1) for chips in (1, 10, 100, 1000)}
    jobs = {f"{n} chips": partial(e.advance, STEPS) for n, e in engines.items()}
    times = medians(jobs, 15)
    per_chip = {f"{n} chips, per chip": times[f"{n} chips"] / (STEPS * n) for n in engines}
    return _ratios("Euler step, 64-32-10, 1 sample", per_chip)


def _single_sample() -> list[Row]:
    """One sample at 784 inputs: the clamped input followed, against the direct products.

    First the input layer alone (its drive and its weights), then whole steps.
    """
    rows: list[Row] = []
    for width, chips in ((64, 1), (256, 1), (256, 32)):
        sizes, steps = (784, width, 10), 50
        direct = population(sizes, chips, 1, fast=False)
        followed = population(sizes, chips, 1)
        shape = f"784-{width}-10, 1 sample, {chips} chips"
        jobs: dict[str, Job] = {
            "direct products": partial(input_layer, direct),
            "followed": partial(input_layer, followed),
        }
        rows += _ratios(f"input layer alone, {shape}", medians(jobs, 15, repeat=20))
        jobs = {
            "direct products": partial(direct.advance, steps),
            "followed": partial(followed.advance, steps),
        }
        times = {name: t / steps for name, t in medians(jobs, 9).items()}
        rows += _ratios(f"whole step, {shape}", times)
    return rows


def input_layer(engine: Continuous) -> None:
    """Predict and learn the map that leaves the clamped input, as one Euler step does."""
    flow = engine.flow
    assert isinstance(flow, ErrorFlow)
    top = (len(engine.network.nodes) - 2,)
    flow.inputs.predict(top, 1e-9)
    flow.inputs.learn(top, engine.params.of, 1e-9, 1.0)
