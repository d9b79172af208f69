"""Training results from elsewhere: the documented columns, and refusals that name them."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import pcsim
from pcsim import store
from pcsim.compare.external import from_hdf5
from pcsim.compare.external import from_log as from_csv
from pcsim.errors import ConfigError
from pcsim.store import Result

HEAD = '# network.sizes = [64, 12, 10]\n# data.name = "digits"\n# trained elsewhere\n'


@pytest.fixture(scope="module")
def own() -> Result:
    settings = {
        "network": {"sizes": [64, 12, 10]},
        "schedule": {"T": 4, "gamma": 0.3},
        "learning": {"alpha": 2e-3, "batch": 50, "epochs": 3},
        "data": {"name": "digits", "limit": 600},
        "run": {"seeds": [0, 1, 2]},
    }
    return pcsim.run(pcsim.config.parse(settings))


def table(result: Result, shift: float = 0.0) -> str:
    """Return the curves of a result as somebody else would log them."""
    lines = ["seed,epoch,samples,test_accuracy,train_energy"]
    for s, seed in enumerate(result["seed"]):
        for k, epoch in enumerate(result["epoch"]):
            accuracy = float(result["test_accuracy"][s, k]) + shift
            energy = float(result["train_energy"][s, k])
            lines.append(f"{seed},{epoch},{600 * epoch},{accuracy!r},{energy!r}")
    return "\n".join(lines) + "\n"


def test_a_log_of_the_same_run_has_no_gap(tmp_path: Path, own: Result) -> None:
    path = tmp_path / "elsewhere.csv"
    path.write_text(HEAD + table(own))
    found = pcsim.compare({"here": own, "there": path})
    assert (found["gap"][1] == 0).all()
    np.testing.assert_array_equal(*found["samples_to_target"])
    np.testing.assert_allclose(*found["energy"], rtol=1e-12)
    assert np.isnan(found["updates_to_target"][1]).all()  # the log does not say
    path.write_text(HEAD + table(own, shift=-0.03))
    shifted = pcsim.compare({"here": own, "there": path})
    np.testing.assert_allclose(shifted["gap"][1], -0.03)


def test_hdf5_columns_with_predictions(tmp_path: Path, own: Result) -> None:
    path = tmp_path / "elsewhere.h5"
    with h5py.File(path, "w") as file:
        file["seed"] = [2, 0, 1]
        file["test_accuracy"] = own["accuracy"][[2, 0, 1]]
        file["predictions"] = own["predictions"][[2, 0, 1]]
        file.attrs["network.sizes"] = [64, 12, 10]
        file.attrs["data.name"] = "digits"
    found = pcsim.compare({"here": own, "there": path})
    assert (found["gap"][1] == 0).all()
    assert (found["prediction_agreement"][1] == 1).all()
    with h5py.File(path, "r+") as file:
        file["predictions"][0, :60] = (file["predictions"][0, :60] + 1) % 10
    found = pcsim.compare({"here": own, "there": path})
    expected = [1, 1, 1 - 60 / own["predictions"].shape[1]]
    np.testing.assert_allclose(found["prediction_agreement"][1], expected)
    assert not store.is_result(path)


def test_seeds_may_have_logs_of_different_length(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("seed,samples,test_accuracy\n7,10,0.5\n7,20,0.75\n3,10,0.25\n")
    found = from_csv("log", path)
    assert found.seeds.tolist() == [7, 3]
    assert found.accuracy.tolist() == [0.75, 0.25]
    np.testing.assert_array_equal(
        found.accuracy_curve.progress["samples"], [[10, 20], [10, np.nan]]
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("seed,accuracy\n0,0.5\n", "no column test_accuracy; needed: seed, test_accuracy"),
        ("seed,test_accuracy\n0,97.5\n", "fractions between 0 and 1"),
        ("seed,test_accuracy\n0,high\n", "line 2, test_accuracy: 'high' is not a number"),
        ("seed,test_accuracy\n0\n", "line 2: has 1 values for 2 columns"),
        ("seed,test_accuracy\n0.5,0.5\n", "seed must be whole numbers"),
        ("seed,test_accuracy\n", "at least one row"),
        (
            "# data.name = digits\nseed,test_accuracy\n0,1\n",
            "line 1: data.name is not a TOML value",
        ),
    ],
)
def test_refusals(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        from_csv("bad", path)
    assert reason in str(error.value)
    assert str(path) in str(error.value)


def test_what_was_trained_must_be_declared(tmp_path: Path, own: Result) -> None:
    path = tmp_path / "silent.csv"
    path.write_text(table(own))
    with pytest.raises(ConfigError, match=r"network\.sizes: there does not say"):
        pcsim.compare({"here": own, "there": path})
    path.write_text(HEAD.replace("12", "13") + table(own))
    with pytest.raises(
        ConfigError, match=r"network\.sizes: \[64, 12, 10\] in here, \[64, 13, 10\]"
    ):
        pcsim.compare({"here": own, "there": path})
    assert pcsim.compare({"here": own, "there": path}, unpaired=True)["gap_mean"][1] == 0


def test_columns_must_have_one_length(tmp_path: Path) -> None:
    path = tmp_path / "uneven.h5"
    with h5py.File(path, "w") as file:
        file["seed"], file["test_accuracy"] = [0, 1], [0.5]
    with pytest.raises(ConfigError, match="test_accuracy must have one value per row"):
        from_hdf5("uneven", path)
