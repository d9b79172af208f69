"""A population of chips in a comparison: gaps over seeds, a spread over chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pcsim
from pcsim import config
from pcsim.compare.tables import comparison_tables
from pcsim.store import Result

BASE: dict[str, Any] = {
    "network": {"sizes": [64, 12, 10]},
    "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
    "learning": {"alpha": 2e-3, "batch": 50, "epochs": 2},
    "data": {"name": "digits", "limit": 600},
    "run": {"seeds": [0, 1, 2], "dtype": "float64"},
}


def settings(**hardware: Any) -> config.Config:
    return config.parse(BASE | ({"hardware": hardware} if hardware else {}))


@pytest.fixture(scope="module")
def ideal() -> Result:
    return pcsim.run(settings())


@pytest.fixture(scope="module")
def chips() -> Result:
    return pcsim.run(settings(chips=5, preset="dynapse2"))


def test_gaps_are_of_means_and_the_spread_is_of_chips(ideal: Result, chips: Result) -> None:
    found = pcsim.compare({"ideal": ideal, "chips": chips})
    accuracy = chips["accuracy"]
    axes = [chips.variables["accuracy"].dims.index(name) for name in ("seed", "chip")]
    by_chip = np.moveaxis(accuracy, axes, (0, 1))
    assert by_chip.shape == (3, 5)
    gap = by_chip.mean(1) - ideal["accuracy"]
    np.testing.assert_allclose(found["gap"][1], gap, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found["gap_mean"][1], gap.mean(), rtol=0, atol=1e-15)
    assert found["gap_pairs"][1] == 3, "seeds are what is paired, not chips"
    assert found["chips"].tolist() == [0, 5]
    spread = [found[name][1] for name in ("chip_low", "chip_median", "chip_high")]
    np.testing.assert_allclose(spread, np.percentile(by_chip, (5, 50, 95)))
    assert spread[0] < spread[2], "control: the chips differ"
    assert np.isnan(found["chip_median"][0])
    assert np.isnan(found["weight_distance"][1]).all(), "a mean of weights is no chip's"


def test_tables_show_the_spread(ideal: Result, chips: Result) -> None:
    titles = [table.title for table in comparison_tables(pcsim.compare([ideal, chips]))]
    assert "spread over chips, accuracy in %" in titles
    alone = comparison_tables(pcsim.compare([ideal, ideal]))
    assert "spread over chips, accuracy in %" not in [table.title for table in alone]


def test_one_chip_is_chosen_by_its_number(chips: Result) -> None:
    found = pcsim.compare([chips, chips], at={"chip": 3})
    chip = chips.variables["accuracy"].dims.index("chip")
    np.testing.assert_array_equal(found["accuracy"][1], np.take(chips["accuracy"], 3, axis=chip))
    assert "chips" not in found.variables
