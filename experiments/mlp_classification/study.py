"""Do PC and iPC classify as well as BP? The multilayer perceptrons of the paper's Table 1.

`pcsim experiment mlp_classification` trains networks with two hidden layers of 64 units on MNIST
and FashionMNIST by BP, PC, iPC and Z-IL, in two stages:

    search   every combination of α, weight decay and γ side by side on the replica axis; the cell
             with the best validation accuracy is chosen, for each rule and data set
    report   that cell with several seeds and more data; the test accuracy of each seed at its epoch
             of best validation accuracy (early stopping)

No test image takes part in a choice; the paper reports the highest test accuracy it obtained. Z-IL
equals BP in exact arithmetic, so it takes BP's cell.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

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
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from ..common.training_cells import train
from . import report

RULES: dict[str, Rule] = {"BP": "bp", "PC": "pc", "iPC": "ipc", "Z-IL": "zil"}
SEARCHED = ("BP", "PC", "iPC")


class Cell(Frozen):
    """One combination of hyper-parameters."""

    alpha: float
    weight_decay: float
    gamma: float


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
    network: Mlp = Mlp(
        sizes=(784, 64, 64, 10), f="leaky_relu", output=EnergyConfig(kind="categorical")
    )
    alphas: tuple[float, ...]
    weight_decays: tuple[float, ...]
    gammas: tuple[float, ...]
    T: int = 8
    batch: int = 128
    patience: int = 5
    """Epochs without improvement in any replica after which a training ends."""
    search: Stage
    report: Stage


SCALES = {
    "small": Setting(
        alphas=(3e-4, 1e-3, 3e-3, 1e-2),
        weight_decays=(1e-2, 1e-1),
        gammas=(0.1, 0.5),
        search=Stage(limit=6000, validation=1000, epochs=8, seeds=(0,)),
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


def config_of(setting: Setting, stage: Stage, data: str, rule: str, grid: Grid) -> Config:
    """Return one training: the whole grid (of one value each, in the report) × the seeds."""
    schedule = Schedule(rule=RULES[rule], T=setting.T)
    if rule in ("BP", "Z-IL"):  # T and γ have no meaning for BP; its equal has T = depth, γ = 1
        schedule = Schedule(rule=RULES[rule])
        grid = grid.model_copy(update={"gamma": ()})
    return Config(
        network=setting.network,
        schedule=schedule,
        learning=Learning(
            optimizer="adamw",
            anneal="cosine",
            batch=setting.batch,
            epochs=stage.epochs,
            patience=setting.patience,
        ),
        data=DataConfig(name=data, limit=stage.limit, validation=stage.validation, centre=True),
        run=RunConfig(seeds=stage.seeds),
        grid=grid,
    )


def search_jobs(setting: Setting) -> dict[str, Config]:
    """Return the search of every data set and rule, one job for each γ."""
    jobs = {}
    for data, rule, gamma in product(setting.data, SEARCHED, setting.gammas):
        if rule == "BP" and gamma != setting.gammas[0]:
            continue  # BP has no γ
        grid = Grid(alpha=setting.alphas, weight_decay=setting.weight_decays, gamma=(gamma,))
        jobs[_search_name(data, rule, gamma)] = config_of(setting, setting.search, data, rule, grid)
    return jobs


def validation_grid(
    setting: Setting, found: dict[str, Result], data: str, rule: str
) -> npt.NDArray[np.floating]:
    """Return the best validation accuracy (alpha, weight_decay, gamma), mean over seeds.

    NaN where nothing was searched: BP has no γ.
    """
    shape = (len(setting.alphas), len(setting.weight_decays), len(setting.gammas))
    grid = np.full(shape, np.nan)
    for k, gamma in enumerate(setting.gammas[:1] if rule == "BP" else setting.gammas):
        curves = found[_search_name(data, rule, gamma)]["validation_accuracy"]
        split = curves.reshape(*shape[:2], len(setting.search.seeds), -1)
        grid[..., k] = split.max(-1).mean(-1)
    return grid


def best_cell(setting: Setting, grid: npt.NDArray[np.floating]) -> Cell:
    """Return the cell of the highest validation accuracy; of equals the first."""
    a, d, g = np.unravel_index(int(np.nanargmax(grid)), grid.shape)
    return Cell(
        alpha=setting.alphas[a], weight_decay=setting.weight_decays[d], gamma=setting.gammas[g]
    )


def report_jobs(setting: Setting, chosen: dict[tuple[str, str], Cell]) -> dict[str, Config]:
    """Return the training of every rule at its chosen cell."""
    jobs = {}
    for (data, rule), cell in chosen.items():
        grid = Grid(alpha=(cell.alpha,), weight_decay=(cell.weight_decay,), gamma=(cell.gamma,))
        config = config_of(setting, setting.report, data, rule, grid)
        # The cell is in the name: another choice is another training.
        name = f"report_{data}_{rule}_{cell.alpha:g}_{cell.weight_decay:g}_{cell.gamma:g}"
        jobs[name] = config
    return jobs


def main(out: Path, scale: str) -> None:
    """Search, train, print, store, draw."""
    run = scaled.begin("mlp_classification", SCALES, scale, out)
    setting = SCALES[scale]
    jobs = {name: partial(train, job) for name, job in _long_first(search_jobs(setting)).items()}
    searched = run.collect(jobs, processes=keeping.PROCESSES)
    grids = {
        (data, rule): validation_grid(setting, searched, data, rule)
        for data, rule in product(setting.data, SEARCHED)
    }
    chosen = {
        (data, rule): best_cell(setting, grids[data, "BP" if rule == "Z-IL" else rule])
        for data, rule in product(setting.data, RULES)
    }
    last = report_jobs(setting, chosen)
    measures = {name: partial(train, job) for name, job in _long_first(last).items()}
    trained = run.collect(measures, processes=keeping.PROCESSES)
    variables, coords = assemble(setting, grids, chosen, [trained[name] for name in last])
    claims = report.judge(Result(variables, coords))
    run.publish(variables, coords, claims, report.tables, {"": report.draw})


def assemble(
    setting: Setting,
    grids: dict[tuple[str, str], npt.NDArray[np.floating]],
    chosen: dict[tuple[str, str], Cell],
    trained: list[Result],
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the two stages on the axes data × rule; curves that ended early are filled with NaN."""
    shape, dims = (len(setting.data), len(RULES)), ("data", "rule")
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
    for name in Cell.model_fields:
        values = np.array([getattr(cell, name) for cell in chosen.values()]).reshape(shape)
        variables[f"chosen_{name}"] = Variable(dims, values)
    found = np.stack([[grids[data, rule] for rule in SEARCHED] for data in setting.data])
    variables["search_accuracy"] = Variable(
        ("data", "searched", "alpha", "weight_decay", "gamma"),
        found,
        {"long_name": report.ABOUT["search_accuracy"]},
    )
    coords: dict[str, Any] = {
        "data": np.array(setting.data),
        "rule": np.array(list(RULES)),
        "searched": np.array(SEARCHED),
        "seed": np.array(setting.report.seeds),
        "epoch": np.arange(1, epochs + 1),
        "alpha": np.array(setting.alphas),
        "weight_decay": np.array(setting.weight_decays),
        "gamma": np.array(setting.gammas),
    }
    return variables, coords


def _search_name(data: str, rule: str, gamma: float) -> str:
    return f"search_{data}_{rule}" + ("" if rule == "BP" else f"_gamma{gamma:g}")


def _long_first(jobs: dict[str, Config]) -> dict[str, Config]:
    order = ("ipc", "pc", "zil", "bp")
    return dict(sorted(jobs.items(), key=lambda item: order.index(item[1].schedule.rule)))
