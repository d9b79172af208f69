"""The stream: what is shown to a chip, for how long, and what happens at a switch. Frozen data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pcsim.continuous.solvers import Name
from pcsim.frozen import Count, Duration, Frozen, Seconds, Whole


class StreamConfig(Frozen):
    """One presentation after the other; `learning.batch` samples share the weights (1: a chip).

    What happens to the states at a switch is `schedule.init`: "carry" (they flow on), "ff" (they
    are set to the feed-forward pass) or "zero".
    """

    t_pres: Seconds | None = None
    """Seconds per presentation with the label on; none: schedule.T time steps."""
    t_settle: Duration = 0.0
    """Seconds at the start of a presentation with the label let go. The weights stay plastic (but
    those of circuit.kind 'equilibrium', whose free phase it is), so that the old label is learnt
    with the new input, which hurts: `pcsim experiment streaming`."""
    tau_label: Duration = 0.0
    """Time constant with which the clamped label follows a switch; 0 is abrupt. With a categorical
    output the label p of the moment sends p − (Σp) softmax(μ), also where Σp ≠ 1 on its way."""


class Solver(Frozen):
    """How the flow is integrated."""

    name: Name = "euler"
    """Integrator; hardware acts once per time step, and takes euler or maruyama."""
    dt: Seconds | None = None
    """Time step in seconds; none: schedule.gamma · circuit.tau_x, so that Euler is discrete iPC."""
    noise_seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Seed of the temporal noise."""


class Record(Frozen):
    """What is kept while a chip runs."""

    every: Whole = 0
    """Time steps between two records of statistics; 0: about 500 records in the whole run."""
    trajectories: bool = False
    """Also keep whole trajectories, streamed to a file beside the result."""
    units: Count = 4
    """Trajectories: the first units of each layer that are kept."""
    chips: Count = 2
    """Trajectories: the first chips that are kept."""
    predictions: bool = True
    """Keep the class that each replica predicts for every test sample at the end."""
