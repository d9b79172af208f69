"""Ngspice integrates netlists of the circuit's equations: see `pcsim.spice`."""

from __future__ import annotations

from pcsim.engines import Order
from pcsim.spice.engine import Spice, refuse


def build(order: Order) -> Spice:
    """Return a population of netlists."""
    config = order.config
    refuse(order.network, order.circuit, order.samples, config.run.device)
    return Spice(
        *order.population,
        noise=order.noise,
        folder=config.spice.folder or None,
        macro=config.spice.macro,
        reltol=config.spice.reltol,
        trnoise=config.spice.noise == "trnoise",
        **order.options,
    )
