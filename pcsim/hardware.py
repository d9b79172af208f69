"""The hardware section of a configuration, and the chips that a run's replicas are on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self, cast

import torch
from pydantic import Field, model_validator

from pcsim.errors import ConfigError
from pcsim.fields.chip_number import ChipNumber
from pcsim.frozen import Count, Frozen
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.differences import chips_differ, has_noise
from pcsim.substrate.effect import COMMON_SITES, stacked

if TYPE_CHECKING:
    from pcsim.config import Config
    from pcsim.runner.replicas import Replicas


class Described(Protocol):
    """A chip as an object: `hw_models.Hardware`, which this package does not import."""

    @property
    def name(self) -> str:
        """Name of the preset or of the device."""

    @property
    def pieces(self) -> Mapping[str, Any]:
        """Non-idealities by name, in the order in which they act."""

    @property
    def chip(self) -> Any:
        """What is around its arrays, or None."""


class Device(Frozen):
    """What a preset held when it was read: all fields of all pieces, so that no file is needed."""

    name: str
    """Name of the preset or of the device in its file."""
    pieces: Mapping[str, Mapping[str, Any]]
    """Every piece by name, with all its fields."""
    chip: Mapping[str, Any] | None = None
    """What is around the arrays of a whole chip: times in seconds, and what is not on chip."""
    sha256: str
    """Of the pieces as JSON: two devices are the same if their pieces are."""

    @classmethod
    def of(cls, preset: str) -> Device:
        """Read a preset by name, or from a TOML file."""
        import hw_models

        return cls.holding(hw_models.preset(preset))

    @classmethod
    def holding(cls, hardware: Described) -> Device:
        """Return what a `hw_models.Hardware` holds; one without a name is called "own"."""
        from hw_models import fields_of

        pieces = fields_of(cast(Any, hardware))
        name = "own" if hardware.name == "ideal" and pieces else hardware.name
        chip = None if hardware.chip is None else hardware.chip.model_dump(mode="json")
        return cls(name=name, pieces=pieces, chip=chip, sha256=_digest(pieces))

    @model_validator(mode="after")
    def _unchanged(self) -> Self:
        if self.sha256 != _digest(self.pieces):
            raise ValueError(
                "the pieces are not those of its sha256; leave hardware.device out to read the "
                "preset again, and change its fields in hardware.pieces"
            )
        return self

    @property
    def hardware(self) -> Any:
        """The pieces as `hw_models.Hardware`."""
        return _made_of(self.name, json.dumps(_plain(self.pieces)), json.dumps(_plain(self.chip)))


def _plain(value: Any) -> Any:
    """Return tables without what is None, which a TOML file cannot say."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items() if inner is not None}
    return list(value) if isinstance(value, tuple) else value


def _digest(pieces: Mapping[str, Mapping[str, Any]]) -> str:
    # The order of the pieces matters, that of the fields of one does not.
    text = json.dumps(list(_plain(pieces).items()), sort_keys=True)
    return sha256(text.encode()).hexdigest()


@lru_cache(maxsize=64)
def _made_of(name: str, pieces: str, chip: str) -> Any:
    from hw_models import made_of

    return made_of(name, json.loads(pieces), json.loads(chip))


