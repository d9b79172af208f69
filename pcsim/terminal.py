"""What is printed is text: a name such as `[/x]` or `:warning:` is shown as it is written."""

from __future__ import annotations

from typing import Any

from rich.console import Console


def terminal(**options: Any) -> Console:
    """Return a console that takes no markup from file names, presets or data."""
    return Console(markup=False, emoji=False, **options)
