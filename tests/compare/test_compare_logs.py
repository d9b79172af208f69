"""Logs of other programs: every format gives the same contender, in the right units and axes."""

import builtins
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from pcsim import compare
from pcsim.compare.external import from_log
from pcsim.compare.logs import Reading, is_log
from pcsim.errors import ConfigError, UnsupportedError
from tests.command_line import exit_code

ACCURACY = [61.5, 72.25, 80.0]
ROWS = [{"ep": k + 1, "val/acc": a, "loss": 1 / (k + 1)} for k, a in enumerate(ACCURACY)]
READING = Reading(
    {"test_accuracy": "val/acc", "epoch": "ep", "train_energy": "loss"}, True, train_samples=200
)


def csv_file(path):
    path.write_text(
        "ep,val/acc,loss,note\n"
        + "".join(f"{r['ep']},{r['val/acc']},{r['loss']},words\n" for r in ROWS)
    )


def json_lines(path):
    path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n")


def parquet(path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    pq.write_table(arrow.Table.from_pylist(ROWS), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("log.csv", csv_file), ("log.jsonl", json_lines), ("log.parquet", parquet)],
)
def test_every_format_gives_the_same_contender(name, write, tmp_path):
    write(tmp_path / name)
    assert is_log(tmp_path / name)
    found = from_log("gpu", tmp_path / name, READING)
    np.testing.assert_array_equal(found.seeds, [0])
    np.testing.assert_allclose(found.accuracy_curve.values, [np.array(ACCURACY) / 100])
    np.testing.assert_allclose(found.accuracy, [0.8])
    np.testing.assert_allclose(found.accuracy_curve.progress["epochs"], [[1, 2, 3]])
    np.testing.assert_allclose(found.accuracy_curve.progress["samples"], [[200, 400, 600]])
    assert np.isnan(found.accuracy_curve.progress["updates"]).all()
    np.testing.assert_allclose(found.energy_curve.values, [[1, 1 / 2, 1 / 3]])


