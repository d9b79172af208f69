"""A small reader of JSON schemas, enough for ours: what a value breaks, as a list of places."""

from __future__ import annotations

import re
from typing import Any

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_KNOWN = {
    "$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "default", "description",
    "discriminator", "enum", "examples", "exclusiveMaximum", "exclusiveMinimum", "items",
    "maxItems", "maxLength", "maximum", "minItems", "minLength", "minProperties", "minimum", "not",
    "oneOf", "pattern", "prefixItems", "properties", "required", "title", "type",
}  # fmt: skip


def breaches(value: Any, schema: Any, root: Any = None, at: str = "") -> list[str]:
    """Return the places where a value does not follow a schema."""
    root = root or schema
    if schema is True:
        return []
    assert not schema.keys() - _KNOWN, schema.keys() - _KNOWN
    broken: list[str] = []
    if "$ref" in schema:
        broken += breaches(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    if "oneOf" in schema or "anyOf" in schema:
        tried = [breaches(value, s, root, at) for s in schema.get("oneOf", schema.get("anyOf"))]
        good = sum(not b for b in tried)
        if not good or ("oneOf" in schema and good > 1):
            broken.append(f"{at}: {good} of the choices")
    if "not" in schema and not breaches(value, schema["not"], root, at):
        broken.append(f"{at}: not")
    kind = schema.get("type")
    if kind and (
        not isinstance(value, _TYPES[kind])
        or (isinstance(value, bool) and kind in ("integer", "number"))
    ):
        return [*broken, f"{at}: {kind}"]
    broken += [f"{at}: const" for _ in [0] if "const" in schema and value != schema["const"]]
    broken += [f"{at}: enum" for _ in [0] if "enum" in schema and value not in schema["enum"]]
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        broken.append(f"{at}: pattern")
    if isinstance(value, str):
        long = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        broken += [] if long else [f"{at}: length"]
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            broken.append(f"{at}: range")
        low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        if (low is not None and value <= low) or (high is not None and value >= high):
            broken.append(f"{at}: range")
    if isinstance(value, list):
        parts = schema.get("prefixItems", [schema.get("items", True)] * len(value))
        for k, (item, part) in enumerate(zip(value, parts, strict=False)):
            broken += breaches(item, part, root, f"{at}[{k}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        broken += [f"{at}.{n}: missing" for n in schema.get("required", []) if n not in value]
        for name, item in value.items():
            part = properties.get(name, schema.get("additionalProperties", True))
            if part is False:
                broken.append(f"{at}.{name}: unknown")
            else:
                broken += breaches(item, part, root, f"{at}.{name}")
    return broken
