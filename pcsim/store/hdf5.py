"""The layout of a result file, and the only module that imports h5py.

Every axis is an HDF5 dimension scale of the same name which holds the labels; every variable has
its scales attached. Booleans are 8-bit integers with the attribute `dtype = "bool"`, text is
variable-length UTF-8. These are the conventions of netCDF4, so xarray opens the file as it is.
"""

import io
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.store import digest, files
from pcsim.store.journal import Journal, is_journal
from pcsim.store.model import COMPLETE_ATTR, FORMAT_ATTR, Attr, Result, Variable
from pcsim.store.probe import probe

FORMAT_VERSION = 2
"""Files of format 1 have no checksum."""
COMPRESS_ABOVE_BYTES = 64 * 1024

# The 1.8 layout has no 64 kB limit on attributes, and unlike the 1.10 one it does not mark the file
# as open for writing, so that a recording can still be read after its process was killed.
_LIBVER = ("v108", "latest")
_BOOL_MARK = {"dtype": "bool"}


def save(result: Result, path: Path, *, overwrite: bool = False) -> None:
    """Write a result in one step: afterwards the file is whole, or it is what it was before.

    Folders on the way are created. Without `overwrite` an existing file is refused.
    """
    path = Path(path)
    files.check_target(path, overwrite)
    final = path.resolve()  # through a link, the file it leads to is written
    files.remove_leftovers(final)
    with files.writing(path), files.temporary_for(final) as temporary:
        files.write_new(temporary, image(result))
        files.publish(temporary, final, overwrite)


class UnverifiedWarning(UserWarning):
    """A file has no checksum that could tell whether it is what was written."""


def load(path: Path, *, partial: bool = False, verify: bool = True) -> Result:
    """Read a whole file into memory and close it.

    The bytes are compared with the checksum first; without `verify`, also a file that another
    program has changed is read.

    With `partial` a recording that stopped early is welcome: `<path>.partial` is read if it exists,
    otherwise `path`. Its attribute `complete` is then False, and its axes end where the shortest
    variable ends.
    """
    path = Path(path)
    leftover = files.partial_path(path)
    if partial and leftover.exists():
        path = leftover
    if not path.exists():
        hint = "check the path"
        if leftover.exists():
            hint = f"an unfinished recording is in {leftover.name}, load it with partial=True"
        raise StoreError(f"{path}: there is no such file; {hint}")
    if not path.is_file():
        raise StoreError(f"{path}: is not a file; give the path of a result file")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path}: may not be read; change its permissions")
    if is_journal(path):
        return _read_journal(path, partial)
    if not h5py.is_hdf5(path):
        raise StoreError(
            f"{path}: is not an HDF5 file, or lost its beginning; give a file written by pcsim"
        )
    with opened(path, verify) as (file, verified):
        return _read(file, path, partial, verified or not verify)


def attributes(path: Path) -> dict[str, Attr]:
    """Return the attributes of a result file, without its arrays."""
    with opened(path, verify=True) as (file, _):
        return _read_attrs(file)


@contextmanager
def opened(path: Path, verify: bool) -> Iterator[tuple[Any, bool]]:
    """Open a file that is what was written, or that HDF5 has survived; say which of them."""
    verified = verify and digest.check(path)
    if not verified:
        probe(path)
    try:
        with h5py.File(path, "r") as file:
            yield file, verified
    except BlockingIOError as error:
        raise StoreError(
            f"{path}: is being written by another process; wait until it is finished"
        ) from error
    # A damaged file can fail anywhere in h5py, with any of these.
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise StoreError(
            f"{path}: is damaged or cut short ({files.reason(error)}); restore a copy or run again"
        ) from error


def image(
    result: Result,
    *,
    growing: str | None = None,
    chunks: Mapping[str, tuple[int, ...] | bool] | None = None,
) -> memoryview:
    """Return the bytes of a result file; the axis `growing` is unlimited, stored in `chunks`.

    The checksum is at the end; a file that is going to grow gets it when it is finished.
    Made in memory, because HDF5 does not survive a disk that fills up while it writes.
    """
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=_LIBVER) as file:
        _write(file, result, growing, chunks or {})
    if growing is None:
        checksum = digest.line(buffer.getbuffer())
        buffer.seek(0, io.SEEK_END)
        buffer.write(checksum)
    return buffer.getbuffer()


