"""The configuration as text: every section, and every field of a section."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pydantic import BaseModel

from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.fields.pages import field_lines, first_sentence, meaning, models_of, wrapped
from pcsim.meaning import needs_of
from pcsim.sweep.axes import SweepTable


def sections() -> dict[str, tuple[type[BaseModel], ...]]:
    """Return the models of each section of a file, more than one where its `kind` says which."""
    known = {n: tuple(models_of(f.annotation)) for n, f in Config.model_fields.items()}
    return known | {"sweep": (SweepTable,)}


def overview() -> Iterator[str]:
    """Yield one paragraph per section: what it is, and the names of its fields."""
    for name, models in sections().items():
        field = Config.model_fields.get(name)
        about = meaning(field) if field else "For `pcsim sweep`: fields that vary, and how."
        yield f"[{name}] {about}"
        names = dict.fromkeys(f for model in models for f in model.model_fields)
        yield from wrapped(", ".join(names), "    ")
    yield ""
    yield "'pcsim config SECTION' prints each field with its default, meaning and allowed values."


def section_page(name: str) -> Iterator[str]:
    """Yield the fields of a section, or of one field of it ("circuit.tau_x")."""
    section, _, wanted = name.partition(".")
    known = sections()
    if section not in known:
        _refuse("section", section, list(known))
    shown = 0
    for model in known[section]:
        if wanted and wanted not in model.model_fields:
            continue
        shown += 1
        kind = f" kind = {model.model_fields['kind'].default!r}" if known[section][1:] else ""
        yield f"[{section}]{kind}: {first_sentence(model)}"
        lines = list(field_lines(model, "  ", f"{section}.", _needs))
        yield from (_only(lines, wanted) if wanted else lines)
    if not shown:
        names = dict.fromkeys(f for model in known[section] for f in model.model_fields)
        _refuse(f"field of [{section}]", wanted, list(names))


def _only(lines: list[str], field: str) -> Iterator[str]:
    inside = False
    for line in lines:
        if not line.startswith("   "):
            inside = line.split()[0] == field
        if inside:
            yield line


def _needs(path: str) -> tuple[str, ...]:
    return tuple(need.words for need in needs_of(path))


def _refuse(what: str, name: str, known: list[str]) -> None:
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
    raise ConfigError(f"there is no {what} {name!r}; {hint}")
