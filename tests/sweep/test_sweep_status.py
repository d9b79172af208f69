"""`pcsim sweep --status`: it only reads, does not open every file, and says the same."""

import os
import stat
import sys
from pathlib import Path

import pytest

from pcsim import cli
from pcsim.sweep import folder as folders
from pcsim.sweep import make_sweep, points, sweep
from pcsim.sweep.execute import failed
from pcsim.sweep.folder import SweepFolder, outline_of
from pcsim.sweep.survey import survey, survey_of_file

STUDY = """
[network]
sizes = [64, 3, 10]
[learning]
batch = 20
epochs = 1
[data]
limit = 40
limit_test = 10
[hardware]
preset = "mine.toml"
lenient = true
[sweep]
invalid = "record"
[sweep.axes]
"schedule.rule" = ["ipc", "bp", "zil"]
"schedule.init" = ["ff", "zero"]
learning.alpha = [1e-3, 1e-2, 1e30]
"""
DEVICE = '[pieces.noise]\nkind = "array_read_noise"\nsigma = 0.01\nreference = "range"\n'


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A finished sweep: done, diverged, failed and invalid points."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "mine.toml").write_text(DEVICE)
    sweep("study.toml", tmp_path / "s")
    return SweepFolder(tmp_path / "s")


def slowly(folder):
    """Return the survey as it is found in the files themselves."""
    notes = folder.path / "outcomes.jsonl"
    notes.rename(folder.path / "aside")
    try:
        return survey(outline_of(make_sweep(points._read(Path("study.toml"), {}))), folder)
    finally:
        (folder.path / "aside").rename(notes)


def never(*_, **__):
    raise AssertionError("this takes long")


def test_the_notes_say_what_the_files_say(study, monkeypatch):
    truth = slowly(study)
    assert truth.failed == 3  # zil with init = zero
    assert truth.diverged
    assert truth.done == 15
    with monkeypatch.context() as patch:
        for place in ("store.load", "make_sweep"):
            patch.setattr(folders, place.split(".")[0], never)
        patch.setattr("pcsim.config.parse", never)
        assert survey_of_file(Path("study.toml"), {}, study) == truth
    # A file without a note (its process was killed), a line cut short, a note without a file.
    text = (study.path / "outcomes.jsonl").read_text().splitlines()
    (study.path / "outcomes.jsonl").write_text("\n".join([*text[:4], text[-1][:20]]))
    assert survey_of_file(Path("study.toml"), {}, study) == truth
    os.remove(study.entries()[0].path)
    assert survey_of_file(Path("study.toml"), {}, study).done < truth.done


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_folder_without_the_right_to_write(study, monkeypatch, capsys):
    before = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in study.path.rglob("*")}
    for path in (study.path, *study.path.rglob("*")):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    real = open

    def read_only(file, mode="r", *arguments, **options):
        assert set(mode) <= set("rb"), f"{file} is opened for writing"
        return real(file, mode, *arguments, **options)

    monkeypatch.setattr("builtins.open", read_only)  # the superuser may write anyway
    monkeypatch.setattr(sys, "argv", ["pcsim", "sweep", "study.toml", "-o", "s", "--status"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    monkeypatch.undo()
    assert end.value.code in (0, None)
    assert "15 of 18 points done" in capsys.readouterr().out
    for path in (study.path, *study.path.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    assert before == {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in study.path.rglob("*")}


def test_another_description_or_device_is_still_refused(study):
    with pytest.raises(folders.StoreError, match=r"learning\.epochs = 1, not 3"):
        survey_of_file(Path("study.toml"), {"learning.epochs": "3"}, study)
    Path("mine.toml").write_text(DEVICE.replace("0.01", "0.02"))
    with pytest.raises(folders.StoreError, match=r"noise\.sigma = 0\.01, not 0\.02"):
        survey_of_file(Path("study.toml"), {}, study)


def test_asking_does_not_stop_a_sweep_from_starting(study):
    with open(study.path / "lock", "rb") as file:
        assert folders.acquire(file, shared=True)  # somebody asks at this very moment
        released = []

        def wait(seconds):
            released.append(seconds)
            file.close()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(folders.time, "sleep", wait)
            with study.lock():
                assert released


def test_the_note_of_a_failed_point(study):
    entry = study.write(failed(3, "no\nmemory"))
    study.note(entry, {3: ("failed", "no memory")})
    assert study.notes()[entry.path.name] == {3: ("failed", "no memory")}
