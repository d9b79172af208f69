"""The registry: every kind of non-ideality by the name that configurations use.

A kind is a class with a field `kind` of its own. A module of this package that has one is found
here and listed nowhere.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from hw_models.piece import Piece

KIND = "\n    kind: Literal["
"""How a class says of which kind it is; modules without it may need this registry themselves."""

_MODULES = tuple(
    import_module(f"hw_models.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if KIND in path.read_text(encoding="utf-8")
)

PIECES: dict[str, type[Piece]] = {
    str(value.model_fields["kind"].default): value
    for module in _MODULES
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Piece) and value.__module__ == module.__name__
}

__all__ = ["PIECES", "Piece"]
