"""The fully connected map: μ = g(a), a = W f(x) + b, and its two vector–Jacobian products.

    δ = g'(a) ∘ ξ                what the error ξ = −∂E/∂μ means for the drive a
    pull:   f'(x) ∘ (Wᵀ δ)       towards the parent
    learn:  Σ_samples δ f(x)ᵀ    towards the weights

Rows are samples, so in code a = f(x) Wᵀ + b and Wᵀδ is `δ W`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcsim.kernels.accumulation import accumulate
from pcsim.kernels.activations import Behind
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks, row_sums
from pcsim.kernels.map_kernel import Params, computes, plain, refuse_hardware
from pcsim.kernels.nonlinearity import NONLINEARITIES
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.maps import Dense


def add_outer(into: Tensor, post: Tensor, pre: Tensor, alpha: float, beta: float = 1.0) -> None:
    """Do into ← beta·into + alpha·Σ_samples post preᵀ."""
    if post.shape[1] == 1 and beta == 1:
        # One sample: broadcasting is many times faster than a batch of tiny matrix products.
        into.addcmul_(post.mT, pre, value=alpha)
    elif post.shape[1] == 1 and beta == 0 and alpha == 1:
        torch.mul(post.mT, pre, out=into)
    else:
        torch.baddbmm(into, post.mT, pre, beta=beta, alpha=alpha, out=into)


class DenseKernel(Behind):
    """One map of one network: keeps its buffers from step to step."""

    def __init__(
        self,
        spec: Dense,
        params: dict[str, Tensor],
        counter: Counter | None,
        hooks: MapHooks = IDEAL,
    ) -> None:
        super().__init__(spec.g)
        self.spec = spec
        self.params = params
        self.counter = counter
        self.hooks = hooks
        self.f = None if spec.f == "identity" else NONLINEARITIES[spec.f]
        # Views are made once: at small sizes, making them costs as much as using them.
        self._read = params["w"]
        """The weights as the array presents them; the stored ones unless hardware intervenes."""
        self._transposed = self._read.mT
        self._bias = params["b"].unsqueeze(1) if "b" in params else None
        self.feedback: Tensor | None = None
        """Stands for W on the way back, where it is not the same array."""
        self.r = self._pulled = torch.empty(0)
        self._seen = self._sent = self.r

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""
        if self.hooks.weight:
            self._read = self.hooks.weight(self.params["w"])
            self._transposed = self._read.mT

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        shared_input &= not self.hooks.on_rates
        replicas, samples = like.shape[:2]
        n_in, n_out = self.spec.n_in, self.spec.n_out
        self.drive = like.new_empty(replicas, samples, n_out)
        self.mu = self.drive if self.g is None else torch.empty_like(self.drive)
        self.delta = self.drive if self.g is None else torch.empty_like(self.drive)
        self._pulled = like.new_empty(0 if shared_input else replicas, samples, n_in)
        if self.f is not None:
            # A clamped input that all replicas share is transformed once, not once per replica.
            self.r = like.new_empty(1 if shared_input else replicas, samples, n_in)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x), needed again whenever the parent has moved."""
        (x,) = parents
        if self.hooks.membrane:
            x = self._seen = self.hooks.membrane(x)
        if self.f is None:
            self.r = x
        else:
            base = x if self.r.shape[0] == x.shape[0] else x[:1]
            self.f.apply(base, self.r)
        if self.hooks.rate:
            self._sent = self.hooks.rate(self.r)

    @property
    def rates(self) -> Tensor:
        """Return r as sent, with the full replica axis (a view when the input is shared)."""
        if self.hooks.rate:
            return self._sent
        return (
            self.r
            if self.r.shape[0] == self.drive.shape[0]
            else self.r.expand(len(self.drive), -1, -1)
        )

    def predict(self) -> Tensor:
        """Return μ = g(W r + b)."""
        if self._bias is not None:
            torch.baddbmm(self._bias, self.rates, self._transposed, out=self.drive)
        else:
            torch.bmm(self.rates, self._transposed, out=self.drive)
        if self.counter:
            self.counter.product("forward")
        if hook := self.hooks.product:
            self.drive.copy_(hook(self.drive, **row_sums(hook.aggregates, self.rates, self._read)))
        return self.emit()

    def emit(self) -> Tensor:
        """Return μ = g(a) from the drive as it stands."""
        return self.drive if self.g is None else self.g.apply(self.drive, self.mu)

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return f'(x) ∘ (Wᵀ δ) (+ onto); the buffer is reused in the next step."""
        back = self._read if self.feedback is None else self.feedback
        if self.counter:
            self.counter.product("backward")
        if onto is not None and self.f is None and not self.hooks.feedback:
            return torch.baddbmm(onto, self.delta, back, out=onto)
        torch.bmm(self.delta, back, out=self._pulled)
        if hook := self.hooks.feedback:
            sums = row_sums(hook.aggregates, self.delta, back.mT)
            self._pulled.copy_(hook(self._pulled, **sums))
        if self.hooks.membrane:
            x = self._seen
        pulled = self._pulled if self.f is None else self.f.pull(self._pulled, x, self.r)
        return pulled if onto is None else onto.add_(pulled)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·Σ δ rᵀ, for weights and bias."""
        add_outer(into["w"], self.delta, self.rates, alpha, beta)
        if "b" in into:
            accumulate(into["b"], self.delta.sum(1), alpha, beta)

    def gross(self) -> Tensor:
        """Return Σ_samples |δ| |r|ᵀ: what the samples ask for, whichever way."""
        return torch.bmm(self.delta.abs().mT, self.rates.abs())


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

    def gross(self) -> Tensor:
        """Return Σ |δ| |r|ᵀ over samples and positions."""
        return self.inner.gross()


@computes(Dense)
def _dense_kernel(
    spec: Dense, params: Params, counter: Counter | None, hooks: MapHooks
) -> DenseKernel | PerPositionKernel:
    if spec.positions == 1:
        return DenseKernel(spec, params, counter, hooks)
    refuse_hardware(spec, hooks)
    return PerPositionKernel(DenseKernel(spec, params, counter), spec.positions)


@plain(Dense)
def _plain_dense(spec: Dense, params: Params, parents: Sequence[Tensor]) -> Tensor:
    rates = FUNCTIONS[spec.f](parents[0]).reshape(parents[0].shape[0], -1, spec.n_in)
    drive: Tensor = torch.matmul(rates, params["w"].mT)
    if spec.bias:
        drive = drive + params["b"].unsqueeze(1)
    return FUNCTIONS[spec.g](drive).view(drive.shape[0], parents[0].shape[1], -1)
