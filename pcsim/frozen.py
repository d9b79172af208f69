"""What all descriptions share: immutable pydantic models, strict about names, and number ranges."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Frozen(BaseModel):
    """Immutable, strict about names and types: neither "32" nor true is a number."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


AS_STORED = {"as_stored": True}
"""Validation context of a complete description: defaults stand there too, also where unused."""
