"""A figure with its caption, as SVG for the page and as files for a paper."""

from __future__ import annotations

import base64
import io
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from pcsim.plots import QUANTILES
from pcsim.store.files import MADE_BY_PCSIM, write_own


@dataclass(frozen=True, eq=False)
class Drawing:
    """One figure of the report."""

    name: str
    """Name of its files."""
    title: str
    caption: str
    figure: Figure

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG, text drawn as paths."""
        buffer = io.BytesIO()
        # The same store gives the same bytes: no date, and names that do not depend on chance.
        with matplotlib.rc_context({"svg.hashsalt": "pcsim"}):
            self.figure.savefig(
                buffer, format="svg", metadata={"Date": None, "Creator": MADE_BY_PCSIM}
            )
        self.figure.set_layout_engine("none")  # what is placed once stays, and saves half the time
        return buffer.getvalue()

    def data_uri(self) -> str:
        """Return the SVG as it can stand in `<img src>`."""
        return f"data:image/svg+xml;base64,{base64.b64encode(self.svg).decode('ascii')}"

    def save(self, folder: Path, prefix: str = "") -> list[Path]:
        """Write SVG and PDF; only earlier figures of pcsim are replaced."""
        svg, pdf = self.paths(folder, prefix)
        buffer = io.BytesIO()
        about = {"CreationDate": None, "Creator": MADE_BY_PCSIM}
        self.figure.savefig(buffer, format="pdf", metadata=about)
        write_own(svg, self.svg)
        write_own(pdf, buffer.getvalue())
        return [svg, pdf]

    def paths(self, folder: Path, prefix: str = "") -> list[Path]:
        """Return the files that `save` writes."""
        return [folder / f"{prefix}{self.name}.{kind}" for kind in ("svg", "pdf")]


def quantiles(values: npt.NDArray[Any], axis: int = 0) -> npt.NDArray[Any]:
    """Return the 5, 50 and 95 % quantiles over what is finite; NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        clean = np.where(np.isfinite(values), values, np.nan)
        return np.asarray(np.nanquantile(clean, QUANTILES, axis=axis))


def mean(values: npt.NDArray[Any], axis: int | tuple[int, ...]) -> npt.NDArray[Any]:
    """Return the mean over what is finite; NaN where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmean(np.where(np.isfinite(values), values, np.nan), axis=axis))
