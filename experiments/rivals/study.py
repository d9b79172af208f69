"""Which rule should a chip have? Always-on iPC and its rivals on the same chips.

`pcsim experiment rivals` trains the network of a check (digits, one sample after the other) by
eight rules, on an ideal chip and on populations of real ones. For each of them are chosen, on
held-out samples:

    variant   settings that this rule alone has, on the ideal chip
    rate      the learning rate, on every substrate and for every budget, by the search of a check

and the chosen one trains other chips from more seeds. There are two budgets. Every rule sees every
sample once, "one pass"; or a rule with fewer occasions to write than always-on iPC sees them more
often, "more passes": as often as makes up for that, or `most` times if that is less. What a
substrate refuses stands in the result with the reason. Cells are kept: interrupted, the same
command goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.check import tuning
from pcsim.check.pulses import Pulses, counted, with_counters
from pcsim.config import Config
from pcsim.errors import UnsupportedError
from pcsim.frozen import Frozen
from pcsim.run import run
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from . import report
from .contestants import RIVALS, SUBSTRATES, Rival, Substrate, config_of, steps
from .costs import estimate

PAGE = "rivals.md"
BUDGETS = ("one pass", "more passes")
Key = tuple[str, str, str]
"""Budget (or nothing), substrate (or variant), rule."""
Found = dict[Key, Result]
Measure = Callable[[Config], Result]


class Setting(Frozen):
    """Who competes on what, and how much is run."""

    rivals: tuple[Rival, ...] = RIVALS
    substrates: tuple[Substrate, ...] = SUBSTRATES
    sizes: tuple[int, ...] = (64, 32, 10)
    samples: int
    """Training samples, a sixth of them held out."""
    seeds: tuple[int, ...]
    """Of the report; the first ones, `searched` of them, choose."""
    searched: int = 3
    chips: int
    most: int = 5
    """Passes at most."""
    costed: str = "ecram_li"
    """The preset whose devices count pulses and have a cost."""

    @property
    def shown(self) -> int:
        """Samples that teach."""
        return self.samples - self.samples // 6


SCALES = {
    "small": Setting(substrates=SUBSTRATES[:2], samples=400, seeds=(0, 1, 2, 3, 4), chips=8),
    "decide": Setting(samples=400, seeds=(0, 1, 2, 3, 4), chips=8),
    "paper": Setting(samples=1000, seeds=tuple(range(10)), chips=32, most=50),
}


def setting_of(
    setting: Setting, rival: Rival, variant: str, substrate: Substrate, passes: int, seeds: int
) -> Config:
    """Return one training of a setting, from its first seeds."""
    return config_of(
        rival,
        variant,
        substrate,
        sizes=setting.sizes,
        samples=setting.samples,
        passes=passes,
        seeds=setting.seeds[:seeds],
        chips=setting.chips,
    )


def passes_of(setting: Setting, rival: Rival, budget: str) -> int:
    """Return how often a rule sees the samples."""
    if budget == BUDGETS[0]:
        return 1
    variant = next(iter(rival.variants))
    config = setting_of(setting, rival, variant, setting.substrates[0], 1, 1)
    return min(setting.most, round(steps() / tuning.writes(config)))


def searched(config: Config) -> Result:
    """Return the best rate of a rule, and its accuracy on held-out samples; or who refuses."""
    reached: dict[float, float] = {}

    def trained(name: str, asked: Config) -> Result:
        found = run(asked)
        rates = [alpha * tuning.writes(config) for alpha in asked.grid.alpha]
        reached.update(zip(rates, tuning.scores(found, len(rates)), strict=True))
        return found

    try:
        rate = tuning.search("a rival", config, trained)
    except UnsupportedError as error:
        return _numbers({"rate": np.nan, "at_end": 0.0, "reached": np.nan}, refused=str(error))
    best = max(reached.values())
    return _numbers({"rate": rate.value, "at_end": float(rate.at_end), "reached": best})


def _numbers(values: dict[str, float], **attrs: str) -> Result:
    return Result({name: Variable((), np.asarray(v)) for name, v in values.items()}, {}, attrs)


def trained(config: Config) -> Result:
    """Return the test accuracy (seed, chip) of a rule at its rate."""
    accuracy = np.nan_to_num(run(config)["accuracy"]).reshape(len(config.run.seeds), -1)
    return Result({"accuracy": Variable(("seed", "chip"), accuracy)}, {})


def pulsed(config: Config) -> Result:
    """Return the pulses per device and sample (low, mean, high) of a training."""
    counting = with_counters(config)
    assert counting is not None, "a device that is written by pulses"
    found = counted(counting)
    return Result({"pulses": Variable(("end",), np.array(found.pulses))}, {})


def collected(begun: scaled.Study, measure: Measure, jobs: Mapping[Key, Config]) -> Found:
    """Return the result of each job. A cell is known by its configuration, not by the setting.

    So another contestant, or more seeds, repeats nothing that has been chosen.
    """
    names = {
        key: f"{measure.__name__}_{sha256(one.model_dump_json().encode()).hexdigest()[:24]}"
        for key, one in jobs.items()
    }
    cells = {names[key]: partial(measure, one) for key, one in jobs.items()}
    found = keeping.collect(cells, begun.path, "", begun.console, keeping.PROCESSES)
    return {key: found[name] for key, name in names.items()}


SHOWN = scaled.Shown(report.tables, {"": report.draw}, report.rows, "what was expected")
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Choose, train, print, store, draw."""
    begun = scaled.begin("rivals", SCALES, scale, out)
    setting = SCALES[scale]
    variants = chosen_variants(begun, setting)
    passes = {(b, r.name): passes_of(setting, r, b) for b, r in product(BUDGETS, setting.rivals)}
    who = {
        (budget, substrate.name, rival.name): (
            *(setting, rival, variants[rival.name], substrate, passes[budget, rival.name]),
        )
        for budget, substrate, rival in product(BUDGETS, setting.substrates, setting.rivals)
    }
    search = {key: setting_of(*one, setting.searched) for key, one in who.items()}
    rates = collected(begun, searched, search)
    seeds = len(setting.seeds)
    train = {
        key: tuning.with_rate(setting_of(*one, seeds), float(rates[key]["rate"]))
        for key, one in who.items()
        if "refused" not in rates[key].attrs
    }
    accuracies = collected(begun, trained, train)
    pulses = collected(
        begun, pulsed, {key: one for key, one in train.items() if key[1] == setting.costed}
    )
    variables, coords = assemble(setting, variants, passes, (rates, accuracies, pulses))
    claims = report.judge(Result(variables, coords))
    begun.publish(variables, coords, claims, SHOWN)


