"""What the tests of sweeps share: a small exact sweep, and what "the same numbers" means."""

import numpy as np

from pcsim.store import Result

CLOCK = {"seconds", "train_seconds", "time_utc", "command_line"}
"""Variables that tell when and how fast, and so differ between any two sweeps."""


def small(**sections: dict) -> dict:
    """Return a small sweep on digits: 2 rules × 3 rates × 2 sizes, 4 runs; None takes away."""
    base: dict[str, dict] = {
        "network": {"sizes": [64, 6, 10]},
        "schedule": {"T": 3, "gamma": 0.3},
        "learning": {"alpha": 2e-3, "batch": 20, "epochs": 2},
        "data": {"name": "digits", "limit": 100},
        "run": {"dtype": "float64", "seeds": [3, 1]},
        "sweep": {
            "axes": {
                "schedule.rule": ["ipc", "pc"],
                "learning.alpha": {"log": [1e-3, 1e-2, 3]},
                "network.sizes.1": [6, 5],
            }
        },
    }
    for name, fields in sections.items():
        together = base.get(name, {}) | fields
        base[name] = {field: value for field, value in together.items() if value is not None}
    return base


def unfused(**sections: dict) -> dict:
    """Return the same with one run per point, and with the weights."""
    data = small(**sections)
    data["sweep"] = {**data["sweep"], "fuse": 1, "leave_out": []}
    return data


def assert_same_numbers(one: Result, other: Result) -> None:
    """Compare two sweeps bit by bit: axes, labels and every variable but the clock."""
    assert set(one.variables) == set(other.variables)
    assert list(one.coords) == list(other.coords) or set(one.coords) == set(other.coords)
    for dim in one.coords:
        np.testing.assert_array_equal(one[dim], other[dim])
    for name in set(one.variables) - CLOCK:
        assert one.variables[name].dims == other.variables[name].dims
        assert one[name].dtype.kind == other[name].dtype.kind, name
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
