"""What a field of a description takes, in words: "a number above 0, in seconds, or "20 us"".

One text per field, made from its type and limits; errors, listings and files show the same.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pcsim.quantity import Unit

LARGEST = 1e18
LARGEST_WHOLE = 2**31
"""Limits of this size are those of the arithmetic, not of a field, and are not told."""


@dataclass(frozen=True)
class Words:
    """An annotation: what a field takes, where its type does not say it."""

    text: str


def allowed(field: FieldInfo, item: bool = False) -> str:
    """Return what a field (or an item of a list) takes, in words that follow 'must be'."""
    annotation, metadata = _parts(field.annotation, list(field.metadata))
    if item and get_origin(annotation) is tuple:
        return _words(get_args(annotation)[0], [])
    return _words(annotation, metadata)


def unit_of(field: FieldInfo) -> Unit | None:
    """Return the unit of a field, of an item where it is a list."""
    return next(_units(field.annotation, list(field.metadata)), None)


def default_of(field: FieldInfo) -> str:
    """Return the default as a file would have it, or that there is none."""
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "unset"
    return in_toml(value)


def in_toml(value: Any) -> str:
    """Return a plain value as TOML writes it; tables are inline, None is left out."""
    if isinstance(value, BaseModel):
        return in_toml(value.model_dump(mode="json"))
    if isinstance(value, Mapping):
        inner = ", ".join(f"{k} = {in_toml(v)}" for k, v in value.items() if v is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(in_toml(v) for v in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    """Return a basic TOML string."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    plain = (escapes.get(c, c) for c in text)
    return '"' + "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in plain) + '"'


def _flat(metadata: Sequence[Any]) -> Iterator[Any]:
    for item in metadata:
        if isinstance(item, FieldInfo):
            yield from _flat(item.metadata)
        else:
            yield item


def _parts(annotation: Any, metadata: list[Any]) -> tuple[Any, list[Any]]:
    while get_origin(annotation) is Annotated:
        annotation, *more = get_args(annotation)
        metadata = [*more, *metadata]
    return annotation, list(_flat(metadata))


def _units(annotation: Any, metadata: list[Any]) -> Iterator[Unit]:
    annotation, metadata = _parts(annotation, metadata)
    yield from (item for item in metadata if isinstance(item, Unit))
    if get_origin(annotation) in (Union, types.UnionType, tuple, Mapping):
        for inner in get_args(annotation):
            yield from _units(inner, [])


def _words(annotation: Any, metadata: list[Any]) -> str:
    annotation, metadata = _parts(annotation, metadata)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if told := [item.text for item in metadata if isinstance(item, Words)]:
        return told[0]
    if origin is Literal:
        names = [repr(name) for name in arguments]
        return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
    if origin in (Union, types.UnionType):
        return _choice(arguments, metadata)
    if origin is tuple:
        return _list(arguments, metadata)
    if origin is Mapping and get_origin(arguments[1]) is Literal:
        return f"a table whose values are {_words(arguments[1], [])}"
    if annotation is bool:
        return "true or false"
    if annotation is int:
        return f"a whole number{_limits(metadata)}"
    if annotation is float:
        return f"a number{_limits(metadata)}{_unit(metadata)}"
    if annotation is str:
        return "a text"
    if origin in (Mapping, dict) and not _is_model(_parts(arguments[1], [])[0]):
        inner = "" if arguments[1] is Any else f", each {_words(arguments[1], [])}"
        return f"a table of names{inner}"
    return "a table"


def _choice(arguments: Sequence[Any], metadata: list[Any]) -> str:
    given = [one for one in arguments if one is not types.NoneType]
    models = [m for m in (_parts(one, [])[0] for one in given) if _is_model(m)]
    if models[1:]:
        kinds = ", ".join(repr(m.model_fields["kind"].default) for m in models)
        words = f"a table whose kind is one of {kinds}"
    else:
        words = " or ".join(dict.fromkeys(_words(one, metadata) for one in given))
    return words if len(given) == len(arguments) else f"{words}, or left out"


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _list(arguments: Sequence[Any], metadata: list[Any]) -> str:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        least = _limit(metadata, "min_length") or 0
        most = _limit(metadata, "max_length")
        if most is not None:
            size = f" of {least} to {most} items"
        else:
            size = f" of at least {least} items" if least else ""
        return f"a list{size}, each {_words(arguments[0], [])}"
    each = " and ".join(dict.fromkeys(_words(one, []) for one in arguments))
    return f"a list of {len(arguments)} items, each {each}"


def _limit(metadata: list[Any], name: str) -> Any:
    values = [getattr(item, name) for item in metadata if hasattr(item, name)]
    return next((value for value in values if value is not None), None)


def _limits(metadata: list[Any]) -> str:
    """Return the range, such as ' above 0' or ' from 2 to 32'."""
    above, least = _limit(metadata, "gt"), _limit(metadata, "ge")
    below, most = _limit(metadata, "lt"), _limit(metadata, "le")
    multiple = [m for m in metadata if isinstance(m, annotated_types.MultipleOf)]
    assert not multiple, "a limit without words"
    above, least, below, most = (
        None if limit is not None and abs(limit) >= _largest(limit) else limit
        for limit in (above, least, below, most)
    )
    if least is not None and most is not None:
        return f" from {_number(least)} to {_number(most)}"
    low = f" above {_number(above)}" if above is not None else ""
    low = f" of at least {_number(least)}" if least is not None else low
    high = f" below {_number(below)}" if below is not None else ""
    high = f" of at most {_number(most)}" if most is not None else high
    return f"{low}{' and' if low and high else ''}{high}"


def _largest(limit: float) -> float:
    return LARGEST if isinstance(limit, float) else LARGEST_WHOLE


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _unit(metadata: list[Any]) -> str:
    unit = next((item for item in metadata if isinstance(item, Unit)), None)
    if unit is None:
        return ""
    fraction = unit.name == "fraction" and not unit.when
    inside = f", {unit.words}" if fraction else f", in {unit.words}"
    return f"{inside} (or a text such as {unit.example})" if unit.example else inside
