"""A measured pulse curve from CSV: conductance behind each pulse, of one or more devices.

    pulse,conductance,direction,device
    0,10.2,up,a
    1,11.9,up,a

`pulse` counts from the start of a ramp; `direction` is up or down (needed if the file has both);
`device` tells devices apart (needed if there are several). Conductance has any unit.
"""

from __future__ import annotations

import csv
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
    """Ramps (device, pulse) in device units: −1 is the mean lowest conductance, 1 the highest."""

    ramps: dict[Direction, Floats]
    low: float
    high: float
    """Mean over devices of the lowest and highest conductance, units of the file."""

    @property
    def devices(self) -> int:
        """How many devices were measured."""
        return max(len(ramp) for ramp in self.ramps.values())


def read_curve(path: Path) -> PulseCurve:
    """Read and check a file; what is not a pulse curve is refused in one sentence."""
    rows = _rows(path)
    by_ramp: dict[tuple[str, str], dict[float, float]] = {}
    for number, row in rows:
        pulse, value = (_number(path, number, row, name) for name in ("pulse", "conductance"))
        direction = (row.get("direction") or "").strip().lower()
        if direction not in ("up", "down", ""):
            _refuse(path, f"line {number}: direction must be up or down, got {direction!r}")
        ramp = by_ramp.setdefault((direction, row.get("device") or ""), {})
        if pulse in ramp:
            _refuse(path, f"line {number}: pulse {pulse:g} occurs twice; add columns for direction"
                    " and device")  # fmt: skip
        ramp[pulse] = value
    ramps: dict[str, list[Floats]] = {}
    for (direction, _), values in by_ramp.items():
        ramps.setdefault(direction, []).append(np.array([values[p] for p in sorted(values)]))
    if not ramps:
        _refuse(path, "it has no rows")
    if "" in ramps and len(ramps) > 1:
        _refuse(path, "some rows have a direction and some have none")
    if "" in ramps:
        mean = _stacked(path, ramps[""]).mean(0)
        ramps = {"up" if mean[-1] > mean[0] else "down": ramps[""]}
    if len({len(devices) for devices in ramps.values()}) > 1:
        _refuse(path, "up and down ramps are of different numbers of devices")
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
    return PulseCurve(scaled, low, high)


def _refuse(path: Path, why: str) -> NoReturn:
    raise ConfigError(f"{path}: is not a pulse curve: {why}")


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not a pulse curve: it is not text") from None
    reader = csv.DictReader(lines, skipinitialspace=True)
    columns = [name.strip().lower() for name in reader.fieldnames or ()]
    if not {"pulse", "conductance"} <= set(columns):
        found = ", ".join(columns)[:60] or "none"
        _refuse(path, f"it needs the columns pulse and conductance, found {found}")
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
