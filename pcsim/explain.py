"""Validation errors as one sentence each: the field, what was wrong, what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel

# Where pydantic speaks of Python, and the file is TOML.
_WORDS = {
    "missing": "is missing",
    "model_type": "must be a section",
    "tuple_type": "must be a list",
    "too_short": "must be a list of at least {min_length} items",
    "too_long": "must be a list of at most {max_length} items",
    "union_tag_invalid": "kind must be one of {expected_tags}, got {tag!r}",
}


def explain(error: Any, root: type[BaseModel]) -> str:
    """Return one validation error of a model as a sentence."""
    names, model = _walk(error["loc"], root)
    path = ".".join(names)
    value = error.get("input")
    if error["type"] == "extra_forbidden":
        known = list(model.model_fields)
        close = get_close_matches(names[-1], known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
        return f"{path}: unknown name; {hint}"
    shown = "" if isinstance(value, BaseModel | Mapping) else f", got {value!r}"
    if error["type"] in _WORDS:
        return f"{path}: {_WORDS[error['type']].format(**error.get('ctx', {}))}{shown}"
    message = error["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if not path:
        return str(message)
    verb = "must be " if error["msg"].startswith("Input should be ") else ""
    return f"{path}: {verb}{message}{shown}"


def _walk(location: tuple[Any, ...], root: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return the names of a location, and the innermost model on the way.

    Where a field may be one of several models, pydantic puts the kind behind the field's name;
    a file has no such name, so it is left out.
    """
    names: list[str] = []
    model = root
    kinds: dict[str, type[BaseModel]] = {}
    for part in location:
        if str(part) in kinds:
            model, kinds = kinds[str(part)], {}
            continue
        names.append(str(part))
        field = model.model_fields.get(str(part))
        models = list(_models(field.annotation)) if field else []
        kinds = {str(m.model_fields["kind"].default): m for m in models} if models[1:] else {}
        if len(models) == 1:
            model = models[0]
    return names, model


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
