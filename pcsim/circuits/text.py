"""Reading equations: which words stand in them, and what each line says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pcsim.circuits.blocks import Block
from pcsim.errors import ConfigError

Role = Literal["state", "value", "sum", "given"]
_WORD = re.compile(r"\w+")
_LINE = re.compile(
    r"^(?:d(?P<state>\w+)/dt|(?P<name>\w+))\s*(?:=\s*(?P<text>.*?))?\s*:\s*(?P<unit>\w+)"
    r"\s*(?:\((?P<flags>[^)]*)\))?\s*(?:\#\s*(?P<note>.*))?$"
)


@dataclass(frozen=True)
class Equation:
    """One line of a page."""

    name: str
    role: Role
    """A state by its rate of change; a value by an expression; a sum over synapses; or what is
    given from outside (a parameter, a clamp, what hardware delivers)."""
    text: str = ""
    flags: tuple[str, ...] = ()
    unit: str = "1"
    note: str = ""


def equations(text: str) -> tuple[Equation, ...]:
    """Return the lines of a page as data, in order."""
    return tuple(_equation(line) for line in text.splitlines() if line.strip())


def _equation(line: str) -> Equation:
    match = _LINE.match(line.strip())
    if match is None:
        raise ConfigError(f"circuit: {line.strip()!r} is not an equation")
    flags = tuple(flag.strip() for flag in (match["flags"] or "").split(",") if flag.strip())
    role: Role = "given"
    if match["state"]:
        role = "state"
    elif match["text"]:
        role = "sum" if "summed" in flags else "value"
    name = match["state"] or match["name"]
    return Equation(name, role, match["text"] or "", flags, match["unit"], match["note"] or "")


def to_text(lines: Sequence[str]) -> str:
    """Join the lines of one set of equations."""
    return "".join(f"{line}\n" for line in lines)


def mentions(text: str, name: str) -> bool:
    """Return whether a name stands in the equations as a word of its own, outside comments."""
    return name in _words(text)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    """Return the words of some equations; every name is looked for in the same text."""
    return frozenset(w for line in text.splitlines() for w in _WORD.findall(line.partition("#")[0]))


def refuse_meant(text: str, blocks: Sequence[Block]) -> None:
    """Refuse hardware whose variables would be called as something else in these equations."""
    for block in blocks:
        code = f"{text}\n{block.place.signal} {block.place.result}"
        for name in (*block.constants, *block.drawn, *block.variables):
            if mentions(code, name) or not name[0].isalpha() or name.endswith(("_pre", "_post")):
                raise ConfigError(
                    f"hardware at {block.place.key}: a variable would be called "
                    f"{name!r}, which means something else in these equations; give the piece "
                    f"another name"
                )
