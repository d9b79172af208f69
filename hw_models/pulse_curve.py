"""A measured pulse curve from CSV: conductance behind each pulse, of one or more devices.

    pulse,conductance,direction,device
    0,10.2,up,a
    1,11.9,up,a

`pulse` counts from the start of a ramp; `direction` is up or down (needed if the file has both);
`device` tells devices apart (needed if there are several), `cycle` repeated ramps of one device.
Conductance has any unit. Columns with other names are mapped: `columns={"pulse": "Pulse #"}`.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt

from pcsim.errors import ConfigError

Floats = npt.NDArray[np.float64]
Direction = Literal["up", "down"]
FEWEST = 6
"""Points that a ramp must have."""


@dataclass(frozen=True, eq=False)
class PulseCurve:
    """Ramps (device and cycle, pulse) in device units: −1 is the mean lowest conductance, 1 the
    highest."""

    ramps: dict[Direction, Floats]
    low: float
    high: float
    """Mean over devices of the lowest and highest conductance, units of the file."""
    of_device: tuple[str, ...]
    """The device of each ramp; cycles of one device share its name."""

    @property
    def devices(self) -> int:
        """How many devices were measured."""
        return len(set(self.of_device))

    @property
    def cycles(self) -> int:
        """How many ramps of a direction there are per device, at most."""
        return max(Counter(self.of_device).values())

    def per_device(self, values: Floats) -> Floats:
        """Return the mean of values (one per ramp) over the cycles of each device."""
        names = np.array(self.of_device)
        return np.array([values[names == name].mean() for name in dict.fromkeys(self.of_device)])


def read_curve(path: Path, columns: Mapping[str, str] | None = None) -> PulseCurve:
    """Read and check a file; what is not a pulse curve is refused in one sentence.

    `columns` gives the file's name of pulse, conductance, direction, device or cycle.
    """
    rows = _rows(path, columns or {})
    by_ramp: dict[tuple[str, str, str], dict[float, float]] = {}
    for number, row in rows:
        pulse, value = (_number(path, number, row, name) for name in ("pulse", "conductance"))
        direction = (row.get("direction") or "").strip().lower()
        if direction not in ("up", "down", ""):
            _refuse(path, f"line {number}: direction must be up or down, got {direction!r}")
        of = (row.get("device") or "").strip(), (row.get("cycle") or "").strip()
        ramp = by_ramp.setdefault((direction, *of), {})
        if pulse in ramp:
            _refuse(path, f"line {number}: pulse {pulse:g} occurs twice; add columns for direction,"
                    " device and cycle")  # fmt: skip
        ramp[pulse] = value
    ramps: dict[str, list[Floats]] = {}
    owners: dict[str, list[tuple[str, str]]] = {}
    for (direction, *owner), values in sorted(by_ramp.items()):
        ramps.setdefault(direction, []).append(np.array([values[p] for p in sorted(values)]))
        owners.setdefault(direction, []).append((owner[0], owner[1]))
    if not ramps:
        _refuse(path, "it has no rows")
    if "" in ramps and len(ramps) > 1:
        _refuse(path, "some rows have a direction and some have none")
    if "" in ramps:
        mean = _stacked(path, ramps[""]).mean(0)
        ramps = {"up" if mean[-1] > mean[0] else "down": ramps[""]}
    if len({tuple(one) for one in owners.values()}) > 1:
        _refuse(path, "up and down ramps are of different devices or cycles")
    stacked: dict[Direction, Floats] = {}
    directions: tuple[Direction, ...] = ("up", "down")
    for side in directions:
        if side in ramps:
            stacked[side] = _stacked(path, ramps[side])
            _check_monotone(path, side, stacked[side])
    lowest = np.min([ramp.min(1) for ramp in stacked.values()], axis=0)
    highest = np.max([ramp.max(1) for ramp in stacked.values()], axis=0)
    low, high = float(lowest.mean()), float(highest.mean())
    scaled = {side: 2 * (one - low) / (high - low) - 1 for side, one in stacked.items()}
    of_device = tuple(device for device, _ in next(iter(owners.values())))
    return PulseCurve(scaled, low, high, of_device)


def _refuse(path: Path, why: str) -> NoReturn:
    raise ConfigError(f"{path}: is not a pulse curve: {why}")


def _rows(path: Path, names: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not a pulse curve: it is not text") from None
    reader = csv.DictReader(lines, skipinitialspace=True)
    given = [name.strip() for name in reader.fieldnames or ()]
    for name in names.values():
        if name not in given:
            _refuse(path, f"it has no column {name!r}, found {', '.join(given)[:200] or 'none'}")
    meant = {name: key for key, name in names.items()}
    columns = [meant.get(name, name.lower() if name.lower() not in names else "") for name in given]
    if not {"pulse", "conductance"} <= set(columns):
        found = ", ".join(given)[:60] or "none"
        _refuse(path, f"it needs the columns pulse and conductance, found {found}; name them by "
                "--pulse and --conductance")  # fmt: skip
    reader.fieldnames = columns
    return [(reader.line_num, row) for row in reader]


def _number(path: Path, line: int, row: dict[str, str], column: str) -> float:
    text = row.get(column)
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        _refuse(path, f"line {line}: {column} must be a number, got {text!r}")
    return value


def _stacked(path: Path, ramps: list[Floats]) -> Floats:
    lengths = {len(ramp) for ramp in ramps}
    if len(lengths) > 1:
        _refuse(path, f"devices have ramps of different length ({min(lengths)} to {max(lengths)})")
    if min(lengths) < FEWEST:
        _refuse(path, f"a ramp has {min(lengths)} points, at least {FEWEST} are needed")
    return np.stack(ramps)


def _check_monotone(path: Path, name: str, ramp: Floats) -> None:
    """A ramp must go its way for most of its span, whatever the noise of single pulses."""
    mean = ramp.mean(0) if name == "up" else -ramp.mean(0)
    thirds = [part.mean() for part in np.array_split(mean, 3)]
    span = float(np.ptp(mean))
    if span == 0:
        _refuse(path, "the conductance does not change")
    if not thirds[0] < thirds[1] <= thirds[2] + 0.1 * span or thirds[2] - thirds[0] < 0.15 * span:
        verb = "rise" if name == "up" else "fall"
        _refuse(path, f"the conductance does not {verb} with {name} pulses; a file with both "
                "directions needs a column direction")  # fmt: skip
