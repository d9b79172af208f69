"""From names and numbers to a substrate: presets, changes to them, and a person's own pieces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, SerializeAsAny, ValidationError, field_validator

from hw_models.order import arranged
from hw_models.pieces import PIECES, Piece
from hw_models.whole_chip import WholeChip
from pcsim.errors import ConfigError
from pcsim.fields.explain import explanations
from pcsim.frozen import Frozen
from pcsim.substrate import Effect, Substrate


class Hardware(Frozen):
    """A chip as its designer would describe it: named pieces in the order in which they act.

    That is the order of their physical place (`hw_models.order`), in whatever order they are given.
    """

    name: str = "ideal"
    """What results and reports call it."""
    about: str = ""
    """What it is, in one line."""
    sources: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Where the numbers come from."""
    pieces: Mapping[str, SerializeAsAny[Piece]] = {}
    """Non-idealities by name: a class of `hw_models` for each kind."""
    chip: WholeChip | None = None
    """What is around the arrays; none: this describes devices or pieces, not a whole chip."""

    def __repr__(self) -> str:
        kinds = (f"{name} ({piece.kind})" for name, piece in self.pieces.items())
        return f"<Hardware {self.name}: {', '.join(kinds) or 'no piece'}>"

    @field_validator("pieces")
    @classmethod
    def _by_place(cls, pieces: Mapping[str, Piece]) -> Mapping[str, Piece]:
        return arranged(pieces)

    def substrate(self, *, side_by_side: bool = False) -> Substrate:
        """Return all effects in order; `side_by_side`: several samples are shown at once."""
        effects = [e for made in self._lowered(side_by_side) for e in made]
        _check_order(effects)
        try:
            return Substrate(effects=tuple(effects))
        except ConfigError as error:
            raise ConfigError(f"hardware: {str(error).removeprefix('Substrate: ')}") from None

    def _lowered(self, side_by_side: bool) -> Iterator[tuple[Effect, ...]]:
        """Go through the pieces; behind what adds requests up, a batch asks for one thing."""
        before = ""
        for name, piece in self.pieces.items():
            each = side_by_side and piece.each_sample
            if each and before:
                raise ConfigError(
                    f"hardware.pieces.{name}: the samples of a batch write one by one, which "
                    f"{before} in front of it knows nothing of; show one sample at a time "
                    f'(learning.batch = 1), or set samples = "sum" of {name}'
                )
            made = piece.by_samples(name) if each else piece.effects(name)
            if piece.requests == "gathers":
                side_by_side = False
            elif piece.requests == "changes" and any(effect.site == "write" for effect in made):
                before = before or name
            yield made


def _check_order(effects: Sequence[Effect]) -> None:
    """Refuse what changes a read weight by itself before what tells writes by such a change."""
    restless = ""
    for effect in effects:
        if effect.site != "weight":
            continue
        if "last" in effect.memory and restless:
            raise ConfigError(
                f"hardware.pieces: {effect.name} takes every change of a weight for a write, and "
                f"{restless} before it changes weights all the time; leave before and after out, "
                f"which puts {restless} behind it"
            )
        if (effect.noise and "last" not in effect.memory) or effect.uses("t"):
            restless = effect.name


def known_presets() -> dict[str, Hardware]:
    """Return all presets by name."""
    from hw_models.presets import ALL  # they are made of `Hardware`

    ideal = Hardware(about="no non-ideality at all")
    return {one.name: one for one in (ideal, *ALL)}


def preset(name: str) -> Hardware:
    """Return a preset by name, or from a TOML file."""
    if name.endswith(".toml"):
        from hw_models.preset_file import load  # a file is made of `Hardware`

        return load(Path(name))
    known = known_presets()
    if name not in known:
        close = get_close_matches(name, known, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
        raise ConfigError(f"hardware.preset: there is no preset {name!r}; {hint}")
    return known[name]


def fields_of(hardware: Hardware) -> dict[str, dict[str, Any]]:
    """Return every field of every piece as plain values, defaults included, in order."""
    return {name: piece.model_dump(mode="json") for name, piece in hardware.pieces.items()}


def made_of(
    name: str, pieces: Mapping[str, Mapping[str, Any]], chip: Mapping[str, Any] | None = None
) -> Hardware:
    """Return the hardware that has these pieces; `fields_of` gives them back."""
    made = {piece: make_piece(piece, fields, None) for piece, fields in pieces.items()}
    around = None if chip is None else WholeChip.model_validate(chip)
    return Hardware(name=name, pieces=made, chip=around)


def describe(given: str | Hardware, pieces: Mapping[str, Piece | Mapping[str, Any]]) -> Hardware:
    """Return a preset with pieces added or replaced, or changed (a table of some fields).

    All act by their physical place.
    """
    base = preset(given) if isinstance(given, str) else given
    combined = dict(base.pieces)
    for name, piece in pieces.items():
        if not isinstance(piece, Piece):
            piece = make_piece(name, piece, combined.get(name))
        combined[name] = piece
    return base.model_copy(update={"pieces": arranged(combined)})


def make_piece(name: str, fields: Mapping[str, Any], given: Piece | None) -> Piece:
    """Return a piece from its fields, or a given piece with fields changed (tables are merged)."""
    piece, problems = try_piece(fields, given)
    if piece is None:
        raise ConfigError(f"hardware.pieces.{name}: {'; '.join(problems)}")
    return piece


def try_piece(
    fields: Mapping[str, Any], given: Piece | None = None
) -> tuple[Piece | None, list[str]]:
    """Return a piece, or all that is wrong with its fields, one sentence each.

    A kind of its own replaces a given piece of another kind, with all its fields.
    """
    if given and fields.get("kind", given.kind) != given.kind:
        given = None
    values = dict(given.model_dump() if given else {})
    for key, value in fields.items():
        both = isinstance(value, Mapping) and isinstance(values.get(key), Mapping)
        values[key] = {**values[key], **value} if both else value
    kind = values.get("kind")
    if not isinstance(kind, str) or kind not in PIECES:
        close = get_close_matches(str(kind), PIECES, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(PIECES)}"
        problem = "kind is missing" if kind is None else f"there is no kind {kind!r}"
        return None, [f"{problem}; {hint}"]
    try:
        return PIECES[kind].model_validate(values), []
    except ValidationError as error:
        return None, explanations(error, PIECES[kind])
