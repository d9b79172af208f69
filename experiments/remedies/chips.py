"""Chips with remedies on them: which presets need one, what has a place, what it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pcsim import config as configuration
from pcsim.check import CHIP, CRITERION, DIGITS, physical
from pcsim.check.rows import settings_of
from pcsim.config import Config
from pcsim.variants.every_remedy import applied, with_a_place

Names = tuple[str, ...]
"""Remedies that act together, in the order in which they are built in; none: the chip as it is."""


@dataclass(frozen=True)
class Built:
    """A chip with its remedies."""

    setting: Config
    remedies: tuple[Any, ...]

    @property
    def automatic(self) -> bool:
        """Whether no controller has to tell the chip when something happens."""
        return all(one.automatic for one in self.remedies)

    def needs(self) -> dict[str, str]:
        """Return what the remedies need, in the words of the registry."""
        lines = [one.lines for one in self.remedies if one.lines != "none"]
        times = [one.time for one in self.remedies if one.time != "none"]
        chip = self.setting.hardware.described().chip
        return {
            "devices": f"{sum(one.devices for one in self.remedies):g}",
            "lines": "; ".join(dict.fromkeys(lines)) or "none",
            "time": "; ".join(dict.fromkeys(times)) or "none",
            "automatic": "yes" if self.automatic else "no",
            "host": "yes" if chip is not None and chip.learning == "host in the loop" else "no",
        }


def failing(table: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the presets of a table that lose more than the tolerance, the quick ones first.

    A device comes after its whole chip.
    """
    lossy = [one for one in table if float(one["loss"]) > 100 * CRITERION.tolerance]
    names = {one["preset"] for one in lossy}
    ordered = sorted(
        lossy, key=lambda one: (chip_of(one["preset"]) in names, float(one["cpu_seconds"]))
    )
    return [one["preset"] for one in ordered]


def chip_of(device: str) -> str:
    """Return the name that the whole chip of a device has, if there is one."""
    return f"{device}_chip"


def digits(samples: int) -> Config:
    """Return the task of a check."""
    parsed = configuration.parse(DIGITS, "remedies")
    return configuration.changed(parsed, {"data": {"limit": samples}})


def built(preset: str, names: Names, samples: int, chips: int) -> Built | None:
    """Return a preset with remedies, in the physical case; None: one of them has no place."""
    made = configuration.changed(digits(samples), {"hardware": {"preset": preset}})
    if not made.hardware.identical:
        made = configuration.changed(made, {"hardware": {"chips": chips}})
    setting = settings_of(physical(made), [CHIP])[CHIP]
    remedies = []
    for name in names:
        remedy = with_a_place(setting).get(name)
        if remedy is None:
            return None
        setting = applied(setting, remedy)
        remedies.append(remedy)
    return Built(setting, tuple(remedies))


def pairs(preset: str, singles: Sequence[str]) -> Iterator[Names]:
    """Yield two remedies together, in an order in which both have a place."""
    for one, other in combinations(singles, 2):
        both = ((one, other), (other, one))
        yield from [names for names in both if built(preset, names, 60, 1)][:1]


def told(names: Names) -> str:
    """Return remedies in words."""
    return " + ".join(names) or "nothing"
