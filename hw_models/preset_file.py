"""A chip as a TOML file, written by hand, by `pcsim hardware new` or by `pcsim hardware fit`.

#:schema ./pcsim-hardware.schema.json
name = "my_device"
about = "…"
sources = ["measured by …"]
[pieces.device]
kind = "linear_device"
dw_min = 0.01
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hw_models.description import Hardware, try_piece
from hw_models.order import arranged, warn_of_order
from hw_models.piece import Piece
from hw_models.schema import LINE
from hw_models.whole_chip import WholeChip
from pcsim.errors import ConfigError
from pcsim.fields.allowed import allowed, default_of, in_toml, unit_of
from pcsim.fields.explain import explanations
from pcsim.fields.pages import first_sentence, is_tag, meaning, wrapped
from pcsim.frozen import Frozen
from pcsim.quantity import shown

_KEYS = {"name", "about", "sources", "chip", "pieces"}


def load(path: Path) -> Hardware:
    """Read a chip; all mistakes in it are told at once."""
    hardware, problems = examine(path)
    if hardware is None:
        raise ConfigError("; ".join(problems))
    return hardware


def examine(path: Path) -> tuple[Hardware | None, list[str]]:
    """Return the chip of a file, or all that is wrong with it, one sentence each."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return None, [f"hardware.preset: cannot read {path}: {reason}"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        return None, [f"hardware.preset: {path} is not TOML: {error}"]
    problems = [f"hardware.preset: {path}: {problem}" for problem in _head(values)]
    pieces: dict[str, Piece] = {}
    tables = values.get("pieces")
    for name, fields in tables.items() if isinstance(tables, dict) else ():
        if not isinstance(fields, dict):
            problems.append(
                f"hardware.preset: {path}: pieces.{name} must be a table, got {fields!r}"
            )
            continue
        piece, wrong = try_piece(fields)
        problems += [f"hardware.pieces.{name}: {problem}" for problem in wrong]
        if piece is not None:
            pieces[name] = piece
    chip = None
    if isinstance(values.get("chip"), dict):
        try:
            chip = WholeChip.model_validate(values["chip"])
        except ValidationError as error:
            wrong = explanations(error, WholeChip)
            problems += [f"hardware.preset: {path}: chip: {problem}" for problem in wrong]
    try:
        acting = arranged(pieces) if not problems else {}
    except ConfigError as error:
        problems.append(str(error))
    if problems:
        return None, problems
    warn_of_order(pieces, acting, str(path))
    hardware = Hardware(
        name=values.get("name", path.stem),
        about=values.get("about", ""),
        sources=tuple(values.get("sources", ())),
        pieces=acting,
        chip=chip,
    )
    return hardware, []


def _head(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong outside of the pieces."""
    if unknown := sorted(values.keys() - _KEYS):
        yield f"unknown key {', '.join(unknown)}; known are {', '.join(sorted(_KEYS))}"
    for key in ("name", "about"):
        if not isinstance(values.get(key, ""), str):
            yield f"{key} must be a text, got {values[key]!r}"
    sources = values.get("sources", [])
    if not isinstance(sources, list) or not all(isinstance(s, str) for s in sources):
        yield f"sources must be a list of texts, got {sources!r}"
    if not isinstance(values.get("chip", {}), dict):
        yield f"chip must be a table, got {values['chip']!r}"
    if not isinstance(values.get("pieces"), dict) or not values["pieces"]:
        yield "needs at least one table [pieces.NAME]"


def text(hardware: Hardware) -> str:
    """Return the TOML of a chip, each field with its meaning; `load` gives the same chip again."""
    return "\n".join(_lines(hardware)) + "\n"


def _lines(hardware: Hardware) -> Iterator[str]:
    yield LINE
    yield from wrapped(
        "Pieces act in this order, that of their physical place; before = or after = the name of "
        "another piece moves one. 'pcsim hardware check FILE' says what the chip does, and what "
        "was left ideal; 'pcsim hardware kinds' lists what else there is. Lines of fields that "
        "begin with # have the default.",
        "# ",
    )
    yield f"name = {in_toml(hardware.name)}"
    yield f"about = {in_toml(hardware.about)}"
    yield f"sources = {in_toml(list(hardware.sources))}"
    if hardware.chip is not None:
        yield ""
        yield from wrapped(first_sentence(WholeChip), "# ")
        yield "[chip]"
        yield from _fields(hardware.chip)
    for name, piece in hardware.pieces.items():
        yield ""
        yield from wrapped(first_sentence(type(piece)), "# ")
        yield f"[pieces.{_key(name)}]"
        yield f"kind = {in_toml(piece.kind)}"
        yield from _fields(piece)


def _key(name: str) -> str:
    bare = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if bare else in_toml(name)


def _fields(piece: Frozen) -> Iterator[str]:
    for name, field in type(piece).model_fields.items():
        value = getattr(piece, name)
        if is_tag(field) or (name in Piece.model_fields and value is None):
            continue
        yield from wrapped(f"{meaning(field)} Allowed: {allowed(field)}.", "# ")
        if not field.is_required() and value == field.default:
            default = default_of(field)
            yield f"# {name} = {default}" if default != "unset" else f"# {name} is not set"
        else:
            yield f"{name} = {value_text(piece, name)}"


def value_text(piece: Frozen, name: str) -> str:
    """Return a field as TOML; with its unit, where that gives the same number again."""
    value = getattr(piece, name)
    unit = unit_of(type(piece).model_fields[name])
    if not isinstance(value, float) or unit is None or not unit.symbols:
        return in_toml(value)
    if unit.when is not None and getattr(piece, unit.when[0]) != unit.when[1]:
        return in_toml(value)
    quantity = shown(value, unit)
    return in_toml(quantity) if unit.read(quantity) == value else in_toml(value)
