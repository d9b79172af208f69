"""What a result is: arrays with named axes, the labels of those axes, and attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from pcsim.errors import StoreError
from pcsim.rows import Rows

if TYPE_CHECKING:
    import pandas
    import xarray

Attr = str | int | float

# The root attribute which says that pcsim wrote the file, and with which layout.
FORMAT_ATTR = "pcsim_format"
# False in a recording that stopped early. Absent from `Result.attrs` when the file is whole.
COMPLETE_ATTR = "complete"

_NAME = re.compile(r"[^\W\d_][\w.+@-]*")
# HDF5 uses the first five for its dimension scales; readers of netCDF conventions act on the rest
# (scaling, masking, recasting), so a value under such a name would change the data.
_RESERVED_ATTRS = frozenset(
    [
        "CLASS",
        "NAME",
        "REFERENCE_LIST",
        "DIMENSION_LIST",
        "DIMENSION_LABELS",
        "missing_value",
        "scale_factor",
        "add_offset",
        "dtype",
        "coordinates",
        "calendar",
    ]
) | {FORMAT_ATTR}
# With these units, and with "… since <date>", xarray may turn plain numbers into dates.
_CALENDAR_UNITS = frozenset(
    ["days", "hours", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"]
)


@dataclass(frozen=True, eq=False)
class Variable:
    """An array with one name per axis.

    Values may be booleans, integers, floats, complex numbers or text.
    """

    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    """Such as `units` ("s", "V", "J") and `long_name`."""


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Variables on shared, labelled axes, with the attributes needed to make them again.

    Each axis has one length in the whole result. An axis without labels gets 0, 1, …, n−1. Text is
    held as NumPy unicode arrays, whatever kind of string array came in; numbers are held in the
    byte order of the machine.
    """

    variables: Mapping[str, Variable]
    coords: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """The labels of each axis, one-dimensional, under the name of the axis."""
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    """Of the whole: configuration text, seed, versions, commit, command line."""
    coord_attrs: Mapping[str, Mapping[str, Attr]] = field(default_factory=dict)
    """Of the axes, such as `units`, under the name of the axis."""

    def __post_init__(self) -> None:
        coords = {name: _clean_values(f"coords.{name}", v) for name, v in self.coords.items()}
        for name, labels in coords.items():
            _check_name(f"coords.{name}", name)
            if labels.ndim != 1:
                raise StoreError(f"coords.{name}: must have one axis, got {labels.ndim}")
        lengths = {name: (len(labels), f"coords.{name}") for name, labels in coords.items()}
        variables = {n: _clean_variable(n, v, lengths) for n, v in self.variables.items()}
        for dim, (length, _) in lengths.items():
            if dim in variables:
                raise StoreError(f"variables.{dim}: is also the name of an axis; rename one")
            coords.setdefault(dim, np.arange(length))
        for name in self.coord_attrs:
            if name not in coords:
                raise StoreError(f"coord_attrs.{name}: there is no such axis")
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "coords", coords)
        object.__setattr__(self, "attrs", _clean_attrs("attrs", self.attrs))
        object.__setattr__(
            self,
            "coord_attrs",
            {n: _clean_attrs(f"coord_attrs.{n}", a) for n, a in self.coord_attrs.items() if a},
        )

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the values of a variable, or the labels of an axis."""
        if name in self.variables:
            return self.variables[name].values
        if name in self.coords:
            return self.coords[name]
        known = ", ".join([*self.variables, *self.coords])
        raise StoreError(f"{name}: no such variable or axis in this result, which has: {known}")

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return a result as one of this class."""
        return cls(result.variables, result.coords, result.attrs, result.coord_attrs)

    def to_xarray(self) -> xarray.Dataset:
        """Return all variables with their axes, labels, units and attributes."""
        from pcsim.store.frames import dataset

        return dataset(self)

    def to_pandas(self, *names: str) -> pandas.DataFrame:
        """Return variables as columns, one line for every element of the axes they have.

        Without names: all variables on the axes of `accuracy` (else of the first variable), that
        is one line for each replica. Variables with fewer axes are repeated along the others.
        """
        from pcsim.store.frames import frame

        return frame(self, names)

    def __repr__(self) -> str:
        """Return axes, accuracy and names, not the numbers."""
        axes = ", ".join(f"{name} {len(labels)}" for name, labels in self.coords.items())
        words = ""
        if "accuracy" in self.variables:
            median = np.nanmedian(self["accuracy"].astype(float))
            words = f"; test accuracy {100 * float(median):.1f} % (median)"
        kind = type(self).__name__
        return f"<{kind} of {axes or 'no axes'}{words}; variables {', '.join(self.variables)}>"

    def _repr_html_(self) -> str:
        return self.contents().html()

    def contents(self) -> Rows:
        """Return all variables with their axes, so that nothing stays unseen."""
        rows = []
        for name, variable in self.variables.items():
            axes = " × ".join(
                f"{dim} {n}" for dim, n in zip(variable.dims, variable.values.shape, strict=True)
            )
            about = str(variable.attrs.get("long_name", ""))
            units = str(variable.attrs.get("units", ""))
            rows.append((name, axes or "one value", units if units != "1" else "", about))
        columns = ("variable", "axes", "unit", "meaning")
        return Rows("What the store holds", columns, tuple(rows), words=True)


