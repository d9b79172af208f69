"""Recordings: whole, interrupted, killed, refused."""

import os
import signal
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
import xarray

from pcsim.errors import StoreError
from pcsim.store import StreamVariable, StreamWriter, load

SPEC = {
    "energy": StreamVariable(("layer",), (2,), attrs={"units": "J"}),
    "right": StreamVariable(dtype=bool),
    "count": StreamVariable(dtype="uint8"),
}


def writer(path, **options):
    given = {
        "coords": {"layer": np.array(["hidden", "output"])},
        "attrs": {"seed": 3},
        "axis_dtype": float,
        "coord_attrs": {"time": {"units": "s"}},
        "buffer_bytes": 150,
    }
    return StreamWriter(path, SPEC, **given | options)


def fill(stream, n):
    for i in range(n):
        stream.append(time=i / 2, energy=[i, -i], right=i % 2 == 0, count=i)


def interrupted(path, n, error, **options):
    with writer(path, **options) as stream:
        fill(stream, n)
        raise error


@pytest.mark.parametrize("n", [0, 1, 4, 5, 6, 100])
def test_finished_recording_loads_and_opens_in_xarray(tmp_path, n):
    path = tmp_path / "a.h5"
    with writer(path) as stream:
        fill(stream, n)
        assert not path.exists()
        assert stream.rows == n
    assert os.listdir(tmp_path) == ["a.h5"]
    result = load(path)
    assert result.attrs == {"seed": 3}
    np.testing.assert_array_equal(result["time"], np.arange(n) / 2)
    np.testing.assert_array_equal(result["energy"], np.outer(np.arange(n), [1, -1]))
    np.testing.assert_array_equal(result["right"], np.arange(n) % 2 == 0)
    assert result["right"].dtype == bool
    assert result["count"].dtype == np.uint8
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert dict(data.sizes) == {"time": n, "layer": 2}
        assert data["energy"].dims == ("time", "layer")
        assert data["energy"].attrs == {"units": "J"}
        assert data["time"].attrs == {"units": "s"}
        assert data["right"].dtype == bool
        np.testing.assert_array_equal(data["energy"].values, result["energy"])
        assert list(data["layer"].values) == ["hidden", "output"]
        assert data.encoding["unlimited_dims"] == {"time"}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("n", [0, 3, 23])
def test_interrupted_recording_keeps_its_rows(tmp_path, error, n):
    path = tmp_path / "a.h5"
    with pytest.raises(error):
        interrupted(path, n, error)
    assert os.listdir(tmp_path) == ["a.h5.partial"]
    with pytest.raises(StoreError, match=r"an unfinished recording is in a\.h5\.partial"):
        load(path)
    with pytest.raises(StoreError, match="stopped early; load what there is with partial=True"):
        load(tmp_path / "a.h5.partial")
    for place in (path, tmp_path / "a.h5.partial"):
        result = load(place, partial=True)
        assert result.attrs == {"seed": 3, "complete": False}
        np.testing.assert_array_equal(result["time"], np.arange(n) / 2)
    with xarray.open_dataset(tmp_path / "a.h5.partial", engine="h5netcdf") as data:
        assert not data.attrs["complete"]
        assert data.sizes["time"] == n


@pytest.mark.parametrize("keep", [1, 5, 20])
def test_going_on_drops_the_rows_behind_and_adds_new_ones(tmp_path, keep):
    path, whole = tmp_path / "a.h5", tmp_path / "whole.h5"
    with writer(whole) as stream:
        fill(stream, 30)
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, 20, KeyboardInterrupt)
    with writer(path, keep_rows=keep) as stream:
        assert stream.rows == keep
        for i in range(keep, 30):
            stream.append(time=i / 2, energy=[i, -i], right=i % 2 == 0, count=i)
    found, expected = load(path), load(whole)
    assert found.attrs == expected.attrs
    for name in [*expected.variables, *expected.coords]:
        np.testing.assert_array_equal(found[name], expected[name], strict=True)


