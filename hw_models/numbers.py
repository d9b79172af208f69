"""Number ranges of device fields: finite, and of a size that single precision can square."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from pcsim.quantity import Unit

LARGEST = 1e18
"""Above this, squares leave the range of single precision."""
SMALLEST = 1e-21
"""Below this, a positive number is a slip of the pen rather than a device."""


def _sized(value: float) -> float:
    if not SMALLEST <= value <= LARGEST:
        raise ValueError(f"must be between {SMALLEST:g} and {LARGEST:g}, got {value:g}")
    return value


Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
NotPositive = Annotated[float, Field(le=0, ge=-LARGEST, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_sized)]


def _granular(value: float) -> float:
    if value and not 1e-9 <= value <= 1e6:
        raise ValueError(f"must be 0 or between 1e-09 and 1e+06, got {value:g}")
    return value


Granularity = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_granular)]
"""A step; 0 is none."""
Spread = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), Unit("fraction")]
"""A standard deviation relative to the nominal value: ten times the value is the most."""
Exponent = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Curvature = Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False)]
Seconds = Annotated[Positive, Unit("s")]
Duration = Annotated[NotNegative, Unit("s")]
"""Seconds, 0 included."""
Share = Annotated[NotNegative, Unit("fraction")]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), Unit("fraction")]
Weight = Annotated[Positive, Unit("network units")]
InSignal = Unit("units of the signal")
InWeights = Unit("network units")
InDevice = Unit("device units")
InState = Unit("units of x")
OfSignal = Unit("fraction", ("relative", True), "units of the signal")
"""A fraction where the field `relative` is true."""
