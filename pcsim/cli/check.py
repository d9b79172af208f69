"""`pcsim check`: does automatic iPC train on this chip?

Exit code 0 if it trains, 3 if it trains with loss or fails, 4 if that is not decided (marginal, or
no verdict because the reference has not learnt).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.asked import Asked, asking, carry_out

if TYPE_CHECKING:
    from pcsim.check import Check
    from pcsim.check.rows import Watch
    from pcsim.variants.beside import Beside


@asking
def check(
    asked: Asked,
    search: Annotated[
        bool, typer.Option(help="Choose every rule's learning rate on held-out samples.")
    ] = True,
    margins: Annotated[
        bool, typer.Option("--margins", help="Also how far every number may go, and what costs.")
    ] = False,
    remedies: Annotated[
        bool, typer.Option("--remedies", help="Also try every remedy that applies, and rank them.")
    ] = False,
) -> None:
    """Train a population of chips as they would run, compare with ideal rules, give the verdict.

    One sample at a time, states carried over, nothing reset, always plastic: samples side by side
    (--set learning.batch=8) and resets (--regime reset) must be asked for. Interrupted or killed,
    the same command goes on with the rows that are finished.
    """

    def tell(check: Check, watch: Watch, rows: Path) -> list[Beside]:
        from pcsim import variants

        answers: list[Beside] = []
        if margins:
            answers.append(variants.margins(check, watch=watch, rows=rows))
        if remedies:
            answers.append(variants.remedies(check, watch=watch, rows=rows))
        return answers

    carry_out("check", asked, asked.settings(), tell, search=search, whole=True)
