"""Which remedy helps, and what does it cost? Every one that a chip has a place for is tried.

Remedies of the hardware are those of `hw_models` (more pieces, or other numbers); those of the
stream change what happens at a switch of samples (`pcsim.check.physical.REGIMES`) or how long a
sample is shown. Each has its own learning rate, chosen on held-out samples as in a check; gains are
paired: the same chips, seeds, data and noise without the remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcsim.check import tuning
from pcsim.check.physical import REGIMES, adapted
from pcsim.check.rows import CHIP, Rows, Watch
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.hardware import HardwareConfig
from pcsim.runner.timing import Timing
from pcsim.variants.asked import checked
from pcsim.variants.every_number import CHIPS
from pcsim.variants.limit import paired
from pcsim.variants.remedies_found import Remedies, Tried
from pcsim.variants.trials import Trials, built

LONGER = 2.5
"""A longer presentation, in those of the check."""
Sections = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class OfStream:
    """A remedy that is no hardware."""

    name: str
    about: str
    sections: Callable[[Config], Sections]
    lines: str = "none"
    time: str = "none"
    automatic: bool = True
    devices: float = 0.0
    sources: tuple[str, ...] = ()


def _longer(config: Config) -> Sections:
    timing = Timing.of(config)
    return {"stream": {"t_pres": round(LONGER * timing.present) * timing.dt}}


def _sleep(config: Config) -> Sections:
    """Return multipliers that work backwards while the label is let go, as long as it is on."""
    chip = config.hardware.described()
    timing = Timing.of(config)
    span = timing.present * timing.dt
    phases = {"sleep": span, "wake_every": 2 * span}
    pieces = {
        name: {**config.hardware.pieces.get(name, {}), **phases}
        for name, piece in chip.pieces.items()
        if piece.kind == "learning_multiplier" and not (piece.sleep or piece.chop)
    }
    if not pieces or config.stream.t_settle:
        return {}
    held = {"pieces": {**config.hardware.pieces, **pieces}}
    return {"stream": {"t_pres": span, "t_settle": span}, "hardware": held}


STREAM: tuple[OfStream, ...] = (
    OfStream(
        "look-ahead somas",
        "somas send where they are heading: r = f(x + τ_x dx/dt)",
        REGIMES["look-ahead"],
        lines="a differentiator per soma",
    ),
    OfStream(
        "smooth label",
        "the label follows its target with τ_x instead of jumping",
        REGIMES["smooth-label"],
        lines="a low-pass filter per output",
    ),
    OfStream(
        "longer presentation",
        f"every sample is shown {LONGER:g} times as long, at the same rate per sample",
        _longer,
        time=f"{LONGER:g} times the time, and reads",
    ),
    OfStream(
        "label released",
        "the label is let go for about 3 τ_x at every switch",
        REGIMES["free-label"],
        lines="one gate per output, with a controller",
        automatic=False,
    ),
    OfStream(
        "sleep phases",
        "for as long as it is on, the label is let go and plasticity reversed: offsets cancel",
        _sleep,
        lines="a gate per output and a line to all multipliers, with a controller",
        time="twice the time, and reads",
        automatic=False,
        sources=(
            "Crick and Mitchison, Nature 304, 111 (1983), reverse learning in sleep",
            "Movellan, Connectionist Models Summer School (1990), contrastive Hebbian learning",
        ),
    ),
    OfStream(
        "states reset",
        "states start from a forward pass at every sample",
        REGIMES["reset"],
        lines="a reset per soma, with a controller",
        automatic=False,
    ),
)


def remedies(
    config: Any = None,
    hardware: Any = None,
    *,
    chips: int = CHIPS,
    only: Sequence[str] = (),
    watch: Watch | None = None,
    rows: Path | None = None,
    **asked: Any,
) -> Remedies:
    """Try every remedy that a chip has a place for, and rank them by what they bring back.

    Main arguments:
        config: a `Check` that was made, or what `check` takes, with all its other arguments.
        hardware: as for `check`.
        chips: of each seed, for every remedy.
        only: names of remedies; none: all that apply.

    Rarely used:
        watch, rows: as for `check`; interrupted, the same call goes on.
    """
    made = checked(config, hardware, "remedies", watch=watch, rows=rows, **asked)
    require_known(made.config, only)
    trials = Trials(made, chips, Rows(rows, watch))
    tried = [
        _try(trials, remedy, setting)
        for remedy, setting in _settings(trials)
        if not only or remedy.name in only
    ]
    return Remedies(made, trials.chips, tuple(tried))


def require_known(config: Config, only: Sequence[str]) -> None:
    """Refuse a chip that needs no remedy, and names that there are not."""
    hardware: HardwareConfig = config.hardware
    if hardware.ideal:
        raise ConfigError(
            f"remedies: {hardware.preset!r} needs none; name a chip with --hardware (`pcsim "
            "hardware list`)"
        )
    known = [*hardware.remedies(), *(one.name for one in STREAM)]
    for name in only:
        if name not in known:
            raise ConfigError(
                f"remedies: this chip has no place for {name!r}; what applies: {', '.join(known)}"
            )


def _settings(trials: Trials) -> Iterator[tuple[Any, Callable[[], Config]]]:
    """Go through all remedies that apply, with the configuration that each needs."""
    for remedy in with_a_place(trials.setting).values():

        def changed(remedy: Any = remedy) -> Config:
            return applied(trials.setting, remedy)

        yield remedy, changed


def with_a_place(setting: Config) -> dict[str, Any]:
    """Return the remedies that a configuration has a place for: of its chip, and of its stream."""
    found = {name: remedy for name, (remedy, _) in setting.hardware.remedies().items()}
    for one in STREAM:
        sections = one.sections(setting)
        if sections and not _in_use(setting, sections):
            found[one.name] = one
    return found


def applied(setting: Config, remedy: Any) -> Config:
    """Return a configuration with a remedy that it has a place for."""
    if isinstance(remedy, OfStream):
        return adapted(setting, remedy.sections(setting))
    hardware: HardwareConfig = setting.hardware
    return built(setting, hardware.with_pieces(remedy.changes(hardware.described())))


def _in_use(config: Config, sections: Sections) -> bool:
    return all(
        getattr(getattr(config, section), name, None) == value
        for section, fields in sections.items()
        for name, value in fields.items()
    )


def _try(trials: Trials, remedy: Any, setting: Callable[[], Config]) -> Tried:
    """Train the chips with a remedy, at its own learning rate."""
    check = trials.check
    costs = (remedy.devices, remedy.lines, remedy.time, remedy.automatic)
    try:
        made = setting()
        if check.rates is not None:
            rate = check.rates[CHIP]
            if not rate.given:
                rate = tuning.search(remedy.name, made, trials.keep.run)
            made = tuning.with_rate(made, rate.value)
        else:
            made = tuning.with_rate(made, tuning.rate_of(trials.setting))
        accuracy = trials.accuracy(remedy.name, made)
    except (ConfigError, UnsupportedError) as reason:
        return Tried(remedy.name, remedy.about, *costs, reason=str(reason))
    return Tried(
        remedy.name,
        remedy.about,
        *costs,
        accuracy=accuracy,
        gain=paired(accuracy - trials.base, check.criterion.confidence),
        limit=trials.limit(accuracy),
    )
