"""How far a run is: what every long job tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """`done` of `total` (epochs, seconds, steps: `unit`), and a few words with numbers."""

    done: float
    total: float
    unit: str
    text: str


Report = Callable[[Status], None]
