"""Hardware with published numbers: instances, not classes, one family per file."""

from hw_models.presets.programmed import PROGRAMMED
from hw_models.presets.substrates import SUBSTRATES
from hw_models.presets.training import TRAINING

__all__ = ["PROGRAMMED", "SUBSTRATES", "TRAINING"]
