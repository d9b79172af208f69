"""A device against the CPU: the same configurations, the time that training took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.table import Table

from pcsim import config as configuration
from pcsim.provenance import provenance
from pcsim.run import run
from pcsim.runner.training import check_device
from pcsim.store import Attr, Result, Variable

REPEATS = 3
LIMIT = 1000
CASES: dict[str, dict[str, Any]] = {
    "iPC 64-256-256-10, batch 100, 16 seeds": {
        "network": {"sizes": [64, 256, 256, 10]},
        "learning": {"batch": 100, "epochs": 2},
        "run": {"backend": "discrete", "seeds": list(range(16))},
    },
    "BP 64-256-256-10, batch 100, 16 seeds": {
        "network": {"sizes": [64, 256, 256, 10]},
        "schedule": {"rule": "bp"},
        "learning": {"batch": 100, "epochs": 2},
        "run": {"backend": "discrete", "seeds": list(range(16))},
    },
    "continuous 64-32-10, one sample, 256 noisy chips": {
        "network": {"sizes": [64, 32, 10]},
        "learning": {"batch": 1},
        "data": {"limit": 20},
        "hardware": {
            "chips": 256,
            "pieces": {"noise": {"kind": "read_noise", "where": "weight", "sigma": 0.02}},
        },
        "run": {"backend": "continuous", "engine": "torch"},
    },
}


def measure(device: str, cases: Mapping[str, Any] = CASES, repeats: int = REPEATS) -> Result:
    """Return the median times (case,) on the CPU and on the device."""
    check_device(device)
    times = np.array([[_seconds(c, d, repeats) for d in ("cpu", device)] for c in cases.values()])
    attrs: dict[str, Attr] = {**provenance(), "device": device, "repeats": repeats}
    about: dict[str, Attr] = {"units": "s", "long_name": "median time of training"}
    variables = {
        "cpu": Variable(("case",), times[:, 0], about),
        "device": Variable(("case",), times[:, 1], about),
    }
    return Result(variables, {"case": np.asarray(list(cases))}, attrs)


def _seconds(case: dict[str, Any], device: str, repeats: int) -> float:
    data = {"name": "digits", "limit": LIMIT} | case.get("data", {})
    settings = case | {"data": data, "run": case["run"] | {"device": device}}
    config = configuration.parse(settings, "speed")
    return float(np.median([run(config).attrs["train_seconds"] for _ in range(repeats)]))


def table(result: Result) -> Table:
    """Return the times, and how many times faster the device is."""
    device = str(result.attrs["device"])
    shown = Table(title=f"{device} against the CPU, seconds of training")
    for column in ("case", "CPU", device, "times faster"):
        shown.add_column(column, justify="left" if column == "case" else "right")
    for case, cpu, other in zip(result["case"], result["cpu"], result["device"], strict=True):
        shown.add_row(str(case), f"{cpu:.2f}", f"{other:.2f}", f"{cpu / other:.2f}")
    return shown
