"""Synapses from a layer to itself, for what no unit knows alone: its past, its whole array.

delay_ring   A pure delay of d time steps is a ring of d+1 synapses from each unit to itself.
             One slot is written in every step, and the oldest one is delivered.
array_power  The mean square of all weights onto a layer (feedback by sign), from its rows.
"""

from __future__ import annotations

from pcsim.circuits.text import to_text

ARRAY_POWER = "array_power_post = row_power_pre : 1 (summed)\n"


def delay_ring(target: str, delay: str) -> str:
    """Return the equations of a ring that delivers to `target` after the time called `delay`."""
    return to_text(
        [
            f"{target}_post = held*int(slot == (t_in_timesteps + 1) % ring) : 1 (summed)",
            "held : 1",
            "slot : integer (constant)",
            f"ring = 1 + int({delay}/dt + 0.5) : integer (constant over dt)",
        ]
    )


def delay_store(source: str) -> str:
    """Return what a ring does with its source at every step."""
    now = "slot == t_in_timesteps % ring"
    return f"held = {source}_pre*int({now}) + held*int(not ({now}))"
