"""Tables in foreign HDF5 files: the arrays at the root, and the attributes of the root."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.store import digest, files
from pcsim.store.model import FORMAT_ATTR
from pcsim.store.probe import probe


def is_result(path: Path) -> bool:
    """Whether an HDF5 file was written by pcsim."""
    if not path.is_file() or not h5py.is_hdf5(path):
        return False
    if digest.check(path):
        return True
    probe(path)
    try:
        with h5py.File(path, "r") as file:
            return FORMAT_ATTR in file.attrs
    except (OSError, RuntimeError) as error:
        raise StoreError(f"{path}: cannot be read ({files.reason(error)})") from error


def read_columns(path: Path) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return arrays and attributes by name; what is in groups is left aside."""
    if not path.is_file() or not h5py.is_hdf5(path):
        raise StoreError(f"{path}: is not an HDF5 file")
    probe(path)
    try:
        with h5py.File(path, "r") as file:
            arrays = {n: np.asarray(d[()]) for n, d in file.items() if isinstance(d, h5py.Dataset)}
            attrs = {name: _plain(value) for name, value in file.attrs.items()}
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read ({files.reason(error)})") from error
    return arrays, attrs


def _plain(value: Any) -> Any:
    """Return numbers, text and lists of them as Python's own."""
    if isinstance(value, np.ndarray):
        return [_plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
