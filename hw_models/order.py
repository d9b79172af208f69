"""The order in which pieces act: by their physical place, whatever the order of a file.

    multiplier → transfer → accumulator → pulses → wear → device → write noise → retention
    → faults → gain → wires → noise → limits → dead → converter

A request to write goes through the first of them, what is stored is lost and read in the last; the
signals of units and sums take the way from their source to their converter. Pieces of one place act
as they are written. `before` or `after` in a piece moves it directly before or behind another one.
Random numbers belong to the name of a piece, so that the order never changes them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, get_args

from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from hw_models.piece import Piece

Place = Literal[
    "multiplier",
    "transfer",
    "accumulator",
    "pulses",
    "wear",
    "device",
    "write noise",
    "retention",
    "faults",
    "gain",
    "wires",
    "noise",
    "limits",
    "dead",
    "converter",
]
PLACES: tuple[Place, ...] = get_args(Place)


class OrderWarning(UserWarning):
    """Pieces act in another order than the one in which they are written."""


def arranged(pieces: Mapping[str, Piece]) -> dict[str, Piece]:
    """Return the pieces in the order in which they act."""
    _check_neighbours(pieces)
    by_place = sorted(pieces, key=lambda name: PLACES.index(pieces[name].PLACE))

    def neighbours(name: str) -> Iterator[str]:
        for other in by_place:
            if pieces[other].before == name:
                yield from neighbours(other)
        yield name
        for other in by_place:
            if pieces[other].after == name:
                yield from neighbours(other)

    free = [name for name in by_place if not pieces[name].beside]
    order = [name for root in free for name in neighbours(root)]
    if circle := sorted(pieces.keys() - set(order)):
        raise ConfigError(
            f"hardware.pieces: {', '.join(circle)} stand before or after each other in a circle; "
            "leave before or after out of one of them"
        )
    return {name: pieces[name] for name in order}


def _check_neighbours(pieces: Mapping[str, Piece]) -> None:
    """Refuse a neighbour that does not exist, or that never meets the piece."""
    for name, piece in pieces.items():
        other = piece.beside
        if not other:
            continue
        field = "before" if piece.before else "after"
        where = f"hardware.pieces.{name}: {field} = {other!r}"
        if other not in pieces or other == name:
            others = ", ".join(one for one in pieces if one != name) or "none"
            raise ConfigError(f"{where}: there is no such other piece; there are {others}")
        own, its = _sites(name, piece), _sites(other, pieces[other])
        if not own & its:
            raise ConfigError(
                f"{where}: it acts at {', '.join(sorted(its))}, and {name} at "
                f"{', '.join(sorted(own))}: their order changes nothing; leave {field} out"
            )


def _sites(name: str, piece: Piece) -> set[str]:
    return {effect.site for effect in piece.effects(name)}


def warn_of_order(written: Mapping[str, Piece], acting: Iterable[str], where: str) -> None:
    """Warn where pieces that meet act in another order than they are written in."""
    swapped = list(_swapped(written, [name for name in acting if name in written]))
    if not swapped:
        return
    first, second = swapped[0]
    more = f" (and {len(swapped) - 1} more pairs)" if swapped[1:] else ""
    warnings.warn(
        f"{where}: {first} is written behind {second} and acts before it{more}: pieces act by "
        f"their physical place, here {written[first].PLACE} before {written[second].PLACE}; "
        f"write {first} first, or give it after = {second!r} if that is what you want",
        OrderWarning,
        stacklevel=2,
    )


def _swapped(written: Mapping[str, Piece], acting: list[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs that share a site and act in the other order, without a word on it."""
    place = {name: k for k, name in enumerate(written)}
    for k, first in enumerate(acting):
        for second in acting[k + 1 :]:
            asked = written[first].beside or written[second].beside
            if place[first] < place[second] or asked:
                continue
            if _sites(first, written[first]) & _sites(second, written[second]):
                yield first, second


def order_words(pieces: Mapping[str, Piece]) -> str:
    """Say in which order pieces act, and why."""
    names = []
    for name, piece in pieces.items():
        asked = f"before {piece.before}" if piece.before else f"after {piece.after}"
        names.append(f"{name} ({asked if piece.beside else piece.PLACE})")
    return f"order, by physical place: {' → '.join(names)}"
