"""`pcsim data`: which data sets there are, fetching them, and checking their files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.exit_codes import BAD_DATA

if TYPE_CHECKING:
    from pcsim.datasets.registry import DataFile, Entry

app = typer.Typer(help="List, fetch and verify data sets.", no_args_is_help=True)


@app.command("list")
def list_sets() -> None:
    """List the data sets: what they are, their licence, and where they were found."""
    from rich.table import Table

    from pcsim.datasets.registry import entry
    from pcsim.datasets.registry import names as all_names
    from pcsim.terminal import terminal

    table = Table(title="Data sets")
    table.add_column("name", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("licence", ratio=2)
    table.add_column("where", ratio=2)
    table.add_column("size", justify="right", no_wrap=True)
    for one in map(entry, all_names()):
        table.add_row(one.name, one.title, one.licence, _where(one), _size(one))
    terminal().print(table)
    typer.echo("'pcsim data verify' compares the files with the published checksums.")


@app.command()
def fetch(
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Data sets to download.")],
    trust: Annotated[
        bool, typer.Option("--trust", help="Also download files with no published checksum.")
    ] = False,
) -> None:
    """Download data sets into the cache; a good local copy is kept and not downloaded again."""
    from pcsim.datasets import locate
    from pcsim.datasets.registry import entry

    for one in [entry(name) for name in names]:  # a wrong name is refused before any download
        for file in one.wanted():
            typer.echo(f"{one.name}: {file.path}: {locate.fetch_file(one, file, trust=trust)}")


@app.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Default: all that are here.")
    ] = None,
) -> None:
    """Compare local files with the published checksums; exit code 1 if one is bad.

    A file that is not here counts as bad only for a data set that was asked for by name.
    """
    from pcsim.datasets.registry import entry
    from pcsim.datasets.registry import names as all_names

    chosen = [entry(name) for name in names or all_names()]
    bad = 0
    for one in chosen:
        for file in one.wanted():
            good, line = _verdict(one, file, required=bool(names))
            typer.echo(line, err=not good)
            bad += not good
    if bad:
        raise typer.Exit(BAD_DATA)


def _verdict(one: Entry, file: DataFile, *, required: bool) -> tuple[bool, str]:
    """Say of one file whether it is good, hashing all of its copies anew."""
    from pcsim.datasets import locate

    copies = locate.copies(file)
    if not copies:
        fetch_it = f"; run `pcsim data fetch {one.name}`" if required else ""
        return not required, f"missing  {one.name}: {file.path}{fetch_it}"
    for _, path in copies:
        if not locate.is_published(path, file, thorough=True):
            return False, f"BAD      {locate.mismatch(one, file, path)}"
    return True, f"ok       {one.name}: {file.path} ({file.checksum})"


def _where(one: Entry) -> str:
    """Say where the files are; by name and size only, since hashing them all would take long."""
    from pcsim.datasets import locate

    found = [copies[0] for file in one.wanted() if (copies := locate.copies(file))]
    if not found:
        other = [path for stand_in in one.stand_ins for _, path in locate.copies(stand_in)]
        return f"not found (unverified: {', '.join(p.name for p in other)})" if other else "-"
    text = ", ".join(dict.fromkeys(label for label, _ in found))
    if len(found) < len(one.wanted()):
        text += f", {len(found)} of {len(one.wanted())} files"
    if any(_odd_size(file) for file in one.wanted()):
        text += ", not the published size"
    return text


def _odd_size(file: DataFile) -> bool:
    from pcsim.datasets import locate

    copies = locate.copies(file)
    return bool(copies) and file.size is not None and _bytes(copies[0][1]) != file.size


def _bytes(path: Path) -> int:
    return path.stat().st_size


def _size(one: Entry) -> str:
    total = sum(file.size or 0 for file in one.wanted())
    return f"{total / 1e6:.1f} MB" if total else "?"
