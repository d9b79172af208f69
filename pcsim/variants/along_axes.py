"""What must a chip be? The region of one or two of its numbers in which it trains.

Every combination of the values is trained on the same chips, seeds, data and noise, at the learning
rate of the check. Along an axis, the loss that the yield of all chips stay within rises towards one
end; where it passes the tolerance lies the specification: at most so much noise, at least so many
bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pcsim.check.rows import Rows, Watch
from pcsim.errors import ConfigError
from pcsim.fields.chip_number import ChipNumber
from pcsim.hardware import HardwareConfig
from pcsim.variants.asked import checked
from pcsim.variants.every_number import CHIPS, numbers_of
from pcsim.variants.quotes import Laws
from pcsim.variants.specs_found import Specs
from pcsim.variants.trials import Trials

Value = int | float
Axes = Mapping[str, Sequence[Value]]
"""Values by "piece.field"; none: `values_of` chooses them."""
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Of the value of a number, where no values are given."""
FEWEST, MOST = 2, 400
"""Values of an axis, at least; combinations, at most."""


def specs(
    config: Any = None,
    hardware: Any = None,
    *,
    axes: Axes | Sequence[str] | str,
    chips: int = CHIPS,
    watch: Watch | None = None,
    rows: Path | None = None,
    **asked: Any,
) -> Specs:
    """Return where along one or two numbers a chip trains.

    Main arguments:
        config: a `Check` that was made, or what `check` takes, with all its other arguments.
        hardware: as for `check`.
        axes: {"adc.bits": [3, 4, 5], "noise.sigma": []}, or names alone: values about the chip's.
        chips: of each seed, for every combination.

    Rarely used:
        watch, rows: as for `check`; interrupted, the same call goes on.
    """
    wanted = axes if isinstance(axes, Mapping) else dict.fromkeys(_names(axes), ())
    made = checked(config, hardware, "specs", watch=watch, rows=rows, **asked)
    lists = values_of(made.config.hardware, wanted)
    trials = Trials(made, chips, Rows(rows, watch))
    names = list(lists)
    grid = list(np.ndindex(*(len(values) for values in lists.values())))
    changes = [{n: lists[n][k] for n, k in zip(names, cell, strict=True)} for cell in grid]
    accuracy = trials.of_numbers(f"specs over {', '.join(names)}", changes)
    limits = tuple(trials.limit(one) for one in accuracy)
    lost = np.stack([trials.losses(one) for one in accuracy])
    laws, outer = Laws(made), names[:-1]
    firsts = lists[outer[0]] if outer else (0,)
    quotes = tuple(laws.of(names[-1], dict.fromkeys(outer, first)) for first in firsts)
    return Specs(made, trials.chips, lists, limits, lost, quotes)


def _names(axes: Sequence[str] | str) -> list[str]:
    return [axes] if isinstance(axes, str) else list(axes)


def values_of(hardware: HardwareConfig, axes: Axes) -> dict[str, tuple[Value, ...]]:
    """Return the values of every axis, ascending; refuse what is no axis."""
    if not 1 <= len(axes) <= 2:
        raise ConfigError(f"specs: {len(axes)} axes: name one or two numbers, such as adc.bits")
    known = {one.path: one for one in numbers_of(hardware, tuple(axes), "specs")}
    lists = {name: _values(hardware, known[name], values) for name, values in axes.items()}
    cells = int(np.prod([len(values) for values in lists.values()]))
    if cells > MOST:
        raise ConfigError(f"specs: {cells} combinations are more than {MOST}; give fewer values")
    return lists


def _values(
    hardware: HardwareConfig, number: ChipNumber, given: Sequence[Value]
) -> tuple[Value, ...]:
    path, value = number.path, number.value
    if not given and not value:
        raise ConfigError(f"specs: {path} is 0; give its values, such as {path}=0.01:1:6")
    if given:
        values = sorted({_as(number, one) for one in given})
        for one in values:
            try:
                hardware.substrate({path: one})
            except ConfigError as reason:
                raise ConfigError(f"specs: {path} = {one:g}: {reason}") from None
    else:
        about = range(2, int(value) + 1) if number.bits else (value * f for f in FACTORS)
        values = sorted({_as(number, one) for one in about if _fits(hardware, number, one)})
    if len(values) < FEWEST:
        raise ConfigError(f"specs: {path} has one value; give two or more")
    return tuple(values)


def _as(number: ChipNumber, value: Value) -> Value:
    if not number.whole:
        return float(value)
    if value != round(value):
        if number.bits:
            raise ConfigError(f"specs: {number.path} takes whole numbers, got {value:g}")
        value = max(1, round(value))
    return int(value)


def _fits(hardware: HardwareConfig, number: ChipNumber, value: Value) -> bool:
    try:
        hardware.substrate({number.path: _as(number, value)})
    except ConfigError:
        return False
    return True
