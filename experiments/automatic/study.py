"""Where is the fully automatic schedule viable? The map, with the predicted limits in it.

`pcsim experiment automatic` trains populations of chips by always-on iPC, one sample at a time,
nothing reset, on the native engine, and varies one fault of the chip at a time (and some together
with presentation time, learning rate or depth). How long a sample is shown is chosen first, on an
ideal chip: the shortest time within `Setting.worst` of the best accuracy on held-out samples. Every
point then has its own learning rate, chosen on held-out samples. The sizes of a fault at which 1, 3
and 5 points of accuracy are lost stand beside those that the laws of `pcsim.limits` predict.

Every point is a cell: interrupted, the same command goes on. Tasks whose data are absent are left
out, and it says so.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.datasets.locate import copies, is_published
from pcsim.datasets.registry import entry
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from . import corners, drawing, judging, laws, overview, report
from .atlas import Atlas
from .cell import measured
from .points import Point, Setting, points, presentations, reference

PAGE = "automatic.md"
SIZES: dict[str, tuple[float, ...]] = {
    "accumulated": (2, 3, 4, 5, 6, 7),
    "nearest": (6, 8, 10, 11, 12, 13, 14),
    "noise": (0.05, 0.07, 0.1, 0.14, 0.2, 0.4, 0.8),
    "offset": (0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05),
    "error_lag": (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0),
    "delay": (0.4, 0.8, 1.2, 1.6, 2.4),
    "inter_lag": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0),
    "imbalance": (0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9),
    "retention": (100.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0, 100000.0),
    "bound": (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0),
    "gain": (0.1, 0.2, 0.4, 0.6, 0.8),
    "pulse": (0.002, 0.003, 0.005, 0.01, 0.03, 0.1),
    "tau": (0.2, 0.4, 0.6, 0.8),
    "stochastic": (3, 4, 5, 6, 7, 8, 9, 10),
    "line": (0.1, 0.2, 0.4, 0.6, 0.8),
    "drift": (0.03, 0.1, 0.3, 1.0),
}
"""Sizes of every fault, those first that matter most or cost least."""
FULL = Setting(
    task="mnist",
    worst=0.005,
    train=58000,
    tuning_train=10000,
    held_out=2000,
    task_test=0,
    seeds=3,
    chips=2,
    alike_seeds=3,
    tuning_seeds=1,
    width=64,
    long=2.5,
    presents=(4.0, 8.0, 20.0),
    sizes={
        "accumulated": (6,),
        "nearest": (12, 14),
        "offset": (0.003,),
        "imbalance": (0.16,),
        "noise": (0.12, 0.2),
    },
    depths=(3,),
    tasks=("fashion_mnist",),
    devices=("ecram_li",),
    corners=True,
)
"""A few points on full sets: 784-64-10, every sample once."""
SCALES = {
    "small": Setting(
        train=500,
        held_out=300,
        seeds=5,
        chips=16,
        alike_seeds=10,
        presents=(2.0, 4.0, 8.0, 12.0, 20.0, 40.0),
        sizes=SIZES,
        cut_presents=(4.0, 20.0),
        cut_sizes={"noise": (0.1, 0.2, 0.4), "offset": (0.003, 0.01, 0.02)},
        cut_rates=(0.025, 0.1, 0.4),
        rate_sizes={"nearest": SIZES["nearest"], "stochastic": (5, 6, 7, 8, 9, 10)},
        depths=(2, 3, 4, 6, 8),
        lag_depths=(3, 4, 6),
        lag_sizes={
            "inter_lag": SIZES["inter_lag"],
            "error_lag": (0.5, 1.0, 2.0, 4.0),
            "delay": (0.4, 0.8),
        },
        longest_depths=(4, 6, 8),
        fine={"tau": (0.4, 0.8), "gain": (0.4, 0.8)},
        widths=(16, 64, 128, 256),
        noisy_widths=(16, 128, 256),
        tasks=("xor", "fashion_mnist"),
        task_faults={"noise": 0.2, "offset": 0.01},
        devices=("ecram_li",),
    ),
}
SCALES["corners"] = FULL
SCALES["decide"] = FULL.model_copy(update={"sizes": {}, "depths": (), "tasks": (), "devices": ()})
SCALES["paper"] = SCALES["small"].model_copy(
    update={
        "train": 1142,
        "seeds": 10,
        "chips": 32,
        "alike_seeds": 20,
        "cut_presents": (4.0, 12.0, 20.0, 40.0),
        "lag_depths": (3, 4, 6, 8),
        "tasks": ("xor", "mnist", "fashion_mnist"),
    }
)


def time_needed(setting: Setting, found: dict[str, Result]) -> float:
    """Return the shortest presentation that is as good as the best, on held-out samples."""
    score = {p.present: float(found[p.name]["held_out"].mean()) for p in presentations(setting)}
    best = max(score.values())
    return min(time for time, value in score.items() if value >= best - setting.worst)


def there(task: str) -> bool:
    """Return whether the data of a task lie on this machine; nothing is downloaded."""
    if task == "xor":
        return True
    return all(
        any(is_published(path, file) for _, path in copies(file)) for file in entry(task).wanted()
    )


def main(out: Path, scale: str) -> None:
    """Measure, print, store, draw."""
    run = scaled.begin("automatic", SCALES, scale, out)
    setting = SCALES[scale]
    first = collected(run, setting, presentations(setting))
    present = time_needed(setting, first)
    run.console.print(f"presentation time: {present:g} τ_x")
    absent = [task for task in setting.tasks if not there(task)]
    for task in absent:
        run.console.print(f"{task}: left out, its data are not here")
    rest = [point for point in points(setting, present) if point.task not in absent]
    found = first | collected(run, setting, rest)
    publish(
        run,
        setting,
        present,
        {point: found[point.name] for point in [*presentations(setting), *rest]},
    )


def collected(run: scaled.Study, setting: Setting, wanted: list[Point]) -> dict[str, Result]:
    """Return the cells of points; they outlive a change of which points there are."""
    jobs = {point.name: partial(measured, setting, point) for point in wanted}
    return keeping.collect(jobs, run.path, setting.training, run.console, keeping.PROCESSES)


def publish(
    run: scaled.Study, setting: Setting, present: float, found: dict[Point, Result]
) -> Result:
    """Store all points with what laws predict for them, then print and draw."""
    variables, coords = as_variables(setting, present, found)
    whole = Result(variables, coords, {"setting": setting.model_dump_json()})
    return run.publish(variables, coords, judging.judge(whole), shown(whole))


def as_variables(
    setting: Setting, present: float, found: dict[Point, Result]
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Return what was measured and predicted on the axes (point, seed, chip, tolerance)."""
    seeds, chips = (max(r["accuracy"].shape[k] for r in found.values()) for k in (0, 1))
    accuracy = np.full((len(found), seeds, chips), np.nan, dtype=np.float32)
    for row, one in zip(accuracy, found.values(), strict=True):
        values = one["accuracy"]
        row[: values.shape[0], : values.shape[1]] = values
    columns: dict[str, list[Any]] = {
        "fault": [p.fault for p in found],
        "size": [p.size for p in found],
        "present": [p.present for p in found],
        "given_rate": [p.rate for p in found],
        "depth": [p.depth for p in found],
        "width": [p.width for p in found],
        "task": [p.task for p in found],
        "step": [p.step for p in found],
        "rate": [float(one["rate"]) for one in found.values()],
        "at_end": [bool(one["at_end"]) for one in found.values()],
        "held_out": [float(one["held_out"].mean()) for one in found.values()],
    }
    variables = {name: Variable(("point",), np.array(values)) for name, values in columns.items()}
    variables["accuracy"] = Variable(("point", "seed", "chip"), accuracy)
    variables["chosen_present"] = Variable((), np.array(present))
    variables |= predicted(setting, present, found)
    return variables, {"tolerance": np.array(laws.TOLERANCES)}


