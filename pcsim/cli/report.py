"""`pcsim report STORE…`: one HTML file of stored results, and figures for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    stores: Annotated[
        list[Path],
        typer.Argument(
            metavar="STORE", help="Result files, sweep folders, or folders with results."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="HTML file [<first store>.html].")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="Folder for the figures as SVG and PDF.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading [the names of the stores].")] = None,
) -> None:
    """Show stored results on one page that stands alone: figures, tables, configuration."""
    from pcsim.report import report as write_report
    from pcsim.terminal import console

    path = write_report(stores, out, figures=figures, title=title)
    if figures:
        console.print(f"figures in {figures}")
    console.print(f"report in {path}")
