"""Stores to report on: small, made up, with known answers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from pcsim import config, store
from pcsim.check import CHIP, DIGITS, IDEAL, Check, physical
from pcsim.store import Result, Variable
from pcsim.verdict import Verdict

RULES = np.array(["ipc", "pc", "bp"])
NOISE = np.array([0.0, 0.05, 0.1, 0.2, 0.4])
BITS = np.array([2, 4, 6, 8])
CHIPS, RECORDS, NODES = 16, 60, 3
AXES = ("schedule.rule", "hardware.noise", "hardware.bits")


def sweep_result() -> Result:
    """Return a sweep over rule × noise × bits in the layout of `sweep.h5`, with three gaps.

    Accuracy is 0.97 − noise − 1/4^bits − 0.02·(rule) plus a spread of 0.01 from chip to chip; chips
    converge if noise < 0.15 and bits ≥ 4. The last point has failed, the one before is missing.
    """
    rng = np.random.default_rng(0)
    shape = (len(RULES), len(NOISE), len(BITS))
    rule, noise, bits = np.meshgrid(np.arange(3), NOISE, BITS, indexing="ij")
    accuracy = 0.97 - noise - 1.0 / 4**bits - 0.02 * rule
    accuracy = accuracy[..., None] + rng.normal(0, 0.01, (*shape, CHIPS))
    good = (noise < 0.15) & (bits >= 4)
    outcome = np.where(good[..., None], "converged", "ringing").repeat(CHIPS, -1)
    outcome = np.where(rule[..., None] == 2, "", outcome)  # BP is not judged
    margin = (0.6 - 2 * noise)[..., None] + rng.normal(0, 0.05, (*shape, CHIPS))
    time = np.linspace(0, 10, RECORDS)
    decay = 0.1 + noise[..., None, None] + np.exp(-time)
    energy = decay * np.exp(rng.normal(0, 0.1, (*shape, CHIPS, 1)))
    energy = energy[..., None] * np.array([0.6, 0.3, 0.1])
    status = np.full(shape, "done", dtype="<U8")
    reason = np.full(shape, "", dtype="<U40")
    status[-1, -1, -1], reason[-1, -1, -1] = "failed", "hardware.bits: <8> & more"
    status[-1, -1, -2] = "missing"
    for values in (accuracy, margin, energy):
        values[-1, -1, -2:] = np.nan
    variables = {
        "accuracy": Variable((*AXES, "seed"), accuracy, {"long_name": "test accuracy"}),
        "verdict.outcome": Variable((*AXES, "seed"), outcome),
        "verdict.margin": Variable((*AXES, "seed"), margin),
        "energy": Variable((*AXES, "seed", "time", "node"), energy),
        "status": Variable(AXES, status),
        "reason": Variable(AXES, reason),
    }
    coords = {
        "schedule.rule": RULES,
        "hardware.noise": NOISE,
        "hardware.bits": BITS,
        "seed": np.arange(CHIPS),
        "time": time,
    }
    table = {"axes": {axis: coords[axis].tolist() for axis in AXES}}
    attrs = {
        "kind": "sweep",
        "axes": json.dumps([{"dim": axis, "fields": [axis]} for axis in AXES]),
        "sweep": json.dumps(table),
        "base_config": json.dumps({"network": {"sizes": [64, 16, 10]}, "data": {"name": "digits"}}),
        "commit": "0123abcd+changes",
        "command_line": "pcsim sweep study.toml",
        "points": 60,
        "done": 58,
        "failed": 1,
        "missing": 1,
    }
    return Result(variables, coords, attrs)


def write_sweep(folder: Path) -> Path:
    path = folder / "study.h5"
    store.save(sweep_result(), path, overwrite=True)
    return path


def checked(accuracy: float, ideal: float = 0.9, **sections: dict[str, object]) -> Check:
    """Return a check of 32 chips with this accuracy each; BP, ideal is the reference."""
    pieces = {"noise": {"kind": "white_noise", "sigma": 0.01}}
    setting = config.parse({**DIGITS, "hardware": {"pieces": pieces}, **sections})
    runs = {
        CHIP: _chips(accuracy, 32),
        IDEAL: _chips(ideal - 0.01, 1),
        "BP on the array, this chip": _chips(accuracy / 2, 32),
        "BP, ideal": _chips(ideal, 1),
    }
    left_out = {"BP on the array, this chip": ("noise",)}
    return Check(physical(setting), runs, left_out, np.arange(400) % 10)


def _chips(accuracy: float, chips: int) -> Result:
    shape, dims = (3, chips), ("seed", "chip")
    columns = {name: np.full(shape, np.nan) for name in Verdict.__dataclass_fields__}
    columns |= {"accuracy": np.full(shape, accuracy), "outcome": np.full(shape, "converged")}
    variables = {f"verdict.{n}": Variable(dims, v) for n, v in columns.items()}
    variables["accuracy"] = Variable(dims, np.full(shape, accuracy))
    variables["energy"] = Variable((*dims, "time", "node"), np.ones((*shape, 3, 2)))
    coords = {"time": np.arange(3.0), "seed": np.arange(3), "chip": np.arange(chips)}
    return Result(variables, coords)


def write_check(folder: Path, name: str = "check.h5", **given: float) -> Path:
    """Store a check of chips that train."""
    store.save(checked(**{"accuracy": 0.88, **given}).result(), folder / name)
    return folder / name
