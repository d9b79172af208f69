"""Runs against each other: accuracy gaps with confidence, agreement, and what a target costs."""

from pcsim.compare.comparison import Comparison, compare
from pcsim.compare.contrast import KIND

__all__ = ["KIND", "Comparison", "compare"]
