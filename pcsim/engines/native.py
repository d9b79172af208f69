"""C code that is compiled from the circuit's equations takes the steps: see `pcsim.native`."""

from __future__ import annotations

from pcsim.engines import Order
from pcsim.native.engine import Native


def build(order: Order) -> Native:
    """Return a population in compiled steps."""
    if order.chips:
        order.chips.compile(order.steps)  # for read-outs, which step in torch
    solver = order.config.solver.name
    return Native(*order.population, solver_name=solver, noise=order.noise, **order.options)
