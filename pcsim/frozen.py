"""What all descriptions share: immutable pydantic models, strict about names, and number ranges."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

SMALLEST, LARGEST = 1e-30, 1e30
"""What single precision can hold, with room for products of a few numbers."""


def _in_range(value: float) -> float:
    if value and not SMALLEST <= abs(value) <= LARGEST:
        raise ValueError(f"must lie between {SMALLEST:g} and {LARGEST:g}")
    return value


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), AfterValidator(_in_range)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_in_range)]
Whole = Annotated[int, Field(ge=0, lt=2**31)]
Count = Annotated[int, Field(ge=1, lt=2**31)]


class Frozen(BaseModel):
    """Immutable, strict about names and types: neither "32" nor true is a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


AS_STORED = {"as_stored": True}
"""Validation context of a complete description: defaults stand there too, also where unused."""
