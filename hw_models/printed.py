"""A hardware description as text: fields with their meaning, and the equations as they run."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping

from hw_models.clock import clock_of
from hw_models.description import Hardware
from hw_models.piece import Piece
from pcsim.frozen import Frozen
from pcsim.substrate import Effect
from pcsim.substrate.effect import ABOUT

_DRAWS = {
    "normal": "standard normal",
    "uniform": "uniform in [0, 1)",
    "bernoulli": "1 with probability {probability:g}, else 0",
}
_PER = {"element": "device or unit"}


def field_meanings(kind: type[Frozen]) -> dict[str, str]:
    """Return the documentation of each field: the text that stands behind it in the source."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if not (isinstance(one, type) and issubclass(one, Frozen) and one is not Frozen):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(one))).body[0]
        assert isinstance(body, ast.ClassDef)
        for before, after in zip(body.body, body.body[1:], strict=False):
            field = isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
            text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if field and text and isinstance(after.value.value, str):  # type: ignore[attr-defined]
                words = after.value.value.split()  # type: ignore[attr-defined]
                found[before.target.id] = " ".join(words)  # type: ignore[attr-defined]
    return found


def pages(hardware: Hardware) -> Iterator[str]:
    """Yield the description line by line: what it is, then each piece, then its equations."""
    yield f"{hardware.name}: {hardware.about}"
    yield from (f"  source: {source}" for source in hardware.sources)
    if not hardware.pieces:
        yield "  no pieces: the equations run as they are"
    for name, piece in hardware.pieces.items():
        yield ""
        yield f"{name} ({piece.kind}): {_first_sentence(piece)}"
        yield from _fields(piece, "  ")
        yield from (f"  {line}" for line in (clock_of(piece),) if line)
        for effect in piece.effects(name):
            yield from _equations(effect)


def _first_sentence(piece: Piece) -> str:
    return " ".join((inspect.getdoc(type(piece)) or "").split("\n\n")[0].split())


def _fields(piece: Frozen, indent: str) -> Iterator[str]:
    meanings = field_meanings(type(piece))
    for field in type(piece).model_fields:
        value = getattr(piece, field)
        if field == "kind":
            continue
        if isinstance(value, Piece):
            yield f"{indent}{field}: {value.kind}"
            yield from _fields(value, indent + "  ")
            continue
        if value is None or (isinstance(value, Mapping) and not value):
            continue
        if isinstance(value, Mapping):
            value = ", ".join(f"{name}: {_entry(inner)}" for name, inner in value.items())
        meaning = f"   # {meanings[field]}" if field in meanings else ""
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        yield f"{indent}{field} = {shown}{meaning}"


def _entry(value: object) -> str:
    """Return one value of a table, a table inside it with its fields."""
    if isinstance(value, Frozen):
        return "(" + ", ".join(f"{n} {_entry(v)}" for n, v in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _equations(effect: Effect) -> Iterator[str]:
    yield f"  at {effect.site} ({ABOUT[effect.site]}): {effect.about}"
    yield f"    s ← {effect.becomes}"
    for name, memory in effect.memory.items():
        yield f"    memory {name} ← {memory.update}; starts at {memory.start}"
    for name, text in effect.parameters.items():
        yield f"    {name} = {text}"
    random: dict[str, list[str]] = {}
    for name, draw in effect.draws.items():
        law = _DRAWS[draw.law].format(probability=draw.probability)
        random.setdefault(f"{law}, drawn once per {_PER.get(draw.per, draw.per)}", []).append(name)
    for name, kind in effect.noise.items():
        random.setdefault(f"{_DRAWS[kind]}, drawn in every step", []).append(name)
    yield from (f"    {', '.join(names)}: {what}" for what, names in random.items())
    if effect.constants:
        yield "    " + ", ".join(f"{n} = {v:g}" for n, v in effect.constants.items())
