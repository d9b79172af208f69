"""Peak memory of a whole run of many chips, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
from rich.table import Table

from pcsim import config as configuration
from pcsim.errors import UnsupportedError
from pcsim.provenance import provenance
from pcsim.runner.memory_need import memory_need
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Task
from pcsim.store import Result, Variable

CHIPS = 10_000
MOST = 2.0
"""Gigabytes that such a run may take."""
RUN: dict[str, Any] = {
    "network": {"sizes": [64, 32, 10]},
    "schedule": {"T": 20, "gamma": 0.2},
    "learning": {"alpha": 0.001, "batch": 1, "epochs": 1},
    "data": {"name": "digits", "limit": 10, "limit_test": 20},
    "run": {"backend": "continuous", "engine": "native"},
    "hardware": {"preset": "ecram_li", "chips": CHIPS},
}
CHILD = """
import json, resource, sys, warnings
from pcsim import config
from pcsim.run import run

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

warnings.simplefilter("ignore")
whole = json.loads(sys.argv[1])
run(config.parse(whole | {"hardware": whole["hardware"] | {"chips": 1}}))
before = peak()
run(config.parse(whole))
print(json.dumps([before, peak()]))
"""


def measure(run: dict[str, Any] = RUN) -> Result:
    """Return gigabytes of a process: before, at the most, and what was said to be needed."""
    config = configuration.parse(run, "speed")
    network, replicas = config.network.build(), Replicas.of(config)
    said = memory_need(config, network, replicas, Task.load(config, network)).bytes
    if sys.platform != "linux":
        raise UnsupportedError("the peak of a process is counted in other units here")
    command = [sys.executable, "-c", CHILD, json.dumps(run)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    before, most = json.loads(done.stdout)
    found = {"before": before, "peak": most, "grown": most - before, "predicted": said}
    named = {
        name: Variable((), np.asarray(value / 1e9), {"units": "GB"})
        for name, value in found.items()
    }
    return Result(named, {}, {**provenance(), "chips": run["hardware"]["chips"]})


def table(result: Result) -> Table:
    """Return the row that is printed."""
    shown = Table(title=f"memory of a run of {result.attrs['chips']} chips, GB")
    names = {"before": "process before", "peak": "at the most", "grown": "grown by"}
    names |= {"predicted": "predicted"}
    for title in (*names.values(), "target"):
        shown.add_column(title, justify="right")
    shown.add_row(*(f"{float(result[name]):.2f}" for name in names), f"≤ {MOST:.0f}")
    return shown
