"""How ngspice integrates a run (`run.engine = "spice"`). Frozen data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pcsim.frozen import Frozen


class SpiceSettings(Frozen):
    """The section `[spice]`: how exact ngspice is, and what it leaves behind."""

    reltol: Annotated[float, Field(gt=0, le=1e-2)] = 1e-3
    """Relative tolerance of ngspice; its other tolerances follow from it."""
    folder: str = ""
    """Where the netlist, the log and the raw file of each chip stay; empty: a temporary folder."""
