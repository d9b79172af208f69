"""Damage to files: every flipped bit is noticed before HDF5 reads, and nothing can hang."""

import warnings

import h5py
import numpy as np
import pytest
import xarray

from pcsim.errors import StoreError
from pcsim.store import (
    Result,
    StreamVariable,
    StreamWriter,
    UnverifiedWarning,
    Variable,
    attributes,
    digest,
    is_result,
    load,
    probe,
    read_columns,
    save,
)


@pytest.fixture
def path(tmp_path):
    """A small result file with numbers, text and attributes."""
    values = np.random.default_rng(0).normal(size=(4, 3))
    variables = {"x": Variable(("t", "k"), values), "w": Variable(("k",), np.array(list("abc")))}
    save(Result(variables, {}, {"config": "{}", "seed": 3}), tmp_path / "a.h5")
    return tmp_path / "a.h5"


def recording(path):
    """Write a recording, which gets its checksum at the end."""
    with StreamWriter(path, {"x": StreamVariable(("k",), (5,))}) as writer:
        for k in range(30):
            writer.append(x=np.full(5, float(k)))


def flipped(content, bit):
    damaged = bytearray(content)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


@pytest.mark.parametrize("kind", ["result", "recording"])
def test_every_flipped_bit_is_noticed(path, kind, monkeypatch):
    if kind == "recording":
        recording(path := path.with_name("r.h5"))
    whole = path.read_bytes()
    load(path)  # the control
    monkeypatch.setattr(probe, "_READ_ALL", "")  # slow, and not what notices
    places = np.random.default_rng(1).integers(8 * len(whole), size=300)
    line = range(8 * (len(whole) - digest.SIZE), 8 * len(whole), 7)
    silent = []
    for bit in [*places.tolist(), *line]:
        path.write_bytes(flipped(whole, bit))
        try:
            load(path)
        except StoreError:
            continue
        silent.append(bit)
    assert silent == []


def test_damage_is_noticed_before_hdf5_reads(path, monkeypatch):
    whole = path.read_bytes()
    path.write_bytes(flipped(whole, 8 * 700))
    monkeypatch.setattr(h5py, "File", None)  # would be a TypeError
    for read in (load, attributes, is_result):
        with pytest.raises(StoreError, match="not those of its checksum"):
            read(path)


def test_other_readers_do_not_see_the_checksum(path):
    with h5py.File(path) as file:
        assert set(file) == {"x", "w", "t", "k"}
    with xarray.open_dataset(path) as data:
        np.testing.assert_array_equal(data["x"], load(path)["x"])


def without_checksum(path):
    """Make a file as it was before there were checksums."""
    path.write_bytes(path.read_bytes()[: -digest.SIZE])
    with h5py.File(path, "a") as file:
        file.attrs["pcsim_format"] = 1


def test_a_file_of_before_is_read_with_a_note(path):
    numbers = load(path)["x"]
    without_checksum(path)
    with pytest.warns(UnverifiedWarning, match=r"a\.h5: was written without a checksum"):
        np.testing.assert_array_equal(load(path)["x"], numbers)
    assert is_result(path)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("while True: pass", "does not come to an end with it in 1 s"),
        ("import os; os.abort()", "HDF5 crashes when it reads it"),
    ],
)
def test_what_has_no_checksum_is_read_by_another_process_first(path, monkeypatch, program, words):
    without_checksum(path)
    monkeypatch.setattr(probe, "_READ_ALL", program)
    monkeypatch.setattr(probe, "SECONDS", 1.0)
    for read in (load, read_columns, is_result):
        with pytest.raises(StoreError, match=rf"a\.h5: is damaged .*{words}"):
            read(path)


def test_the_other_process_reads_everything(path):
    without_checksum(path)
    probe.probe(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnverifiedWarning)
        load(path)
