"""Own data: a file .npz or .csv, or arrays, checked against the network, named by their values."""

import json

import numpy as np
import pytest

from pcsim import config as configuration
from pcsim import datasets
from pcsim.datasets import own
from pcsim.errors import ConfigError, DataError
from pcsim.run import run
from pcsim.runner.task import Task
from pcsim.sweep import make_sweep, read_sweep

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=(40, 3)), RNG.integers(0, 2, 40)
PARTS = {"x_train": X[:30], "y_train": Y[:30], "x_test": X[30:], "y_test": Y[30:]}


def described(name, **more):
    data = {"name": str(name)} | more.pop("data", {})
    return {
        "network": {"sizes": [3, 4, 2]},
        "data": data,
        "learning": {"batch": 5, "epochs": 2, "alpha": 0.02},
        "run": {"dtype": "float64"},
    } | more


def task(name, **more):
    config = configuration.parse(described(name, **more))
    return Task.load(config, config.network.build())


def write_csv(path, rows, header="a,b,c,label"):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def test_arrays_come_back_from_a_file(tmp_path):
    np.savez(tmp_path / "my.npz", **PARTS)
    loaded = task(tmp_path / "my.npz")
    np.testing.assert_array_equal(loaded.train.x, X[:30])
    np.testing.assert_array_equal(loaded.test.y, Y[30:])
    assert loaded.classes == 2


def test_csv_with_and_without_split_holds_the_same_values(tmp_path):
    rows = [[*map(repr, map(float, x)), y] for x, y in zip(X, Y, strict=True)]
    split = [[*row, "train" if k < 30 else "test"] for k, row in enumerate(rows)]
    whole = write_csv(tmp_path / "whole.csv", rows)
    parted = write_csv(tmp_path / "parted.csv", split, "a,b,c,label,split")
    np.savez(tmp_path / "whole.npz", x=X, y=Y)
    np.savez(tmp_path / "parted.npz", **PARTS)
    for csv, npz in ((whole, "whole.npz"), (parted, "parted.npz")):
        assert own.checksum_of_file(str(csv)) == own.checksum_of_file(str(tmp_path / npz))
    data = datasets.load(str(whole))
    assert len(data.x_test) == 8
    both = np.concatenate([data.x_train, data.x_test])
    np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(X[:, 0]))
    assert not np.array_equal(data.x_test, X[-8:])  # drawn, for data that are in order


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
def test_a_result_says_which_values_made_it(tmp_path, backend):
    """The same values give the same numbers by any way; others give another description."""
    np.savez(tmp_path / "my.npz", **PARTS)
    held, digest = own.from_arrays(X[:30], Y[:30], X[30:], Y[30:])
    run_ = {"backend": backend, "dtype": "float64"}
    file = run(configuration.parse(described(tmp_path / "my.npz", run=run_)))
    arrays = {"name": "arrays", "sha256": digest}
    memory = run(configuration.parse(described("arrays", run=run_, data=arrays)))
    np.testing.assert_array_equal(file["parameters"], memory["parameters"])
    stored = json.loads(str(file.attrs["config"]))["data"]
    assert stored["sha256"] == digest
    assert digest in str(file.attrs["data_origin"])
    np.savez(tmp_path / "my.npz", **PARTS | {"x_test": X[30:] + 1e-9})
    other = configuration.parse(described(tmp_path / "my.npz")).data.sha256
    assert other not in (None, digest)
    with pytest.raises(DataError, match=r"holds other values than those of data\.sha256"):
        run(configuration.from_json(str(file.attrs["config"])))
    assert held is not None


def test_arrays_that_are_gone_are_refused():
    digest = own.from_arrays(X, 1 - Y)[1]
    arrays = {"name": "arrays", "sha256": digest}
    with pytest.raises(DataError, match="not in this process; give them again"):
        task("arrays", data=arrays)


def test_a_stored_configuration_needs_no_file(tmp_path):
    np.savez(tmp_path / "my.npz", x=X, y=Y)
    config = configuration.parse(described(tmp_path / "my.npz"))
    (tmp_path / "my.npz").unlink()
    assert configuration.from_json(config.to_json()) == config
    with pytest.raises(DataError, match=r"my\.npz: cannot be read \(No such file"):
        run(config)