class HardwareConfig(Frozen):
    """Which chip, and how many of them."""

    preset: str = "ideal"
    """Name of a preset (`pcsim hardware list`), or a TOML file of a device of your own."""
    chips: Count = 1
    """Chips per seed; chip k is the same chip in any number."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Fixes what differs from chip to chip; temporal noise has `solver.noise_seed`."""
    pieces: Mapping[str, Mapping[str, Any]] = {}
    """Non-idealities by name: a kind with its fields, or fields to change in the preset's."""

    lenient: bool = False
    """Leave out what a rule has no place for (BP has no somas) instead of refusing it."""
    device: Device | None = None
    """Filled in by itself: what the preset held when it was read."""

    @model_validator(mode="before")
    @classmethod
    def _read_preset(cls, data: Any) -> Any:
        """Resolve a preset once: later changes to a file are of no consequence."""
        preset = data.get("preset", "ideal") if isinstance(data, Mapping) else None
        if not isinstance(preset, str) or preset == "ideal" or data.get("device") is not None:
            return data
        try:
            return {**data, "device": Device.of(preset)}
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("hardware.")) from None

    @model_validator(mode="after")
    def _known(self) -> Self:
        named = not self.preset.endswith(".toml")
        if self.device and named and self.device.name != self.preset:
            raise ValueError(
                f"device: is what {self.device.name!r} held, not {self.preset!r}; leave it out"
            )
        if self.ideal:
            return self
        try:
            self.substrate()
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("hardware.")) from None
        return self

    def substrate(
        self, changes: Mapping[str, float] | None = None, *, side_by_side: bool = False
    ) -> Substrate:
        """Return the effects.

        Main arguments:
            changes: numbers by "piece.field" (or "piece.table.field").
            side_by_side: whether several samples are shown at once, each of which writes.
        """
        return cast(Substrate, self.described(changes).substrate(side_by_side=side_by_side))

    def described(self, changes: Mapping[str, float] | None = None) -> Any:
        """Return the `hw_models.Hardware` of these chips; `changes` as in `substrate`."""
        from hw_models import describe

        base = self.device.hardware if self.device else self.preset
        made = describe(base, self.pieces)
        changed: dict[str, dict[str, Any]] = {}
        for path, value in (changes or {}).items():
            known = [name for name in made.pieces if path.startswith(f"{name}.")]
            name = max(known, key=len, default=path.partition(".")[0])
            *tables, field = path.removeprefix(f"{name}.").split(".")
            fields = changed.setdefault(name, {})
            for table in tables:
                fields = fields.setdefault(table, {})
            fields[field] = value
        return describe(made, changed) if changed else made

    def fields(self, changes: Mapping[str, float] | None = None) -> dict[str, dict[str, Any]]:
        """Return all fields of every piece, defaults included; `changes` as in `substrate`."""
        from hw_models import fields_of

        return dict(fields_of(self.described(changes)))

    def remedies(self) -> dict[str, tuple[Any, Any]]:
        """Return what could be built around the chip, by name, with the pieces that change."""
        from hw_models import applicable

        return dict(applicable(self.described()))

    def with_pieces(self, changes: Mapping[str, Mapping[str, Any]]) -> Any:
        """Return the `hw_models.Hardware` with pieces added or changed."""
        from hw_models import describe

        return describe(self.described(), changes)

    def quantities(self) -> list[ChipNumber]:
        """Return every number of every piece."""
        from hw_models import quantities

        return list(quantities(self.described()))

    def deployed(self, programmed: bool = True) -> Any:
        """Return the effects by when they act on weights that do not learn any more."""
        from hw_models import deployed_parts

        return deployed_parts(self.described(), programmed)

    def warn_of_order(self, where: str) -> None:
        """Warn where pieces of a file act in another order than they are written in."""
        if not self.pieces:
            return
        from hw_models import warn_of_order

        acting = self.described().pieces
        preset = self.device.pieces if self.device else {}
        written = {name: acting[name] for name in self.pieces if name not in preset}
        warn_of_order(written, acting, where)

    def with_counters(self, *, side_by_side: bool) -> Any:
        """Return the `hw_models.Hardware` whose devices count pulses, or None if it has none."""
        from hw_models import with_counters

        return with_counters(self.described(), side_by_side=side_by_side)

    @property
    def standing(self) -> tuple[str, ...]:
        """What a verdict on these chips has to say: whole or not, who learns, what is hidden."""
        from hw_models import standing

        return standing(self.described())

    @property
    def identical(self) -> bool:
        """Whether nothing differs between chips or between two runs of one: one chip is all."""
        if self.ideal:
            return True
        substrate = self.substrate()
        return not chips_differ(substrate) and not has_noise(substrate)

    def numbers(self) -> list[tuple[str, str, str, str]]:
        """Return piece, field, value with its unit, and meaning of all that makes this chip."""
        from hw_models import chip_numbers

        return list(chip_numbers(self.described()))

    def left_out(self, config: Config) -> tuple[str, ...]:
        """Return the names of the effects that `lenient` leaves out of a discrete run."""
        if not self.lenient or self.ideal:
            return ()
        sites = available(config)
        return tuple(e.name for e in self.substrate().effects if e.site not in sites)

    @property
    def ideal(self) -> bool:
        """Whether nothing distinguishes the chip from the equations."""
        return self.preset == "ideal" and not self.pieces


def available(config: Config) -> frozenset[str]:
    """Return the sites that a discrete rule has."""
    return COMMON_SITES if config.schedule.rule == "bp" else COMMON_SITES | {"tau_x", "velocity"}


def shows_several(config: Config) -> bool:
    """Whether samples are shown side by side, so that a write is that of several."""
    return config.learning.batch != 1


def make_chips(
    config: Config, replicas: Replicas, dt: float, dtype: torch.dtype, device: str
) -> Chips | None:
    """Return the chips of a run, or None for ideal hardware."""
    hardware = config.hardware
    if hardware.ideal and not (config.grid.hardware or config.grid.trials):
        return None
    several = shows_several(config)
    of_cell = {
        cell: hardware.substrate(dict(cell), side_by_side=several)
        for cell in dict.fromkeys(replicas.cells)
    }
    if hardware.lenient:
        of_cell = {cell: part.only(available(config)) for cell, part in of_cell.items()}
    substrate, lists = stacked(list(of_cell.values()))
    order = {cell: k for k, cell in enumerate(of_cell)}
    rows = [order[cell] for cell in replicas.cells]
    return Chips(
        substrate,
        replicas.chip_of,
        seed=hardware.seed,
        dt=dt,
        noise=Seeded(config.solver.noise_seed, replicas.identities),
        lists={key: [values[row] for row in rows] for key, values in lists.items()},
        dtype=dtype,
        device=device,
    )
