"""How far may every number of a chip go before the verdict changes, and what is the bottleneck?

    margins      every number grows (and shrinks, where it cannot be 0: then 0 is ideal and growth
                 is what harms), all numbers and values side by side in one population
    sensitivity  accuracy that is lost per doubling, at the chip as it is
    bottleneck   the accuracy that comes back where one piece is made ideal (leave one out), and
                 what each piece costs alone on an otherwise ideal chip

All at the working point of the check: its presentation, seeds and learning rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pcsim.check.found import Check
from pcsim.check.rows import Rows, Watch
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.fields.chip_number import ChipNumber
from pcsim.hardware import HardwareConfig
from pcsim.variants.asked import checked
from pcsim.variants.ladder import Ladder, Value
from pcsim.variants.limit import paired
from pcsim.variants.margins_found import Margins, Part
from pcsim.variants.quotes import Laws
from pcsim.variants.trials import Trials

CHIPS = 8
"""Chips of each seed that variants are tried on, at most."""
ROUNDS = 2
"""How often rungs are added between those where the verdict changes."""


def margins(
    config: Check | Config | object | None = None,
    hardware: object | None = None,
    *,
    chips: int = CHIPS,
    rounds: int = ROUNDS,
    only: Sequence[str] = (),
    bottleneck: bool = True,
    watch: Watch | None = None,
    rows: Path | None = None,
    **asked: object,
) -> Margins:
    """Return the margins of every number of a chip, and its bottleneck.

    Main arguments:
        config: a `Check` that was made, or what `check` takes, with all its other arguments.
        hardware: as for `check`.
        chips: of each seed, for every value that is tried.
        only: paths of numbers ("adc.bits"); none: all.

    Rarely used:
        rounds: of refinement; each narrows the values about a margin by a factor of three.
        bottleneck: also make each piece ideal, and leave each alone.
        watch, rows: as for `check`; interrupted, the same call goes on.
    """
    made = checked(config, hardware, "margins", watch=watch, rows=rows, **asked)
    numbers = numbers_of(made.config.hardware, only)
    trials = Trials(made, chips, Rows(rows, watch))
    ladders = _ladders(made, trials, numbers)
    for number in range(rounds + 1):
        wanted = [(one, p) for one in ladders for p in (one.more() if number else one.first())]
        _climb(trials, f"margins, round {number + 1} of {rounds + 1}", wanted)
    parts = _parts(trials) if bottleneck else ()
    laws = Laws(made)
    quotes = {one.path: laws.of(one.path) for one in numbers}
    return Margins(made, trials.chips, tuple(numbers), tuple(ladders), parts, quotes)


def numbers_of(
    hardware: HardwareConfig, only: Sequence[str], verb: str = "margins"
) -> list[ChipNumber]:
    """Return the numbers that are asked about; refuse a chip that has none."""
    known = hardware.quantities()
    if hardware.ideal or not known:
        name = hardware.preset
        raise ConfigError(
            f"{verb}: {name!r} has no numbers that could be worse; name a chip with --hardware "
            "(`pcsim hardware list`), or add a piece"
        )
    paths = [one.path for one in known]
    for path in only:
        if path not in paths:
            raise ConfigError(
                f"{verb}: this chip has no number {path!r}; it has {', '.join(paths)}"
            )
    return [one for one in known if not only or one.path in only]


def _ladders(check: Check, trials: Trials, numbers: Sequence[ChipNumber]) -> list[Ladder]:
    """Return a ladder for every direction that is asked about."""
    hardware, level = check.config.hardware, check.criterion.tolerance
    answer = check.answer
    trains = answer.good.count >= check.criterion.yield_ * answer.chips
    lost, limit = trials.losses(trials.base), trials.limit(trials.base)
    ladders = []
    for number in numbers:
        if not number.value:
            continue
        strength = number.value > 0 and _takes(hardware, number, 0)
        strength = strength and not _takes(hardware, number, -number.value)
        worse = not number.bits  # more is worse, and fewer bits are
        ways = (worse if trains else not worse,) if strength or number.bits else (True, False)
        for up in ways:

            def allowed(value: Value, number: ChipNumber = number) -> bool:
                return _takes(hardware, number, value)

            ladder = Ladder(number, up, level, trains, allowed)
            ladder.begin(limit, lost)
            ladders.append(ladder)
    return ladders


def _takes(hardware: HardwareConfig, number: ChipNumber, value: Value) -> bool:
    try:
        hardware.substrate({number.path: value})
    except ConfigError:
        return False
    return True


def _climb(trials: Trials, title: str, wanted: Sequence[tuple[Ladder, float]]) -> None:
    """Train all rungs that are wanted, side by side."""
    if not wanted:
        return
    changes = [{one.number.path: one.at(place)} for one, place in wanted]
    accuracy = trials.of_numbers(title, changes)
    for (one, place), values in zip(wanted, accuracy, strict=True):
        one.add(place, trials.limit(values), trials.losses(values))


def _parts(trials: Trials) -> tuple[Part, ...]:
    """Make every piece ideal, and leave every piece alone on an otherwise ideal chip."""
    chip = trials.setting.hardware.described()
    confidence = trials.check.criterion.confidence
    ideal = trials.accuracy(
        "ideal chip at the rate of this chip", trials.on(chip.model_copy(update={"pieces": {}}))
    )
    parts = []
    for name, piece in chip.pieces.items():
        others = {other: one for other, one in chip.pieces.items() if other != name}
        gain = cost = None
        reasons = []
        try:
            setting = trials.on(chip.model_copy(update={"pieces": others, "name": f"no {name}"}))
            without = trials.accuracy(f"without {name}", setting) if others else ideal
            gain = paired(without - trials.base, confidence)
        except ConfigError as reason:
            reasons.append(str(reason))
        try:
            setting = trials.on(chip.model_copy(update={"pieces": {name: piece}, "name": name}))
            alone = trials.accuracy(f"{name} alone", setting) if others else trials.base
            cost = paired(ideal - alone, confidence)
        except ConfigError as reason:
            reasons.append(str(reason))
        parts.append(Part(name, str(piece.kind), gain, cost, "; ".join(reasons)))
    return tuple(parts)
