"""`pcsim margins`, `remedies` and `specs`: how far, what helps, and what a chip must be.

The check runs first (its finished rows are kept), then its variants. Exit codes are those of the
check: 0 trains, 3 trains with loss or fails, 4 marginal or no verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.asked import Asked, asking, carry_out
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from pcsim.check import Check
    from pcsim.check.rows import Watch
    from pcsim.variants.beside import Beside

Tries = Annotated[int, typer.Option(min=1, help="Chips of each seed for every value tried.")]


@asking
def margins(
    asked: Asked,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A number: adc.bits (repeatable) [all].")
    ] = None,
    tries: Tries = 8,
    bottleneck: Annotated[bool, typer.Option(help="Also make each piece ideal in turn.")] = True,
) -> None:
    """Find the factor by which each number of a chip may grow or shrink, and the bottleneck.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.every_number import numbers_of

    settings, names = asked.settings(), only or ()
    numbers_of(settings.hardware, names)

    def tell(check: Check, watch: Watch, rows: Path) -> list[Beside]:
        return [
            variants.margins(
                check, chips=tries, only=names, bottleneck=bottleneck, watch=watch, rows=rows
            )
        ]

    carry_out("margins", asked, settings, tell)


@asking
def remedies(
    asked: Asked,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A remedy by name (repeatable) [all].")
    ] = None,
    tries: Tries = 8,
) -> None:
    """Try every remedy that a chip has a place for; rank them by what they bring back and cost.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.every_remedy import require_known

    settings, names = asked.settings(), only or ()
    require_known(settings, names)

    def tell(check: Check, watch: Watch, rows: Path) -> list[Beside]:
        return [variants.remedies(check, chips=tries, only=names, watch=watch, rows=rows)]

    carry_out("remedies", asked, settings, tell)


@asking
def specs(
    asked: Asked,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis",
            help="A number: adc.bits, adc.bits=3:8 (all whole numbers), noise.sigma=0.01:1:6 (six, "
            "in equal ratios), or noise.sigma=0.1,0.2; twice for a surface.",
        ),
    ] = None,
    tries: Tries = 8,
) -> None:
    """Find what one or two numbers of a chip must be, everything else given, so that it trains.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.along_axes import values_of

    settings = asked.settings()
    axes = dict(_axis(text) for text in axis or [])
    values_of(settings.hardware, axes)

    def tell(check: Check, watch: Watch, rows: Path) -> list[Beside]:
        return [variants.specs(check, axes=axes, chips=tries, watch=watch, rows=rows)]

    carry_out("specs", asked, settings, tell)


def _axis(text: str) -> tuple[str, tuple[int | float, ...]]:
    """Return an axis and its values, as `--axis` gives them."""
    name, equals, given = text.partition("=")
    if not equals:
        return name.strip(), ()
    try:
        if ":" not in given:
            return name.strip(), tuple(_number(one) for one in given.split(","))
        ends = [_number(one) for one in given.split(":")]
        if len(ends) == 2 and all(isinstance(one, int) for one in ends):
            return name.strip(), tuple(range(int(ends[0]), int(ends[1]) + 1))
        low, high, count = ends
        if low > 0 and high > low and isinstance(count, int) and count > 1:
            ratio = (high / low) ** (1 / (count - 1))
            return name.strip(), tuple(low * ratio**k for k in range(count))
    except ValueError:
        pass
    raise ConfigError(
        f"--axis {text}: write it as NAME=LOW:HIGH (whole numbers), NAME=LOW:HIGH:COUNT (above 0, "
        "in equal ratios) or NAME=VALUE,VALUE"
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)
