"""One number of a chip's description: where it stands, what it is, and what it means."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChipNumber:
    """A numeric field of a piece."""

    path: str
    """Where it stands: "adc.bits", "pair.device.dw_min"."""
    value: int | float
    text: str
    """The value with its unit."""
    meaning: str

    @property
    def bits(self) -> bool:
        """Whether it counts bits, which are lost one by one."""
        return self.path.rpartition(".")[2] == "bits"

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are allowed."""
        return isinstance(self.value, int)
