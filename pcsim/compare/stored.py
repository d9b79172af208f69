"""Contenders from the results of `pcsim run`: training, chips in continuous time, automatic.

How far a run is at each record follows from its configuration (`pcsim.runner.progress`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

from pcsim import config as configuration
from pcsim.compare.contender import Array, Contender, Curve, unknown_progress
from pcsim.errors import ConfigError
from pcsim.frozen import dotted
from pcsim.runner.progress import Pace
from pcsim.store import Result, Variable

CHIP = "chip"
SINGLE = Variable((), np.zeros(()))


def from_result(name: str, source: str, result: Result, at: Mapping[str, float]) -> Contender:
    """Return a contender; `at` chooses the value of every grid axis.

    Chips that are not chosen from are a population: a seed has their mean; their spread is kept.
    """
    if "config" not in result.attrs:
        raise ConfigError(f"{source}: holds no configuration; give a result of `pcsim run`")
    config = configuration.from_json(str(result.attrs["config"]))
    axes, at = grid_axes(result), dict(at)
    population = CHIP in axes and CHIP not in at
    axes = tuple(axis for axis in axes if axis != CHIP or not population)
    accuracy = next((n for n in ("accuracy", "test_accuracy") if n in result.variables), None)
    if accuracy is None:
        raise ConfigError(
            f"{source}: holds no test accuracy (data.mode = {config.data.mode!r}); "
            f"compare needs supervised runs"
        )
    for axis in axes:
        if axis not in at:
            labels = ", ".join(f"{v:g}" for v in result[axis])
            raise ConfigError(
                f"{source}: has an axis {axis} ({labels}); choose with --at {axis}=VALUE"
            )

    def take(variable: str) -> Array | None:
        """Return a variable (seed, …) at the chosen grid values."""
        if variable not in result.variables:
            return None
        values, dims = result[variable], list(result.variables[variable].dims)
        for axis in axes:
            values = np.take(values, _index(result, axis, at[axis], source), axis=dims.index(axis))
            dims.remove(axis)
        order = [dims.index(d) for d in ("seed", CHIP) if d in dims]
        return np.moveaxis(values, order, range(len(order)))

    def mean(variable: str) -> Array | None:
        """Return a variable (seed, …), its mean over a population of chips."""
        values = take(variable)
        chips = population and CHIP in result.variables.get(variable, SINGLE).dims
        return values.mean(1) if chips and values is not None else values

    final = mean(accuracy)
    assert final is not None
    train = float(result.attrs.get("train_samples", np.nan))
    pace = Pace(config, train, at.get("gamma", config.schedule.gamma) if "gamma" in axes else None)
    return Contender(
        name=name,
        source=source,
        fields=dotted(config.model_dump(mode="json")),
        seeds=result["seed"],
        accuracy=final,
        accuracy_curve=_accuracy_curve(final, mean("test_accuracy"), result, pace),
        energy_curve=_energy_curve(mean("train_energy"), mean("energy"), result, pace),
        chips=take(accuracy) if population else None,
        parameters=None if population else take("parameters"),
        predictions=None if population else take("predictions"),
        config=config,
        origin=json.loads(str(result.attrs.get("data_origin", "{}"))),
    )


def grid_axes(result: Result) -> tuple[str, ...]:
    """Return the axes besides the seeds on which a run is spread."""
    name = "accuracy" if "accuracy" in result.variables else "parameters"
    known = ("seed", "parameter")
    if name not in result.variables:
        return ()
    return tuple(d for d in result.variables[name].dims if d not in known)


def _index(result: Result, axis: str, value: float, source: str) -> int:
    labels = result[axis]
    places = np.flatnonzero(np.isclose(labels.astype(float), value, rtol=1e-6, atol=0))
    if not len(places):
        shown = ", ".join(f"{v:g}" for v in labels)
        raise ConfigError(f"{source}: --at {axis}={value:g} is none of {shown}")
    return int(places[0])


def _for_seeds(progress: Mapping[str, Array], seeds: int) -> dict[str, Array]:
    return {name: np.broadcast_to(row, (seeds, len(row))) for name, row in progress.items()}


def _accuracy_curve(final: Array, curve: Array | None, result: Result, pace: Pace) -> Curve:
    seeds = len(final)
    if curve is None or curve.ndim == 1:  # an automatic discrete run: known at the end only
        progress = unknown_progress((seeds, 1))
        if "steps" in result.variables and result["steps"].shape == (seeds,):
            progress = pace.after_steps(result["steps"][:, None].astype(float))
        return Curve(final[:, None], progress)
    if "accuracy_time" in result.coords:
        steps = np.round(result["accuracy_time"] / pace.dt)
        return Curve(curve, _for_seeds(pace.after_steps(steps), seeds))
    return Curve(curve, _for_seeds(pace.after_epochs(result["epoch"].astype(float)), seeds))


def _energy_curve(
    train: Array | None, energy: Array | None, result: Result, pace: Pace
) -> Curve | None:
    if train is not None:
        progress = pace.after_epochs(result["epoch"].astype(float))
        return Curve(train, _for_seeds(progress, len(train)))
    if energy is None:
        return None
    if "step" in result.coords:
        steps = np.arange(1, energy.shape[1] + 1, dtype=float)
        return Curve(energy, _for_seeds(pace.after_steps(steps), len(energy)))
    total = energy.sum(-1)  # over the nodes
    # A record belongs to the state before its step.
    steps = np.round(result["time"] / pace.dt) + 1
    if pace.automatic or not np.isfinite(pace.batches):
        return Curve(total, _for_seeds(pace.after_steps(steps), len(total)))
    # As in a discrete training: at the end of each presentation, mean over each epoch.
    at_end = steps % pace.steps == 0
    if at_end.any():
        total, steps = total[:, at_end], steps[at_end]
    epoch = np.ceil(steps / (pace.batches * pace.steps)).astype(int)
    epochs = np.unique(epoch)
    means = np.stack([total[:, epoch == one].mean(1) for one in epochs], 1)
    return Curve(means, _for_seeds(pace.after_epochs(epochs.astype(float)), len(total)))
