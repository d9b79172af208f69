"""Hardware with published numbers: instances, not classes, one family per file."""

from hw_models.presets.chips import CHIPS
from hw_models.presets.emerging import EMERGING
from hw_models.presets.flash import FLASH
from hw_models.presets.programmed import PROGRAMMED
from hw_models.presets.substrates import SUBSTRATES
from hw_models.presets.training import TRAINING

ALL = (*TRAINING, *PROGRAMMED, *FLASH, *EMERGING, *SUBSTRATES, *CHIPS)
"""Every preset but the ideal one."""

__all__ = ["ALL", "CHIPS", "EMERGING", "FLASH", "PROGRAMMED", "SUBSTRATES", "TRAINING"]
