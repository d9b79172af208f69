"""Torch takes the steps of all chips at once: see `pcsim.backends.continuous`."""

from __future__ import annotations

from pcsim.backends.continuous import Continuous
from pcsim.engines import Order


def build(order: Order) -> Continuous:
    """Return a population in torch, with its hardware compiled where torch was not asked for."""
    config, chips = order.config, order.chips
    if chips and not order.asked:
        chips.compile(order.steps)
    engine = Continuous(
        *order.population,
        solver_name=config.solver.name,
        draw=order.draw,
        fast=config.schedule.fast,
        **order.options,
    )
    engine.reason = order.reason
    return engine
