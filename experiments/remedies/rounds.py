"""The rounds of the study: many remedies on few chips, then few remedies on many chips.

What decides is the accuracy on held-out samples.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pcsim.check import CRITERION, check, tuning
from pcsim.check.criterion import Answer
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.run import run
from pcsim.stability import StabilityWarning
from pcsim.store import Result, Variable
from pcsim.sweep.functions import collect
from pcsim.sweep.processes import Job
from pcsim.terminal import progress
from pcsim.variants.every_remedy import with_a_place
from pcsim.verdict import verdict_from

from .chips import Built, Names, built, digits, pairs, told


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    samples: int
    screened: int
    """Samples in the first rounds."""
    chips: int
    """Of the population in which a remedy is confirmed."""
    compared: int
    """Chips of each seed where the best are compared."""
    rates: tuple[float, ...]
    """Learning rates per sample at which every remedy is screened."""
    best: int
    """Candidates of which pairs are made, and that are compared."""
    partners: int
    """Remedies that the best one is tried together with, where it is not enough."""


@dataclass(frozen=True)
class Candidate:
    """Remedies on a preset, and how they did on held-out samples."""

    names: Names
    score: float
    rate: float
    automatic: bool
    refused: str = ""
    """Why it could not be tried."""


def tried(setting: Config, rates: tuple[float, ...], chips: int) -> Result:
    """Train chips at several rates; keep their score on held-out samples."""
    begun = time.process_time()
    refused, scores = "", np.full(len(rates), -1.0)
    try:
        with warnings.catch_warnings():  # that a rate is too high is what is found out
            warnings.simplefilter("ignore", StabilityWarning)
            scores = tuning.scores(run(tuning.at_rates(setting, rates, chips)), len(rates))
    except (ConfigError, UnsupportedError) as reason:
        refused = str(reason)
    variables = {"score": Variable(("rate",), scores), "cpu_seconds": _since(begun)}
    return Result(variables, {"rate": np.array(rates)}, {"refused": refused})


def confirmed(setting: Config) -> Result:
    """Train the population of a check."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StabilityWarning)
        result = run(setting)
    accuracy = np.asarray(result["accuracy"], dtype=float)
    accuracy = accuracy.reshape(len(accuracy), -1)
    energies = verdict_from(result).outcome.reshape(accuracy.shape)
    variables = {
        "accuracy": Variable(("seed", "chip"), accuracy),
        "diverged": Variable(("seed", "chip"), (energies == "diverged").astype(np.int64)),
        "cpu_seconds": _since(begun),
    }
    return Result(variables, {}, {})


def reference(samples: int) -> Result:
    """Return what chips are compared with: the best ideal rule, and the floor."""
    begun = time.process_time()
    answer = check(digits(samples)).answer
    numbers = {"guess": answer.guess, "floor": answer.floor}
    variables = {name: Variable((), np.asarray(value)) for name, value in numbers.items()}
    variables["reference"] = Variable(("seed",), np.asarray(answer.reference, dtype=float))
    return Result(variables | {"cpu_seconds": _since(begun)}, {}, {})


def _since(begun: float) -> Variable:
    return Variable((), np.asarray(time.process_time() - begun))


