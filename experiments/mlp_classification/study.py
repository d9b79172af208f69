"""Do PC and iPC classify as well as BP? The multilayer perceptrons of the paper's Table 1.

`pcsim experiment mlp_classification` trains networks with two hidden layers of 64 units on MNIST
and FashionMNIST by BP, PC, iPC and Z-IL, in two stages:

    search   combinations of α, weight decay and γ side by side on the replica axis; the cell with
             the best validation accuracy is chosen, for each contestant and data set
    report   that cell with several seeds and more data; the test accuracy of each seed at its epoch
             of best validation accuracy (early stopping)

No test image takes part in a choice; the paper reports the highest test accuracy it obtained. Z-IL
equals BP in exact arithmetic, so it takes BP's cell.

A contestant is a rule with what the paper leaves open and no search chooses: the loss, where value
nodes sit, and the batch. iPC writes T times per batch; in batches T times as large, it makes as
many updates as BP in as many epochs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pcsim.architectures.fields import EnergyConfig
from pcsim.architectures.mlp import Mlp
from pcsim.config import (
    Config,
    DataConfig,
    Grid,
    Learning,
    Rule,
    RunConfig,
    Schedule,
)
from pcsim.frozen import Frozen
from pcsim.network import Convention
from pcsim.store import Result, Variable

from ..common import keeping, scaled, search
from ..common.search import Axes, Found, Point, grid_of
from ..common.training_cells import train
from . import report
from .probe import Probe


class Contestant(Frozen):
    """A rule, and what belongs to it without being searched."""

    name: str
    rule: Rule
    loss: Literal["gaussian", "categorical"] = "categorical"
    """Energy at the label: squared error or cross-entropy."""
    convention: Convention = "pre"
    """Value nodes before or behind the nonlinearity; the same function for BP."""
    batch: int = 0
    """Images per batch; 0 is that of the setting."""
    gammas: tuple[float, ...] = ()
    """γ that are searched; empty: those of the setting."""
    like: str = ""
    """The contestant whose cell it takes without a search of its own."""


FOUR = (
    Contestant(name="BP", rule="bp"),
    Contestant(name="PC", rule="pc"),
    Contestant(name="iPC", rule="ipc"),
    Contestant(name="Z-IL", rule="zil", like="BP"),
)
VARIANTS = (
    *FOUR[:3],
    Contestant(name="PC, squared error, γ 0.5", rule="pc", loss="gaussian", gammas=(0.5,)),
    Contestant(name="iPC, post-activation nodes", rule="ipc", convention="post"),
    Contestant(name="iPC, as many updates", rule="ipc", batch=1024),
)
"""Cross-entropy and pre-activation nodes, if the name does not say otherwise."""


class Stage(Frozen):
    """How much of the data, and for how long."""

    limit: int = 0
    """Training images, validation included; 0 is all."""
    validation: int
    epochs: int
    seeds: tuple[int, ...]


class Setting(Frozen):
    """Networks, grid and the two stages."""

    data: tuple[str, ...] = ("mnist", "fashion_mnist")
    network: Mlp = Mlp(sizes=(784, 64, 64, 10), f="leaky_relu")
    contestants: tuple[Contestant, ...] = FOUR
    alphas: tuple[float, ...]
    weight_decays: tuple[float, ...]
    gammas: tuple[float, ...]
    grid: bool = True
    """Search all γ from the start; otherwise the middle one first."""
    reach: int = 0
    """How many values of an axis may be tried beyond its ends."""
    T: int = 8
    batch: int = 128
    patience: int = 5
    """Epochs without improvement in any replica after which a training ends."""
    search: Stage
    report: Stage

    def contestant(self, name: str) -> Contestant:
        """Return the contestant of this name."""
        return next(one for one in self.contestants if one.name == name)

    @property
    def searched(self) -> tuple[str, ...]:
        """Names of the contestants that have a search of their own."""
        return tuple(one.name for one in self.contestants if not one.like)


SCALES = {
    "small": Setting(
        alphas=(3e-4, 1e-3, 3e-3, 1e-2),
        weight_decays=(1e-2, 1e-1),
        gammas=(0.1, 0.5),
        search=Stage(limit=6000, validation=1000, epochs=8, seeds=(0,)),
        report=Stage(validation=5000, epochs=6, seeds=(0, 1, 2, 3, 4)),
    ),
    "decide": Setting(
        contestants=VARIANTS,
        alphas=(3e-4, 1e-3, 3e-3, 1e-2),
        weight_decays=(0.1,),
        gammas=(0.1, 0.5, 1.0),
        grid=False,
        reach=3,
        patience=0,
        search=Stage(validation=5000, epochs=3, seeds=(0,)),
        report=Stage(validation=5000, epochs=6, seeds=(0, 1, 2, 3, 4)),
    ),
    "paper": Setting(
        alphas=(1e-6, 3.7e-6, 1.4e-5, 5.2e-5, 1.9e-4, 7.2e-4, 2.7e-3, 1e-2),
        weight_decays=(1e-4, 1e-3, 1e-2, 1e-1),
        gammas=(0.1, 0.5, 1.0),
        search=Stage(validation=5000, epochs=20, seeds=(0,)),
        report=Stage(validation=5000, epochs=50, seeds=(0, 1, 2, 3, 4)),
    ),
}


def config_of(setting: Setting, stage: Stage, data: str, name: str, grid: Grid) -> Config:
    """Return one training: the whole grid (of one value each, in the report) × the seeds."""
    one = setting.contestant(name)
    schedule = Schedule(rule=one.rule, T=setting.T)
    changed: dict[str, Any] = {"output": EnergyConfig(kind=one.loss)}
    if one.rule in ("bp", "zil"):  # T and γ have no meaning for BP; its equal has T = depth, γ = 1
        schedule = Schedule(rule=one.rule)
        grid = grid.model_copy(update={"gamma": ()})
    else:
        changed["convention"] = one.convention
    return Config(
        network=setting.network.model_copy(update=changed),
        schedule=schedule,
        learning=Learning(
            optimizer="adamw",
            anneal="cosine",
            batch=one.batch or setting.batch,
            epochs=stage.epochs,
            patience=setting.patience,
        ),
        data=DataConfig(name=data, limit=stage.limit, validation=stage.validation, centre=True),
        run=RunConfig(seeds=stage.seeds),
        grid=grid,
    )


def axes_of(setting: Setting, one: Contestant) -> Axes:
    """Return the values of each axis with which the search of a contestant begins."""
    gammas = one.gammas or setting.gammas
    return {
        "alpha": setting.alphas,
        "weight_decay": setting.weight_decays,
        "gamma": gammas[:1] if one.rule == "bp" else gammas,  # BP has no γ
    }


def first_probes(setting: Setting) -> list[Probe]:
    """Return the search of every data set and contestant, one job for each γ."""
    probes = []
    for data, name in product(setting.data, setting.searched):
        gammas = axes_of(setting, setting.contestant(name))["gamma"]
        for gamma in gammas if setting.grid else gammas[len(gammas) // 2 :][:1]:
            grid = Grid(alpha=setting.alphas, weight_decay=setting.weight_decays, gamma=(gamma,))
            probes.append(Probe(data, name, grid))
    return probes


def settings_of(run: scaled.Study, setting: Setting) -> dict[tuple[str, str], Found]:
    """Return what the search found for each data set and contestant."""
    first: dict[tuple[str, str], list[Grid]] = {}
    for probe in first_probes(setting):
        first.setdefault((probe.data, probe.contestant), []).append(probe.grid)
    given = {key: axes_of(setting, setting.contestant(key[1])) for key in first}
    return search.climb(first, given, setting.reach, partial(probed, run, setting))


def probed(
    run: scaled.Study, setting: Setting, asked: Mapping[tuple[str, str], Sequence[Grid]]
) -> dict[tuple[str, str], Found]:
    """Return the validation accuracies of some grids."""
    probes = [Probe(*key, grid) for key, grids in asked.items() for grid in grids]
    jobs = {
        probe.name: config_of(setting, setting.search, probe.data, probe.contestant, probe.grid)
        for probe in probes
    }
    results = trained(run, jobs)
    found: dict[tuple[str, str], Found] = {key: {} for key in asked}
    for probe in probes:
        found[probe.data, probe.contestant] |= probe.read(results[probe.name])
    return found


def report_jobs(setting: Setting, chosen: dict[tuple[str, str], Point]) -> dict[str, Config]:
    """Return the training of every contestant at its chosen cell."""
    return {
        f"report_{data}_{name}": config_of(setting, setting.report, data, name, grid_of(cell))
        for (data, name), cell in chosen.items()
    }


def trained(run: scaled.Study, jobs: dict[str, Config]) -> dict[str, Result]:
    """Return the result of each job. A cell is known by its configuration, not by the setting.

    So another report, another contestant or a longer grid repeats nothing.
    """
    known = {name: f"{name}_{keeping.digest(job)}" for name, job in _long_first(jobs).items()}
    measures = {known[name]: partial(train, jobs[name]) for name in known}
    found = keeping.collect(measures, run.path, "", run.console, keeping.PROCESSES)
    return {name: found[known[name]] for name in jobs}


SHOWN = scaled.Shown(report.tables, {"": report.draw}, report.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Search, train, print, store, draw."""
    run = scaled.begin("mlp_classification", SCALES, scale, out)
    setting = SCALES[scale]
    found = settings_of(run, setting)
    chosen = {
        (data, one.name): search.best_point(found[data, one.like or one.name])
        for data, one in product(setting.data, setting.contestants)
    }
    jobs = report_jobs(setting, chosen)
    results = trained(run, jobs)
    variables, coords = assemble(setting, found, chosen, [results[name] for name in jobs])
    claims = report.judge(Result(variables, coords))
    run.publish(variables, coords, claims, SHOWN)


