"""The recording of a simulation: a result that can be asked for its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.errors import UnsupportedError
from pcsim.store import Result
from pcsim.verdict import Verdict, verdict_from

if TYPE_CHECKING:
    import xarray


class Recording(Result):
    """What was recorded, on named axes; everything that takes a result takes a recording."""

    @classmethod
    def of(cls, result: Result) -> Recording:
        """Return a result as a recording."""
        return cls(result.variables, result.coords, result.attrs, result.coord_attrs)

    @property
    def config(self) -> Config:
        """The whole description of what was simulated."""
        return configuration.from_json(str(self.attrs["config"]))

    def verdict(self) -> Verdict:
        """Return what became of every chip."""
        if "verdict.outcome" not in self.variables:
            raise UnsupportedError(
                "Recording.verdict: is about chips in continuous time; a discrete run has "
                "'train_energy' and 'accuracy' instead"
            )
        return verdict_from(self)

    def to_xarray(self) -> xarray.Dataset:
        """Return all variables with their axes, labels, units and attributes."""
        try:
            import xarray
        except ImportError:
            raise UnsupportedError(
                "Recording.to_xarray: needs xarray; install it with pip install 'pcsim[xarray]'"
            ) from None
        variables: dict[str, Any] = {
            name: (one.dims, one.values, dict(one.attrs)) for name, one in self.variables.items()
        }
        labels: dict[str, Any] = {
            name: (name, values, dict(self.coord_attrs.get(name, {})))
            for name, values in self.coords.items()
        }
        return xarray.Dataset(variables, labels, dict(self.attrs))

    def __repr__(self) -> str:
        """Return axes, accuracy and names, not the numbers."""
        axes = ", ".join(f"{name} {len(labels)}" for name, labels in self.coords.items())
        told = ""
        if "accuracy" in self.variables:
            told = f"; test accuracy {100 * float(np.median(self['accuracy'])):.1f} % (median)"
        return f"<Recording of {axes}{told}; variables {', '.join(self.variables)}>"
