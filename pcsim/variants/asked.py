"""The check that variants start from: one that was made, or one that is made now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pcsim.check import check
from pcsim.check.found import Check
from pcsim.check.rows import Watch
from pcsim.errors import ConfigError


def checked(
    config: Any,
    hardware: Any,
    verb: str,
    *,
    watch: Watch | None,
    rows: Path | None,
    **asked: Any,
) -> Check:
    """Return the check; without a verdict, nothing can change it."""
    if isinstance(config, Check):
        if hardware is not None or asked:
            names = ", ".join([*(["hardware"] if hardware is not None else []), *asked])
            raise ConfigError(f"{verb}: {names}: a check that was made has these already")
        made = config
    else:
        made = check(config, hardware, watch=watch, rows=rows, **asked)
    if made.outcome == "no verdict":
        raise ConfigError(f"{verb}: {made.sentence()}")
    return made
