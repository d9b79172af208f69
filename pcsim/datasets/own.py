"""Data of one's own: a file `.npz` or `.csv`, or arrays from Python. No pickle is ever read.

A file `.npz` has the arrays

    x_train (sample, …), y_train (sample,), x_test, y_test      features and classes 0, 1, …
    x, y                                                        or both, not divided yet

and a file `.csv` has one line of names, then one sample per line: the column `label` is the class,
the column `split` (optional) says `train` or `test`, and all others are features, in their order.
Data that are not divided are divided here: a fifth of the samples, drawn once and for all, are test
samples. Without labels (y), data can be modelled (generative), but not classified.

A result says by a checksum which arrays made it: of their values, whichever way they came.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from pcsim.errors import DataError

if TYPE_CHECKING:
    from pcsim.datasets import Dataset

ARRAYS = "arrays"
"""The name of data that came as arrays from Python."""
SUFFIXES = (".npz", ".csv")
FIFTH = 5
Array = npt.NDArray[Any]
Parts = dict[str, Array]
_held: WeakValueDictionary[str, Dataset] = WeakValueDictionary()
"""Arrays from Python by their checksum, for as long as someone else holds them."""


def is_own(name: str) -> bool:
    """Whether a name is that of own data."""
    return name == ARRAYS or name.endswith(SUFFIXES)


def from_arrays(
    x: Any, y: Any = None, x_test: Any = None, y_test: Any = None
) -> tuple[Dataset, str]:
    """Return own data from arrays with its checksum, by which a configuration names it."""
    given = {"y": y, "x_test": x_test, "y_test": y_test}
    arrays = {"x": np.asarray(x)}
    arrays |= {name: np.asarray(value) for name, value in given.items() if value is not None}
    if x_test is not None:
        arrays["x_train"] = arrays.pop("x")
    if x_test is not None and "y" in arrays:
        arrays["y_train"] = arrays.pop("y")
    data = _dataset(ARRAYS, arrays)
    digest = checksum(data)
    return _held.setdefault(digest, data), digest


def checksum(data: Dataset) -> str:
    """Return the sha256 of shapes and values."""
    total = sha256()
    for array in (data.x_train, data.y_train, data.x_test, data.y_test):
        total.update(repr(array.shape).encode())
        total.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return total.hexdigest()


def checksum_of_file(name: str) -> str:
    """Read a file, and return the checksum of what it holds."""
    return _read(*_version(name))[1]


def load(name: str, digest: str | None) -> Dataset:
    """Return own data; with a checksum, only what has it."""
    if name == ARRAYS:
        held = _held.get(digest or "")
        if held is None:
            raise DataError(
                "data.name: the arrays of this run are not in this process; give them again by "
                "Stream.from_arrays, or save them as a file .npz and name that"
            )
        return held
    data, found = _read(*_version(name))
    if digest is not None and digest != found:
        raise DataError(
            f"data.name: {name} holds other values than those of data.sha256 = {digest!r} (now "
            f"{found!r}); leave data.sha256 out to use it as it is"
        )
    return data


def _version(name: str) -> tuple[str, int, int]:
    try:
        status = Path(name).stat()
    except OSError as error:
        raise DataError(f"data.name: {name}: cannot be read ({error.strerror})") from None
    return name, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=8)
def _read(name: str, changed: int, size: int) -> tuple[Dataset, str]:
    """Read a file once, as long as it does not change."""
    arrays = _read_npz(name) if name.endswith(".npz") else _read_csv(name)
    data = _dataset(name, arrays)
    return data, checksum(data)


def _read_npz(name: str) -> Parts:
    try:
        with np.load(name, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(
            f"data.name: {name}: is no file .npz of plain arrays ({error}); write it with "
            f"numpy.savez(file, x=x, y=y)"
        ) from None


def _read_csv(name: str) -> Parts:
    try:
        with Path(name).open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file)
            header = [column.strip() for column in next(lines, [])]
            rows = [(lines.line_num, line) for line in lines if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"data.name: {name}: cannot be read as CSV ({error})") from None
    _check_header(name, header)
    for number, line in rows:
        if len(line) != len(header):
            raise DataError(
                f"data.name: {name}, line {number}: has {len(line)} values for {len(header)} names"
            )
    columns = {column: [line[k] for _, line in rows] for k, column in enumerate(header)}
    split = columns.pop("split", None)
    numbers = [number for number, _ in rows]
    values = {c: _numbers(name, c, column, numbers) for c, column in columns.items()}
    labels = {"y": values.pop("label")} if "label" in values else {}
    arrays = {"x": np.stack(list(values.values()), 1), **labels}
    return arrays if split is None else _divided(name, arrays, split, numbers)


def _check_header(name: str, header: list[str]) -> None:
    doubled = sorted({column for column in header if header.count(column) > 1})
    features = [column for column in header if column not in ("label", "split")]
    if doubled or not features or "" in header:
        what = f"the name {doubled[0]!r} stands twice" if doubled else "no names of features"
        raise DataError(
            f"data.name: {name}: {what} in its first line; that names every column: features, "
            f"'label' (the class 0, 1, …) and, if wanted, 'split' (train or test)"
        )


def _numbers(name: str, column: str, texts: list[str], lines: list[int]) -> Array:
    try:
        return np.asarray([float(text) for text in texts])
    except ValueError:
        for line, text in zip(lines, texts, strict=True):
            try:
                float(text)
            except ValueError:
                raise DataError(
                    f"data.name: {name}, line {line}: {column} must be a number, got {text!r}"
                ) from None
        raise


def _divided(name: str, arrays: Parts, split: list[str], lines: list[int]) -> Parts:
    for line, text in zip(lines, split, strict=True):
        if text.strip() not in ("train", "test"):
            raise DataError(
                f"data.name: {name}, line {line}: split must be train or test, got {text!r}"
            )
    test = np.asarray([text.strip() == "test" for text in split])
    return {
        f"{key}_{part}": values[test if part == "test" else ~test]
        for key, values in arrays.items()
        for part in ("train", "test")
    }


def _dataset(name: str, arrays: Mapping[str, Array]) -> Dataset:
    """Check arrays, divide them if they are not, and return them as a data set."""
    from pcsim.datasets import Dataset

    where = "Stream.from_arrays" if name == ARRAYS else f"data.name: {name}"
    wanted = ("x_train", "y_train", "x_test", "y_test")
    known = {key: values for key, values in arrays.items() if key in (*wanted, "x", "y")}
    if "x" not in known and not {"x_train", "x_test"} <= known.keys():
        raise DataError(
            f"{where}: has the arrays {', '.join(arrays) or 'none'}; needed are x (and y for "
            f"labels), or x_train and x_test (and y_train, y_test)"
        )
    if "x" in known and known.keys() - {"x", "y"}:
        raise DataError(f"{where}: has x as well as {', '.join(known.keys() - {'x', 'y'})}")
    if ("y_train" in known) != ("y_test" in known):
        raise DataError(f"{where}: has labels for one of x_train and x_test only")
    checked = {key: _checked(where, key, values) for key, values in known.items()}
    parts = _split(where, checked) if "x" in checked else checked
    for part in ("train", "test"):
        x, y = parts[f"x_{part}"], parts.get(f"y_{part}")
        if len(x) == 0:
            raise DataError(f"{where}: x_{part} has no samples")
        if y is not None and len(x) != len(y):
            raise DataError(f"{where}: x_{part} has {len(x)} samples, but y_{part} {len(y)} labels")
    shapes = [parts[key].shape[1:] for key in ("x_train", "x_test")]
    if shapes[0] != shapes[1]:
        raise DataError(f"{where}: samples of x_train are {shapes[0]}, those of x_test {shapes[1]}")
    labelled = "y_train" in parts
    blank = {f"y_{part}": np.zeros(len(parts[f"x_{part}"]), np.int64) for part in ("train", "test")}
    parts = {**blank, **parts}
    largest = max(int(parts["y_train"].max()), int(parts["y_test"].max()))
    classes = largest + 1 if labelled else 0
    one = ", in memory" if name == ARRAYS else ""
    x_train, y_train, x_test, y_test = (parts[key] for key in wanted)
    origin: dict[str, str] = {}
    data = Dataset(name, x_train, y_train, x_test, y_test, classes, origin, shapes[0])
    origin[name] = f"own{one}, sha256:{checksum(data)}"
    return data


def _split(where: str, whole: Parts) -> Parts:
    """Draw a fifth of the samples for the test, always the same of as many."""
    count = len(whole["x"])
    if count < FIFTH:
        raise DataError(f"{where}: x has {count} samples, too few to keep a fifth for the test")
    if "y" in whole and len(whole["y"]) != count:
        raise DataError(f"{where}: x has {count} samples, but y {len(whole['y'])} labels")
    test = np.zeros(count, bool)
    test[np.random.default_rng(0).permutation(count)[: count // FIFTH]] = True
    return {
        f"{key}_{part}": values[test if part == "test" else ~test]
        for key, values in whole.items()
        for part in ("train", "test")
    }


def _checked(where: str, name: str, values: Array) -> Array:
    """Return features as float64 (sample, …), or labels as int64 (sample,)."""
    here = f"{where}: {name}"
    if values.dtype.kind not in "biuf":
        raise DataError(f"{here}: must be numbers, got values of type {values.dtype}")
    labels = name.startswith("y")
    if labels and values.ndim != 1:
        raise DataError(f"{here}: must be (sample,), one class each; got shape {values.shape}")
    if not labels and values.ndim < 2:
        raise DataError(f"{here}: must be (sample, feature) or more; got shape {values.shape}")
    wrong = ~np.isfinite(values).all(axis=tuple(range(1, values.ndim)))
    if wrong.any():
        raise DataError(
            f"{here}: is not a finite number in {wrong.sum()} of {len(values)} samples, first in "
            f"sample {int(wrong.argmax())}"
        )
    if labels:
        whole = (values == np.floor(values)) & (values >= 0)
        if not whole.all():
            first = int((~whole).argmax())
            raise DataError(f"{here}: classes are 0, 1, 2 …; sample {first} has {values[first]:g}")
        return values.astype(np.int64)
    return values.astype(np.float64)
