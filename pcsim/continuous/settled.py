"""The answer of a circuit: its label released, its weights frozen, until nothing moves.

    τ_s ds/dt = force_s(s, θ) = 0        at the state that an input leads to

The states start at the feed-forward pass. Where that is the stationary state already (no offset at
an error, a feedback or a soma, interneurons that predict exactly), it is the answer at once.
Signals that change by themselves (noise, memory, drift, events) never come to rest: they are
integrated for a fixed time. Pure delays are left out: they change how a circuit comes to rest, not
where.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.solvers import Euler
from pcsim.substrate import Substrate

REST = 1e-9
"""|τ ds/dt| relative to 1 + |s| below which a state is at rest; in single precision 64 ulp."""
PATIENCE = 200.0
"""How long a circuit may take to come to rest, in time constants of its slowest part."""
FLUCTUATING = 10.0
"""How long a circuit is integrated that never comes to rest, in the same time constants."""
LAGS = ("tau_err", "tau_apical", "tau_inter", "tau_s")
"""Time constants besides that of the somas, where a circuit has them."""
ONCE = ("input", "output", "write")
"""Sites that do not act while a circuit settles."""


def fluctuates(circuit: Circuit, substrate: Substrate | None) -> bool:
    """Return whether signals of a circuit change by themselves."""
    effects = substrate.effects if substrate else ()
    return circuit.sigma_x > 0 or any(
        effect.noise or effect.memory or effect.uses("t")
        for effect in effects
        if effect.site not in ONCE
    )


class Settled:
    """What an engine in supervised mode answers; the engine is used up for it."""

    def __init__(self, engine: Continuous, substrate: Substrate | None = None) -> None:
        assert isinstance(engine.solver, Euler)
        self.engine, self._solver = engine, engine.solver
        circuit = engine.circuit
        slowest = max(circuit.tau_x, *(getattr(circuit, name) for name in LAGS))
        self._fluctuates = fluctuates(circuit, substrate) or bool(engine.flow.events())
        time = FLUCTUATING if self._fluctuates else PATIENCE
        self._steps = ceil(time * slowest / engine.dt)
        resolution = torch.finfo(engine.params.flat.dtype).eps
        self._rest = max(REST, 64 * resolution)

    @torch.no_grad()
    def __call__(self, weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        """Return the output (chip, sample, unit) for inputs (sample, unit)."""
        flow = self.engine.flow
        for array, given in zip(flow.weights, weights, strict=True):
            array.copy_(given)
        flow.load([*[None] * (len(self.engine.network.nodes) - 1), inputs[None]])
        self.engine.zero_states()  # nothing is left of the last inputs
        flow.feedforward()
        answer = flow.states()["x0"].clone()
        if self._fluctuates:
            for _ in range(self._steps):
                self._step()
            return flow.states()["x0"].clone()
        waiting = torch.ones(answer.shape[:2], dtype=torch.bool, device=answer.device)
        for _ in range(self._steps):
            present = flow.states()["x0"].clone()
            resting = self._step()
            answer = torch.where(waiting.unsqueeze(2), present, answer)
            waiting = waiting & ~resting
            if not waiting.any():
                break
        return answer

    def _step(self) -> Tensor:
        """Move the states by one time step; return which (chip, sample) were at rest or lost."""
        flow = self.engine.flow
        forces = flow.forces()
        speeds = [(f.value.abs() / (1 + f.state.abs())).amax(2) for f in forces]
        largest = torch.stack(speeds).amax(0)
        flow.follow()
        self.engine.steps += 1
        self._solver.move(forces)
        flow.communicate()
        if self.engine.chips:
            self.engine.chips.advance()
        return (largest <= self._rest) | ~torch.isfinite(largest)
