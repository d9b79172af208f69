"""In random valid configurations, a field that is accepted changes what is computed or kept.

tests/test_meaning.py shows it in settings that are made for each field, and
tests/test_random_settings.py that the stored description changes in the expected place.
"""

import functools
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pcsim import datasets, meaning
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.meaning import set_fields
from pcsim.runner.chip_run import ChipRun
from tests.test_meaning import CONTEXTS, QUIET, computed, merged, nested, same
from tests.test_random_settings import accepted, changes

SLOW = {"brian", "cnn", "pooling", "rk4"}
RUN = [name for name in CONTEXTS if name not in SLOW]
ENDED = {"convergence.rtol"}
"""Fields that act in some of these settings only: a run that ends at the first test of its
criterion ends there with a larger tolerance too (test_meaning.py has a stricter setting)."""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Read the digits once, and leave out the look at stability: neither depends on a field."""
    monkeypatch.setattr(datasets, "load", functools.cache(datasets.load))
    monkeypatch.setattr(ChipRun, "warn", lambda self: None)
    monkeypatch.setattr(ChipRun, "_margin", lambda self: None)


def arrays(setting):
    """Return what a run computes and keeps; None where the run itself refuses."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return computed(setting, Path(folder))
        except (ConfigError, UnsupportedError):
            return None


def without_effect(base, field, value):
    """Return whether a field is accepted and leaves no trace; None where that cannot be said."""
    before, after = accepted(base), accepted(merged(base, nested(field, value)))
    if before is None or after is None or field in {*QUIET, *ENDED}:
        return None
    known = {name: given for name, given, _ in set_fields(after)}
    given = {name: given for name, given, _ in set_fields(before)}
    standard = {name: default for name, _, default in set_fields(after)}
    if given.get(field, standard.get(field)) == known.get(field):
        return None  # what was true before
    one, other = arrays(before), arrays(after)
    if one is None or other is None or not np.isfinite(one["parameters"]).all():
        return None
    return same(one, other)


def silent(examples):
    """Look at random changes; return the fields that were tried, and the changes without effect."""
    tried, silent = [], []

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(changes(RUN))
    def look(drawn):
        quiet = without_effect(*drawn)
        if quiet is not None:
            tried.append(drawn[1])
        if quiet:
            silent.append(drawn)

    look()
    return tried, silent


@pytest.mark.slow
def test_an_accepted_field_has_an_effect():
    tried, without = silent(200)
    assert without == []
    assert len(set(tried)) >= 15, "control: many fields were tried"


def test_the_search_finds_fields_without_effect(monkeypatch):
    """Control: where nothing is refused for having no meaning, many fields are ignored."""
    monkeypatch.setattr(meaning, "NEEDS", {})
    _, without = silent(25)
    assert without