def _clean_variable(name: str, variable: Variable, lengths: dict[str, tuple[int, str]]) -> Variable:
    """Check one variable, and note the length of each of its axes with the first who used it."""
    where = f"variables.{name}"
    _check_name(where, name)
    values = _clean_values(where, variable.values)
    dims = tuple(variable.dims)
    if len(dims) != values.ndim:
        raise StoreError(f"{where}: {len(dims)} axes named {dims} for values of {values.ndim} axes")
    if len(set(dims)) != len(dims):
        raise StoreError(f"{where}: an axis name appears twice in {dims}; give each its own name")
    for dim, length in zip(dims, values.shape, strict=True):
        _check_name(f"{where}.dims", dim)
        known, who = lengths.setdefault(dim, (length, where))
        if known != length:
            raise StoreError(f"{where}: axis {dim} has length {length}, but {known} in {who}")
    return Variable(dims, values, _clean_attrs(f"{where}.attrs", variable.attrs))


def _clean_values(where: str, values: object) -> npt.NDArray[Any]:
    """Return the values as an array of a kind that can be stored."""
    if isinstance(values, np.ma.MaskedArray):
        raise StoreError(f"{where}: masked arrays lose their mask; fill the gaps first")
    array = np.asarray(values)
    if array.dtype.kind in "OT":
        items = array.ravel().tolist()
        odd = next((type(item).__name__ for item in items if not isinstance(item, str)), None)
        if odd is not None:
            raise StoreError(f"{where}: an object array may hold text only, found {odd}")
        # Checked here too: NumPy's fixed-width text silently drops NUL at the end.
        _check_text(where, items)
        array = array.astype(np.str_)
    elif array.dtype.kind == "U":
        _check_text(where, array.ravel().tolist())
    if array.dtype.kind not in "biufcU" or array.dtype.char in "gG":
        raise StoreError(
            f"{where}: values of type {array.dtype} cannot be stored; "
            "use bool, integer, float, complex or text"
        )
    # One byte order for all, that of this machine.
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _clean_attrs(where: str, attrs: Mapping[str, Attr]) -> dict[str, Attr]:
    """Return the attributes as plain Python values, checked."""
    clean: dict[str, Attr] = {}
    for name, given in attrs.items():
        here = f"{where}.{name}"
        _check_name(here, name)
        if name in _RESERVED_ATTRS:
            raise StoreError(f"{here}: this name has a meaning of its own in HDF5; choose another")
        value = given.item() if isinstance(given, np.generic) else given
        if isinstance(value, str):
            _check_text(here, [value])
            if name == "units" and ("since" in value or value in _CALENDAR_UNITS):
                raise StoreError(f'{here}: "{value}" reads as calendar time; write s, ms, us, …')
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise StoreError(f"{here}: {value} needs more than 64 bits; store it as text")
        elif not isinstance(value, float):
            raise StoreError(f"{here}: must be text or a number, got {type(value).__name__}")
        clean[name] = value
    return clean


def _check_name(where: str, name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise StoreError(
            f"{where}: {name!r} is no name for a file; "
            "start with a letter, go on with letters, digits and _ . + @ -"
        )


def _check_text(where: str, items: list[str]) -> None:
    for item in items:
        if "\0" in item:
            raise StoreError(f"{where}: text with a NUL character cannot be stored")
        try:
            item.encode("utf-8")
        except UnicodeEncodeError as error:
            raise StoreError(f"{where}: text that is not valid Unicode cannot be stored") from error
