"""The same dense map at every position of a sequence: positions join the samples on the way in."""

from __future__ import annotations

from torch import Tensor

from pcsim.kernels.dense import DenseKernel


class PerPositionKernel:
    """A dense kernel that sees (replica, sample·position, feature)."""

    def __init__(self, inner: DenseKernel, positions: int) -> None:
        self.inner = inner
        self.positions = positions
        self.params = inner.params
        self.hooks = inner.hooks
        self._axes = (0, 0)

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""
        self.inner.read_weights()

    @property
    def feedback(self) -> Tensor | None:
        """Stands for W on the way back, where it is not the same array."""
        return self.inner.feedback

    @feedback.setter
    def feedback(self, array: Tensor | None) -> None:
        self.inner.feedback = array

    def _split(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], x.shape[1] * self.positions, x.shape[2] // self.positions)

    def _join(self, y: Tensor) -> Tensor:
        return y.view(*self._axes, self.positions * y.shape[2])

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self._axes = (like.shape[0], like.shape[1])
        rows = like.new_empty(1).expand(like.shape[0], like.shape[1] * self.positions)
        self.inner.allocate(rows, shared_input)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x)."""
        self.inner.activate(self._split(parents[0]))

    def predict(self) -> Tensor:
        """Return μ = g(W r + b)."""
        return self._join(self.inner.predict())

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self.inner.receive(self._split(xi))

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return f'(x) ∘ (Wᵀ δ)."""
        target = None if onto is None else self._split(onto)
        return self._join(self.inner.pull(self._split(x), slot, target))

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·Σ δ rᵀ, for weights and bias."""
        self.inner.learn(into, alpha, beta)
