"""Recording in bounded memory along one growing axis."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.store import digest, files, hdf5
from pcsim.store.model import COMPLETE_ATTR, Attr, Result, Variable

_CHUNK_BYTES = 256 * 1024
_MAX_BUFFER_ROWS = 4096
_SLACK_BYTES = 64 * 1024


@dataclass(frozen=True)
class StreamVariable:
    """What one row of a recorded variable looks like; the growing axis comes before `dims`."""

    dims: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    dtype: npt.DTypeLike = "float64"
    attrs: Mapping[str, Attr] = field(default_factory=dict)


class StreamWriter:
    """Write rows to a file as they come, never holding more than about `buffer_bytes` of them.

    The rows go to `<path>.partial`, which takes its final name when the `with` block ends well.
    When the block raises, also by Ctrl-C, the rows written so far stay in `<path>.partial` with the
    attribute `complete = False`, for `load(path, partial=True)`.

    With `axis_dtype` each row brings its own label under the name of the axis, such as a time;
    without it the labels are 0, 1, 2, ….

    With `keep_rows` it goes on with that many rows of an earlier recording that stopped, and drops
    those behind them.
    """

    def __init__(
        self,
        path: Path,
        variables: Mapping[str, StreamVariable],
        *,
        axis: str = "time",
        axis_dtype: npt.DTypeLike | None = None,
        coords: Mapping[str, npt.NDArray[Any]] | None = None,
        attrs: Mapping[str, Attr] | None = None,
        coord_attrs: Mapping[str, Mapping[str, Attr]] | None = None,
        overwrite: bool = False,
        keep_rows: int = 0,
        buffer_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        self._path, self._overwrite, self._axis = Path(path), overwrite, axis
        self._partial = files.partial_path(self._path)
        self._counts_rows = axis_dtype is None
        if coords is not None and axis in coords:
            raise StoreError(f"coords.{axis}: the labels of the growing axis come with the rows")
        empty = Result(
            {name: _empty(name, spec, axis) for name, spec in variables.items()},
            {
                **(coords or {}),
                axis: np.empty(0, np.int64 if axis_dtype is None else axis_dtype),
            },
            {**(attrs or {}), COMPLETE_ATTR: False},
            coord_attrs or {},
        )
        rows = {name: v.values for name, v in empty.variables.items()} | {axis: empty[axis]}
        for name, values in rows.items():
            if values.dtype.kind == "U":
                raise StoreError(f"{name}: text cannot be recorded row by row")
        row_bytes = sum(_row_bytes(values) for values in rows.values())
        self._capacity = int(np.clip(buffer_bytes // row_bytes, 1, _MAX_BUFFER_ROWS))
        self._buffers = {
            name: np.empty((self._capacity, *values.shape[1:]), values.dtype)
            for name, values in rows.items()
        }
        self._written = 0
        self._buffered = 0
        files.check_target(self._path, overwrite)
        self._file: Any
        if keep_rows:
            self._go_on(rows, keep_rows)
        else:
            self._begin(empty, {name: _chunks(values) for name, values in rows.items()})
        # What one flush can need at most: the rows, the unfinished chunk of each variable once
        # more, and the chunk index.
        unfinished = sum(_chunk_bytes(self._file[name]) for name in rows)
        full = sum(buffer.nbytes for buffer in self._buffers.values())
        self._growth = full + full // 16 + unfinished + _SLACK_BYTES

    def _begin(self, empty: Result, chunks: Mapping[str, tuple[int, ...] | bool]) -> None:
        if self._partial.exists() and not self._overwrite:
            raise StoreError(
                f"{self._partial}: holds an earlier recording that stopped; "
                "move it away or allow overwriting"
            )
        with files.writing(self._partial):
            image = hdf5.image(empty, growing=self._axis, chunks=chunks)
            if self._overwrite:
                self._partial.unlink(missing_ok=True)
            files.write_new(self._partial, image)
            self._file = hdf5.reopen(self._partial)

    def _go_on(self, rows: Mapping[str, npt.NDArray[Any]], keep: int) -> None:
        if not self._partial.exists():
            raise StoreError(f"{self._partial}: the {keep} rows to go on from are not there")
        with files.writing(self._partial):
            self._file = hdf5.reopen(self._partial)
            for name, values in rows.items():
                found = self._file.get(name)
                if found is None or found.shape[1:] != values.shape[1:] or len(found) < keep:
                    here = "is not there" if found is None else f"has shape {found.shape}"
                    self._file.close()
                    raise StoreError(
                        f"{self._partial}: cannot go on from row {keep}: {name} {here}, "
                        f"but rows of shape {values.shape[1:]} are to be recorded"
                    )
            for name in rows:
                self._file[name].resize(keep, axis=0)
        self._written = keep

    @property
    def rows(self) -> int:
        """The number of rows appended so far."""
        return self._written + self._buffered

    def append(self, **row: npt.ArrayLike) -> None:
        """Add one row: a value for every variable, and a label if the axis has its own."""
        self._check_open()
        if self._counts_rows and self._axis not in row:
            row[self._axis] = self.rows
        elif self._counts_rows:
            raise StoreError(f"append.{self._axis}: this axis counts rows; set axis_dtype")
        if row.keys() != self._buffers.keys():
            raise StoreError(f"append: needs {sorted(self._buffers)}, got {sorted(row)}")
        # Every value is checked before any is stored, so that a refused row leaves no trace.
        fitted = {
            name: _fit(name, value, self._buffers[name].dtype, self._buffers[name].shape[1:])
            for name, value in row.items()
        }
        for name, values in fitted.items():
            self._buffers[name][self._buffered] = values
        self._buffered += 1
        if self._buffered == self._capacity:
            self.flush()

    def flush(self) -> None:
        """Write the rows held in memory to the partial file.

        The counters move last: after an interruption the same rows are simply written again.
        """
        self._check_open()
        if not self._buffered:
            return
        total = self.rows
        with files.writing(self._partial):
            files.reserve(self._partial, self._file.id.get_filesize(), self._growth)
            for name, buffer in self._buffers.items():
                dataset = self._file[name]
                dataset.resize(total, axis=0)
                dataset[self._written : total] = hdf5.encode(buffer[: self._buffered])
            self._file.flush()
            files.release(self._partial, self._file.id.get_filesize())
        self._written, self._buffered = total, 0

    def close(self) -> None:
        """Finish the recording and give the file its final name."""
        self.flush()
        with files.writing(self._partial):
            self._file.attrs[COMPLETE_ATTR] = True
            self._file.close()
            digest.append(self._partial)
            files.publish(self._partial, self._path, self._overwrite)

    def abort(self) -> None:
        """Stop early and keep what there is in the partial file.

        This runs while another error is on its way, so its own errors are not reported.
        """
        with contextlib.suppress(Exception):
            self.flush()
        with contextlib.suppress(Exception):
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._file:
            self.close()
        elif kind is not None:
            self.abort()

    def _check_open(self) -> None:
        if not self._file:
            raise StoreError(f"{self._path}: this recording is closed; start a new one")


def _empty(name: str, spec: StreamVariable, axis: str) -> Variable:
    if any(length < 1 for length in spec.shape):
        raise StoreError(f"variables.{name}: a row of shape {spec.shape} has no elements")
    return Variable((axis, *spec.dims), np.empty((0, *spec.shape), spec.dtype), spec.attrs)


def _row_bytes(values: npt.NDArray[Any]) -> int:
    return int(np.prod(values.shape[1:], dtype=np.int64)) * values.dtype.itemsize


def _chunks(values: npt.NDArray[Any]) -> tuple[int, ...] | bool:
    """Return chunks of whole rows, or True to let HDF5 also divide rows that are large."""
    rows = _CHUNK_BYTES // _row_bytes(values)
    return (min(rows, _MAX_BUFFER_ROWS), *values.shape[1:]) if rows else True


def _chunk_bytes(dataset: Any) -> int:
    return int(np.prod(dataset.chunks, dtype=np.int64)) * int(dataset.dtype.itemsize)


def _fit(
    name: str, value: npt.ArrayLike, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Return the value with the recorded type, or refuse if that would change it in kind."""
    values = np.asarray(value)
    if values.shape != shape:
        raise StoreError(f"append.{name}: must have shape {shape}, got {values.shape}")
    both_whole = values.dtype.kind in "iu" and dtype.kind in "iu"
    if not both_whole and not np.can_cast(values.dtype, dtype, "same_kind"):
        raise StoreError(f"append.{name}: {values.dtype} does not fit the recorded {dtype}")
    fitted = values.astype(dtype)
    if both_whole and not np.array_equal(fitted, values):
        raise StoreError(f"append.{name}: a value is out of the range of the recorded {dtype}")
    return fitted
