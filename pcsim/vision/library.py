"""Load parts of kornia when they are needed, or say how to get it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pcsim.errors import UnsupportedError


def part(name: str, purpose: str) -> Any:
    """Return the module `kornia.name`; `purpose` begins the sentence when it is missing."""
    try:
        return import_module(f"kornia.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "kornia":
            raise
        raise UnsupportedError(
            f"{purpose} needs kornia, which is not installed: pip install 'pcsim[vision]'"
        ) from None
