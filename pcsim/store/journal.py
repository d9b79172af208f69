"""Rows on the disk that survive a kill at any moment: appended one behind the other, never changed.

    "pcsim rows 1\\n"   8 bytes: length of the columns   8 bytes: length of the frame
    columns as JSON     frame     row   row   row   …     (what is left of a last row is ignored)

HDF5 cannot promise that: a process that dies while it writes may leave a file that nobody can open.
The frame is the HDF5 file that the rows will be put into, still without rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.store import files

_MAGIC = b"pcsim rows 1\n"
_LENGTHS = 16


def is_journal(path: Path) -> bool:
    """Whether a file holds rows in this form."""
    with open(path, "rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


class Journal:
    """A file of rows, open for reading and for more of them."""

    def __init__(self, path: Path) -> None:
        """Open a file that `begin` has written."""
        self.path = path
        try:
            self._file = open(path, "r+b", buffering=0)  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened ({files.reason(error)})") from error
        try:
            head = self._file.read(len(_MAGIC) + _LENGTHS)
            sizes = [int(n) for n in np.frombuffer(head[len(_MAGIC) :], "<u8")]
            self._start = len(head) + sum(sizes)
            columns = json.loads(self._file.read(sizes[0]))
            self.dtype = np.dtype([(name, kind, tuple(shape)) for name, kind, shape in columns])
            self.frame = self._file.read(sizes[1])
            whole = head.startswith(_MAGIC) and len(self.frame) == sizes[1]
        except (OSError, ValueError, TypeError, IndexError, MemoryError, OverflowError):
            whole = False
        if not whole:
            self._file.close()
            raise StoreError(f"{path}: is damaged or cut short at its beginning; run again")
        size = os.fstat(self._file.fileno()).st_size
        self.rows = max(0, size - self._start) // self.dtype.itemsize

    @classmethod
    def begin(cls, path: Path, columns: Mapping[str, npt.NDArray[Any]], frame: bytes) -> Self:
        """Write a file without rows; each column is like an array of them."""
        names = [(name, like.dtype.str, like.shape[1:]) for name, like in columns.items()]
        text = json.dumps(names).encode()
        lengths = np.array([len(text), len(frame)], "<u8").tobytes()
        files.write_new(path, _MAGIC + lengths + text + frame)
        return cls(path)

    def append(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Write rows behind the last one, or none of them."""
        block = np.empty(len(next(iter(columns.values()))), self.dtype)
        for name, values in columns.items():
            block[name] = values
        end = self._start + self.rows * self.dtype.itemsize
        left = memoryview(block.tobytes())
        try:
            self._file.seek(end)
            while left:
                left = left[self._file.write(left) :]
        except BaseException:
            os.ftruncate(self._file.fileno(), end)
            raise
        self.rows += len(block)

    def read(self, first: int, stop: int) -> npt.NDArray[Any]:
        """Return rows as one array with a field for each column."""
        try:
            offset = self._start + first * self.dtype.itemsize
            return np.fromfile(self.path, self.dtype, stop - first, offset=offset)
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.path}: rows {first} to {stop} cannot be read ({files.reason(error)})"
            ) from error

    def cut(self, rows: int) -> None:
        """Drop all rows but the first ones."""
        os.ftruncate(self._file.fileno(), self._start + rows * self.dtype.itemsize)
        self.rows = rows

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()
