"""From what a run asks for to its population in Brian2."""

from __future__ import annotations

from pcsim.backends.brian.run import BrianBackend
from pcsim.config import Config
from pcsim.engines import Order
from pcsim.errors import UnsupportedError


def build(order: Order) -> BrianBackend:
    """Return a population in Brian2."""
    refuse(order.config)
    brian = order.config.brian
    return BrianBackend(
        *order.population,
        samples=order.samples,
        target=brian.target,
        dense=brian.dense,
        folder=brian.folder or None,
        noise=order.noise,
        **order.options,
    )


def refuse(config: Config) -> None:
    """Refuse what a run on Brian2 cannot honour, with the name of the field and the reason."""

    def no(field: str, reason: str) -> UnsupportedError:
        return UnsupportedError(f"backend brian: {field}: {reason}")

    if config.solver.name not in ("euler", "maruyama"):
        raise no(
            f"solver.name {config.solver.name!r}",
            "sums over synapses are made once per time step, so that only 'euler' is itself here "
            "(with circuit.sigma_x: 'maruyama')",
        )
    if config.circuit.sigma_x and config.solver.name == "euler":
        raise no("solver.name 'euler'", "circuit.sigma_x is noise; use 'maruyama'")
    if config.run.device != "cpu":
        raise no(f"run.device {config.run.device!r}", "Brian2 computes on the 'cpu'")
    if config.run.automatic and config.brian.target == "standalone":
        raise no(
            "run.automatic with brian.target 'standalone'",
            "the energy is judged after every step, and the program shows nothing between its "
            "start and its end; use target 'numpy' or 'cython'",
        )
