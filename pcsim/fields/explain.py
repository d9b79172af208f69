"""Validation errors as one sentence each: the field, what was wrong, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pcsim.fields.allowed import allowed

# Where pydantic speaks of Python, and the file is TOML.
_WORDS = {
    "model_type": "must be a section",
    "tuple_type": "must be a list",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "too_short": "must be a list of at least {min_length} items",
    "too_long": "must be a list of at most {max_length} items, not {actual_length}",
    "union_tag_invalid": "kind must be one of {expected_tags}, got {tag!r}",
}
_OWN = ("value_error", "assertion_error")
"""Messages of our own validators, which say what is allowed themselves."""
_LIMITS = {
    "greater_than": "above {gt}",
    "greater_than_equal": "of at least {ge}",
    "less_than": "below {lt}",
    "less_than_equal": "of at most {le}",
}
_SHOWN = 200
"""Characters of a wrong value that a sentence shows."""


def explain(error: Any, root: type[BaseModel]) -> str:
    """Return one validation error of a model: the field, what was given, what is allowed."""
    names, model, field = _walk(error["loc"], root)
    path = ".".join(names)
    value = error.get("input")
    if error["type"] == "extra_forbidden":
        if others := _kinds_with(error["loc"], root, names[-1]):
            return f"{path}: unknown name here; it belongs to {'.'.join(names[:-1])}.kind {others}"
        known = list(model.model_fields)
        close = get_close_matches(names[-1], known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
        return f"{path}: unknown name; {hint}"
    if error["type"] == "missing":
        words = allowed(field) if field else "a table"
        needed = "" if words.startswith("a table") else f" (needed: {words})"
        return f"{path}: is missing{needed}"
    message = error["msg"].removeprefix("Value error, ")
    if not path:
        return str(message)
    shown = "" if isinstance(value, BaseModel | Mapping) else f", got {_short(value)}"
    if error["type"] in _OWN:
        return f"{path}: {message}{'' if 'got ' in message else shown}"
    if error["type"] in _WORDS:
        message = _WORDS[error["type"]].format(**error.get("ctx", {}))
    elif message.startswith("Input should be "):
        message = f"must be {message.removeprefix('Input should be ')}"
    sentence = f"{path}: {message}{shown}"
    return f"{sentence} (allowed: {more})" if (more := _more(error, field)) else sentence


def _kinds_with(location: tuple[Any, ...], root: type[BaseModel], name: str) -> str:
    """Return the kinds of a section that have a field, where others have it than the chosen one."""
    if len(location) < 3:
        return ""
    _, _, field = _walk(location[:-2], root)
    models = list(_models(field.annotation)) if field else []
    kinds = [
        m.model_fields["kind"].default for m in models[1:] and models if name in m.model_fields
    ]
    return " or ".join(repr(kind) for kind in kinds)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _more(error: Any, field: FieldInfo | None) -> str:
    """Return all that the field takes, unless the message has said as much."""
    said = error["type"] in ("literal_error", "model_type", "union_tag_invalid")
    if field is None or said:
        return ""
    words = allowed(field, bool(error["loc"]) and isinstance(error["loc"][-1], int))
    limit = _LIMITS.get(error["type"], "?").format(**error.get("ctx", {}))
    return "" if words in (f"a number {limit}", f"a whole number {limit}", "a table") else words


def explanations(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Return all errors of a model, one sentence each."""
    return [explain(e, root) for e in error.errors() if not _follows(e)]


def _follows(error: Any) -> bool:
    """Whether an error only says that a list became too short by its bad items."""
    short = error["type"] == "too_short" and isinstance(error["input"], list | tuple)
    return short and len(error["input"]) >= error["ctx"]["min_length"]


def _walk(
    location: tuple[Any, ...], root: type[BaseModel]
) -> tuple[list[str], type[BaseModel], FieldInfo | None]:
    """Return the names of a location, the innermost model on the way, and the field it leads to.

    Where a field may be one of several models, pydantic puts the kind behind the field's name;
    a file has no such name, so it is left out.
    """
    names: list[str] = []
    model = root
    kinds: dict[str, type[BaseModel]] = {}
    last: FieldInfo | None = None
    for part in location:
        if str(part) in kinds:
            model, kinds = kinds[str(part)], {}
            continue
        names.append(str(part))
        field = model.model_fields.get(str(part))
        models = list(_models(field.annotation)) if field else []
        last = field or last
        kinds = {str(m.model_fields["kind"].default): m for m in models} if models[1:] else {}
        if len(models) == 1:
            model = models[0]
    return names, model, last


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
