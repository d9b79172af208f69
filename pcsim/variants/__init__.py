"""Chips that differ from one that was checked: margins, bottleneck, specifications, remedies."""

from pcsim.variants.along_axes import specs
from pcsim.variants.every_number import margins
from pcsim.variants.every_remedy import remedies
from pcsim.variants.margins_found import Margins
from pcsim.variants.remedies_found import Remedies
from pcsim.variants.specs_found import Specs

__all__ = ["Margins", "Remedies", "Specs", "margins", "remedies", "specs"]