def predicted(setting: Setting, present: float, found: dict[Point, Result]) -> dict[str, Variable]:
    """Return the sizes that the laws predict for every point, by tolerance."""
    tasks = {setting.task, *(p.task for p in found)} - {"xor"}
    layers = {task: laws.Layer.of(task, setting) for task in sorted(tasks)}
    sizes = np.full((len(found), len(laws.TOLERANCES)), np.nan)
    for row, (point, one) in zip(sizes, found.items(), strict=True):
        ideal = found.get(reference(setting, point, present))
        if point.task in layers:
            rate, layer = float(one["rate"]), layers[point.task]
            gamma = point.step or setting.gamma
            row[:] = [
                layer.size(point.fault, t, rate, point.present, gamma, ideal)
                for t in laws.TOLERANCES
            ]
    longest, layer = found[presentations(setting)[-1]], layers[setting.task]
    limits = [
        layer.size("present", t, setting.gamma, 1.0, setting.gamma, longest)
        for t in laws.TOLERANCES
    ]
    return {
        "predicted": Variable(("point", "tolerance"), sizes),
        "carry_limit": Variable(("tolerance",), np.array(limits)),
    }


MAP = scaled.Shown(
    report.tables,
    {**drawing.FIGURES, "_overview": overview.overview},
    report.rows,
    "what was predicted before",
    {"_laws": report.errors},
)
CORNERS = scaled.Shown(report.points, {"": corners.draw}, corners.rows, "what was predicted before")


def shown(result: Result) -> scaled.Shown:
    """Return the tables and figures of a map, or of a few points."""
    return CORNERS if Atlas.of(result).setting.corners else MAP


figures = partial(scaled.redraw, __file__, shown, SCALES)
