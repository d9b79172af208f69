"""From a finished run to a stored result: named axes, units, configuration and provenance."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pcsim.config import Config
from pcsim.divergence import lost_energy, lost_weights
from pcsim.provenance import provenance
from pcsim.runner.progress import coordinates
from pcsim.store import Attr, Result, Variable

if TYPE_CHECKING:
    from pcsim.kernels.parameters import Parameters
    from pcsim.runner.chip_run import ChipRun
    from pcsim.runner.replicas import Replicas
    from pcsim.runner.training import Training

DESCRIPTIONS = {
    "train_energy": "energy F per sample at the last step of each batch, mean over the epoch",
    "test_accuracy": "fraction of test samples right after each epoch",
    "validation_accuracy": "fraction of held-out training samples right after each epoch",
}


def attributes(config: Config, kind: str, **more: Attr) -> dict[str, Attr]:
    """Return what every result carries besides its arrays."""
    return {
        "kind": kind,
        "config": config.to_json(),
        "seeds": json.dumps(list(config.run.seeds)),
        **provenance(),
        **more,
    }


def training_result(training: Training) -> Result:
    """Return the recorded curves and final weights of a training."""
    replicas, progress = training.replicas, training.progress
    variables: dict[str, Variable] = {}
    for name, rows in progress.history.items():
        values = replicas.unfold(np.stack(rows, axis=1))
        about: dict[str, Attr] = {"long_name": DESCRIPTIONS[name], "units": "1"}
        variables[name] = Variable((*replicas.dims, "epoch"), values, about)
    if "test_accuracy" in progress.history:
        best = best_epoch(progress.history)
        chosen = np.take_along_axis(np.stack(progress.history["test_accuracy"]), best[None], 0)[0]
        about = {"long_name": "test accuracy at the epoch of best validation accuracy (else last)"}
        variables["accuracy"] = Variable(replicas.dims, replicas.unfold(chosen), about)
    about = {"long_name": "whether numbers have left the range in which they mean something"}
    diverged = lost_weights(training.params.flat.detach().cpu().numpy())
    if energies := progress.history.get("train_energy"):
        diverged |= lost_energy(energies[-1])
    variables["diverged"] = Variable(replicas.dims, replicas.unfold(diverged), about)
    predictions = partial(training.task.predictions, training.readout, training.params)
    variables |= final_state(training.config, training.params, replicas, predictions)
    epochs = np.arange(1, progress.epoch + 1)
    coords: dict[str, Any] = replicas.coords | {"epoch": epochs}
    train = len(training.task.train.x)
    variables |= coordinates(
        training.config, train, "epoch", lambda pace: pace.after_epochs(epochs.astype(float))
    )
    attrs = attributes(
        training.config,
        "training",
        train_seconds=progress.seconds,
        train_samples=train,
        data_origin=json.dumps(dict(training.task.origin)),
        **training.about(),
    )
    return Result(variables, coords, attrs)


def final_state(
    config: Config,
    params: Parameters,
    replicas: Replicas,
    predictions: Callable[[], np.ndarray],
) -> dict[str, Variable]:
    """Return the weights at the end, and what they predict for the test samples."""
    about: dict[str, Attr] = {
        "long_name": "all weights and biases, node by node from the datum to the top"
    }
    values = replicas.unfold(params.flat.detach().cpu().numpy())
    variables = {"parameters": Variable((*replicas.dims, "parameter"), values, about)}
    if config.record.predictions and config.data.mode == "supervised":
        about = {"long_name": "class predicted for each test sample at the end, -1: none"}
        values = replicas.unfold(predictions())
        variables["predictions"] = Variable((*replicas.dims, "test_sample"), values, about)
    return variables


def best_epoch(history: dict[str, list[np.ndarray]]) -> np.ndarray:
    """Return the epoch index (replica,) of the best validation accuracy, else the last one."""
    if "validation_accuracy" in history:
        return np.asarray(np.argmax(np.stack(history["validation_accuracy"]), axis=0))
    replicas = len(history["test_accuracy"][0])
    return np.full(replicas, len(history["test_accuracy"]) - 1)


def chip_result(run: ChipRun) -> Result:
    """Return records, accuracy, verdict and final weights of a run in continuous time."""
    dims, unfold = run.chips.dims, run.chips.unfold
    variables: dict[str, Variable] = dict(run.recorder.variables(dims, unfold))
    coords: dict[str, Any] = run.chips.coords | {"time": run.recorder.times}
    train, dt = len(run.task.train.x), run.timing.dt
    # A record belongs to the state before its step.
    steps = np.round(run.recorder.times / dt) + 1
    variables |= coordinates(run.config, train, "time", lambda pace: pace.after_steps(steps))
    if run.accuracy_rows:
        values = unfold(np.stack([row for _, row in run.accuracy_rows], 1))
        about: dict[str, Attr] = {"long_name": "fraction of test samples right", "units": "1"}
        variables["test_accuracy"] = Variable((*dims, "accuracy_time"), values, about)
        variables["accuracy"] = Variable(dims, unfold(run.accuracy_rows[-1][1]), about)
        coords["accuracy_time"] = np.asarray([t for t, _ in run.accuracy_rows])
        read = np.round(coords["accuracy_time"] / dt)
        variables |= coordinates(
            run.config, train, "accuracy_time", lambda pace: pace.after_steps(read), "accuracy_"
        )
    if run.accuracy_rows and run.task.validation:
        values = unfold(run.accuracy(run.task.validation))
        about = {"long_name": "fraction of held-out training samples right at the end"}
        variables["validation_accuracy"] = Variable(dims, values, about | {"units": "1"})
    if run.config.run.automatic:
        about = {"long_name": "when the chip stopped by itself, nan: not", "units": "s"}
        variables["stopped_at"] = Variable(dims, unfold(run.stopped_at), about)
    for name, value in run.verdict().columns().items():
        variables[f"verdict.{name}"] = Variable(dims, unfold(value))
    flow = run.engine.flow
    if events := flow.events():
        coords["sender"] = np.asarray(list(events))
        for sender, counts in events.items():
            about = {"long_name": "events of each unit in the whole run, over all samples"}
            axes = (*dims, f"unit_{sender}")
            variables[f"events.{sender}"] = Variable(axes, unfold(counts.cpu().numpy()), about)
    predictions = partial(run.task.predictions, run.readout, flow)
    variables |= final_state(run.config, flow.theta(), run.chips, predictions)
    attrs = attributes(
        run.config,
        "chips",
        train_seconds=run.seconds,
        simulated_seconds=run.engine.time,
        time_step=dt,
        tau_w=run.timing.circuit.weight_time,
        train_samples=train,
        data_origin=json.dumps(dict(run.task.origin)),
    )
    attrs |= run.engine.about()
    units: dict[str, dict[str, Attr]] = {
        name: {"units": "s"} for name in ("time", "accuracy_time") if name in coords
    }
    return Result(variables, coords, attrs, units)
