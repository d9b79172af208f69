"""The registry: every kind of non-ideality by the name that configurations use."""

from __future__ import annotations

from hw_models import (
    array,
    converters,
    drift,
    faults,
    formula,
    mismatch,
    noise,
    plasticity,
    plasticity_arrays,
    plasticity_multiplier,
    plasticity_rules,
    plasticity_wear,
    quantize,
)
from hw_models.piece import Piece

_MODULES = (
    noise,
    quantize,
    converters,
    mismatch,
    drift,
    faults,
    array,
    plasticity,
    plasticity_rules,
    plasticity_arrays,
    plasticity_multiplier,
    plasticity_wear,
    formula,
)

PIECES: dict[str, type[Piece]] = {
    str(value.model_fields["kind"].default): value
    for module in _MODULES
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Piece) and value.__module__ == module.__name__
}

__all__ = ["PIECES", "Piece"]