def test_going_on_from_rows_that_are_not_there_is_refused_and_keeps_those_that_are(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(StoreError, match="the 3 rows to go on from are not there"):
        writer(path, keep_rows=3)
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, 4, KeyboardInterrupt)
    with pytest.raises(StoreError, match=r"cannot go on from row 5: energy has shape \(4, 2\)"):
        writer(path, keep_rows=5)
    with pytest.raises(StoreError, match="cannot go on from row 2: other is not there"):
        StreamWriter(path, {"other": StreamVariable()}, keep_rows=2, axis_dtype=float)
    assert len(load(path, partial=True)["time"]) == 4


def test_interruption_in_the_middle_of_a_flush(tmp_path, monkeypatch):
    from pcsim.store import hdf5

    path, encode, calls = tmp_path / "a.h5", hdf5.encode, []

    def interrupt(values):
        calls.append(1)
        if len(calls) == 6:  # the second flush, its second variable
            raise KeyboardInterrupt
        return encode(values)

    stream = writer(path)
    monkeypatch.setattr(hdf5, "encode", interrupt)
    with pytest.raises(KeyboardInterrupt), stream:
        fill(stream, 100)
    result = load(path, partial=True)
    n = len(result["time"])
    assert 5 < n < 100
    np.testing.assert_array_equal(result["energy"], np.outer(np.arange(n), [1, -1]))
    np.testing.assert_array_equal(result["count"], np.arange(n))


def test_killed_process_leaves_what_was_flushed(tmp_path):
    code = """
        import os, sys, signal
        from pathlib import Path
        from pcsim.store import StreamVariable, StreamWriter
        with StreamWriter(Path(sys.argv[1]), {"x": StreamVariable()}, buffer_bytes=160) as stream:
            for i in range(95):
                stream.append(x=i)
            os.kill(os.getpid(), signal.SIGKILL)
        """
    path = tmp_path / "a.h5"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code), path], check=False)
    assert done.returncode == -signal.SIGKILL
    result = load(path, partial=True)
    np.testing.assert_array_equal(result["x"], np.arange(90))
    np.testing.assert_array_equal(result["time"], np.arange(90))


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="needs reserved space")
def test_full_disk_keeps_the_rows_before_it(tmp_path):
    code = """
        import resource, sys
        from pathlib import Path
        import numpy as np
        from pcsim.store import StreamVariable, StreamWriter
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
        noise = np.random.default_rng(0)
        try:
            with StreamWriter(
                Path(sys.argv[1]), {"x": StreamVariable(("i",), (500,))}, buffer_bytes=40_000
            ) as stream:
                while True:
                    stream.append(x=noise.normal(size=500))
        except Exception as error:
            print(type(error).__name__, error)
        """
    path = tmp_path / "a.h5"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("StoreError ")
    assert "could not be written (File too large)" in done.stdout
    rows = load(path, partial=True)["x"]
    assert len(rows) > 100
    expected = np.random.default_rng(0).normal(size=rows.shape)
    np.testing.assert_array_equal(rows, expected)


def test_memory_is_bounded(tmp_path):
    spec = {"x": StreamVariable(("i",), (1000,))}
    row = np.random.default_rng(0).normal(size=1000)
    tracemalloc.start()
    try:
        with StreamWriter(tmp_path / "a.h5", spec, buffer_bytes=400_000) as stream:
            for _ in range(1000):  # 8 MB
                stream.append(x=row)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
    np.testing.assert_array_equal(load(tmp_path / "a.h5")["x"], np.tile(row, (1000, 1)))


def test_rows_larger_than_a_chunk(tmp_path):
    spec = {"x": StreamVariable(("i",), (200_000,), "float32")}
    with StreamWriter(tmp_path / "a.h5", spec, axis="step", buffer_bytes=1) as stream:
        for i in range(3):
            stream.append(x=np.full(200_000, i))
    result = load(tmp_path / "a.h5")
    np.testing.assert_array_equal(result["x"][:, -1], [0, 1, 2])
    np.testing.assert_array_equal(result["step"], [0, 1, 2])


