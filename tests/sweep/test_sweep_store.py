"""The store: whatever happens on the way, the sweep ends with the numbers of an undisturbed one."""

import errno
import json
import os
import re

import numpy as np
import pytest
from sweep_world import assert_same_numbers, small, unfused

from pcsim.errors import InterruptedRunError, StoreError
from pcsim.store import files
from pcsim.store import load as load_file
from pcsim.sweep import StoreWarning, execute, fuse, load, make_sweep, sweep
from pcsim.sweep.folder import SweepFolder, outline_of
from pcsim.sweep.survey import survey


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return sweep(small(), tmp_path_factory.mktemp("sweep") / "s")


def run_files(out):
    return sorted((out / "runs").glob("*.h5"))


def stop_after(runs, monkeypatch, error):
    """Let a few runs come to their end, then raise."""
    original, calls = execute.run_config, []

    def run_config(config):
        if len(calls) == runs:
            raise error
        calls.append(config)
        return original(config)

    monkeypatch.setattr(execute, "run_config", run_config)
    return calls


def count_runs(monkeypatch):
    return stop_after(10**9, monkeypatch, AssertionError())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InterruptedRunError("after 1 epoch")])
def test_interrupted_and_gone_on(tmp_path, monkeypatch, undisturbed, error):
    out = tmp_path / "s"
    with monkeypatch.context() as patch:
        stop_after(2, patch, error)
        words = "6 of 12 points are safe in .*, and the same command goes on"
        with pytest.raises(InterruptedRunError, match=words):
            sweep(small(), out)
    half = load_file(out / "sweep.h5")
    assert (half["status"] == "missing").sum() == 6
    assert int(half.attrs["missing"]) == 6
    assert np.isnan(half["accuracy"]).sum() == 6 * 2
    before = {path: path.stat().st_mtime_ns for path in run_files(out)}
    calls = count_runs(monkeypatch)
    assert_same_numbers(sweep(small(), out), undisturbed)
    assert len(calls) == 2  # nothing was computed twice
    assert before.items() <= {p: p.stat().st_mtime_ns for p in run_files(out)}.items()
    assert_same_numbers(load(out), undisturbed)
    sweep(small(), out)
    assert len(calls) == 2  # and nothing is left to do


def flip(path):
    """Change one stored number, which HDF5 itself does not notice."""
    content = bytearray(path.read_bytes())
    value = load_file(path)["train_energy"].ravel()[0].tobytes()
    place = bytes(content).index(value)
    content[place] ^= 1
    path.write_bytes(content)
    load_file(path, verify=False)  # the control: HDF5 itself opens it


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("not a result"),
    ],
    ids=["one bit", "cut short", "empty", "text"],
)
def test_damaged_file_is_told_and_made_again(tmp_path, monkeypatch, undisturbed, damage):
    out = tmp_path / "s"
    sweep(small(), out)
    victim = run_files(out)[1]
    damage(victim)
    calls = count_runs(monkeypatch)
    with pytest.warns(StoreWarning, match=r"00001-3-.*is damaged; its 3 points will be computed"):
        again = sweep(small(), out)
    assert len(calls) == 1
    assert_same_numbers(again, undisturbed)
    assert_same_numbers(load(out), undisturbed)


