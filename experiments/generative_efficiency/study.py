"""Does iPC lower the energy of a generative model in fewer iterations than PC?

`pcsim experiment generative_efficiency` trains fully connected generative models on 100 pictures
(x⁰ clamped to a picture, all layers above free), all in one batch, by iPC and by PC with several
T, and records F at every iteration (its Fig. 2, left and centre, and the grid in the appendix).
Each picture keeps its own states from iteration to iteration, in PC too; an iteration is one move
of all states. Then it asks the trained memory for the lower half of pictures of which it sees the
upper one (`associative_recall`).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.frozen import Frozen
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from . import report
from .images import ImageSet, load
from .recall import MEMORIES, RecallSetting, recall

Variant = tuple[Literal["sgd", "adam"], float, float]
Shape = tuple[int, int]


class Setting(Frozen):
    """Which models, on what, for how long."""

    data: tuple[str, ...] = ("cifar10", "tiny_imagenet")
    images: int = 100
    networks: tuple[Shape, ...]
    """(hidden units per layer, L): L weight matrices, so L hidden layers of which the top is free
    of any prediction; the paper's main figure has 256 and 4."""
    pc_steps: tuple[int, ...] = (8, 12, 16)
    """T of PC: inference steps before each update."""
    variants: tuple[Variant, ...]
    """Optimiser, α and γ; the first is the paper's (SGD summed over the pictures) and is judged."""
    iterations: int
    seeds: tuple[int, ...] = (0, 1, 2)
    recall: RecallSetting = RecallSetting()
    recall_data: str = "cifar10"

    @property
    def rules(self) -> tuple[str, ...]:
        """The contestants as a legend names them."""
        return ("iPC", *(f"PC, T = {T}" for T in self.pc_steps))


PAPER_RATES: Variant = ("sgd", 5e-5, 0.5)
SCALES = {
    "small": Setting(
        networks=((256, 4),),
        variants=(PAPER_RATES, ("sgd", 5e-5, 0.1)),
        iterations=144,
        recall=RecallSetting(iterations=400, recall_steps=600),
    ),
    "decide": Setting(
        networks=((256, 4),),
        pc_steps=(8,),
        variants=(PAPER_RATES,),
        iterations=432,
        recall=RecallSetting(iterations=400, recall_steps=600),
    ),
    "paper": Setting(
        networks=tuple(product((128, 256, 512), (4, 5))),
        variants=(PAPER_RATES, ("sgd", 5e-5, 0.1), ("adam", 5e-5, 0.5)),
        iterations=1920,
        recall=RecallSetting(),
    ),
}


def train(
    setting: Setting, network: Shape, rule: str, variant: Variant, images: ImageSet
) -> Result:
    """Train one rule, all seeds at once; return F per picture (seed, iteration)."""
    (width, depth), (optimizer, alpha, gamma) = network, variant
    model = Network.mlp([width] * depth + [images.pixels.shape[1]], f_input=True)
    seeds = list(setting.seeds)
    params = initial_parameters(model, seeds, torch.float32)
    steps = 1 if rule == "iPC" else int(rule.split("=")[1])
    schedule = Schedule(rule="ipc" if rule == "iPC" else "pc", T=steps, gamma=gamma, init="carry")
    run = Discrete(
        model,
        params,
        schedule,
        Optimizer(OptimizerSpec(optimizer), params, alpha),
        mode="generative",
        seeds=seeds,
    )
    clamps = [torch.as_tensor(images.pixels)[None], *[None] * depth]
    energy: list[Any] = []
    while len(energy) < setting.iterations:
        run.start(clamps)
        for step in run.steps:
            run.step(step)
            energy.append(run.energy().double().numpy() / len(images.pixels))
    rows = np.stack(energy[: setting.iterations], 1)
    return Result({"energy": Variable(("seed", "iteration"), rows)})


SHOWN = scaled.Shown(report.tables, {"": report.draw, "_recall": report.draw_recall})
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, fill in, print, store, draw."""
    run = scaled.begin("generative_efficiency", SCALES, scale, out)
    setting = SCALES[scale]
    images = {name: load(name, setting.images) for name in {*setting.data, setting.recall_data}}
    axes = (setting.data, setting.networks, setting.rules, setting.variants)
    names = {cell: _name(*cell) for cell in product(*axes)}
    pixels = {name: one.pixels.shape[1] for name, one in images.items()}
    order = sorted(names, key=lambda cell: -pixels[cell[0]] * cell[1][0])  # long cells first
    measures = {
        f"recall_{kind.replace(', T = ', '')}": partial(
            recall, setting.recall, kind, images[setting.recall_data]
        )
        for kind in MEMORIES
    }
    measures |= {names[c]: partial(train, setting, *c[1:], images[c[0]]) for c in order}
    found = run.collect(measures, processes=keeping.PROCESSES)
    energy = np.stack([found[name]["energy"] for name in names.values()])
    variables = {
        "energy": Variable(
            ("data", "network", "rule", "variant", "seed", "iteration"),
            energy.reshape(*map(len, axes), *energy.shape[1:]),
            {"long_name": "energy F per picture at each iteration (the paper's is 2F)"},
        )
    }
    recalled = list(found.values())[: len(MEMORIES)]
    for name, first in recalled[0].variables.items():
        rows = np.stack([one[name] for one in recalled])
        variables[name] = Variable(("memory", *first.dims), rows)
    coords: dict[str, Any] = {
        "data": np.array(setting.data),
        "network": np.array([f"{width} units, L = {depth}" for width, depth in setting.networks]),
        "rule": np.array(setting.rules),
        "variant": np.array([f"{name} {a:g}, γ = {g:g}" for name, a, g in setting.variants]),
        "seed": np.array(setting.seeds),
        "iteration": np.arange(setting.iterations),
        "memory": np.array(MEMORIES),
    }
    side = images[setting.recall_data].shape[-1]
    more = {f"origin_{name}": one.origin for name, one in images.items()}
    claims = report.judge(Result(variables, coords))
    run.publish(variables, coords, claims, SHOWN, picture_side=side, **more)


def _name(data: str, network: Shape, rule: str, variant: Variant) -> str:
    short = rule.replace(", T = ", "")
    return (
        f"{data}_{network[0]}x{network[1]}_{short}_{variant[0]}{variant[1]:g}_gamma{variant[2]:g}"
    )
