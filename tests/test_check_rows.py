"""`pcsim check` goes on after an interruption: finished rows are kept, and known by content."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from pcsim import config as configuration
from pcsim import store
from pcsim.check import CHIP, IDEAL, SHUFFLED, check, rows_of
from pcsim.check import rows as check_rows
from pcsim.cli import main
from pcsim.errors import ConfigError, InterruptedRunError, UnsupportedError
from pcsim.store.parts import Parts

CONFIG = """
[network]
sizes = [64, 4, 10]
[schedule]
T = 2
[learning]
batch = 10
alpha = 0.01
epochs = 2
[data]
limit = 24
limit_test = 20
[run]
backend = "continuous"
[hardware]
chips = 2
[hardware.pieces.noise]
kind = "array_read_noise"
sigma = 0.01
reference = "range"
"""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.toml").write_text(CONFIG)
    return configuration.load(Path("a.toml"))


@pytest.fixture
def runs(monkeypatch):
    """Count the rows that are run and kept; at the number `stop` one is interrupted."""
    original = check_rows.run

    class Runs:
        done = 0
        stop = -1

        def __call__(self, setting, path, report=None):
            if self.done == self.stop:
                self.stop = -1
                raise KeyboardInterrupt
            self.done += 1
            return original(setting, path, report=report)

    counted = Runs()
    monkeypatch.setattr(check_rows, "run", counted)
    return counted


def same(one, other):
    assert one.variables.keys() == other.variables.keys()
    for name in one.variables:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("stop", [0, 1, 3, 5])
def test_an_interrupted_check_goes_on_with_its_rows(settings, runs, stop):
    whole = check(settings, search=False)
    folder = Path("a.h5.rows")
    runs.stop = stop
    runs.done = 0
    with pytest.raises(InterruptedRunError, match=f"after {stop} of 7 rows; .* from a.h5.rows"):
        check(settings, search=False, rows=folder)
    assert len(list(folder.glob("*.h5"))) == stop
    again = check(settings, search=False, rows=folder)
    assert runs.done == 7  # none twice
    same(again.result(), whole.result())
    assert again.left_out == whole.left_out
    assert again.sentence() == whole.sentence()


def test_rows_are_known_by_content(settings, runs):
    folder = Path("a.h5.rows")
    check(settings, search=False, rows=folder)
    other = configuration.changed(settings, {"hardware": {"chips": 3}})
    check(other, search=False, rows=folder)
    assert runs.done == 7 + 3  # the ideal rows are the same
    check(settings, search=False, rows=folder)
    assert runs.done == 10


CHIP_FILE = '[pieces.noise]\nkind = "array_read_noise"\nsigma = {}\nreference = "range"\n'


def test_a_chip_file_is_known_by_what_it_holds(tmp_path, runs):
    """Edited, its row runs anew; as before, it does not."""
    chip, folder = tmp_path / "mine.toml", tmp_path / "rows"
    data = configuration.read(_written(tmp_path / "b.toml", CONFIG.split("[hardware.pieces")[0]))
    data["hardware"]["preset"] = str(chip)

    def checked(sigma):
        chip.write_text(CHIP_FILE.format(sigma))
        setting = configuration.parse(data)
        chip.unlink()  # what was read is in the configuration
        return check(setting, search=False, twins=False, rows=folder).answer.accuracy

    first = checked(0.01)
    assert runs.done == 3
    edited = checked(0.9)
    assert runs.done == 3 + 1, "the chip's own row"
    assert (first != edited).any()
    np.testing.assert_array_equal(checked(0.01), first)
    assert runs.done == 4


def _written(path, text):
    path.write_text(text)
    return path


def test_a_damaged_row_is_refused(settings, runs):
    folder = Path("a.h5.rows")
    check(settings, twins=False, rows=folder)
    victim = sorted(folder.glob("*.h5"))[2]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with pytest.raises(store.hdf5.StoreError, match="is damaged"):
        check(settings, twins=False, rows=folder)


def test_forgetting_removes_rows_only(settings):
    folder = Path("a.h5.rows")
    check(settings, twins=False, rows=folder)
    (folder / "notes.txt").write_text("mine")
    (folder / "mine-0123456789abcdef.h5").write_text("mine")
    store.save(store.Result({}), folder / "mine.h5")
    Parts(folder).forget()
    assert sorted(p.name for p in folder.iterdir()) == [
        "mine-0123456789abcdef.h5",
        "mine.h5",
        "notes.txt",
    ]


def test_the_command_goes_on_and_tidies_up(settings, runs, monkeypatch, capsys):
    def call():
        monkeypatch.setattr(sys, "argv", ["pcsim", "check", "a.toml", "-o", "c.h5", "--no-search"])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), capsys.readouterr().err

    runs.stop = 4
    code, err = call()
    assert code == 130
    assert err == "interrupted: after 4 of 7 rows; the same command goes on from c.h5.rows\n"
    assert sorted(os.listdir()) == ["a.toml", "c.h5.rows"]
    assert rows_of(Path("c.h5")).folder == Path("c.h5.rows")
    assert call()[0] != 130
    assert runs.done == 7
    assert sorted(os.listdir()) == ["a.toml", "c.h5", "c.png"]
    same(store.load(Path("c.h5")), check(settings, search=False).result())


def test_all_rows_are_decided_before_the_first_runs(settings, monkeypatch):
    def never(*_):
        raise AssertionError("a row was run")

    monkeypatch.setattr(check_rows, "run", never)
    automatic = {"run": {"automatic": True}, "learning": {"batch": 0}}
    free = {"hardware": {"pieces": {}}}
    setting = configuration.changed(settings, automatic | free)
    with pytest.raises((ConfigError, UnsupportedError), match=r"check: .*PC.*--no-twins"):
        check(setting, rows=Path("a.h5.rows"))
    recorded = configuration.changed(settings, {"record": {"trajectories": True}})
    with pytest.raises(ConfigError, match=r"check: record\.trajectories"):
        check(recorded, rows=Path("a.h5.rows"))
    assert not Path("a.h5.rows").exists()
    monkeypatch.undo()
    few = {"convergence": {"max_steps": 5}, "learning": {"alpha": 1e-4}}
    found = check(configuration.changed(setting, few), twins=False)  # the control: without BP
    assert list(found.runs) == [CHIP, IDEAL, SHUFFLED]
