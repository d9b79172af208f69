"""One colour, dash and marker per learning rule, the same in all figures of the paper's studies."""

from __future__ import annotations

from pcsim.plots import COLOURS, DASHES

STYLES: dict[str, tuple[str, str, str]] = {
    "BP": (COLOURS[6], DASHES[0], "^"),
    "iPC": (COLOURS[0], DASHES[0], "v"),
    "Z-IL": (COLOURS[2], DASHES[0], "D"),
    "PC": (COLOURS[1], DASHES[0], "s"),
    "PC, squared error, γ 0.5": (COLOURS[1], DASHES[1], "o"),
    "iPC, post-activation nodes": (COLOURS[4], DASHES[2], "P"),
    "iPC, as many updates": (COLOURS[5], DASHES[3], "X"),
    "PC, T = 8": (COLOURS[1], DASHES[1], "s"),
    "PC, T = 12": (COLOURS[4], DASHES[2], "o"),
    "PC, T = 16": (COLOURS[3], DASHES[3], "P"),
}
"""Colour, line style and marker by the name a legend shows."""
