"""A preset as a TOML file: a device of one's own, written by hand or by `pcsim hardware fit`.

name = "my_device"
about = "…"
sources = ["measured by …"]
[pieces.device]
kind = "linear_device"
dw_min = 0.01
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw_models.description import Hardware, make_piece
from pcsim.errors import ConfigError

_KEYS = {"name", "about", "sources", "pieces"}


def load(path: Path) -> Hardware:
    """Read a preset; every mistake in it is one sentence."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"hardware.preset: cannot read {path}: {reason}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"hardware.preset: {path} is not TOML: {error}") from None
    if unknown := sorted(values.keys() - _KEYS):
        raise ConfigError(
            f"hardware.preset: {path}: unknown key {', '.join(unknown)}; "
            f"known are {', '.join(sorted(_KEYS))}"
        )
    pieces = values.get("pieces")
    if not isinstance(pieces, dict) or not pieces:
        raise ConfigError(f"hardware.preset: {path}: needs at least one table [pieces.NAME]")
    made = {}
    for name, fields in pieces.items():
        if not isinstance(fields, dict):
            raise ConfigError(f"hardware.preset: {path}: pieces.{name} must be a table")
        made[name] = make_piece(name, fields, None)
    return Hardware(
        name=str(values.get("name", path.stem)),
        about=str(values.get("about", "")),
        sources=tuple(str(s) for s in values.get("sources", ())),
        pieces=made,
    )


def text(hardware: Hardware) -> str:
    """Return the TOML of a description; `load` gives the same description again."""
    lines = [
        f"name = {_value(hardware.name)}",
        f"about = {_value(hardware.about)}",
        f"sources = {_value(list(hardware.sources))}",
    ]
    for name, piece in hardware.pieces.items():
        lines += ["", f"[pieces.{name}]"]
        fields = piece.model_dump(exclude_none=True)  # a period that is not set has no value
        lines += [f"{key} = {_value(value)}" for key, value in fields.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
