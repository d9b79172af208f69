"""Configurations as TOML that `pcsim` reads back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(data: Mapping[str, Any], above: tuple[str, ...] = ()) -> str:
    """Return nested sections as TOML; what is None is left out, as TOML has no such value."""
    plain = {k: v for k, v in data.items() if not isinstance(v, Mapping) and v is not None}
    sections = {k: v for k, v in data.items() if isinstance(v, Mapping)}
    lines = [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    if above and (lines or not sections):
        lines.insert(0, f"[{'.'.join(map(_key, above))}]")
    parts = ["\n".join(lines)] if lines else []
    parts += [toml_text(section, (*above, name)) for name, section in sections.items()]
    return "\n\n".join(part for part in parts if part)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(one) for one in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
        return f"{{ {', '.join(pairs)} }}"
    return repr(value)
