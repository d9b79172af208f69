"""What a run in continuous time asks of whoever integrates it: torch or Brian2."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from pcsim.divergence import LIMIT
from pcsim.kernels.parameters import Parameters
from pcsim.kernels.transport import Feedback


class Observed(Protocol):
    """A circuit as it is seen from outside; reading never changes it."""

    @property
    def feedback(self) -> Feedback | None:
        """Feedback weights, where the circuit has a choice of transport."""

    def theta(self) -> Parameters:
        """Return the weights in the units of the network."""

    def stored(self) -> list[Tensor]:
        """Return every array that learns as the circuit of the torch engine stores it."""

    def energy_by_node(self) -> Tensor:
        """Return E_l (chip, predicted node), summed over samples, of the last step."""

    def events(self) -> dict[str, Tensor]:
        """Return the events so far (chip, unit), by sender, over all samples."""

    def moving(self) -> dict[str, Tensor]:
        """Return the states that move, by name."""

    def states(self) -> dict[str, Tensor]:
        """Return every named state and observable (chip, sample, unit) for recording."""


class Engine(Protocol):
    """Chips in continuous time, one Euler step (or one step of another solver) at a time."""

    dt: float
    diverged_at: Tensor
    params: Parameters

    @property
    def steps(self) -> int:
        """Time steps so far."""

    @property
    def time(self) -> float:
        """Simulated seconds so far."""

    @property
    def flow(self) -> Observed:
        """The circuit, to be looked at."""

    def load(
        self, clamps: Sequence[Tensor | None], mask: Tensor | None = None, steps: int = 1 << 20
    ) -> None:
        """Clamp new data for `steps` steps; all else flows on."""

    def clamp_moved(self, index: int, value: Tensor) -> None:
        """Take note that the clamped tensor of a node was changed in place."""

    def feedforward(self) -> None:
        """Set the free states to the feed-forward pass."""

    def set_states(self, states: Mapping[str, Tensor]) -> None:
        """Set states that move, by name."""

    def zero_states(self) -> None:
        """Set every state that moves to zero."""

    def drive(self, program: Iterator[None], steps: int) -> None:
        """Take one step whenever the program yields, at most `steps`; it acts between them."""

    def look_back(self) -> None:
        """Let errors and energies be those from which the last step was taken."""

    def stop(self, chips: Tensor) -> None:
        """Let chips (chip,) leave: nothing of theirs moves from now on."""

    def mark_diverged(self) -> Tensor:
        """Note the time at which chips are found diverged; return all that are (chip,)."""

    def state(self) -> dict[str, Tensor]:
        """Return all that the next step depends on but the hardware's own; nothing is changed."""

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint; the tensors of clamped data are used as they are."""

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and by how many threads: a result says so."""


def beyond_limit(states: Mapping[str, Tensor], weights: Tensor) -> Tensor:
    """Return which chips (chip,) have left the range in which numbers mean something."""
    bad = ~((weights.amax(1) < LIMIT) & (weights.amin(1) > -LIMIT))
    for state in states.values():
        bad = bad | ~(state.flatten(1).abs().amax(1) < LIMIT)
    return bad.cpu()


def of_run(engine: Engine) -> dict[str, Tensor]:
    """Return what a checkpoint says of the run itself: steps so far, and who has diverged."""
    return {"steps": torch.tensor(engine.steps), "diverged_at": engine.diverged_at}
