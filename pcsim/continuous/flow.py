"""What a solver needs to know of a circuit: forces on fast states, and the change of weights.

    τ_s ds/dt = force_s(s, θ)        for every fast state (soma, error unit, apical, interneuron)
    dθ/dt     = change(s, θ)         for every weight array

Both are functions of one and the same state. A flow never moves anything itself, except in
`learn`, which adds a multiple of dθ/dt to the weights in place: the fast form that Euler steps use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from pcsim.errors import ConfigError
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback

Tau = float | Tensor
"""One time constant, or a tensor that broadcasts to (chip, sample, unit)."""


def reference(clamps: Sequence[Tensor | None], states: Sequence[Tensor]) -> Tensor:
    """Return a tensor with the samples, type and device of a load: a clamp, or a present state."""
    found = next((tensor for tensor in (*clamps, *states) if tensor is not None), None)
    if found is None:
        raise ConfigError(
            "load.clamps: no node is given data, and there are no states to let go from; clamp "
            "data at one node at least"
        )
    return found


def clamped(states: Sequence[Tensor], elsewhere: Collection[int]) -> dict[str, Tensor]:
    """Return the data as it is clamped, for a checkpoint; what all chips share is kept once."""
    return {
        f"clamp{k}": state[:1] if state.stride(0) == 0 else state
        for k, state in enumerate(states)
        if k not in elsewhere
    }


def set_moving(moving: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    """Put the states that move back to those of a checkpoint."""
    for name, tensor in moving.items():
        tensor.copy_(state[name])


@dataclass(frozen=True, eq=False)
class Force:
    """τ ds/dt = value. `leaky` says that value = target − s with the target held elsewhere."""

    name: str
    state: Tensor
    value: Tensor
    tau: Tau
    leaky: bool = True
    noisy: bool = False
    """Whether white noise of the circuit acts on this state (somas)."""
    free: Tensor | None = None
    """1 where the state moves, 0 where it is clamped; None: all of it moves. The force is zero
    there already; noise has to be told."""


class Flow(Protocol):
    """A circuit in motion."""

    weights: list[Tensor]
    """All weight arrays, each (chip, number)."""

    @property
    def feedback(self) -> Feedback | None:
        """Feedback weights, where the circuit has a choice of transport."""

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data for `steps` steps; free states keep their values (or start at zero).

        A node that the mode clamps but that gets no data is let go, from its present value.
        """

    def feedforward(self) -> None:
        """Set the states to the feed-forward pass."""

    def forces(self) -> list[Force]:
        """Return the force on every fast state, at the present state."""

    def learn(self, dt: float) -> None:
        """Do θ ← θ + dt·dθ/dt, with dθ/dt at the state of the last `forces`."""

    def follow(self) -> None:
        """Let rates follow a look-ahead, as `learn` does, with the weights left alone."""

    def communicate(self) -> None:
        """Let the events that a step has caused arrive, at its end; most circuits have none."""

    def events(self) -> dict[str, Tensor]:
        """Return the events so far (chip, unit), by sender, over all samples."""

    def weight_rates(self) -> list[Tensor]:
        """Return dθ/dt of every weight array, at the state of the last `forces`."""

    def settle_weights(self) -> None:
        """Write what was kept back while an input was clamped."""

    def settle_rows(self, rows: Tensor) -> None:
        """Write what was kept back of these chips alone."""

    def kept_back(self) -> dict[str, Tensor]:
        """Return what moves instead of weights that are kept back, by name."""

    def theta(self) -> Parameters:
        """Return the weights in the units of the network."""

    def stored(self) -> list[Tensor]:
        """Return `weights`, up to date: all that a twin of this circuit must be given."""

    def energy_by_node(self) -> Tensor:
        """Return E_l (chip, predicted node), summed over samples, at the last `forces`."""

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name; writing into them sets the state."""

    def states(self) -> dict[str, Tensor]:
        """Return every named state, and observable that was computed, (chip, sample, unit)."""

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on besides the weights; nothing is changed."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""
