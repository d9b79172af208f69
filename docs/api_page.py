"""The reference of Python: signature, arguments, fields and methods of every public name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any

from pydantic import BaseModel

OWN = ("pcsim", "hw_models")
Table = Callable[[Sequence[str], Iterable[Sequence[str]]], list[str]]
Fields = Callable[[type[BaseModel], str], list[tuple[str, str, str, str]]]


class Writer:
    """Writes what is public of an object; tables and fields come from the other pages."""

    def __init__(self, table: Table, fields: Fields) -> None:
        self.table = table
        self.fields = fields

    def entry(self, name: str, value: Any) -> list[str]:
        """Return a name with its signature, what it says of itself, its fields and methods."""
        lines = [f"## {name}", ""]
        if isinstance(value, type) and issubclass(value, BaseModel):
            sections = "Its fields: [configuration](configuration.md).", ""
            full = name != "Config"
            lines += [*self.prose(value), *(self.model_fields(value) if full else sections)]
        elif isinstance(value, type):
            lines += [*signature(name, value), *self.prose(value), *self.attributes(value)]
        elif callable(value):
            return [*lines, *signature(name, value), *self.prose(value)]
        elif isinstance(value, dict):
            return [*lines, f"A table of {len(value)} names: {words(value)}.", ""]
        else:
            return [*lines, f"`{name} = {value!r}`", ""]
        for method, member in methods(value):
            lines += [f"### {name}.{method}", ""]
            if not isinstance(member, property):
                lines += signature(f"{name}.{method}", getattr(value, method))
            lines += self.prose(member)
        return lines

    def model_fields(self, model: type[BaseModel]) -> list[str]:
        """Return the arguments of a description: by name, each with what it takes."""
        rows = [
            (f"`{name}`", f"`{default}`" if default else "", takes, about)
            for name, default, takes, about in self.fields(model, "")
        ]
        return [*self.table(("argument, by name", "default", "takes", "meaning"), rows), ""]

    def attributes(self, kind: type) -> list[str]:
        """Return the annotated attributes of a class that is no description."""
        names = [
            (name, str(annotation))
            for one in reversed(kind.__mro__)
            if one.__module__.startswith(OWN)
            for name, annotation in vars(one).get("__annotations__", {}).items()
            if not name.startswith("_")
        ]
        rows = [(f"`{name}`", f"`{annotation}`") for name, annotation in dict(names).items()]
        return [*self.table(("attribute", "type"), rows), ""] if rows else []

    def prose(self, value: Any) -> list[str]:
        """Return a docstring: sections of arguments become tables, the rest stays."""
        lines: list[str] = []
        for heading, body in sections(inspect.getdoc(value) or ""):
            if not heading:
                lines += [*body, ""]
                continue
            lines += [f"**{heading}**", ""]
            rows = [(f"`{n}`", about) for n, about in arguments(body)]
            lines += [*self.table(("", ""), rows), ""]
        return lines


def words(names: Iterable[str]) -> str:
    """Return names as code, with commas."""
    return ", ".join(f"`{name}`" for name in names)


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties, those of the package's own bases too."""
    seen = {}
    for one in reversed(kind.__mro__):
        if one.__module__.startswith(OWN):
            for name, member in vars(one).items():
                inner = getattr(member, "__func__", member)
                if name.startswith("_") or not isinstance(inner, property | Callable):  # type: ignore[arg-type]
                    continue
                seen[name] = member
    yield from seen.items()


def signature(name: str, value: Any) -> list[str]:
    """Return a call as one would write it: on one line, or one argument per line."""
    if isinstance(value, type) and issubclass(value, BaseException):
        return []  # raised or warned of; nobody makes one
    given = inspect.signature(value)
    shown, starred = [], False
    for parameter in given.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        shown.append(_argument(parameter))
    back = given.return_annotation
    end = f" -> {back}" if isinstance(back, str) and back != "None" else ""
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) > 88:
        inner = "".join(f"    {one},\n" for one in shown)
        line = f"{name}(\n{inner}){end}"
    return ["```python", *line.splitlines(), "```", ""]


def _argument(parameter: inspect.Parameter) -> str:
    """Return `name: type = default`; a default that is made anew is left out."""
    kind, default = parameter.annotation, parameter.default
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = f"{stars}{parameter.name}"
    if kind is not parameter.empty:
        text += f": {kind if isinstance(kind, str) else inspect.formatannotation(kind)}"
    if default is parameter.empty:
        return text
    return f"{text} = {'…' if repr(default).startswith('<') else repr(default)}"


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, lines) of a docstring; prose has no heading."""
    for part in re.split(r"\n\n(?=\S)", text):
        head, _, rest = part.partition("\n")
        if head.endswith(":") and rest.startswith("    ") and re.match(r"    [\w, `*]+: ", rest):
            yield head[:-1], inspect.cleandoc(rest).splitlines()
        else:
            yield "", [line if line.startswith(" ") else escape(line, False) for line in _gap(part)]


def _gap(part: str) -> Iterator[str]:
    """Yield lines with an empty one before indented text, which Markdown needs."""
    before = ""
    for line in part.splitlines():
        if line.startswith("    ") and before and not before.startswith("    "):
            yield ""
        yield line
        before = line


def arguments(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (name, meaning) of a section such as `name: meaning`, over several lines."""
    name, about = "", ""
    for line in lines:
        if line.startswith(" "):
            about += " " + line.strip()
            continue
        if name:
            yield name, about
        name, _, about = (part.strip() for part in line.partition(": "))
    if name:
        yield name, about
