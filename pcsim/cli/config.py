"""`pcsim config [SECTION]`: every field of a configuration, or its JSON schema."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pcsim.errors import ConfigError


def config(
    section: Annotated[
        str | None,
        typer.Argument(help="A section, such as circuit, or a field, such as circuit.tau_x."),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema, for editors.")
    ] = False,
) -> None:
    """Print the sections of a configuration, or the fields of one: default, meaning, allowed."""
    from pcsim.fields.config_pages import overview, section_page
    from pcsim.fields.config_schema import config_schema

    if schema and section:
        raise ConfigError("config: --schema is of the whole configuration; leave SECTION out")
    if schema:
        typer.echo(json.dumps(config_schema(), indent=2, ensure_ascii=False))
        return
    for line in section_page(section) if section else overview():
        typer.echo(line)
