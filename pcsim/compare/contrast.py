"""From contenders to one labelled result: gaps, agreement, curves and costs.

Axes: run (the reference first), seed (those of all runs together; a run without a seed has NaN
there), record and energy_record (NaN behind the end of the shorter curves).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from pcsim.compare.agreement import ABOUT, agreement
from pcsim.compare.contender import Array, Contender, Curve
from pcsim.compare.interval import Gap, paired_gap, unpaired_gap
from pcsim.compare.likeness import differences, settings_that_differ
from pcsim.compare.target import default_target, to_target
from pcsim.runner.progress import PROGRESS, UNITS
from pcsim.store import Attr, Result, Variable

KIND = "comparison"
GAP = {
    "mean": "mean accuracy minus that of the reference",
    "low": "lower limit of its t interval",
    "high": "upper limit of its t interval",
    "bootstrap_low": "lower limit of its bootstrap interval (BCa)",
    "bootstrap_high": "upper limit of its bootstrap interval (BCa)",
    "pairs": "seeds behind it",
}
SPREAD = {"chip_low": 5, "chip_median": 50, "chip_high": 95}
"""Percentiles of the accuracy over all chips of a population, whatever their seed."""


def contrast(
    contenders: Sequence[Contender],
    *,
    target: float | None = None,
    confidence: float = 0.95,
    unpaired: bool = False,
    origin: Mapping[str, Attr] | None = None,
) -> Result:
    """Contrast every contender with the first; `origin` joins the attributes."""
    reference = contenders[0]
    target = default_target(reference) if target is None else target
    seeds = np.unique(np.concatenate([one.seeds for one in contenders]))

    def seedwise(values: Sequence[Array], text: str, units: str = "1") -> Variable:
        """Return one array per contender as a variable (run, seed)."""
        about = {"long_name": text, "units": units}
        return Variable(("run", "seed"), _by_seed(contenders, values, seeds), about)

    variables = {
        "accuracy": seedwise([one.accuracy for one in contenders], "test accuracy at the end")
    }
    if not unpaired:
        gap = [
            one.accuracy - reference.of_seeds(reference.accuracy, one.seeds) for one in contenders
        ]
        variables["gap"] = seedwise(gap, "accuracy minus that of the reference, seed by seed")
    gaps = [_gap(reference, one, confidence, unpaired) for one in contenders]
    for name, text in GAP.items():
        values = np.array([getattr(one, name) for one in gaps])
        variables[f"gap_{name}"] = Variable(("run",), values, {"long_name": text, "units": "1"})
    if any(one.chips is not None for one in contenders):
        variables |= _spread(contenders)
    agreements = [agreement(reference, one) for one in contenders]
    for name, text in ABOUT.items():
        variables[name] = seedwise([one[name] for one in agreements], text)
    costs = [to_target(one, target) for one in contenders]
    for name, text in PROGRESS.items():
        to = f"{text}, until the target accuracy was first seen"
        variables[f"{name}_to_target"] = seedwise([one[name] for one in costs], to, UNITS[name])
    accuracy, energy = zip(*((c.accuracy_curve, c.energy_curve) for c in contenders), strict=True)
    variables |= _curves("test_accuracy", "record", accuracy, contenders, seeds)
    variables |= _curves("energy", "energy_record", energy, contenders, seeds)
    coords = {"run": np.asarray([one.name for one in contenders]), "seed": seeds}
    attrs = _attributes(contenders, target, confidence, unpaired) | dict(origin or {})
    return Result(variables, coords, attrs)


def _spread(contenders: Sequence[Contender]) -> dict[str, Variable]:
    """Return how many chips each run has, and how far their accuracies spread; NaN without any."""
    counts = np.array([one.chips.shape[1] if one.chips is not None else 0 for one in contenders])
    about: dict[str, Attr] = {"long_name": "chips per seed; 0: not a population", "units": "1"}
    spread = {"chips": Variable(("run",), counts, about)}
    for name, percent in SPREAD.items():
        values = [
            np.nan if c.chips is None else np.percentile(c.chips, percent) for c in contenders
        ]
        about = {"long_name": f"test accuracy, {percent} % of the chips below it", "units": "1"}
        spread[name] = Variable(("run",), np.array(values), about)
    return spread


def _by_seed(contenders: Sequence[Contender], values: Sequence[Array], seeds: Array) -> Array:
    pairs = zip(contenders, values, strict=True)
    return np.stack([one.of_seeds(rows, seeds) for one, rows in pairs])


def _gap(reference: Contender, other: Contender, confidence: float, unpaired: bool) -> Gap:
    if unpaired:
        return unpaired_gap(reference.accuracy, other.accuracy, confidence)
    mates = reference.of_seeds(reference.accuracy, other.seeds)
    return paired_gap(other.accuracy - mates, confidence)


def _curves(
    name: str,
    axis: str,
    curves: Sequence[Curve | None],
    contenders: Sequence[Contender],
    seeds: Array,
) -> dict[str, Variable]:
    """Return the curves of all runs, and where on the way each of their records lies."""
    longest = max((curve.values.shape[1] for curve in curves if curve), default=0)
    if not longest:
        return {}

    def variable(rows: list[Array | None], about: dict[str, Attr]) -> Variable:
        filled = [np.full((len(one.seeds), longest), np.nan) for one in contenders]
        for whole, part in zip(filled, rows, strict=True):
            if part is not None:
                whole[:, : part.shape[1]] = part
        return Variable(("run", "seed", axis), _by_seed(contenders, filled, seeds), about)

    text = {"energy": "energy F per sample", "test_accuracy": "fraction of test samples right"}
    found = {
        name: variable(
            [curve.values if curve else None for curve in curves],
            {"long_name": text[name], "units": "1"},
        )
    }
    for key in PROGRESS:
        rows = [curve.progress[key] if curve else None for curve in curves]
        about: dict[str, Attr] = {"long_name": PROGRESS[key], "units": UNITS[key]}
        found[f"{name}_{key}"] = variable(rows, about)
    return found


def _attributes(
    contenders: Sequence[Contender], target: float, confidence: float, unpaired: bool
) -> dict[str, Attr]:
    reference, others = contenders[0], contenders[1:]
    configs = {one.name: one.config.to_json() if one.config else None for one in contenders}
    return {
        "kind": KIND,
        "target": target,
        "confidence": confidence,
        "paired": int(not unpaired),
        "sources": json.dumps({one.name: one.source for one in contenders}),
        "unlike": json.dumps({one.name: differences(reference, one) for one in others}),
        "settings": json.dumps({c.name: settings_that_differ(reference, c) for c in others}),
        "configs": json.dumps(configs),
    }