class Rounds:
    """Measures cells, each once; finished ones are kept."""

    def __init__(self, scale: Scale, folder: Path) -> None:
        self.scale = scale
        self.folder = folder
        self.done: dict[str, Result] = {}

    @property
    def cpu_seconds(self) -> float:
        """What all cells took that were asked for."""
        return sum(float(one["cpu_seconds"]) for one in self.done.values())

    def measure(self, name: str, job: Job[Result], setting: str) -> Result:
        """Return the result of a cell, measured if it is not there."""
        with progress(name, remaining=False) as report:
            found = collect({name: job}, self.folder, setting, report=report)
        self.done |= found
        return found[name]

    def reference(self) -> Result:
        """Return what all chips are compared with."""
        samples = self.scale.samples
        job = partial(reference, samples)
        return self.measure("reference", job, digits(samples).to_json())

    def built(self, preset: str, names: Names, samples: int = 0) -> Built:
        """Return a preset with remedies that it has a place for."""
        made = built(preset, names, samples or self.scale.samples, self.scale.chips)
        assert made is not None
        return made

    def candidates(
        self,
        preset: str,
        asked: Mapping[Names, tuple[float, ...]],
        chips: int,
        samples: int = 0,
    ) -> list[Candidate]:
        """Return remedies with the best of the rates that each is asked for, the best first."""
        made = []
        for names, rates in asked.items():
            chip = self.built(preset, names, samples)
            title = f"{preset}, chips: {chips}, {told(names)}"
            setting = f"{rates} {chip.setting.to_json()}"
            job = partial(tried, chip.setting, rates, chips)
            result = self.measure(title, job, setting)
            best = int(np.argmax(result["score"]))  # the lower of equals
            score, rate = float(result["score"][best]), float(result["rate"][best])
            refused = str(result.attrs["refused"])
            made.append(Candidate(names, score, rate, chip.automatic, refused))
        return sorted(made, key=lambda one: -one.score)

    def screened(self, preset: str) -> list[Candidate]:
        """Return all remedies of a preset, and the pairs of the best."""
        singles: list[Names] = [(), *((n,) for n in with_a_place(self.built(preset, ()).setting))]
        first = self._coarsely(preset, singles)
        names = [one.names[0] for one in self._chosen(first)]
        second = self._coarsely(preset, list(pairs(preset, names)))
        return sorted([*first, *second], key=lambda one: -one.score)

    def _partners(self, preset: str, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Return the best single remedy together with those that follow it."""
        singles = [one for one in ranked if len(one.names) == 1 and not one.refused]
        best, *others = [one.names[0] for one in singles]
        following = [pair for other in others for pair in pairs(preset, (other, best))]
        known = {one.names for one in ranked}
        new = [pair for pair in following if pair not in known and pair[::-1] not in known]
        return self._coarsely(preset, new[: self.scale.partners])

    def search(self, preset: str, against: Result) -> tuple[list[Candidate], list[Candidate]]:
        """Return all that was tried, and the best; with partners where the best is not enough."""
        screened = self.screened(preset)
        best = self.best(preset, screened)
        lost = [float(np.median(self.answer(preset, one, against).loss)) for one in best]
        if min(lost) > CRITERION.tolerance:
            more = self._partners(preset, screened)
            screened = sorted([*screened, *more], key=lambda one: -one.score)
            best = self.best(preset, screened)
        return screened, best

    def _coarsely(self, preset: str, names: Sequence[Names]) -> list[Candidate]:
        asked = dict.fromkeys(names, self.scale.rates)
        return self.candidates(preset, asked, 1, self.scale.screened)

    def _chosen(self, ranked: Sequence[Candidate]) -> list[Candidate]:
        """Return the best, and the best that need no controller."""
        there = [one for one in ranked if one.names and not one.refused]
        free = [one for one in there if one.automatic]
        return list(dict.fromkeys([*there[: self.scale.best], *free[: self.scale.best]]))

    def best(self, preset: str, screened: Sequence[Candidate]) -> list[Candidate]:
        """Return the best on more chips, and the best without a controller if it is another."""
        around = {one.names: (one.rate / 2, one.rate, one.rate * 2) for one in screened}
        asked = {one.names: around[one.names] for one in self._chosen(screened)}
        ranked = self.candidates(preset, asked, self.scale.compared)
        return list(dict.fromkeys([*ranked[:1], *[one for one in ranked if one.automatic][:1]]))

    def without_chip(self, device: str, found: Sequence[Candidate]) -> list[Candidate]:
        """Return what helps a whole chip, on the device alone, as far as it has a place there."""
        made = []
        for one in found:
            there = one.names
            while built(device, there, self.scale.samples, self.scale.chips) is None:
                there = there[:-1]
            if there:
                asked = {there: (one.rate / 2, one.rate, one.rate * 2)}
                made += self.candidates(device, asked, self.scale.compared)
        return list(dict.fromkeys(made))

    def answer(self, preset: str, one: Candidate, against: Result) -> Answer:
        """Return the answer of a check to a chip with its remedies."""
        setting = tuning.with_rate(self.built(preset, one.names).setting, one.rate)
        title = f"{preset}, confirmed, {told(one.names)}"
        result = self.measure(title, partial(confirmed, setting), setting.to_json())
        return Answer(
            CRITERION,
            np.asarray(result["accuracy"]),
            np.where(result["diverged"], "diverged", "descending"),
            np.asarray(against["reference"]),
            float(against["guess"]),
            float(against["floor"]),
            identical=setting.hardware.identical,
        )
