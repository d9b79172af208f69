"""`pcsim experiment NAME`: run one of the studies in `experiments/`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from pcsim.errors import ConfigError

NAMES = ("devices", "speed", "stability", "streaming")
"""The studies that exist; each is a module `experiments.NAME` with a function `main(out)`."""


def experiment(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("out"),
) -> None:
    """Run a study: prints its table, writes its result and figure."""
    if name not in NAMES:
        raise ConfigError(f"experiment: there is no {name!r}; choose one of {', '.join(NAMES)}")
    import_module(f"experiments.{name}").main(out)
