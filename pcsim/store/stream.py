"""Recording in bounded memory along one growing axis."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.store import digest, files, hdf5
from pcsim.store.journal import Journal, is_journal
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

    The rows go to `<path>.partial`, a journal that a kill cannot spoil. When the `with` block ends
    well, they become the HDF5 file `path`. When it raises, also by Ctrl-C, `<path>.partial` becomes
    an HDF5 file with the attribute `complete = False`, for `load(path, partial=True)`, which reads
    a journal just as well.

    With `axis_dtype` each row brings its own label under the name of the axis, such as a time;
    without it the labels are 0, 1, 2, ….

    With `keep_rows` it goes on with that many rows of an earlier recording that stopped (or that
    had just been finished), and drops those behind them; see `resumed`.
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
        self._buffered = 0
        self._chunks = {name: _chunks(values) for name, values in rows.items()}
        self._columns = {name: hdf5.encode(values) for name, values in rows.items()}
        files.check_target(self._path, overwrite)
        if keep_rows:
            self._journal: Journal | None = self._go_on(empty, keep_rows)
        else:
            self._journal = self._begin(empty)

    @classmethod
    def resumed(cls, path: Path, keep_rows: int, attrs: Mapping[str, Attr]) -> Self:
        """Go on with an earlier recording of the same kind, which says itself what it records.

        `attrs` are those that it must have: a recording of something else is refused.
        """
        source = _earlier(path, keep_rows)
        if is_journal(source):
            journal = Journal(source)
            journal.close()
            empty = hdf5.described(journal)
        else:
            with hdf5.opened(source, verify=True) as (file, _):
                empty = hdf5.frame(file, source)
        if any(empty.attrs.get(name) != value for name, value in attrs.items()):
            raise StoreError(f"{source}: is the recording of another run; move it away")
        (axis,) = [n for n, labels in empty.coords.items() if len(labels) == 0]
        return cls(
            path,
            {
                name: StreamVariable(v.dims[1:], v.values.shape[1:], v.values.dtype, v.attrs)
                for name, v in empty.variables.items()
            },
            axis=axis,
            axis_dtype=empty[axis].dtype,
            coords={n: labels for n, labels in empty.coords.items() if n != axis},
            attrs={n: v for n, v in empty.attrs.items() if n != COMPLETE_ATTR},
            coord_attrs=empty.coord_attrs,
            overwrite=True,
            keep_rows=keep_rows,
        )

    def _frame(self, empty: Result) -> bytes:
        return bytes(hdf5.image(empty, growing=self._axis, chunks=self._chunks))

    def _begin(self, empty: Result) -> Journal:
        if self._partial.exists() and not self._overwrite:
            raise StoreError(
                f"{self._partial}: holds an earlier recording that stopped; "
                "move it away or allow overwriting"
            )
        with files.writing(self._partial):
            if self._overwrite:
                self._partial.unlink(missing_ok=True)
            return Journal.begin(self._partial, self._columns, self._frame(empty))

    def _go_on(self, empty: Result, keep: int) -> Journal:
        source = _earlier(self._path, keep)
        if not is_journal(source):
            self._rebuild(empty, source, keep)
        journal = Journal(self._partial)
        lengths = dict.fromkeys(journal.dtype.names or (), journal.rows)
        shapes = {n: (length, *journal.dtype[n].shape) for n, length in lengths.items()}
        try:
            self._check_columns(shapes, keep)
        except StoreError:
            journal.close()
            raise
        with files.writing(self._partial):
            journal.cut(keep)
        return journal

    def _rebuild(self, empty: Result, source: Path, keep: int) -> None:
        """Write the journal once more, from the HDF5 file that was made of it."""
        with hdf5.opened(source, verify=True) as (file, _):
            self._check_columns({name: file[name].shape for name in file}, keep)
            with files.writing(self._partial), files.temporary_for(self._partial) as temporary:
                journal = Journal.begin(temporary, self._columns, self._frame(empty))
                for first in range(0, keep, self._capacity):
                    part = slice(first, min(keep, first + self._capacity))
                    journal.append({name: file[name][part] for name in self._columns})
                journal.sync()
                journal.close()
                os.replace(temporary, self._partial)

    def _check_columns(self, shapes: Mapping[str, tuple[int, ...]], keep: int) -> None:
        for name, values in self._columns.items():
            shape = shapes.get(name)
            if shape is None or shape[1:] != values.shape[1:] or shape[0] < keep:
                here = "is not there" if shape is None else f"has shape {shape}"
                raise StoreError(
                    f"{self._partial}: cannot go on from row {keep}: {name} {here}, "
                    f"but rows of shape {values.shape[1:]} are to be recorded"
                )

    @property
    def rows(self) -> int:
        """The number of rows appended so far."""
        return (self._journal.rows if self._journal else self._closed_rows) + self._buffered

    _closed_rows = 0

    def append(self, **row: npt.ArrayLike) -> None:
        """Add one row: a value for every variable, and a label if the axis has its own."""
        self._open()
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
        """Write the rows held in memory to the journal: all of them, or none."""
        journal = self._open()
        if self._buffered:
            rows = {n: hdf5.encode(b[: self._buffered]) for n, b in self._buffers.items()}
            with files.writing(self._partial):
                journal.append(rows)
            self._buffered = 0

    def sync(self) -> None:
        """Write all rows, and wait until they are on the disk: a checkpoint relies on them."""
        self.flush()
        with files.writing(self._partial):
            self._open().sync()

    def close(self) -> None:
        """Finish the recording: turn the journal into the HDF5 file of its final name."""
        self.flush()
        final = self._path.resolve()
        try:
            files.check_target(self._path, self._overwrite)
            with files.writing(self._path), files.temporary_for(final) as temporary:
                self._convert(temporary, complete=True)
                files.publish(temporary, final, self._overwrite)
        finally:
            self._leave()
        self._partial.unlink(missing_ok=True)

    def abort(self) -> None:
        """Stop early and keep what there is: as HDF5 file if that can be written, else as it is.

        This runs while another error is on its way, so its own errors are not reported.
        """
        with contextlib.suppress(Exception):
            self.flush()
        with contextlib.suppress(Exception), files.temporary_for(self._partial) as temporary:
            self._convert(temporary, complete=False)
            os.replace(temporary, self._partial)
        self._leave()

    def _leave(self) -> None:
        if self._journal:
            self._closed_rows = self._journal.rows
            self._journal.close()
        self._journal = None

    def _convert(self, target: Path, *, complete: bool) -> None:
        """Write the HDF5 file of all rows, a part at a time."""
        journal = self._open()
        files.write_new(target, journal.frame)
        with hdf5.reopen(target) as file:
            # What a part can need at most: its rows, the unfinished chunk of each variable once
            # more, and the chunk index.
            full = sum(buffer.nbytes for buffer in self._buffers.values())
            unfinished = sum(_chunk_bytes(file[name]) for name in self._columns)
            growth = full + full // 16 + unfinished + _SLACK_BYTES
            for first in range(0, journal.rows, self._capacity):
                stop = min(journal.rows, first + self._capacity)
                block = journal.read(first, stop)
                files.reserve(target, file.id.get_filesize(), growth)
                for name in self._columns:
                    file[name].resize(stop, axis=0)
                    file[name][first:stop] = block[name]
                file.flush()
                files.release(target, file.id.get_filesize())
            file.attrs[COMPLETE_ATTR] = complete
        digest.append(target)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None and self._journal:
            self.close()
        elif kind is not None:
            self.abort()

    def _open(self) -> Journal:
        if self._journal is None:
            raise StoreError(f"{self._path}: this recording is closed; start a new one")
        return self._journal


def _earlier(path: Path, keep: int) -> Path:
    """Return the recording to go on with: one that stopped, or that had just been finished."""
    partial = files.partial_path(path)
    source = partial if partial.exists() else path
    if not source.exists():
        raise StoreError(
            f"{partial}: the {keep} rows to go on from are not there; put the recording back, "
            "or start afresh"
        )
    return source


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
