"""Names of Brian2 objects: all objects of one `Network` need different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcsim.errors import ConfigError


def refuse_clashes(net: Any, ours: Sequence[Any]) -> None:
    """Refuse a network in which another object has the name of one of ours (or of its parts)."""
    taken = {part.name: made for made in ours for part in (made, *made.contained_objects)}
    own = {id(part) for made in ours for part in (made, *made.contained_objects)}
    for other in net.sorted_objects:
        if id(other) not in own and other.name in taken:
            raise ConfigError(
                f"name {other.name!r}: your {type(other).__name__} and pcsim's "
                f"{type(taken[other.name]).__name__} have one name, but Brian2 tells objects apart "
                f"by it; rename yours, or build with another `name`, which all of pcsim's names "
                f"start with"
            )
