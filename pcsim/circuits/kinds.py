"""All circuits there are: every `Page` in a module of this package, found and not listed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Discriminator, Tag

from pcsim.circuits.page import Page
from pcsim.circuits.section import Circuit

PAGES: dict[str, Page] = {
    page.kind: page
    for module in sorted(iter_modules([str(Path(__file__).parent)]))
    if module.name not in ("kinds", "plan", "support")  # they need the pages
    for page in vars(import_module(f"pcsim.circuits.{module.name}")).values()
    if isinstance(page, Page)
}
KINDS: dict[str, type[Circuit]] = {kind: PAGES[kind].fields for kind in sorted(PAGES)}
BELONGS: dict[str, tuple[str, ...]] = {
    name: tuple(kind for kind, other in KINDS.items() if name in other.model_fields)
    for circuit in KINDS.values()
    for name in circuit.model_fields
    if not all(name in other.model_fields for other in KINDS.values())
}
"""Which circuits have a field; the others are in all of them."""


def _kind(section: Any) -> str:
    """Return the tag of a section; what is no text has none, and is shown in the refusal."""
    get = section.get if isinstance(section, Mapping) else partial(getattr, section)
    kind = get("kind", "algebraic")
    return kind if isinstance(kind, str) else repr(kind)


def foreign(section: Any) -> tuple[str, ...]:
    """Return the fields of a section [circuit] that belong to circuits of another kind."""
    kind = _kind(section)
    if not isinstance(section, Mapping) or kind not in KINDS:
        return ()
    return tuple(name for name in section if name in BELONGS and kind not in BELONGS[name])


if TYPE_CHECKING:
    CircuitConfig = Circuit
else:
    CircuitConfig = Annotated[
        reduce(or_, (Annotated[circuit, Tag(kind)] for kind, circuit in KINDS.items())),
        Discriminator(_kind),
    ]
"""The section [circuit]: its field `kind` says which circuit, "algebraic" if it is left out."""
