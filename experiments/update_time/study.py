"""How long does one weight update take, iPC with all layers at once against BP?

`pcsim experiment update_time` measures one update on one random sample (the paper's appendix) over
depth × width: BP by hand (`plain_backprop`) and as one writes it with torch.nn, iPC with all layers
in one batched product (`layer_parallel`) and layer by layer (`pcsim.backends.discrete`). All layers
have the same width, input and output too. Contestants take turns, and the fastest round counts. One
thread is timed by its own clock, which stands still while the thread waits for a processor; more
threads can only be timed by the wall clock, and need an idle machine.
"""

from __future__ import annotations

import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.frozen import Frozen
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable

from ..common import scaled
from ..common.timing import Job, durations
from . import report
from .layer_parallel import LayerParallel
from .plain_backprop import PlainBackprop

GAMMA, ALPHA = 0.5, 1e-6
"""Small α: after thousands of updates on one sample the numbers must still be ordinary ones."""


class Setting(Frozen):
    """Which networks, and how long each is measured."""

    hidden_layers: tuple[int, ...]
    widths: tuple[int, ...]
    samples: tuple[int, ...] = (1,)
    """Data points per update; the paper takes one."""
    threads: tuple[int, ...] = (1, 2)
    """Threads that torch may use inside one operation."""
    seconds: float = 2.0
    """Time spent on each network (at least `rounds` rounds)."""
    rounds: int = 5


SCALES = {
    "small": Setting(hidden_layers=(1, 2, 4, 8, 16, 32), widths=(16, 64, 256, 1024)),
    "paper": Setting(
        hidden_layers=(1, 2, 4, 8, 16, 32),
        widths=(16, 32, 64, 128, 256, 512, 1024),
        samples=(1, 64),
        seconds=10.0,
        rounds=20,
    ),
}
AXES = ("samples", "threads", "hidden_layers", "widths")


def contestants(hidden: int, width: int, samples: int) -> dict[str, Job]:
    """Return one weight update of each implementation, on its own copy of the same network."""
    network = Network.mlp([width] * (hidden + 2))
    generator = torch.Generator().manual_seed(0)
    inputs, target = (torch.rand(1, samples, width, generator=generator) for _ in range(2))
    clamps = [target, *[None] * hidden, inputs]

    def params() -> Any:
        return initial_parameters(network, [0], torch.float32)

    layered = params()
    discrete = Discrete(
        network,
        layered,
        Schedule(rule="ipc", gamma=GAMMA, fast=False),
        Optimizer(OptimizerSpec(), layered, ALPHA),
    )
    discrete.start(clamps)
    parallel = LayerParallel(network, params(), samples=samples, gamma=GAMMA, alpha=ALPHA)
    parallel.load(discrete.field.x)
    plain = PlainBackprop(network, params(), samples=samples, alpha=ALPHA)
    return {
        "BP, by hand": partial(plain.update, inputs[0], target[0]),
        "BP, torch.nn": torch_backprop(hidden, width, inputs[0], target[0]),
        "iPC, layers at once": parallel.step,
        "iPC, layer by layer": discrete.step,
    }


def torch_backprop(hidden: int, width: int, inputs: torch.Tensor, target: torch.Tensor) -> Job:
    """Return BP as one writes it: modules, autograd, torch.optim.SGD."""
    layers = [nn.Linear(width, width)]
    for _ in range(hidden):
        layers += [nn.Tanh(), nn.Linear(width, width)]  # type: ignore[list-item]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=ALPHA)

    def update() -> None:
        optimizer.zero_grad()
        (0.5 * (model(inputs) - target).square().sum()).backward()
        optimizer.step()

    return update


def measure(setting: Setting, samples: int, threads: int, hidden: int, width: int) -> Result:
    """Time one network: milliseconds per update of each contestant, the fastest and the median."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        jobs = contestants(hidden, width, samples)
        once = sum(one[0] for one in durations(jobs, 1).values())
        rounds = int(np.clip(setting.seconds / once, setting.rounds, 500))
        clock = time.thread_time if threads == 1 else time.perf_counter
        times = 1e3 * np.array(list(durations(jobs, rounds, clock=clock).values()))
    finally:
        torch.set_num_threads(before)
    about = {"units": "ms"}
    variables = {
        "fastest": Variable(("contestant",), times.min(1), about),
        "median": Variable(("contestant",), np.median(times, axis=1), about),
    }
    return Result(variables, {"contestant": np.array(list(jobs))}, {"rounds": rounds})


SHOWN = scaled.Shown(report.tables, {"": report.draw})
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Measure, print, store, draw."""
    run = scaled.begin("update_time", SCALES, scale, out)
    setting = SCALES[scale]
    axes = [getattr(setting, axis) for axis in AXES]
    names = {cell: "samples{}_threads{}_{}x{}".format(*cell) for cell in product(*axes)}
    # Large networks first: what does not fit into memory shows at once.
    order = sorted(names, key=lambda cell: -cell[2] * cell[3] ** 2)
    found = run.collect({names[cell]: partial(measure, setting, *cell) for cell in order})
    some = next(iter(found.values()))
    shape = [*(len(values) for values in axes), len(some["contestant"])]
    variables = {}
    for statistic in ("fastest", "median"):
        rows = [found[name][statistic] for name in names.values()]
        about: dict[str, str | int | float] = {
            "units": "ms",
            "long_name": f"time of one weight update, {statistic} round",
        }
        variables[statistic] = Variable((*AXES, "contestant"), np.reshape(rows, shape), about)
    coords: dict[str, Any] = {axis: np.array(v) for axis, v in zip(AXES, axes, strict=True)}
    coords["contestant"] = some["contestant"]
    measured = Result(variables, coords)
    run.publish(variables, coords, report.judge(measured), SHOWN)
