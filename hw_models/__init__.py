"""Models of real hardware: each non-ideality is a small description that lowers to effects.

A piece (`pieces.Piece`) is data with units; `effects` says what it does, at which site, as an
equation that every backend executes. A hardware description is an ordered set of named pieces.
"""

from hw_models.description import (
    Hardware,
    describe,
    fields_of,
    known_presets,
    made_of,
    preset,
)
from hw_models.pieces import PIECES, Piece
from hw_models.printed import chip_numbers
from hw_models.whole_chip import WholeChip, standing

__all__ = [
    "PIECES",
    "Hardware",
    "Piece",
    "WholeChip",
    "chip_numbers",
    "describe",
    "fields_of",
    "known_presets",
    "made_of",
    "preset",
    "standing",
]
