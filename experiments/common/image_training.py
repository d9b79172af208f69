"""Train a classifier of images by each rule, with the same budget, over a grid and several seeds.

What the studies `cnn_classification`, `alexnet`, `width` and `robustness` share. A cell of theirs
is one point of the grid: one rule, one learning rate, one weight decay, one γ, all seeds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from pcsim import config, datasets
from pcsim.frozen import Frozen
from pcsim.kernels.parameters import Parameters
from pcsim.runner.results import training_result
from pcsim.runner.training import Training
from pcsim.status import Status
from pcsim.store import Result, Variable

from . import keeping
from .search import Point

RULES = {"BP": "bp", "PC": "pc", "iPC": "ipc"}
UNSEEN = 100
"""Test samples of a search, which reads nothing from them; a training must have some."""
SLOWEST_FIRST = ("iPC", "PC", "BP")
CURVES = ("train_energy", "validation_accuracy", "test_accuracy")
STAND_IN_ALLOWED = ("svhn",)
"""Sets of which another copy than the published file will do; the result says which was read."""


class Search(Frozen):
    """How the point of the grid is chosen before the seeds are trained; see `search`.

    Every point tried has this budget, whatever the rule.
    """

    limit: int
    """Training samples that are used, held-out ones included."""
    validation: int
    epochs: int
    seed: int = 100
    """One that no result is made of."""
    reach: int = 3
    """Values of an axis that may be tried beyond its ends."""


class Budget(Frozen):
    """What every rule is given alike."""

    limit: int
    """Training samples that are used, held-out ones included; 0 is all."""
    validation: int
    """Held-out training samples, which choose the point of the grid and the epoch."""
    test: int = 0
    """Test samples that are measured on, the first ones; 0 is all."""
    epochs: int
    seeds: tuple[int, ...]
    alphas: tuple[float, ...]
    weight_decays: tuple[float, ...] = (0.0,)
    gammas: tuple[float, ...] = (0.5,)
    batch: int = 128
    T: int = 8
    anneal: Literal["none", "cosine"] = "none"
    device: str = "cpu"
    search: Search | None = None
    """Choose the point first, then train the seeds there; None: train the seeds at every point."""

    def of_search(self) -> Budget:
        """Return the budget of each point that the search tries; it looks at no test sample."""
        assert self.search is not None
        one = self.search
        update = {"limit": one.limit, "validation": one.validation, "epochs": one.epochs}
        return self.model_copy(update={**update, "seeds": (one.seed,), "test": UNSEEN})

    @property
    def processes(self) -> int:
        """Cells that are measured side by side: a GPU is not shared."""
        return keeping.PROCESSES if self.device == "cpu" else 1


SMALL = Budget(
    limit=2548,
    validation=500,
    test=2000,
    epochs=4,
    seeds=(0, 1, 2),
    alphas=(1e-4, 3e-4, 1e-3),
    gammas=(0.1, 0.5),
    batch=32,
)
"""What two cores can train with: 2048 samples in small batches, so that rules which write once per
batch write often enough. Two of the paper's γ: at 1 these networks do not settle (`alexnet`)."""
DECIDE = Budget(
    limit=20_000,
    validation=2_000,
    epochs=10,
    seeds=(0, 1, 2),
    alphas=(1e-4, 3e-4, 1e-3),
    gammas=(0.1, 0.5, 1.0),
    batch=64,
    anneal="cosine",
    search=Search(limit=6_000, validation=2_000, epochs=3),
)
"""What decides on a processor: learning rate and γ are chosen with one seed on 4000 samples, and
three seeds are trained there on 18 000; all test samples. `pcsim experiment paper_hours` times it.
"""
PAPER = Budget(
    limit=0,
    validation=5000,
    epochs=50,
    seeds=(0, 1, 2, 3, 4),
    alphas=(1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 1e-2),
    weight_decays=(1e-4, 1e-3, 1e-2, 1e-1),
    gammas=(0.1, 0.5, 1.0),
    device="cuda",
)
"""The paper's 96 points. It gives the ends of the learning rates and says there are eight."""


class Task(NamedTuple):
    """What is trained: a data set, and the section `network` without the sizes it gives."""

    data: str
    network: Mapping[str, Any]
    augment: bool = False


def measured_point(rule: str, point: Point, budget: Budget) -> Point:
    """Return the point that is measured: BP has no γ, and is trained once for all of them."""
    return point._replace(gamma=budget.gammas[0]) if rule == "BP" else point


def cell_name(lead: object, rule: str, point: Point) -> str:
    """Name a cell; `lead` is what the study varies besides rule and grid."""
    return f"{lead}_{rule}_a{point.alpha:g}_w{point.weight_decay:g}_g{point.gamma:g}"


