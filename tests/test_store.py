"""Result files: round trips, xarray as a second reader, and everything that can go wrong."""

import os
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
import xarray
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pcsim.errors import StoreError
from pcsim.store import FORMAT_VERSION, Result, Variable, load, save

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = ["a", "b.weight", "µ_1", "loss-2"]
DTYPES = ["?", "i1", "u8", "i8", "f2", "f4", "f8", "c8", "c16", ">f8"]


def example():
    return Result(
        {
            "energy": Variable(
                ("time", "layer"), np.arange(6.0).reshape(3, 2), {"units": "J", "long_name": "F"}
            ),
            "right": Variable(("time",), np.array([True, False, True])),
            "note": Variable(("layer",), np.array(["größe", ""])),
            "phase": Variable(("time",), np.exp(1j * np.arange(3.0))),
            "count": Variable((), np.array(7)),
            "loose": Variable(("unit",), np.arange(4, dtype=np.uint8)),
        },
        {"time": np.array([0.0, 0.5, 1.0]), "layer": np.array(["hidden", "output"], dtype=object)},
        {"config": "[net]\nsize = 3\n", "seed": 2**64 - 1, "rate": 1e-3, "flag": True},
        {"time": {"units": "s"}},
    )


def assert_same(one, other):
    assert set(one.variables) == set(other.variables)
    assert set(one.coords) == set(other.coords)
    assert one.attrs == other.attrs
    assert one.coord_attrs == other.coord_attrs
    for name, variable in one.variables.items():
        assert variable.dims == other.variables[name].dims
        assert variable.attrs == other.variables[name].attrs
    for name in [*one.variables, *one.coords]:
        assert one[name].dtype.kind == other[name].dtype.kind
        if one[name].dtype.kind != "U":
            assert one[name].dtype == other[name].dtype
        np.testing.assert_array_equal(one[name], other[name])


@st.composite
def results(draw):
    lengths = {dim: draw(st.integers(0, 4)) for dim in ("x", "y", "z")}

    def array(shape):
        text = hnp.arrays(object, shape, elements=TEXT)
        return draw(st.one_of(text, *(hnp.arrays(np.dtype(d), shape) for d in DTYPES)))

    values = st.one_of(
        TEXT, st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.booleans()
    )
    attrs = st.dictionaries(st.sampled_from(["seed", "config", "versión"]), values)
    variables = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        dims = tuple(draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=3)))
        variables[name] = Variable(dims, array(tuple(lengths[d] for d in dims)), draw(attrs))
    labelled = draw(st.lists(st.sampled_from("xyz"), unique=True))
    coords = {d: array((lengths[d],)) for d in labelled}
    return Result(variables, coords, draw(attrs), {d: draw(attrs) for d in labelled})


@pytest.mark.slow
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(result=results())
def test_what_is_saved_is_loaded(tmp_path, result):
    save(result, tmp_path / "a.h5", overwrite=True)
    assert_same(result, load(tmp_path / "a.h5"))


def test_xarray_reads_the_same(tmp_path):
    result, path = example(), tmp_path / "a.h5"
    save(result, path)
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert dict(data.sizes) == {"time": 3, "layer": 2, "unit": 4}
        assert set(data.coords) == {"time", "layer", "unit"}
        assert set(data.data_vars) == set(result.variables)
        for name, variable in result.variables.items():
            assert data[name].dims == variable.dims
            assert data[name].dtype.kind in variable.values.dtype.kind + "OT"
            np.testing.assert_array_equal(data[name].values, variable.values)
        assert data["energy"].attrs == {"units": "J", "long_name": "F"}
        assert data["right"].dtype == bool
        assert data["time"].attrs == {"units": "s"}
        assert data["energy"].sel(time=0.5, layer="output") == 3.0
        assert {k: data.attrs[k] for k in result.attrs} == result.attrs


@pytest.mark.slow
def test_long_attributes_and_many_variables(tmp_path):
    names = [f"v{i}" for i in range(300)]
    attrs = {"config": "größe\n" * 100_000, **{f"a{i}": "x" * 9000 for i in range(20)}}
    result = Result({n: Variable(("x",), np.arange(2)) for n in names}, {}, attrs)
    save(result, tmp_path / "a.h5")
    assert_same(result, load(tmp_path / "a.h5"))
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf") as data:
        assert data.attrs["config"] == attrs["config"]
        assert len(data.data_vars) == 300


def test_large_arrays_are_compressed_and_small_ones_are_not(tmp_path):
    large, small = np.zeros(100_000), np.zeros(10)
    save(
        Result({"large": Variable(("x",), large), "small": Variable(("y",), small)}),
        tmp_path / "a.h5",
    )
    assert (tmp_path / "a.h5").stat().st_size < 50_000
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["large"].compression == "gzip"
        assert file["large"].shuffle
        assert file["small"].compression is None


