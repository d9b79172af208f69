"""What every non-ideality has: a kind, fields with units, and the effects it lowers to."""

from __future__ import annotations

from abc import abstractmethod

from pcsim.frozen import Frozen
from pcsim.substrate import Effect


class Piece(Frozen):
    """One non-ideality as a person describes it.

    Every field's documentation states its unit, what it is relative to, and whether it is a
    device-to-device spread (drawn once), cycle-to-cycle (at each write), per read (in each time
    step), or a density per √Hz.
    """

    kind: str

    @abstractmethod
    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return what it does; effect names begin with `name`."""