def test_names_start_at_the_configuration(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    for name in ("my", "other"):
        np.savez(tmp_path / "folder" / f"{name}.npz", x=X, y=Y)
    file = tmp_path / "folder" / "run.toml"
    text = 'network.sizes = [3, 2]\ndata.name = "my.npz"\nlearning.batch = 4\n'
    file.write_text(text)
    monkeypatch.chdir(tmp_path)
    config = configuration.load(file.relative_to(tmp_path))
    assert config.data.name == "folder/my.npz"
    given = configuration.load(file, {"data.name": "folder/other.npz"})
    assert given.data.name == "folder/other.npz"
    file.write_text(text + '[sweep.axes]\ndata.name = ["my.npz", "other.npz"]\n')
    swept = read_sweep(file.relative_to(tmp_path))
    assert [p.config.data.name for p in swept.points] == ["folder/my.npz", "folder/other.npz"]
    assert make_sweep({"network": {"sizes": [64, 10]}, "sweep": {"axes": {"data.limit": [9]}}})


def test_without_labels_data_can_only_be_modelled(tmp_path):
    np.savez(tmp_path / "my.npz", x=X)
    with pytest.raises(ConfigError, match=r"has no labels \(y\), which data.mode 'supervised'"):
        task(tmp_path / "my.npz")
    network = {"sizes": [2, 3]}
    mode = {"mode": "generative"}
    assert task(tmp_path / "my.npz", network=network, data=mode).train.x.shape == (32, 3)


def test_fewer_classes_than_outputs_are_fine(tmp_path):
    np.savez(tmp_path / "my.npz", x=X, y=Y)
    assert task(tmp_path / "my.npz", network={"sizes": [3, 7]}).classes == 7


NAN = np.where(np.arange(40)[:, None] == 17, np.nan, X)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"y": Y}, "has the arrays y; needed are x (and y for labels), or x_train and x_test"),
        ({"x_train": X, "y_train": Y}, "needed are x"),
        ({"x": X, "y": Y, "x_test": X}, "has x as well as x_test"),
        (PARTS | {"y_test": Y[:4]}, "x_test has 10 samples, but y_test 4 labels"),
        ({"x_train": X, "x_test": X, "y_test": Y}, "labels for one of x_train and x_test only"),
        (PARTS | {"x_test": X[30:, :2]}, "samples of x_train are (3,), those of x_test (2,)"),
        ({"x": X, "y": Y[:30]}, "x has 40 samples, but y 30 labels"),
        ({"x": NAN, "y": Y}, "not a finite number in 1 of 40 samples, first in sample 17"),
        ({"x": X, "y": Y + 0.5}, "classes are 0, 1, 2 …; sample 0 has"),
        ({"x": X, "y": Y - 1}, "classes are 0, 1, 2 …; sample"),
        ({"x": X, "y": np.eye(2)[Y]}, "must be (sample,), one class each; got shape (40, 2)"),
        ({"x": X[:, 0], "y": Y}, "must be (sample, feature) or more; got shape (40,)"),
        ({"x": X[:3], "y": Y[:3]}, "too few to keep a fifth"),
        ({"x": X.astype(str), "y": Y}, "must be numbers, got values of type"),
        (PARTS | {"x_test": X[:0], "y_test": Y[:0]}, "x_test has no samples"),
        ({"x": X, "y": Y + 2}, "has labels up to 3, but the network has 2 outputs, for labels 0"),
        ({"x": X[:, :2], "y": Y}, "the data has 2 inputs and 2 classes, but the network goes from"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, words):
    np.savez(tmp_path / "my.npz", **arrays)
    with pytest.raises(ConfigError) as error:
        task(tmp_path / "my.npz")
    assert words in str(error.value)
    assert "data" in str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no names of features in its first line"),
        ("label\n1\n", "no names of features"),
        ("a,a,label\n1,2,0\n", "the name 'a' stands twice"),
        ("a,b,c,label\n1,2,0\n", "line 2: has 3 values for 4 names"),
        ("a,b,c,label\n1,2,x,0\n", "line 2: c must be a number, got 'x'"),
        ("a,b,c,label,split\n1,2,3,0,valid\n", "line 2: split must be train or test, got 'valid'"),
        ("a,b,c,label\n1,2,nan,0\n" * 1 + "1,2,3,0\n" * 6, "not a finite number in 1 of 7"),
    ],
)
def test_csv_that_does_not_fit(tmp_path, text, words):
    (tmp_path / "my.csv").write_text(text)
    with pytest.raises(ConfigError) as error:
        task(tmp_path / "my.csv")
    assert words in str(error.value)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "my.npz").write_bytes(b"no zip")
    with pytest.raises(ConfigError, match=r"data: .*my\.npz: is no file \.npz of plain arrays"):
        task(tmp_path / "my.npz")
    np.savez(tmp_path / "o.npz", x=np.asarray([{}, {}], dtype=object))
    with pytest.raises(ConfigError, match=r"is no file \.npz of plain arrays"):
        task(tmp_path / "o.npz")
    with pytest.raises(ConfigError, match=r"there\.csv: cannot be read \(No such file"):
        task(tmp_path / "there.csv")
    with pytest.raises(ConfigError, match="sha256: belongs to a file of your own, not to 'digits'"):
        configuration.parse({"network": {"sizes": [64, 10]}, "data": {"sha256": "0" * 64}})
    np.savez(tmp_path / "my.npz", x=X, y=Y)
    with pytest.raises(ConfigError, match=r"data\.unverified: .* needs a published data set"):
        task(tmp_path / "my.npz", data={"unverified": True})