def test_refused_rows_leave_no_trace(tmp_path):
    good = {"time": 0.0, "energy": [1.0, 2.0], "right": True, "count": 1}
    with writer(tmp_path / "a.h5") as stream:
        stream.append(**good)
        for change, message in [
            ({"energy": [1.0]}, r"append\.energy: must have shape \(2,\), got \(1,\)"),
            ({"count": 256}, r"append\.count: .*out of the range"),
            ({"count": -1}, r"append\.count: .*out of the range"),
            ({"count": 1.5}, r"append\.count: float64 does not fit"),
            ({"energy": ["a", "b"]}, r"append\.energy"),
            ({"extra": 1}, "append: needs"),
        ]:
            with pytest.raises(StoreError, match=message):
                stream.append(**good | change)
    assert len(load(tmp_path / "a.h5")["time"]) == 1
    with pytest.raises(StoreError, match="is closed"):
        stream.append(**good)


def test_nothing_is_overwritten_unasked(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, 3, KeyboardInterrupt)
    with pytest.raises(StoreError, match="holds an earlier recording"):
        writer(path)
    with writer(path, overwrite=True) as stream:
        fill(stream, 7)
    with pytest.raises(StoreError, match="exists already"):
        writer(path)
    # The old file stays until the new one is finished.
    with pytest.raises(KeyboardInterrupt):
        interrupted(path, 2, KeyboardInterrupt, overwrite=True)
    assert len(load(path)["time"]) == 7
    assert len(load(path, partial=True)["time"]) == 2


def test_target_that_appeared_meanwhile(tmp_path):
    path = tmp_path / "a.h5"
    stream = writer(path)
    fill(stream, 3)
    path.write_bytes(b"precious")
    with pytest.raises(StoreError, match="exists already"):
        stream.close()
    assert path.read_bytes() == b"precious"
    assert len(load(path, partial=True)["time"]) == 3


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ({"x": StreamVariable(("i",), (0,))}, {}, "has no elements"),
        ({"x": StreamVariable(dtype=str)}, {}, "text cannot be recorded"),
        ({"x": StreamVariable(("i",), (2,))}, {"coords": {"i": np.arange(3)}}, "axis i"),
        ({"x": StreamVariable()}, {"coords": {"time": np.arange(3)}}, "come with the rows"),
    ],
)
def test_nonsense_is_refused_and_leaves_no_file(tmp_path, spec, options, message):
    with pytest.raises(StoreError, match=message):
        StreamWriter(tmp_path / "a.h5", spec, **options)
    assert os.listdir(tmp_path) == []


def test_counting_axis_takes_no_labels(tmp_path):
    stream = StreamWriter(tmp_path / "a.h5", {"x": StreamVariable()})
    with pytest.raises(StoreError, match="this axis counts rows"):
        stream.append(x=1, time=0.5)
    stream.abort()


def test_every_cut_of_a_recording_keeps_the_rows_before_it(tmp_path):
    """A kill may fall between any two bytes: what is whole is read, and gone on from."""
    path = tmp_path / "a.h5"
    stream = writer(path)
    fill(stream, 10)
    stream.flush()
    partial = tmp_path / "a.h5.partial"
    whole = partial.read_bytes()
    row = 8 + 16 + 1 + 1
    for missing in (*range(0, 2 * row + 1, 5), 10 * row):
        partial.write_bytes(whole[: len(whole) - missing])
        rows = 10 - -(-missing // row)
        assert len(load(path, partial=True)["energy"]) == rows
        if rows:
            with writer(path, keep_rows=rows, overwrite=True) as again:
                assert again.rows == rows
            np.testing.assert_array_equal(load(path)["count"], np.arange(rows))
            path.unlink()
    partial.write_bytes(whole[:100])
    with pytest.raises(StoreError, match="is damaged or cut short at its beginning"):
        load(path, partial=True)
    stream._leave()


def test_going_on_from_a_finished_recording(tmp_path):
    path = tmp_path / "a.h5"
    with writer(path) as stream:
        fill(stream, 10)
    with StreamWriter.resumed(path, 7, {"seed": 3}) as stream:
        assert stream.rows == 7
        stream.append(time=9.0, energy=[1, 2], right=True, count=9)
    again = load(path)
    np.testing.assert_array_equal(again["count"], [*range(7), 9])
    assert again["right"].dtype == bool
    assert list(again["layer"]) == ["hidden", "output"]
    assert again.attrs == {"seed": 3}
    with pytest.raises(StoreError, match="the recording of another run"):
        StreamWriter.resumed(path, 7, {"seed": 4})