def reopen(path: Path) -> Any:
    """Open a file of ours for more writing."""
    return h5py.File(path, "r+", libver=_LIBVER)


def _write(
    file: Any,
    result: Result,
    growing: str | None,
    chunks: Mapping[str, tuple[int, ...] | bool],
) -> None:
    file.attrs[FORMAT_ATTR] = FORMAT_VERSION
    _write_attrs(file, {COMPLETE_ATTR: True, **result.attrs})
    for dim, labels in result.coords.items():
        axis = Variable((dim,), labels, result.coord_attrs.get(dim, {}))
        _write_array(file, dim, axis, growing, chunks.get(dim)).make_scale(dim)
    for name, variable in result.variables.items():
        dataset = _write_array(file, name, variable, growing, chunks.get(name))
        for axis_number, dim in enumerate(variable.dims):
            dataset.dims[axis_number].attach_scale(file[dim])


def encode(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what is stored for these values: 0 and 1 for booleans, objects for text."""
    if values.dtype.kind == "b":
        return values.astype(np.int8)
    if values.dtype.kind == "U":
        return values.astype(object)
    return values


def _write_array(
    file: Any,
    name: str,
    variable: Variable,
    growing: str | None,
    chunks: tuple[int, ...] | bool | None,
) -> Any:
    data = encode(variable.values)
    is_text = variable.values.dtype.kind == "U"
    options: dict[str, Any] = {"dtype": h5py.string_dtype("utf-8") if is_text else data.dtype}
    if growing in variable.dims:
        options["maxshape"] = tuple(
            None if d == growing else n for d, n in zip(variable.dims, data.shape, strict=True)
        )
        options["chunks"] = chunks
    # Variable-length text lives outside the compressed chunks, so compression would gain nothing.
    if variable.dims and not is_text and (chunks or data.nbytes > COMPRESS_ABOVE_BYTES):
        options |= {"compression": "gzip", "compression_opts": 1, "shuffle": True}
    dataset = file.create_dataset(name, shape=data.shape, data=data, **options)
    _write_attrs(dataset, variable.attrs)
    if variable.values.dtype.kind == "b":
        _write_attrs(dataset, _BOOL_MARK)
    return dataset


def _write_attrs(owner: Any, attrs: Mapping[str, Attr]) -> None:
    for name, value in attrs.items():
        owner.attrs[name] = value


def _read(file: Any, path: Path, partial: bool, verified: bool) -> Result:
    version = file.attrs.get(FORMAT_ATTR)
    if version is None:
        raise StoreError(f"{path}: was not written by pcsim; give a file written by pcsim")
    if int(version) > FORMAT_VERSION:
        raise StoreError(
            f"{path}: has format {int(version)}, but this pcsim reads up to {FORMAT_VERSION}; "
            "update pcsim"
        )
    attrs = _read_attrs(file)
    whole = bool(attrs.get(COMPLETE_ATTR, True))
    if not (whole or partial):
        raise _stopped_early(path)
    if whole:
        attrs.pop(COMPLETE_ATTR, None)
        if not verified and int(version) > 1:
            raise StoreError(
                f"{path}: is damaged or cut short, or another program has changed it (its "
                "checksum is gone); restore a copy, or load it with verify=False"
            )
        if not verified:
            warnings.warn(
                f"{path}: was written without a checksum, so that damage would not show",
                UnverifiedWarning,
                stacklevel=4,
            )
    variables: dict[str, Variable] = {}
    axes: dict[str, Variable] = {}
    for name, dataset in file.items():
        if not isinstance(dataset, h5py.Dataset):
            continue
        is_axis = bool(h5py.h5ds.is_scale(dataset.id))
        dims = (name,) if is_axis else tuple(_axis_name(dim) for dim in dataset.dims)
        (axes if is_axis else variables)[name] = Variable(
            dims, _read_values(dataset), _read_attrs(dataset)
        )
    if not whole:
        variables, axes = _trim(variables, axes)
    try:
        return Result(
            variables,
            {name: axis.values for name, axis in axes.items()},
            attrs,
            {name: axis.attrs for name, axis in axes.items()},
        )
    except StoreError as error:
        raise StoreError(
            f"{path}: does not have the layout of pcsim any more ({error}); "
            "restore a copy or run again"
        ) from error


def _stopped_early(path: Path) -> StoreError:
    return StoreError(
        f"{path}: is a recording that stopped early; load what there is with partial=True"
    )


def _read_journal(path: Path, partial: bool) -> Result:
    """Return a recording whose process was killed: its frame, with the rows that there are."""
    if not partial:
        raise _stopped_early(path)
    journal = Journal(path)
    try:
        empty, rows = described(journal), journal.read(0, journal.rows)
    finally:
        journal.close()

    def filled(name: str, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return rows[name].astype(values.dtype) if name in (rows.dtype.names or ()) else values

    return Result(
        {n: Variable(v.dims, filled(n, v.values), v.attrs) for n, v in empty.variables.items()},
        {n: filled(n, labels) for n, labels in empty.coords.items()},
        empty.attrs,
        empty.coord_attrs,
    )


def described(journal: Journal) -> Result:
    """Return what a journal records, without its rows."""
    try:
        with h5py.File(io.BytesIO(journal.frame), "r") as file:
            return _read(file, journal.path, partial=True, verified=True)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        raise StoreError(
            f"{journal.path}: is damaged ({files.reason(error)}); run again"
        ) from error


def frame(file: Any, path: Path) -> Result:
    """Return what an open recording records, without its rows."""
    growing = [n for n, d in file.items() if h5py.h5ds.is_scale(d.id) and d.maxshape == (None,)]
    if len(growing) != 1:
        raise StoreError(f"{path}: is not a recording; give a file written by pcsim")
    axes: dict[str, Variable] = {}
    variables: dict[str, Variable] = {}
    for name, dataset in file.items():
        is_axis = bool(h5py.h5ds.is_scale(dataset.id))
        dims = (name,) if is_axis else tuple(_axis_name(dim) for dim in dataset.dims)
        rows = np.empty((0, *dataset.shape[1:]), _dtype(dataset))
        values = rows if growing[0] in dims else _read_values(dataset)
        (axes if is_axis else variables)[name] = Variable(dims, values, _read_attrs(dataset))
    labels = {name: axis.values for name, axis in axes.items()}
    about = {name: axis.attrs for name, axis in axes.items()}
    return Result(variables, labels, _read_attrs(file), about)


def _dtype(dataset: Any) -> Any:
    return np.bool_ if dataset.attrs.get("dtype") == "bool" else dataset.dtype


def _axis_name(dim: Any) -> str:
    return str(dim[0].name).rsplit("/", 1)[-1]


def _read_values(dataset: Any) -> npt.NDArray[Any]:
    if h5py.check_string_dtype(dataset.dtype) is not None:
        return np.asarray(dataset.asstr()[()], dtype=np.str_)
    values = np.asarray(dataset[()])
    if dataset.attrs.get("dtype") == "bool":
        return values.astype(np.bool_)
    return values


def _read_attrs(owner: Any) -> dict[str, Attr]:
    """Return the attributes that a user gave, without those of the file format."""
    hidden = {FORMAT_ATTR, "dtype", "CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST"}
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in owner.attrs.items()
        if name not in hidden
    }


def _trim(*groups: dict[str, Variable]) -> tuple[dict[str, Variable], ...]:
    """Cut every axis to its shortest length: a killed process may leave variables uneven."""
    shortest: dict[str, int] = {}
    for variable in (v for group in groups for v in group.values()):
        for dim, length in zip(variable.dims, variable.values.shape, strict=True):
            shortest[dim] = min(length, shortest.get(dim, length))
    return tuple(
        {
            n: Variable(v.dims, v.values[tuple(slice(shortest[d]) for d in v.dims)], v.attrs)
            for n, v in group.items()
        }
        for group in groups
    )
