"""A hardware description as text: fields with their meaning, and the equations as they run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from hw_models.clock import clock_of
from hw_models.description import Hardware
from hw_models.order import order_words
from hw_models.piece import Piece
from hw_models.whole_chip import about_chip
from pcsim.fields.allowed import unit_of
from pcsim.fields.pages import meaning
from pcsim.frozen import Frozen
from pcsim.quantity import Unit
from pcsim.quantity import shown as with_unit
from pcsim.substrate import Effect
from pcsim.substrate.effect import ABOUT

_DRAWS = {
    "normal": "standard normal",
    "uniform": "uniform in [0, 1)",
    "bernoulli": "1 with probability {probability:g}, else 0",
}
_PER = {"element": "device or unit"}


def pages(hardware: Hardware) -> Iterator[str]:
    """Yield the description line by line: what it is, then each piece, then its equations."""
    yield f"{hardware.name}: {hardware.about}"
    yield from (f"  {cited(source)}" for source in hardware.sources)
    yield from about_chip(hardware)
    if not hardware.pieces:
        yield "  no pieces: the equations run as they are"
    else:
        yield f"  {order_words(hardware.pieces)}"
    for name, piece in hardware.pieces.items():
        yield ""
        yield f"{name} ({piece.kind}): {_first_sentence(piece)}"
        yield from _fields(piece, "  ")
        yield from (f"  {line}" for line in (clock_of(piece),) if line)
        for effect in piece.effects(name):
            yield from equations(effect)


def chip_numbers(hardware: Hardware) -> Iterator[tuple[str, str, str, str]]:
    """Yield piece, field, value with its unit, and meaning of all that is not at its default."""
    for name, piece in hardware.pieces.items():
        yield from _numbers(name, piece)


def _numbers(name: str, piece: Piece) -> Iterator[tuple[str, str, str, str]]:
    title = f"{name} ({piece.kind})"
    for field, info in type(piece).model_fields.items():
        value = getattr(piece, field)
        if isinstance(value, Piece):
            yield from _numbers(f"{name}.{field}", value)
        elif field != "kind" and value != info.default:
            yield title, field, value_in_words(piece, field), meaning(info)


def value_in_words(piece: Piece, field: str) -> str:
    """Return the value of a field with its unit."""
    value = getattr(piece, field)
    if not isinstance(value, float):
        return _text(value)
    unit = unit_of(type(piece).model_fields[field])
    if unit and not _holds(piece, unit):
        unit = Unit(unit.otherwise)
    return with_unit(value, unit) + (f" {unit.name}" if unit and not unit.symbols else "")


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_entry(inner)}" for name, inner in value.items())
    return _entry(value)


def _first_sentence(piece: Piece) -> str:
    return " ".join((inspect.getdoc(type(piece)) or "").split("\n\n")[0].split())


def _fields(piece: Frozen, indent: str) -> Iterator[str]:
    for field, info in type(piece).model_fields.items():
        value = getattr(piece, field)
        if field == "kind":
            continue
        if isinstance(value, Piece):
            yield f"{indent}{field}: {value.kind}"
            yield from _fields(value, indent + "  ")
            continue
        if value is None or (isinstance(value, Mapping) and not value):
            continue
        about = f"   # {meaning(info)}" if info.description else ""
        yield f"{indent}{field} = {_with_unit(piece, field)}{about}"


def _with_unit(piece: Frozen, field: str) -> str:
    """Return a value with its unit, where the unit has a symbol; its meaning says all others."""
    value = getattr(piece, field)
    unit = unit_of(type(piece).model_fields[field])
    if not isinstance(value, float) or unit is None or not _holds(piece, unit):
        return _text(value)
    return with_unit(value, unit)


def _holds(piece: Frozen, unit: Unit) -> bool:
    return unit.when is None or getattr(piece, unit.when[0]) == unit.when[1]


def cited(source: str) -> str:
    """Return a source as a line; what has none says so by itself."""
    return source if source.startswith("assumption") else f"source: {source}"


def _entry(value: object) -> str:
    """Return one value of a table, a table inside it with its fields."""
    if isinstance(value, Frozen):
        return "(" + ", ".join(f"{n} {_entry(v)}" for n, v in value) + ")"
    return f"{value:g}" if isinstance(value, float) else str(value)


def equations(effect: Effect) -> Iterator[str]:
    """Yield what an effect does: its site, its equation, its memory and what is drawn."""
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
