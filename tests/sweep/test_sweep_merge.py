"""The merged file: labelled axes, gaps that say so, and nothing mixed up."""

import json

import numpy as np
import pytest
import xarray
from sweep_world import small

from pcsim.store import Result, Variable
from pcsim.sweep import load, make_sweep, sweep
from pcsim.sweep.merge import label, merge


def swept(axes, paired=(), **sections):
    data = small(**sections)
    data["sweep"] = {"axes": axes, "paired": list(paired)}
    return data


def test_xarray_opens_it_with_the_sweep_axes(tmp_path):
    merged = sweep(small(), tmp_path / "s")
    data = xarray.open_dataset(tmp_path / "s" / "sweep.h5", engine="h5netcdf")
    assert data["train_energy"].dims == (
        "schedule.rule",
        "learning.alpha",
        "network.sizes.1",
        "seed",
        "epoch",
    )
    cell = {"schedule.rule": "pc", "learning.alpha": 1e-2, "network.sizes.1": 5, "seed": 1}
    np.testing.assert_array_equal(
        data["train_energy"].sel(cell).values, merged["train_energy"][1, 2, 1, 1]
    )
    assert data["status"].dims == ("schedule.rule", "learning.alpha", "network.sizes.1")
    assert set(data["status"].values.ravel()) == {"done"}
    assert "parameters" not in data
    data.close()
    stored = load(tmp_path / "s")
    for name in merged.variables:
        np.testing.assert_array_equal(stored[name], merged[name])


def test_shorter_points_end_in_gaps(tmp_path):
    merged = sweep(swept({"learning.epochs": [3, 1]}), tmp_path / "s")
    assert merged["epoch"].tolist() == [1, 2, 3]
    assert np.isfinite(merged["train_energy"][0]).all()
    gaps = np.isnan(merged["train_energy"][1])
    assert not gaps[:, 0].any()
    assert gaps[:, 1:].all()


def test_labels_that_differ_are_kept_apart(tmp_path):
    data = swept(
        {"schedule.gamma": [0.5, 0.25]},
        run={"backend": "continuous", "seeds": [0]},
        learning={"batch": 10, "epochs": 1},
    )
    merged = sweep(data, tmp_path / "s")
    records = merged["energy"].shape[2]
    np.testing.assert_array_equal(merged["time"], np.arange(records))
    times = merged["time.labels"]
    assert merged.variables["time.labels"].dims == ("schedule.gamma", "time")
    np.testing.assert_allclose(times[0], 2 * times[1])
    np.testing.assert_allclose(merged["time_step"], [0.5, 0.25])


def test_backends_with_other_axes_stand_side_by_side(tmp_path):
    merged = sweep(swept({"run.backend": ["discrete", "continuous"]}), tmp_path / "s")
    assert merged.variables["test_accuracy"].dims == ("run.backend", "seed", "epoch")
    other = merged.variables["test_accuracy@seed+accuracy_time"]
    assert other.dims == ("run.backend", "seed", "accuracy_time")
    assert np.isnan(merged["test_accuracy"][1]).all()
    assert np.isnan(other.values[0]).all()
    np.testing.assert_allclose(merged["accuracy"][0], merged["accuracy"][1])  # Euler is iPC
    assert merged["verdict.outcome"][0].tolist() == ["", ""]


def test_paired_fields_are_variables_along_one_axis(tmp_path):
    pair = {"schedule.T": [2, 3], "network.output": [{"kind": "gaussian"}, {"kind": "categorical"}]}
    merged = sweep(swept({"network.f": ["tanh", "relu"]}, [pair]), tmp_path / "s")
    dim = "schedule.T+network.output"
    assert merged.variables["accuracy"].dims == ("network.f", dim, "seed")
    assert merged[dim].tolist() == [0, 1]
    assert merged["schedule.T"].tolist() == [2, 3]
    assert merged["network.output"].tolist() == ['{"kind": "gaussian"}', '{"kind": "categorical"}']
    assert json.loads(str(merged.attrs["axes"])) == [
        {"dim": "network.f", "fields": ["network.f"]},
        {"dim": dim, "fields": list(pair)},
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 2), [1, 2]),
        ((1, 0.5), [1.0, 0.5]),
        ((True, False), [True, False]),
        ((True, 2), ["true", "2"]),
        (("a", "b"), ["a", "b"]),
        (("a", 2), ['"a"', "2"]),
        (([64, 10], [64, 32, 10]), ["[64, 10]", "[64, 32, 10]"]),
    ],
)
def test_labels(values, expected):
    assert label(values).tolist() == expected


def synthetic(values, **attrs):
    about = {"points": "[0]", "cells": "[{}]", "run_size": 1, "commit": "c", **attrs}
    return Result({"x": Variable(("k",), np.asarray(values))}, {}, about)


def test_kinds_of_numbers_survive_where_there_are_no_gaps():
    two = make_sweep(swept({"schedule.T": [2, 3]}))
    whole = merge(two, {0: synthetic([1, 2]), 1: synthetic([3, 4])})
    assert whole["x"].dtype == np.int64
    flags = merge(two, {0: synthetic([True]), 1: synthetic([False])})
    assert flags["x"].dtype == bool
    ragged = merge(two, {0: synthetic([1, 2]), 1: synthetic([3])})
    np.testing.assert_array_equal(ragged["x"], [[1, 2], [3, np.nan]])
    absent = merge(two, {1: synthetic(["a"])})
    assert absent["x"].tolist() == [[""], ["a"]]
    assert absent["status"].tolist() == ["missing", "done"]


def test_what_differs_between_points_is_said_of_each():
    two = make_sweep(swept({"schedule.T": [2, 3]}))
    same = merge(two, {0: synthetic([1]), 1: synthetic([1])})
    assert same.attrs["commit"] == "c"
    assert "commit" not in same.variables
    moved = merge(two, {0: synthetic([1]), 1: synthetic([1], commit="d")})
    assert moved["commit"].tolist() == ["c", "d"]
