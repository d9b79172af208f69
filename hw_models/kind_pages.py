"""Every kind of non-ideality as text: what it is, its fields, its equations, an example."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from difflib import get_close_matches

from hw_models.description import make_piece
from hw_models.pieces import PIECES, Piece
from hw_models.printed import equations
from pcsim.errors import ConfigError
from pcsim.fields.allowed import in_toml
from pcsim.fields.pages import field_lines, first_sentence


def example(kind: str) -> Piece:
    """Return the example of a kind."""
    return make_piece("example", {"kind": kind, **PIECES[kind].EXAMPLE}, None)


def example_text(kind: str, name: str = "example") -> str:
    """Return the example of a kind as TOML of a chip file."""
    fields = {"kind": kind, **PIECES[kind].EXAMPLE}
    lines = [f"{field} = {in_toml(value)}" for field, value in fields.items()]
    return "\n".join([f"[pieces.{name}]", *lines]) + "\n"


def kind_rows() -> Iterator[tuple[str, str, str]]:
    """Yield every kind with the sites where its example acts, and what it is."""
    for kind, model in PIECES.items():
        sites = dict.fromkeys(effect.site for effect in example(kind).effects("example"))
        yield kind, ", ".join(sites), first_sentence(model)


def kind_page(kind: str) -> Iterator[str]:
    """Yield all that is to be known of a kind, line by line."""
    if kind not in PIECES:
        close = get_close_matches(kind, PIECES, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(PIECES)}"
        raise ConfigError(f"there is no kind {kind!r}; {hint}")
    yield kind
    yield from (f"  {line}".rstrip() for line in (inspect.getdoc(PIECES[kind]) or "").split("\n"))
    yield ""
    yield "Fields"
    yield from field_lines(PIECES[kind])
    yield ""
    yield "Example"
    yield from (f"  {line}" for line in example_text(kind).splitlines())
    yield ""
    yield "Equations of the example, as they run (s is the signal)"
    for effect in example(kind).effects("example"):
        yield from equations(effect)
