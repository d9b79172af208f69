"""How ngspice integrates a run (`run.engine = "spice"`). Frozen data."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pcsim.frozen import Duration, Frozen, NotNegative, Positive


class Macro(Frozen):
    """The table `[spice.macro]`: what transconductors and capacitors of a chip cannot do."""

    gm: Positive = 1e-6
    """Transconductance, siemens: a time constant tau has a capacitor of gm·tau farads."""
    unit: Positive = 1.0
    """Volts that stand for 1 in the network: noise of the circuit is smaller by as much."""
    output_resistance: NotNegative = 0.0
    """Of every transconductor, ohms; 0: none, an ideal current source."""
    bandwidth: NotNegative = 0.0
    """Of every transconductor, hertz, a single pole; 0: unlimited."""
    slew_rate: NotNegative = 0.0
    """What somas move at most in a second, units, as of `slew_rate`; 0: unlimited."""
    offset: NotNegative = 0.0
    """Standard deviation of the input offsets of transconductors, units, as of `offset`."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of these offsets; a chip has the same in any population."""
    temperature: NotNegative = 0.0
    """Kelvin: every capacitor has the noise of a conductance gm, kT/C of a leaky node (TRNOISE:
    new numbers in every run); 0: none."""
    lifetime: Duration = 0.0
    """Of a weight on its capacitor, a leak to 0, seconds, as of `retention`; 0: it stays."""

    @model_validator(mode="after")
    def _numbers_are_used(self) -> Self:
        for name, user in (("unit", "temperature"), ("seed", "offset")):
            usual = type(self).model_fields[name].default
            if getattr(self, name) != usual and not getattr(self, user):
                raise ValueError(f"{name}: has no meaning without {user}; set spice.macro.{user}")
        return self


class SpiceSettings(Frozen):
    """The section `[spice]`: how exact ngspice is, and what it leaves behind."""

    reltol: Annotated[float, Field(gt=0, le=1e-2)] = 1e-3
    """Relative tolerance of ngspice; its other tolerances follow from it."""
    folder: str = ""
    """Where the netlist, the log and the raw file of each chip stay; empty: a temporary folder."""
    noise: Literal["frozen", "trnoise"] = "frozen"
    """Noise of rates and somas: the numbers of the other engines, or ngspice's TRNOISE, which is
    another in every run and compares by its statistics alone."""
    macro: Macro | None = None
    """Transconductors with limits instead of ideal ones; left out: ideal."""