def config_of(task: Task, rule: str, point: Point, budget: Budget) -> config.Config:
    """Return the run of one point; rules differ in the section `schedule` alone."""
    allowed = task.data in STAND_IN_ALLOWED
    found = datasets.load(task.data, unverified=allowed)
    times = {} if rule == "BP" else {"T": budget.T, "gamma": point.gamma}
    sections: Mapping[str, Any] = {
        "network": {"image": found.shape, "classes": found.classes, **task.network},
        "schedule": {"rule": RULES[rule], **times},
        "learning": {
            "optimizer": "adam",
            "alpha": point.alpha,
            "weight_decay": point.weight_decay,
            "batch": budget.batch,
            "epochs": budget.epochs,
            "anneal": budget.anneal,
            "reduction": "sum",
        },
        "data": {
            "name": task.data,
            "limit": budget.limit,
            "validation": budget.validation,
            "limit_test": budget.test,
            "centre": True,
            "augment": task.augment,
            "unverified": allowed,
        },
        "run": {"seeds": budget.seeds, "device": budget.device},
        "record": {"predictions": False},
    }
    return config.parse(sections)


def trained(chosen: config.Config) -> tuple[Training, Parameters]:
    """Train; return the training and the weights of each seed's best epoch.

    The best epoch is the first at which most held-out samples are right.
    """
    training = Training(chosen)
    best = Parameters(training.network, training.params.flat.clone())
    reached = np.full(len(training.replicas), -1.0)

    def keep_the_best(_: Status) -> None:
        now = training.progress.history["validation_accuracy"][-1]
        better = np.flatnonzero(now > reached)
        reached[better] = now[better]
        best.flat[better] = training.params.flat[better].detach()

    training.run(keep_the_best)
    return training, best


def recorded(training: Training, best: Parameters) -> Result:
    """Return what was recorded in each epoch, without weights.

    Beside the test accuracy stands that on the training samples, with the weights of the best
    epoch: a rule that writes more often may only have learnt its samples by heart.
    """
    found = training_result(training)
    accuracy = training.task.accuracy(training.readout, best, training.task.train)
    about = {"long_name": "fraction of training samples right at the best epoch", "units": "1"}
    learnt = Variable(training.replicas.dims, training.replicas.unfold(accuracy), about)
    kept = {n: found.variables[n] for n in CURVES}
    return Result({**kept, "train_accuracy": learnt}, found.coords, found.attrs)


More = Callable[[Training, Parameters], dict[str, Variable]]
"""Measures further variables with the weights of the best epoch."""


def measure(
    task: Task, rule: str, point: Point, budget: Budget, more: More | None = None
) -> Result:
    """Measure a cell: curves, and what else the study wants of the weights."""
    training, best = trained(config_of(task, rule, point, budget))
    found = recorded(training, best)
    further = more(training, best) if more else {}
    return Result({**found.variables, **further}, found.coords, found.attrs)


def cells(
    leads: Sequence[object],
    rules: Sequence[str],
    budget: Budget,
    measure: Callable[[Any, str, Point], Result],
) -> dict[str, Callable[[], Result]]:
    """Return how to measure every cell, slow rules first; `measure` takes lead, rule and point."""
    made: dict[str, Callable[[], Result]] = {}
    grid = [Point(*p) for p in product(budget.alphas, budget.weight_decays, budget.gammas)]
    for rule, lead in product(sorted(rules, key=SLOWEST_FIRST.index), leads):
        for point in (measured_point(rule, p, budget) for p in grid):
            made[cell_name(lead, rule, point)] = partial(measure, lead, rule, point)
    return made


def gathered(
    found: Mapping[str, Result],
    leads: Mapping[str, Sequence[Any]],
    rules: Sequence[str],
    budget: Budget,
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the cells along the axes (lead, rule, alpha, weight_decay, gamma, …).

    `leads` names the leading axis and its values. BP's cells are repeated along γ.
    """
    ((lead_name, values),) = leads.items()
    axes = {
        lead_name: values,
        "rule": rules,
        "alpha": budget.alphas,
        "weight_decay": budget.weight_decays,
        "gamma": budget.gammas,
    }
    shape = tuple(len(axis) for axis in axes.values())
    in_order = [
        found[cell_name(lead, rule, measured_point(rule, Point(*point), budget))]
        for lead, rule, *point in product(*axes.values())
    ]
    first = in_order[0]
    variables = {
        name: Variable(
            (*axes, *one.dims),
            np.stack([cell[name] for cell in in_order]).reshape(*shape, *one.values.shape),
            one.attrs,
        )
        for name, one in first.variables.items()
    }
    coords = {name: np.array(axis) for name, axis in axes.items()}
    return variables, coords | dict(first.coords)


def origin(found: Mapping[str, Result], lead: object) -> str:
    """Return which files the cells with this lead have read."""
    return str(_first(found, lead).attrs["data_origin"])


def train_samples(found: Mapping[str, Result], lead: object) -> int:
    """Return how many samples the cells with this lead were trained on."""
    return int(_first(found, lead).attrs["train_samples"])


def _first(found: Mapping[str, Result], lead: object) -> Result:
    return next(cell for name, cell in found.items() if name.startswith(f"{lead}_"))
