"""Runs that are equal by construction have a gap of exactly zero; others do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pcsim
from pcsim import config, datasets, store
from pcsim.errors import ConfigError
from pcsim.store import Result


def settings(**sections: dict[str, Any]) -> config.Config:
    base: dict[str, dict[str, Any]] = {
        "network": {"sizes": [64, 12, 10]},
        "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
        "learning": {"alpha": 2e-3, "batch": 50, "epochs": 3},
        "data": {"name": "digits", "limit": 600},
        "run": {"seeds": [0, 1, 2], "dtype": "float64"},
    }
    return config.changed(config.parse(base), sections)


@pytest.fixture(scope="module")
def ipc() -> Result:
    return pcsim.run(settings())


def test_zil_is_bp(ipc: Result) -> None:
    zil = pcsim.run(settings(schedule={"rule": "zil", "gamma": 1.0}))
    bp = pcsim.run(settings(schedule={"rule": "bp"}))
    found = pcsim.compare({"BP": bp, "Z-IL": zil, "iPC": ipc})
    assert found["gap"][1].tolist() == [0.0, 0.0, 0.0]
    assert [found[f"gap_{n}"][1] for n in ("mean", "low", "high")] == [0.0, 0.0, 0.0]
    assert (found["prediction_agreement"][1] == 1).all()
    assert found["weight_distance"][1].max() < 1e-12
    np.testing.assert_allclose(found["change_cosine"][1], 1, rtol=1e-12)
    np.testing.assert_array_equal(*found["samples_to_target"][:2])
    np.testing.assert_array_equal(*found["updates_to_target"][:2])
    # The negative control: another rule, which these numbers tell apart.
    assert found["weight_distance"][2].min() > 1e-3
    assert found["prediction_agreement"][2].max() < 1
    assert np.abs(found["gap"][2]).max() > 0


@pytest.mark.parametrize(("automatic", "every"), [(False, 1), (False, 4), (True, 1)])
def test_continuous_euler_is_discrete_ipc(automatic: bool, every: int, ipc: Result) -> None:
    more: dict[str, Any] = {}
    if automatic:
        more = {"learning": {"batch": 0, "alpha": 2e-4}, "convergence": {"max_steps": 60}}
    run = {"seeds": [0, 1, 2], "dtype": "float64", "automatic": automatic}
    discrete = pcsim.run(settings(run=run, **more)) if automatic else ipc
    more["record"] = {"every": every}  # 4: the end of every presentation
    flowing = pcsim.run(settings(run=run | {"backend": "continuous"}, **more))
    found = pcsim.compare({"iPC": discrete, "Euler": flowing}, target=0.1)
    assert (found["gap"][1] == 0).all()
    assert found["weight_distance"][1].max() < 1e-12
    assert (found["prediction_agreement"][1] == 1).all()
    for name in ("samples", "updates", "simulated_time"):
        here, there = found[f"{name}_to_target"]
        assert np.isfinite(here).all()
        np.testing.assert_allclose(there, here, rtol=1e-12)
    # The same energies at the same moments, too.
    np.testing.assert_allclose(*found["energy"], rtol=1e-9)
    np.testing.assert_allclose(*found["energy_updates"], rtol=1e-12)


def test_cost_of_the_target_by_hand(ipc: Result) -> None:
    """600 samples in batches of 50, T = 4, γ = 0.3: 12 batches, 48 updates, 14.4 s an epoch."""
    bp = pcsim.run(settings(schedule={"rule": "bp"}))
    target = float(ipc["test_accuracy"][:, 1].min())
    found = pcsim.compare({"iPC": ipc, "BP": bp}, target=target)
    epochs = np.array([np.flatnonzero(row >= target)[0] + 1 for row in ipc["test_accuracy"]])
    np.testing.assert_array_equal(found["samples_to_target"][0], 600 * epochs)
    np.testing.assert_array_equal(found["updates_to_target"][0], 48 * epochs)
    np.testing.assert_allclose(found["simulated_time_to_target"][0], 14.4 * epochs)
    reached = np.isfinite(found["samples_to_target"][1])
    np.testing.assert_array_equal(
        found["updates_to_target"][1, reached], found["samples_to_target"][1, reached] / 50
    )
    assert np.isnan(found["simulated_time_to_target"][1]).all()
    never = pcsim.compare({"iPC": ipc, "BP": bp}, target=1.0)
    assert np.isnan(never["samples_to_target"]).all()


def test_grid_axes_must_be_chosen(ipc: Result) -> None:
    grid = pcsim.run(settings(grid={"alpha": [1e-3, 2e-3]}))
    with pytest.raises(ConfigError, match=r"axis alpha .*--at alpha=VALUE"):
        pcsim.compare({"iPC": ipc, "grid": grid})
    found = pcsim.compare({"iPC": ipc, "grid": grid}, at={"alpha": 2e-3})
    assert (found["gap"][1] == 0).all()
    assert found["weight_distance"][1].max() < 1e-12
    other = pcsim.compare({"iPC": ipc, "grid": grid}, at={"alpha": 1e-3})
    assert other["weight_distance"][1].min() > 1e-3
    with pytest.raises(ConfigError, match=r"alpha=0\.5 is none of 0\.001, 0\.002"):
        pcsim.compare({"iPC": ipc, "grid": grid}, at={"alpha": 0.5})


@pytest.mark.parametrize(
    ("sections", "field"),
    [
        ({"network": {"f": "relu"}}, 'network.f: "tanh" in A, "relu" in B'),
        ({"network": {"sizes": [64, 11, 10]}}, "network.sizes: [64, 12, 10] in A, [64, 11, 10]"),
        ({"data": {"limit": 500}}, "data.limit: 600 in A, 500 in B"),
        ({"run": {"seeds": [0, 1]}}, "run.seeds: [0, 1, 2] in A, [0, 1] in B"),
    ],
)
def test_not_like_with_like(sections: dict[str, Any], field: str, ipc: Result) -> None:
    other = pcsim.run(settings(**{"learning": {"epochs": 1}} | sections))
    with pytest.raises(ConfigError) as error:
        pcsim.compare({"A": ipc, "B": other})
    assert field in str(error.value)
    assert "--unpaired" in str(error.value)
    found = pcsim.compare({"A": ipc, "B": other}, unpaired=True)
    assert "gap" not in found.variables
    expected = other["accuracy"].mean() - ipc["accuracy"].mean()
    assert found["gap_mean"][1] == pytest.approx(expected)
    assert found["gap_low"][1] < found["gap_mean"][1] < found["gap_high"][1]
    assert any(field in text for text in json.loads(str(found.attrs["unlike"]))["B"])


def test_the_stored_comparison(tmp_path: Path, ipc: Result) -> None:
    store.save(ipc, tmp_path / "a" / "run.h5")
    store.save(ipc, tmp_path / "b" / "run.h5")
    paths = [tmp_path / "a" / "run.h5", tmp_path / "b" / "run.h5"]
    pcsim.compare(paths, out=tmp_path / "compare.h5")
    found = store.load(tmp_path / "compare.h5")
    assert found["run"].tolist() == ["run", "b/run"]
    assert found["seed"].tolist() == [0, 1, 2]
    assert (found["weight_distance"] == 0).all()
    np.testing.assert_array_equal(found["accuracy"][0], ipc["accuracy"])
    with pytest.raises(ConfigError, match="at least two"):
        pcsim.compare(paths[:1])


def test_stored_predictions_are_those_of_the_stored_accuracy(ipc: Result) -> None:
    labels = datasets.load("digits").y_test
    np.testing.assert_array_equal((ipc["predictions"] == labels).mean(-1), ipc["accuracy"])
    without = pcsim.run(settings(record={"predictions": False}))
    assert "predictions" not in without.variables
    found = pcsim.compare({"with": ipc, "without": without})
    assert np.isnan(found["prediction_agreement"][1]).all()
    assert (found["weight_distance"][1] == 0).all()
