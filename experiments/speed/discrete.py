"""Time per iPC batch against a plain hand-written torch loop; replicas against single runs."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from hw_models import describe
from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.native.discrete import NativeBackprop, NativeDiscrete
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

from ..common.timing import Job, medians

SMALL = ((784, 64, 64, 10), 128)
LARGE = ((784, 256, 256, 256, 10), 256)
T, GAMMA, ALPHA, REPLICAS = 8, 0.5, 1e-6, 16
ARRAYS, CHIPS, PRESENT = (64, 32, 10), 64, 50
"""Sizes, chips, and time steps of a sample on arrays of devices, as a check has them."""


def reference_batch(w: list[Tensor], b: list[Tensor], x0: Tensor, y: Tensor) -> None:
    """One batch of iPC as one would write it by hand: T steps, SGD, lists from input to output."""
    layers = len(w)
    x = [x0]
    for k in range(layers):
        r = x[k] if k == 0 else torch.tanh(x[k])
        x.append(r @ w[k].T + b[k])
    x[-1] = y
    for _ in range(T):
        r = [x[0]] + [torch.tanh(v) for v in x[1:-1]]  # type: ignore[assignment]
        err = [x[k + 1] - (r[k] @ w[k].T + b[k]) for k in range(layers)]
        for k in range(1, layers):
            x[k] = x[k] + GAMMA * (-err[k - 1] + (1 - r[k] ** 2) * (err[k] @ w[k]))
        for k in range(layers):
            w[k] = w[k] + ALPHA * (err[k].T @ r[k])
            b[k] = b[k] + ALPHA * err[k].sum(0)


def population(network: Network, replicas: int, fast: bool) -> Discrete:
    """Return an untrained iPC population."""
    params = initial_parameters(network, list(range(replicas)), torch.float32)
    schedule = Schedule(rule="ipc", T=T, gamma=GAMMA, fast=fast)
    return Discrete(network, params, schedule, Optimizer(OptimizerSpec(), params, ALPHA))


def compiled(network: Network) -> NativeDiscrete:
    """Return one untrained replica in compiled batches."""
    params = initial_parameters(network, [0], torch.float32)
    schedule = Schedule(rule="ipc", T=T, gamma=GAMMA)
    return NativeDiscrete(network, params, schedule, Optimizer(OptimizerSpec(), params, ALPHA))


def measure() -> list[tuple[str, str, float, float]]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    rows = []
    for letter, (sizes, batch), rounds in (("S", SMALL, 60), ("L", LARGE, 15)):
        title = f"iPC batch, {letter}: {'-'.join(map(str, sizes))}, batch {batch}, T = {T}"
        network = Network.mlp(sizes)
        generator = torch.Generator().manual_seed(0)
        x0 = torch.rand(batch, sizes[0], generator=generator)
        labels = torch.randint(0, sizes[-1], (batch,), generator=generator)
        y = torch.nn.functional.one_hot(labels, sizes[-1]).float()
        start = initial_parameters(network, [0], torch.float32).of[:-1]
        w = [views["w"][0] for views in reversed(start)]
        b = [views["b"][0] for views in reversed(start)]
        clamps = [y[None], *[None] * (len(sizes) - 2), x0[None]]
        ours, plain = population(network, 1, True), population(network, 1, False)
        jobs: dict[str, Job] = {
            "hand-written loop": partial(reference_batch, w, b, x0, y),
            "pcsim": partial(ours.batch, clamps),
            "pcsim, fast = false": partial(plain.batch, clamps),
            "pcsim, compiled": partial(compiled(network).batch, clamps),
        }
        times = medians(jobs, rounds, repeat=4)
        first = times["hand-written loop"]
        rows += [(title, name, 1e3 * s, s / first) for name, s in times.items()]
    return rows + _replicas(Network.mlp(SMALL[0]), SMALL[1]) + _arrays()


def _replicas(network: Network, batch: int) -> list[tuple[str, str, float, float]]:
    """16 seeds at once (each with its own data order) against 16 runs one after another."""
    generator = torch.Generator().manual_seed(1)
    x0 = torch.rand(REPLICAS, batch, network.nodes[-1].units, generator=generator)
    labels = torch.randint(0, 10, (REPLICAS, batch), generator=generator)
    y = torch.nn.functional.one_hot(labels, 10).float()
    together = population(network, REPLICAS, True)
    alone = [population(network, 1, True) for _ in range(REPLICAS)]
    hidden: list[Tensor | None] = [None, None]

    def one_after_another() -> None:
        for k, run in enumerate(alone):
            run.batch([y[k : k + 1], *hidden, x0[k : k + 1]])

    jobs = {
        "16 runs in turn": one_after_another,
        "16 replicas at once": lambda: together.batch([y, *hidden, x0]),
    }
    times = medians(jobs, 20)
    first = times["16 runs in turn"]
    return [("S: 16 seeds", name, 1e3 * s, s / first) for name, s in times.items()]


def _arrays() -> list[tuple[str, str, float, float]]:
    """One sample at a time on `ecram_li`: torch with compiled places, and compiled batches."""
    rows = []
    generator = torch.Generator().manual_seed(2)
    x0 = torch.rand(CHIPS, 1, ARRAYS[0], generator=generator)
    y = torch.nn.functional.one_hot(torch.arange(CHIPS) % ARRAYS[-1], ARRAYS[-1])
    clamps: list[Tensor | None] = [y[:, None].float(), None, x0]
    for rule, title in (("pc", "PC with phases"), ("bp", "BP on the array")):
        jobs = {
            "torch": partial(_on_array(rule, native=False).batch, clamps),
            "compiled": partial(_on_array(rule, native=True).batch, clamps),
        }
        times = medians(jobs, 10)
        case = f"{title}, 1 sample, {CHIPS} chips 64-32-10 on ecram_li"
        rows += [(case, name, 1e3 * s, s / times["torch"]) for name, s in times.items()]
    return rows


def _on_array(rule: str, *, native: bool) -> Discrete | ArrayBackprop:
    network, ids = Network.mlp(ARRAYS), list(range(CHIPS))
    params = initial_parameters(network, ids, torch.float32)
    substrate = describe("ecram_li", {}).substrate()
    chips = Chips(substrate, ids, seed=0, dt=0.4, noise=Seeded(0, ids))
    chips.compile(1 << 20)
    if rule == "bp":
        optimizer = Optimizer(OptimizerSpec(), params, 0.01, in_place=False)
        kind = NativeBackprop if native else ArrayBackprop
        return kind(network, params, optimizer, chips, steps=PRESENT)
    schedule = Schedule(rule="pc", T=PRESENT, gamma=0.4)
    optimizer = Optimizer(OptimizerSpec(), params, 0.01)
    made = NativeDiscrete if native else Discrete
    return made(network, params, schedule, optimizer, chips=chips)
