"""Names of Brian2 objects: all objects of one `Network` need different ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pcsim.backends.brian.hardware_text import Block
from pcsim.errors import ConfigError


def mentions(text: str, name: str) -> bool:
    """Return whether a name stands in the equations as a word of its own, outside comments."""
    code = " ".join(line.partition("#")[0] for line in text.splitlines())
    return name in "".join(c if c.isalnum() or c == "_" else " " for c in code).split()


def refuse_meant(text: str, blocks: Sequence[Block]) -> None:
    """Refuse hardware whose variables would be called as something else in these equations."""
    for block in blocks:
        code = f"{text}\n{block.place.signal} {block.place.result}"
        for name in (*block.constants, *block.drawn, *block.variables):
            if mentions(code, name) or not name[0].isalpha() or name.endswith(("_pre", "_post")):
                raise ConfigError(
                    f"backend brian: hardware at {block.place.key}: a variable would be called "
                    f"{name!r}, which means something else in these equations; give the piece "
                    f"another name"
                )


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
