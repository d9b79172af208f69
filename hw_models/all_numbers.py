"""Every number of a chip's description: what may be varied to see how much it matters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hw_models.description import Hardware
from hw_models.piece import Piece
from hw_models.printed import value_in_words
from pcsim.fields.chip_number import ChipNumber
from pcsim.fields.pages import meaning


def quantities(hardware: Hardware) -> Iterator[ChipNumber]:
    """Yield the numeric fields of all pieces in order, also of pieces and tables inside pieces.

    What is unset, a list (weight levels) or a choice is no number.
    """
    for name, piece in hardware.pieces.items():
        yield from _of(name, piece)


def _of(name: str, piece: Piece) -> Iterator[ChipNumber]:
    for field, info in type(piece).model_fields.items():
        value, path, about = getattr(piece, field), f"{name}.{field}", meaning(info)
        if isinstance(value, Piece):
            yield from _of(path, value)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                if _number(inner):
                    yield ChipNumber(f"{path}.{key}", inner, f"{inner:g}", about)
        elif _number(value):
            yield ChipNumber(path, value, value_in_words(piece, field), about)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