@pytest.mark.parametrize("when", [0, 2, 4], ids=["first run", "in between", "merged file"])
def test_full_disk_loses_nothing(tmp_path, monkeypatch, undisturbed, when):
    out, writes = tmp_path / "s", []

    def write_new(path, image):
        writes.append(path)
        with open(path, "xb") as file:
            if len(writes) == when + 1:
                file.write(bytes(image)[: len(image) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            file.write(image)

    with monkeypatch.context() as patch:
        patch.setattr(files, "write_new", write_new)
        words = f"No space left on device.*{3 * when} of 12 points are safe"
        with pytest.raises(StoreError, match=words) as caught:
            sweep(small(), out)
    assert "\n" not in str(caught.value)
    assert len(run_files(out)) == when
    assert not list(out.rglob("*.tmp"))
    calls = count_runs(monkeypatch)
    assert_same_numbers(sweep(small(), out), undisturbed)
    assert len(calls) == 4 - when


def test_runs_of_a_pcsim_that_fused_otherwise_are_kept(tmp_path, monkeypatch, undisturbed):
    """A later version may fuse more or fewer points; what is stored is not computed again."""
    out = tmp_path / "s"
    sweep(small(), out)
    run_files(out)[0].unlink()
    with monkeypatch.context() as patch:
        patch.setattr(fuse, "TENSOR_FIELDS", ())
        calls = count_runs(patch)
        merged = sweep(small(), out)
    assert len(calls) == 3
    assert sorted(merged["run_size"].ravel().tolist()) == [1] * 3 + [3] * 9
    np.testing.assert_allclose(merged["train_energy"], undisturbed["train_energy"], rtol=1e-12)


def test_full_disk_before_the_start_is_a_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match=r"could not be written.*No space left"):
        sweep(small(), tmp_path / "s")


@pytest.mark.parametrize(
    ("section", "change", "words"),
    [
        ("learning", {"epochs": 3}, "learning.epochs = 2, not 3"),
        ("run", {"seeds": [1, 3]}, "run.seeds = (3, 1), not (1, 3)"),
        ("sweep", {"axes": {"schedule.T": [2]}}, "sweep.axes"),
        ("sweep", {"fuse": 2}, "sweep.fuse = 32, not 2"),
        ("sweep", {"leave_out": []}, "sweep.leave_out = ['parameters', 'predictions'], not []"),
    ],
)
def test_another_description_is_refused_by_name(tmp_path, section, change, words):
    out = tmp_path / "s"
    SweepFolder(out).claim(make_sweep(small()))
    data = small()
    data[section] = {**data[section], **change}
    with pytest.raises(StoreError, match=re.escape(words)):
        sweep(data, out)


def test_the_same_in_other_words_is_welcome(tmp_path):
    """Defaults spelt out, and a range as a list, are no other sweep."""
    out = tmp_path / "s"
    SweepFolder(out).claim(make_sweep(small()))
    data = small(network={"f": "tanh"}, record={"predictions": True})
    data["sweep"]["axes"]["learning.alpha"] = [1e-3, 10**-2.5, 1e-2]
    data["sweep"]["axes"]["learning.alpha"][1] = float(f"{10**-2.5:.12g}")
    SweepFolder(out).claim(make_sweep(data))


def test_folders_that_hold_something_else(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="is there already and holds no sweep"):
        sweep(small(), tmp_path)
    with pytest.raises(StoreError, match="holds no sweep; check the path"):
        load(tmp_path)
    SweepFolder(tmp_path / "s").claim(make_sweep(small()))
    (tmp_path / "s" / "sweep.json").write_text("{")
    with pytest.raises(StoreError, match=r"sweep\.json: is damaged"):
        sweep(small(), tmp_path / "s")


def test_two_processes_do_not_work_on_one_store(tmp_path):
    folder = SweepFolder(tmp_path / "s")
    folder.claim(make_sweep(small()))
    assert not folder.is_busy()
    with folder.lock():
        assert folder.is_busy()
        with pytest.raises(StoreError, match=f"process {os.getpid()} works on this sweep"):
            sweep(small(), folder.path)
    assert not folder.is_busy()


def test_divergence_is_a_result_and_an_error_is_recorded(tmp_path, monkeypatch):
    original = execute.run_config

    def run_config(config):
        if config.schedule.T == 3:
            raise MemoryError("not enough")
        return original(config)

    monkeypatch.setattr(execute, "run_config", run_config)
    data = unfused()
    data["sweep"]["axes"] = {"schedule.T": [2, 3], "learning.alpha": [1e-3, 1e9]}
    merged = sweep(data, tmp_path / "s")
    assert merged["status"].tolist() == [["done", "diverged"], ["failed", "failed"]]
    assert merged["reason"][0].tolist() == ["", "2 of 2 replicas diverged"]
    assert merged["reason"][1].tolist() == ["MemoryError: not enough"] * 2
    assert np.isfinite(merged["test_accuracy"][0]).all()  # numbers of a diverged point are kept
    counts = [merged.attrs[n] for n in ("points", "done", "failed", "diverged", "missing")]
    assert counts == [4, 1, 2, 1, 0]
    found = survey(outline_of(make_sweep(data)), SweepFolder(tmp_path / "s"))
    assert (found.done, found.failed, found.diverged, found.total) == (2, 2, 1, 4)
    assert found.reasons[0] == "MemoryError: not enough"
    assert found.seconds_left is None


def test_remaining_time_is_the_pace_times_what_is_left(tmp_path, monkeypatch):
    out = tmp_path / "s"
    stop_after(3, monkeypatch, KeyboardInterrupt())
    with pytest.raises(InterruptedRunError):
        sweep(small(), out)
    for k, path in enumerate(run_files(out)):
        os.utime(path, (0, 1000 + 7 * k))
    found = survey(outline_of(make_sweep(small())), SweepFolder(out))
    assert (found.done, found.total, found.busy) == (9, 12, False)
    assert found.seconds_left == pytest.approx(7.0)


def test_results_say_where_they_came_from(undisturbed):
    for name in ("version_pcsim", "version_torch", "version_numpy", "commit", "platform"):
        assert name in undisturbed.attrs
    assert json.loads(str(undisturbed.attrs["seeds"])) == [3, 1]
    assert json.loads(str(undisturbed.attrs["base_config"]))["learning"]["epochs"] == 2
    assert json.loads(str(undisturbed.attrs["axes"]))[1]["dim"] == "learning.alpha"
    config = json.loads(str(undisturbed["config"][1, 2, 1]))
    assert config["schedule"]["rule"] == "pc"
    assert config["learning"]["alpha"] == 1e-2
    assert config["network"]["sizes"] == [64, 5, 10]
    assert (undisturbed["time_utc"] != "").all()
