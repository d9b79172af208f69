"""The fields of a description as text: default, what is allowed, what it means, what it needs."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pcsim.fields.allowed import allowed, default_of

Needs = Callable[[str], Sequence[str]]
_WIDTH = 96


def meaning(field: FieldInfo) -> str:
    """Return the description of a field as one line."""
    return " ".join((field.description or "").split())


def first_sentence(model: type[BaseModel]) -> str:
    """Return the first paragraph of a model's documentation as one line."""
    return " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())


def is_tag(field: FieldInfo) -> bool:
    """Whether a field only names its model (`kind = "mlp"`), so that it takes one value."""
    return len(get_args(field.annotation)) == 1 and isinstance(field.default, str)


def field_lines(
    model: type[BaseModel], indent: str = "  ", prefix: str = "", needs: Needs = lambda path: ()
) -> Iterator[str]:
    """Yield each field of a model: `name = default`, then its meaning and what it takes."""
    for name, field in model.model_fields.items():
        inner = indent + "    "
        default = default_of(field)
        value = {"required": " (required)", "unset": " (unset)"}.get(default, f" = {default}")
        models = models_of(field.annotation)
        if len(models) == 1 and not field.is_required():
            value = ""
        yield f"{indent}{name}{value}"
        yield from wrapped(meaning(field), inner)
        if is_tag(field):
            continue
        if models:
            for one in dict.fromkeys(models):
                if models[1:]:
                    yield f"{inner}kind {one.model_fields['kind'].default!r}: {first_sentence(one)}"
                else:
                    yield from field_lines(one, inner, f"{prefix}{name}.", needs)
            continue
        yield from wrapped(f"allowed: {allowed(field)}", inner)
        for need in needs(f"{prefix}{name}"):
            yield from wrapped(f"needs {need}", inner)


def wrapped(text: str, indent: str) -> list[str]:
    """Return a text in lines of a page."""
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def models_of(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that a field may hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in models_of(inner)]
