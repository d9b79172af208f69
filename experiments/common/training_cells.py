"""One discrete training as a cell of a study: its curves without its weights."""

from __future__ import annotations

from pcsim.config import Config
from pcsim.runner.results import training_result
from pcsim.runner.training import Training
from pcsim.store import Result

KEPT = ("train_energy", "test_accuracy", "validation_accuracy", "accuracy")


def train(config: Config) -> Result:
    """Train all replicas of a configuration; return what was recorded after each epoch."""
    training = Training(config)
    training.run()
    found = training_result(training)
    kept = {name: found.variables[name] for name in KEPT if name in found.variables}
    attrs = {name: found.attrs[name] for name in ("data_origin", "train_seconds")}
    return Result(kept, found.coords, attrs)