def test_steps_are_updates_and_samples_by_the_batch(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,acc\n10,0.5\n20,0.75\n")
    reading = Reading({"test_accuracy": "acc"}, batch=32, train_samples=160)
    progress = from_log("gpu", path, reading).accuracy_curve.progress
    np.testing.assert_allclose(progress["updates"], [[10, 20]])
    np.testing.assert_allclose(progress["samples"], [[320, 640]])
    np.testing.assert_allclose(progress["epochs"], [[2, 4]])


def test_metrics_of_lightning(tmp_path):
    """Its rows have gaps, and its epochs and steps count from 0."""
    text = "epoch,step,train_loss,val_acc\n0,49,0.9,\n0,49,,0.6\n1,99,0.5,\n1,99,,0.8\n"
    (tmp_path / "metrics.csv").write_text(text)
    (tmp_path / "other.csv").write_text(text)
    reading = Reading({"test_accuracy": "val_acc", "train_energy": "train_loss"})
    found = from_log("gpu", tmp_path / "metrics.csv", reading)
    np.testing.assert_allclose(found.accuracy_curve.values, [[0.6, 0.8]])
    np.testing.assert_allclose(found.accuracy_curve.progress["epochs"], [[1, 2]])
    np.testing.assert_allclose(found.accuracy_curve.progress["updates"], [[50, 100]])
    np.testing.assert_allclose(found.energy_curve.values, [[0.9, 0.5]])
    np.testing.assert_allclose(found.energy_curve.progress["updates"], [[50, 100]])
    other = from_log("gpu", tmp_path / "other.csv", reading).accuracy_curve.progress
    np.testing.assert_allclose(other["epochs"], [[0, 1]])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("folder", [True, False])
def test_event_files_of_tensorboard(folder, tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    for step, accuracy in zip((100, 200, 300), ACCURACY, strict=True):
        value = Summary.Value(tag="val/acc", simple_value=accuracy)
        writer.add_event(Event(step=step, summary=Summary(value=[value])))
        value = Summary.Value(tag="lr", simple_value=0.1)
        writer.add_event(Event(step=step - 50, summary=Summary(value=[value])))
    writer.close()
    (file,) = tmp_path.iterdir()
    path = tmp_path if folder else file
    found = from_log("gpu", path, Reading({"test_accuracy": "val/acc"}, percent=True, batch=4))
    np.testing.assert_allclose(found.accuracy_curve.values, [np.array(ACCURACY) / 100], rtol=1e-6)
    np.testing.assert_allclose(found.accuracy_curve.progress["samples"], [[400, 800, 1200]])
    with pytest.raises(ConfigError, match="found: step, val/acc, lr"):
        from_log("gpu", path)


@pytest.mark.parametrize(
    ("package", "name"), [("pyarrow", "a.parquet"), ("tensorboard", "events.out.tfevents.1")]
)
def test_a_package_that_is_missing_is_named_with_its_extra(package, name, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(b"")
    real = builtins.__import__

    def without(module, *args, **kwargs):
        if module.split(".")[0] == package:
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UnsupportedError, match=r"pip install 'pcsim\[logs\]'"):
        from_log("gpu", tmp_path / name, READING)


@pytest.mark.parametrize(
    ("reading", "text", "words"),
    [
        ({"columns": {"test_accuracy": "val_ac"}}, "val_acc\n1\n", "did you mean 'val_acc'"),
        ({"columns": {"test_accuracy": "acc"}}, "acc\n80\n", "--percent: per cent"),
        ({"columns": {"test_accuracy": "acc"}, "percent": True}, "acc\n0.8\n", "are fractions"),
        ({"columns": {"test_accuracy": "acc"}}, "acc\nhigh\n", "line 2, test_accuracy: 'high'"),
        ({"columns": {"test_accuracy": "acc"}}, "acc,b\n,1\n", "must be fractions"),
        ({}, "epoch,val_acc\n1,0.5\n", "found: epoch, val_acc; .*--column"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(reading, text, words, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ConfigError, match=words):
        from_log("gpu", tmp_path / "log.csv", Reading(**reading))


def test_a_column_that_means_nothing_here_is_refused():
    with pytest.raises(ConfigError, match="--column colour=…: is none of seed, test_accuracy"):
        Reading({"colour": "c"})
    with pytest.raises(ConfigError, match="--batch: must be at least 1"):
        Reading(batch=0)


CONFIG = """
network = { sizes = [64, 8, 10] }
data = { name = "digits", limit = 200 }
learning = { epochs = 3, batch = 20 }
run = { seeds = [0, 1, 2] }
"""


def test_a_gpu_log_beside_a_run_with_curves(tmp_path, capsys, monkeypatch):
    """The whole path: a log in per cent over epochs, a run, one command, curves of both."""
    csv_file(tmp_path / "gpu.csv")
    (tmp_path / "ipc.toml").write_text(CONFIG)
    out = tmp_path / "c.h5"
    command = ["compare", str(tmp_path / "gpu.csv"), str(tmp_path / "ipc.toml"), "-o", str(out)]
    command += ["--column", "test_accuracy=val/acc", "--column", "epoch=ep", "--percent"]
    assert exit_code(command, monkeypatch) == 2  # not like with like: not paired in silence
    assert "--unpaired" in capsys.readouterr().err
    assert exit_code([*command, "--unpaired"], monkeypatch) == 0
    assert "unpaired (Welch)" in capsys.readouterr().out
    assert out.with_suffix(".png").stat().st_size > 10_000
    logs = {"test_accuracy": "val/acc", "epoch": "ep"}
    found = compare(
        {"gpu": tmp_path / "gpu.csv", "ipc": tmp_path / "ipc.h5"},
        columns=logs,
        percent=True,
        unpaired=True,
    )
    figure = found.plot()
    assert isinstance(figure, Figure)
    assert "unpaired" in figure.get_suptitle()
    middle = figure.axes[1]
    assert middle.get_xlabel() == "epochs"
    gpu, ipc = middle.lines[:2]
    np.testing.assert_allclose(gpu.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(gpu.get_ydata(), ACCURACY)
    np.testing.assert_allclose(ipc.get_xdata(), [1, 2, 3])
    assert "unpaired" in repr(found)