def chosen_variants(begun: scaled.Study, setting: Setting) -> dict[str, str]:
    """Return the variant of each rule, by its accuracy on held-out samples of the ideal chip."""
    jobs = {
        ("", variant, rival.name): setting_of(
            setting, rival, variant, setting.substrates[0], 1, setting.searched
        )
        for rival in setting.rivals
        for variant in rival.variants
    }
    found = collected(begun, searched, jobs)
    return {
        rival.name: max(
            rival.variants, key=lambda variant: float(found["", variant, rival.name]["reached"])
        )
        for rival in setting.rivals
    }


def assemble(
    setting: Setting,
    variants: dict[str, str],
    passes: dict[tuple[str, str], int],
    cells: tuple[Found, Found, Found],
) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Join the cells on the axes budget × substrate × rule; what was refused has no numbers."""
    rates, accuracies, counts_of = cells
    rivals, substrates = setting.rivals, setting.substrates
    shape = (len(BUDGETS), len(substrates), len(rivals))
    accuracy = np.full((*shape, len(setting.seeds), setting.chips), np.nan)
    rate, at_end = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    refused = np.full(shape[1:], "", dtype=object)
    pulses = np.full((len(BUDGETS), len(rivals), 3), np.nan)
    per_rule = {n: np.zeros((len(BUDGETS), len(rivals))) for n in ("passes", "seconds")}
    joules = np.full((len(BUDGETS), len(rivals), 3), np.nan)
    reads, writes = np.zeros(len(rivals)), np.zeros(len(rivals))
    for (b, budget), (s, substrate), (r, rival) in product(
        enumerate(BUDGETS), enumerate(substrates), enumerate(rivals)
    ):
        key = (budget, substrate.name, rival.name)
        if "refused" in rates[key].attrs:
            refused[s, r] = str(rates[key].attrs["refused"])
            continue
        rate[b, s, r], at_end[b, s, r] = rates[key]["rate"], bool(rates[key]["at_end"])
        reached = accuracies[key]["accuracy"]
        accuracy[b, s, r, :, : reached.shape[1]] = reached
        if substrate.name == setting.costed:
            pulses[b, r] = counts_of[key]["pulses"]
    for (b, budget), (r, rival) in product(enumerate(BUDGETS), enumerate(rivals)):
        times = passes[budget, rival.name]
        config = setting_of(setting, rival, variants[rival.name], substrates[0], times, 1)
        low, mean, high = map(float, pulses[b, r])
        there = np.isfinite(mean)  # a rule that the devices refuse has no cost on them
        counts = Pulses((low, mean, high), 0.0, setting.shown, 0.0) if there else None
        made = estimate(rival, config, times, setting.shown, setting.costed, counts)
        if there:
            joules[b, r] = [made.total(level) for level in ("low", "typical", "high")]
        per_rule["passes"][b, r], per_rule["seconds"][b, r] = times, made.seconds()
        reads[r] = made.counts.products / (times * setting.shown)
        writes[r] = tuning.writes(config)
    dims = ("budget", "substrate", "rule")
    variables = {
        "accuracy": Variable((*dims, "seed", "chip"), accuracy, {"units": "1"}),
        "rate": Variable(dims, rate, {"long_name": "learning rate per sample"}),
        "at_end": Variable(dims, at_end, {"long_name": "better rates may lie beyond those tried"}),
        "refused": Variable(dims[1:], refused.astype(str)),
        "variant": Variable(("rule",), np.array([variants[one.name] for one in rivals])),
        "signals": Variable(("rule",), np.array([one.signals for one in rivals])),
        "in_time": Variable(("rule",), np.array([one.in_time for one in rivals])),
        "pulses": Variable(("budget", "rule", "end"), pulses, {"long_name": "per device, sample"}),
        "joules": Variable(("budget", "rule", "end"), joules, {"units": "J"}),
        "reads": Variable(("rule",), reads, {"long_name": "products of arrays per sample"}),
        "writes": Variable(("rule",), writes, {"long_name": "occasions to write per sample"}),
        **{n: Variable(("budget", "rule"), values) for n, values in per_rule.items()},
    }
    coords: dict[str, Any] = {
        "budget": np.array(BUDGETS),
        "substrate": np.array([one.name for one in substrates]),
        "rule": np.array([one.name for one in rivals]),
        "seed": np.array(setting.seeds),
        "chip": np.arange(setting.chips),
        "end": np.array(["low", "mean", "high"]),
    }
    return variables, coords