def test_existing_file_is_refused_before_any_work(tmp_path, monkeypatch):
    path = tmp_path / "a.h5"
    path.write_bytes(b"precious")
    monkeypatch.setattr(h5py, "File", None)
    with pytest.raises(StoreError, match=r"a\.h5: exists already"):
        save(example(), path)
    with pytest.raises(StoreError, match="is a folder"):
        save(example(), tmp_path, overwrite=True)
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, step, error):
    path = tmp_path / "a.h5"
    save(example(), path)

    def fail(*arguments):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises((StoreError, KeyboardInterrupt)) as caught:
        save(Result({"new": Variable((), np.ones(()))}), path, overwrite=True)
    if isinstance(error, OSError):
        assert str(caught.value).startswith(f"{path}: could not be written (No space left")
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["a.h5"]
    assert_same(example(), load(path))


def run(code, *arguments):
    """Run code in a process of its own, with the store imported."""
    head = "import os, sys, numpy as np\nfrom pathlib import Path\nfrom pcsim.store import *\n"
    return subprocess.run(
        [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_disk_that_is_really_full(tmp_path):
    save(example(), tmp_path / "a.h5")
    done = run(
        """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        noise = np.random.default_rng(0).normal(size=100_000)
        try:
            save(Result({"x": Variable(("t",), noise)}), Path(sys.argv[1]), overwrite=True)
        except Exception as error:
            print(type(error).__name__, error)
        """,
        tmp_path / "a.h5",
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("StoreError ")
    assert os.listdir(tmp_path) == ["a.h5"]
    assert_same(example(), load(tmp_path / "a.h5"))


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
def test_killed_while_saving(tmp_path, moment):
    save(example(), tmp_path / "a.h5")
    patch = {
        "write": "from pcsim.store import files; files.write_new = lambda path, image: "
        "(path.write_bytes(image[:100]), os._exit(9))",
        "fsync": "os.fsync = lambda fd: os._exit(9)",
        "replace": "os.replace = lambda a, b: os._exit(9)",
    }[moment]
    code = 'save(Result({"x": Variable(("t",), np.ones(9))}), Path(sys.argv[1]), overwrite=True)'
    assert run(f"{patch}\n{code}", tmp_path / "a.h5").returncode == 9
    assert len(os.listdir(tmp_path)) == 2  # it did die in the middle
    assert_same(example(), load(tmp_path / "a.h5"))
    save(example(), tmp_path / "a.h5", overwrite=True)
    assert os.listdir(tmp_path) == ["a.h5"]  # what it left is gone


@pytest.mark.parametrize("part", [0.0, 0.001, 0.05, 0.3, 0.6, 0.9, 0.999])
def test_truncated_file(tmp_path, part):
    path = tmp_path / "a.h5"
    save(example(), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(StoreError, match=r"a\.h5: is (not an HDF5 file|damaged or cut short)"):
        load(path)


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(place=st.floats(0, 0.999), flip=st.integers(1, 255))
def test_damaged_byte_is_a_clear_error(tmp_path, place, flip):
    path = tmp_path / "a.h5"
    save(example(), path, overwrite=True)
    content = bytearray(path.read_bytes())
    content[int(len(content) * place)] ^= flip
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"a\.h5: is (not an HDF5 file|damaged or cut short)"):
        load(path)


def test_file_changed_by_another_program(tmp_path):
    path = tmp_path / "a.h5"
    save(example(), path)
    with h5py.File(path, "a") as file:
        file["energy"][0] = 7.0
    with pytest.raises(StoreError, match=r"a\.h5: is damaged .* or another program has changed it"):
        load(path)
    assert load(path, verify=False)["energy"][0, 0] == 7.0
    with h5py.File(path, "a") as file:
        file["energy"].attrs["limits"] = [0.0, 1.0]
    with pytest.raises(
        StoreError, match=r"a\.h5: does not have the layout .*energy\.attrs\.limits"
    ):
        load(path, verify=False)


def test_files_that_are_not_ours(tmp_path):
    path = tmp_path / "a.h5"
    with pytest.raises(StoreError, match=r"a\.h5: there is no such file; check the path"):
        load(path)
    with pytest.raises(StoreError, match="is not a file"):
        load(tmp_path)
    path.write_text("time,energy\n0,1\n")
    with pytest.raises(StoreError, match=r"a\.h5: is not an HDF5 file"):
        load(path)
    with h5py.File(path, "w") as file:
        file["x"] = np.ones(3)
    with pytest.raises(StoreError, match=r"a\.h5: was not written by pcsim"):
        load(path)
    with h5py.File(path, "a") as file:
        file.attrs["pcsim_format"] = FORMAT_VERSION + 1
    with pytest.raises(StoreError, match=r"a\.h5: has format 3, .* up to 2; update pcsim"):
        load(path)


def test_folders_are_created_and_the_file_is_closed(tmp_path):
    path = tmp_path / "new" / "folder" / "a.h5"
    save(example(), path)
    load(path)
    with h5py.File(path, "a") as file:  # refused while another handle reads
        assert "energy" in file
