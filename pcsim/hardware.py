"""The hardware section of a configuration, and the chips that a run's replicas are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Self

import torch
from pydantic import Field, model_validator

from pcsim.errors import ConfigError
from pcsim.frozen import Frozen
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.effect import COMMON_SITES, stacked

if TYPE_CHECKING:
    from pcsim.config import Config
    from pcsim.replicas import Replicas


class HardwareConfig(Frozen):
    """Which chip, and how many of them."""

    preset: str = "ideal"
    """Name of a preset (`pcsim hardware list`), or a TOML file of a device of your own."""
    chips: Annotated[int, Field(ge=1)] = 1
    """Chips per seed; chip k is the same chip in any number."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Fixes what differs from chip to chip; temporal noise has `solver.noise_seed`."""
    pieces: Mapping[str, Mapping[str, Any]] = {}
    """Non-idealities by name: a kind with its fields, or fields to change in the preset's."""

    lenient: bool = False
    """Leave out what a rule has no place for (BP has no somas) instead of refusing it."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.ideal:
            return self
        try:
            self.substrate()
        except ConfigError as error:
            raise ValueError(str(error).removeprefix("hardware.")) from None
        return self

    def substrate(self, changes: Mapping[str, float] | None = None) -> Substrate:
        """Return the effects; `changes` are numbers by "piece.field"."""
        from hw_models import describe

        pieces = {name: dict(fields) for name, fields in self.pieces.items()}
        for path, value in (changes or {}).items():
            name, _, field = path.rpartition(".")
            pieces.setdefault(name, {})[field] = value
        return describe(self.preset, pieces).substrate()

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


def make_chips(
    config: Config, replicas: Replicas, dt: float, dtype: torch.dtype, device: str
) -> Chips | None:
    """Return the chips of a run, or None for ideal hardware."""
    hardware = config.hardware
    if hardware.ideal and not config.grid.hardware:
        return None
    of_cell = {cell: hardware.substrate(dict(cell)) for cell in dict.fromkeys(replicas.cells)}
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
        noise=Seeded(config.solver.noise_seed, device, replicas.grid_cells),
        lists={key: [values[row] for row in rows] for key, values in lists.items()},
        dtype=dtype,
        device=device,
    )
