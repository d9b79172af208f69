"""Where hardware enters the equations: effects at named sites, and the chips sampled from them."""

from pcsim.substrate.chips import Chips
from pcsim.substrate.effect import Draw, Effect, Memory, Site, Substrate
from pcsim.substrate.noise import Noise, Seeded

__all__ = [
    "Chips",
    "Draw",
    "Effect",
    "Memory",
    "Noise",
    "Seeded",
    "Site",
    "Substrate",
]