def assemble(
    setting: Setting,
    found: dict[tuple[str, str], Found],
    chosen: dict[tuple[str, str], Point],
    trained: list[Result],
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the two stages on the axes data × rule; curves that ended early are filled with NaN."""
    names = [one.name for one in setting.contestants]
    shape, dims = (len(setting.data), len(names)), ("data", "rule")
    seeds, epochs = len(setting.report.seeds), setting.report.epochs
    variables: dict[str, Variable] = {}
    for name in ("test_accuracy", "validation_accuracy"):
        values = np.full((len(trained), seeds, epochs), np.nan)
        for row, one in zip(values, trained, strict=True):
            curve = one[name].reshape(seeds, -1)
            row[:, : curve.shape[1]] = curve
        about = {"long_name": report.ABOUT[name]}
        variables[name] = Variable(
            (*dims, "seed", "epoch"), values.reshape(*shape, *values.shape[1:]), about
        )
    accuracy = np.stack([one["accuracy"].reshape(seeds) for one in trained])
    about = {"long_name": report.ABOUT["accuracy"]}
    variables["accuracy"] = Variable((*dims, "seed"), accuracy.reshape(*shape, seeds), about)
    variables |= search.chosen(list(chosen.values()), dims, shape)
    searched = [
        (
            found[data, one.like or one.name],
            axes_of(setting, setting.contestant(one.like or one.name)),
        )
        for data, one in product(setting.data, setting.contestants)
    ]
    variables["edge"] = search.edges(searched, dims, shape)
    tried = (len(setting.data), len(setting.searched))
    variables["search_accuracy"], axes = search.scores(
        list(found.values()), ("data", "searched"), tried, report.ABOUT["search_accuracy"]
    )
    coords: dict[str, Any] = {
        "data": np.array(setting.data),
        "rule": np.array(names),
        "searched": np.array(setting.searched),
        "seed": np.array(setting.report.seeds),
        "epoch": np.arange(1, epochs + 1),
        **axes,
    }
    return variables, coords


def _long_first(jobs: dict[str, Config]) -> dict[str, Config]:
    order = ("ipc", "pc", "zil", "bp")
    return dict(sorted(jobs.items(), key=lambda item: order.index(item[1].schedule.rule)))
