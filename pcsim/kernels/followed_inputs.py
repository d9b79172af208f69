"""Predict and learn, with clamped inputs followed through their Gram matrix where that pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from pcsim.kernels.clamped_input import ClampedInput
from pcsim.kernels.field import Field
from pcsim.kernels.maps.dense import DenseKernel
from pcsim.kernels.optim import Rate
from pcsim.kernels.parameters import Views


class FollowedInputs:
    """`Field.predict` and `Field.learn`, with a shortcut for maps whose input stays clamped.

    `enabled` asserts what `ClampedInput` needs: weights move by plain gradient steps of one rate,
    and nothing else touches them.
    """

    def __init__(self, field: Field, *, enabled: bool) -> None:
        self.field = field
        self._possible = {
            index: ClampedInput(kernel)
            for index in (field.clamped_input if enabled else ())
            if isinstance(kernel := field.maps[index], DenseKernel)
            and "log_var" not in kernel.params
        }
        self.active: dict[int, ClampedInput] = {}

    def load(self, samples: int, steps: int, *, predict: bool = True) -> None:
        """New data was clamped for about `steps` steps; `predict`: the drive is not known yet."""
        held = self.field.clamped_input  # an input may have been let go for this load
        self.active = {
            i: d for i, d in self._possible.items() if i in held and d.pays(samples, steps)
        }
        for drive in self.active.values():
            drive.load()
        if predict:
            self.field.predict(tuple(self.active))

    def predict(self, nodes: Sequence[int], alpha: Rate) -> None:
        """Compute μ of these nodes."""
        if not self.active:
            self.field.predict(nodes)
            return
        for index in reversed(nodes):  # from the top, as `Field.predict` does
            if index in self.active:
                self.field.mu[index] = self.active[index].predict(alpha)
            else:
                self.field.predict((index,))

    def learn(self, nodes: Sequence[int], into: Views, alpha: float, beta: float) -> list[int]:
        """Accumulate weight changes; return the nodes that did so at once."""
        ordinary = [i for i in nodes if i not in self.active]
        self.field.learn(ordinary, into, alpha, beta)
        for index, drive in self.active.items():
            if index in nodes:
                drive.learn()
        return ordinary

    def write(self, alpha: Rate) -> None:
        """Write what was kept back."""
        for drive in self.active.values():
            drive.write(alpha)

    def write_rows(self, alpha: Rate, rows: Tensor) -> None:
        """Write what was kept back of these replicas alone."""
        for drive in self.active.values():
            drive.write_rows(alpha, rows)

    def tensors(self) -> dict[str, Tensor]:
        """Return what moves here instead of the weights, by name."""
        drives = {f"drive{i}": d.kernel.drive for i, d in self.active.items()}
        return drives | {f"kept_back{i}": d.summed for i, d in self.active.items()}

    def state(self) -> dict[str, Tensor]:
        """Return the drives that are followed, for a checkpoint."""
        return {n: t for i, drive in self.active.items() for n, t in drive.state(i).items()}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint, with the same inputs clamped again."""
        for index, drive in self.active.items():
            drive.restore(index, state)
