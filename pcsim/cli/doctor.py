"""`pcsim doctor`: what is installed, and whether engines and devices agree."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pcsim.cli.exit_codes import DIFFERS


def doctor(
    device: Annotated[
        str, typer.Option(help="Compare this device with the CPU: cuda, cuda:1, mps.")
    ] = "cpu",
    test: Annotated[bool, typer.Option(help="Run the self-test, some 20 seconds.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Show versions, devices, tools and data, and compare engines and devices with each other."""
    from pcsim.doctor import facts, self_test
    from pcsim.rows import Rows
    from pcsim.runner.training import check_device
    from pcsim.terminal import console

    check_device(device)
    found = facts()
    if not as_json:
        console.print(
            Rows("installation", ("part", "what", "found"), tuple(found), words=True).rich()
        )
    tests = list(self_test(device)) if test else []
    if as_json:
        sections: dict[str, dict[str, str]] = {}
        for section, name, text in found:
            sections.setdefault(section, {})[name] = text
        done = [vars(one) | {"differs": one.differs} for one in tests]
        typer.echo(json.dumps(sections | {"self_test": done}))
    elif tests:
        rows = tuple((one.name, one.words, f"{one.seconds:.1f} s") for one in tests)
        caption = "largest difference of the final weights, of the largest weight"
        console.print(
            Rows("self-test", ("test", "result", "took"), rows, caption, words=True).rich()
        )
    if wrong := [one.name for one in tests if one.differs]:
        typer.echo(
            f"error: {'; '.join(wrong)}: not the same numbers; results of this installation "
            "cannot be trusted. Please report the output of `pcsim doctor --json`.",
            err=True,
        )
        raise typer.Exit(DIFFERS)
