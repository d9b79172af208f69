"""Does automatic predictive coding train on this chip? One answer, over a population of chips.

The chips run in continuous time as they would on a desk: one sample at a time for a stated time in
units of τ_x, states carried over from sample to sample, nothing reset, plasticity always on.
Samples side by side, or a reset, must be asked for, and everything that is shown says so
(`idealisations`).

Beside them run, with the same seeds, data and initial weights: the ideal chip; PC with phases and
BP on the array, which need a controller, each ideal and with the same non-idealities; and the ideal
chip with shuffled labels, as a floor. Discrete iPC is not among them: by law it is the ideal chip.
What a rule has no place for (BP has no somas) is left out there, and said.

Every rule has its own learning rate, chosen on held-out samples (`pcsim.check.tuning`). The best
ideal rule, chosen there as well, is the reference; `pcsim.check.criterion` says what counts as
training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pcsim import config as configuration
from pcsim.check import tuning
from pcsim.check.criterion import Criterion
from pcsim.check.found import CRITERION, Check
from pcsim.check.physical import DIGITS, PRESENTS, REGIMES, physical
from pcsim.check.rows import (
    CHIP,
    IDEAL,
    ROWS,
    SHUFFLED,
    Row,
    Rows,
    Watch,
    require_chips,
    settings_of,
)
from pcsim.check.tuning import Rate
from pcsim.config import Config
from pcsim.errors import ConfigError, InterruptedRunError
from pcsim.hardware import Described
from pcsim.interruption import exit_code
from pcsim.network import Network
from pcsim.runner.task import Task
from pcsim.simulate import Stream, config_of, hardware_section
from pcsim.store import Result
from pcsim.store.parts import Parts

__all__ = [
    "CHIP",
    "CRITERION",
    "DIGITS",
    "IDEAL",
    "PRESENTS",
    "REGIMES",
    "ROWS",
    "SHUFFLED",
    "Check",
    "Criterion",
    "Rate",
    "check",
    "physical",
    "rows_of",
    "shortest",
]


def check(
    config: Config | Network | None = None,
    hardware: Described | str | None = None,
    *,
    stream: Stream | None = None,
    criterion: Criterion | None = None,
    twins: bool | Literal["ideal"] = True,
    search: bool = True,
    watch: Watch | None = None,
    rows: Path | None = None,
    **nouns: Any,
) -> Check:
    """Run the chips of a configuration, and what they are compared with.

    Main arguments:
        config: a run in continuous time, filled up by `physical`; none: the embedded digits. Or a
            network, with `stream` and all other nouns of `simulate`.
        hardware: preset or `hw_models.Hardware` that replaces the configuration's.
        criterion: what counts as training.

    Rarely used:
        twins: also run PC and BP (the ideal chip and shuffled labels always run); "ideal": only as
            references, not with the chip's non-idealities. The answer is the same, sooner.
        search: choose the learning rate of every rule; off: all have the configuration's. A rate
            that the configuration gives is kept for the automatic rule.
        watch: opened with the name of each run before it starts.
        rows: folder that keeps finished rows; interrupted, the same call goes on from there.
    """
    if isinstance(config, Network):
        if stream is None:
            raise ConfigError("check: a network needs a stream, such as stream=Stream.of('digits')")
        config = config_of(config, stream, **nouns)
    elif stream is not None or nouns:
        raise ConfigError(f"check: {', '.join(['stream', *nouns])} belong to a network")
    config = config or configuration.parse(DIGITS, "check")
    if hardware is not None:
        config = configuration.changed(config, {"hardware": hardware_section(hardware, None)})
    require_chips(config)
    config = physical(config)
    labels = Task.load(config, config.network.build()).test.y.cpu().numpy()
    names = [name for name, row in ROWS.items() if row.in_time or _wanted(row, twins)]
    settings = settings_of(config, names)
    runs: dict[str, Result] = {}
    rates: dict[str, Rate] = {}
    with _resumable(runs, len(settings), rows):
        keep = Rows(rows, watch)
        for name, setting in settings.items():
            if search:
                rates[name] = _rate(name, config, setting, keep, rates)
                setting = tuning.with_rate(setting, rates[name].value)
            runs[name] = keep.run(name, setting)
    left_out = {
        name: setting.hardware.left_out(setting) if ROWS[name].on_hardware else ()
        for name, setting in settings.items()
    }
    return Check(config, runs, left_out, labels, criterion or CRITERION, rates or None)


def _wanted(row: Row, twins: bool | Literal["ideal"]) -> bool:
    """Whether a rule that needs a controller is to be run."""
    return not row.on_hardware if twins == "ideal" else twins


def rows_of(result: Path) -> Parts:
    """Return the finished rows of a check, which are beside its result until that is stored."""
    return Parts(result.with_name(result.name + ".rows"))


def shortest(config: Config, checked: Callable[[Config], Check]) -> Check:
    """Return the check of the shortest presentation that trains, or of the longest tried."""
    for present in PRESENTS:
        tau = config.circuit.tau_x
        check = checked(configuration.changed(config, {"stream": {"t_pres": present * tau}}))
        if check.passed:
            break
    return check


@contextmanager
def _resumable(runs: dict[str, Result], total: int, rows: Path | None) -> Iterator[None]:
    """Say what is kept of a check that is interrupted."""
    try:
        yield
    except (KeyboardInterrupt, InterruptedRunError) as stop:
        again = f"the same command goes on from {rows}" if rows else "nothing was stored"
        done = f"after {len(runs)} of {total} rows"
        raise InterruptedRunError(f"{done}; {again}", exit_code(stop)) from None


def _rate(name: str, config: Config, setting: Config, keep: Rows, known: dict[str, Rate]) -> Rate:
    """Return the learning rate of a row: given, found, or that of the row with true labels."""
    row = ROWS[name]
    if row.shuffled:
        return known[IDEAL]
    given = "alpha" in config.learning.model_fields_set or config.circuit.tau_w
    if row.in_time and given:
        return Rate(tuning.rate_of(setting), given=True)
    return tuning.search(name, setting, keep.run)
