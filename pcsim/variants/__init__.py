"""Chips that differ from one that was checked: margins of its numbers, and its bottleneck."""

from pcsim.variants.every_number import margins
from pcsim.variants.margins_found import Margins

__all__ = ["Margins", "margins"]
