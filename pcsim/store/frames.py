"""A result as a table of pandas or a data set of xarray, both optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pcsim.errors import StoreError, UnsupportedError

if TYPE_CHECKING:
    import pandas
    import xarray

    from pcsim.store.model import Result


def dataset(result: Result) -> xarray.Dataset:
    """Return all variables with their axes, labels, units and attributes."""
    try:
        import xarray
    except ImportError:
        raise UnsupportedError(
            "to_xarray: needs xarray; install it with pip install 'pcsim[xarray]'"
        ) from None
    variables: dict[str, Any] = {
        name: (one.dims, one.values, dict(one.attrs)) for name, one in result.variables.items()
    }
    labels: dict[str, Any] = {
        name: (name, values, dict(result.coord_attrs.get(name, {})))
        for name, values in result.coords.items()
    }
    return xarray.Dataset(variables, labels, dict(result.attrs))


def frame(result: Result, names: tuple[str, ...]) -> pandas.DataFrame:
    """Return variables as columns over the axes that the largest of them has."""
    pandas = import_pandas("to_pandas")
    for name in names:
        if name not in result.variables:
            known = ", ".join(result.variables)
            raise StoreError(f"to_pandas: {name} is no variable of this result, which has: {known}")
    if names:
        axes = max((result.variables[name].dims for name in names), key=len)
        for name in names:
            if extra := set(result.variables[name].dims) - set(axes):
                raise StoreError(
                    f"to_pandas: {name} has an axis {', '.join(sorted(extra))} besides "
                    f"{', '.join(axes)}; take it by a call of its own"
                )
    else:
        first = "accuracy" if "accuracy" in result.variables else next(iter(result.variables), None)
        if first is None:
            raise StoreError("to_pandas: this result has no variables")
        axes = result.variables[first].dims
        names = tuple(n for n, one in result.variables.items() if set(one.dims) <= set(axes))
    shape = tuple(len(result.coords[axis]) for axis in axes)
    columns = {}
    for name in names:
        one = result.variables[name]
        order = sorted(range(len(one.dims)), key=lambda k: axes.index(one.dims[k]))
        there = tuple(n if a in one.dims else 1 for a, n in zip(axes, shape, strict=True))
        values = np.transpose(one.values, order).reshape(there)
        columns[name] = np.broadcast_to(values, shape).reshape(-1)
    if not axes:
        return pandas.DataFrame(columns)
    labels = [result.coords[axis] for axis in axes]
    if len(axes) == 1:
        return pandas.DataFrame(columns, pandas.Index(labels[0], name=axes[0]))
    return pandas.DataFrame(columns, pandas.MultiIndex.from_product(labels, names=axes))


def import_pandas(where: str) -> Any:
    """Return pandas, or say how it is installed."""
    try:
        import pandas
    except ImportError:
        raise UnsupportedError(
            f"{where}: needs pandas; install it with pip install 'pcsim[pandas]'"
        ) from None
    return pandas
