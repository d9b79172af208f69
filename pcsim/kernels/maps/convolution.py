"""The convolution: μ = g(a), a = W ∗ f(x) + b, and its vector–Jacobian products.

    δ = g'(a) ∘ ξ
    pull:   f'(x) ∘ (transposed convolution of δ with W)
    learn:  Σ_samples, places  δ ⋆ f(x)

How replicas are joined is told in `replica_convolution`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.accumulation import accumulate
from pcsim.kernels.activations import After, Before
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain
from pcsim.kernels.place_sums import backward_sum, forward_sum, refuse_losses
from pcsim.kernels.plain_functions import FUNCTIONS
from pcsim.kernels.replica_convolution import convolve, filter_gradient, pull_back
from pcsim.maps import Convolution
from pcsim.substrate.expression import Value


class ConvolutionKernel:
    """One convolution of one network."""

    def __init__(
        self,
        spec: Convolution,
        params: dict[str, Tensor],
        counter: Counter | None,
        hooks: MapHooks = IDEAL,
    ) -> None:
        if hooks.feedback:
            refuse_losses(hooks.feedback.aggregates)
        self.spec = spec
        self.params = params
        self.counter = counter
        self.hooks = hooks
        self.before, self.after = Before(spec.f, hooks), After(spec.g)
        self._read = params["w"]
        """The weights as the array presents them; the stored ones unless hardware intervenes."""
        self.feedback: Tensor | None = None
        """Stands for W on the way back, where it is not the same array."""

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""
        if self.hooks.weight:
            stored = self.params["w"]
            self._read = self.hooks.weight(stored.flatten(2)).view(stored.shape)

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self.before.allocate(like, self.spec.parent_units[0], shared_input)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x)."""
        self.before.apply(parents[0])

    def predict(self) -> Tensor:
        """Return μ = g(W ∗ r + b)."""
        b = self.params["b"] if self.spec.bias else None
        drive = convolve(self.before.sent, self._read, b, self.spec)
        if self.counter:
            self.counter.product("forward")
        if hook := self.hooks.product:
            drive = hook(drive, **self._forward_sums(hook.aggregates))
        return self.after.emit(drive)

    def _forward_sums(self, names: tuple[str, ...]) -> dict[str, Value]:
        v = self.before.sent
        return {name: forward_sum(name, v, self._read, self.spec) for name in names}

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ and turn it into δ at the drive."""
        self.after.receive(xi)

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return f'(x) ∘ (Wᵀ ∗ δ)."""
        back = self._read if self.feedback is None else self.feedback
        pulled = pull_back(self.after.delta, self.before.sent, back, self.spec)
        if self.counter:
            self.counter.product("backward")
        if hook := self.hooks.feedback:
            pulled = hook(pulled, **self._backward_sums(hook.aggregates, back))
        pulled = self.before.pull(pulled, x)
        return pulled if onto is None else onto.add_(pulled)

    def _backward_sums(self, names: tuple[str, ...], back: Tensor) -> dict[str, Value]:
        delta, v = self.after.delta, self.before.sent
        return {name: backward_sum(name, delta, v, back, self.spec) for name in names}

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for weights and bias."""
        w, b = filter_gradient(
            self.after.delta, self.before.sent, self.params["w"], self.spec, "b" in into
        )
        accumulate(into["w"], w, alpha, beta)
        if "b" in into:
            accumulate(into["b"], b, alpha, beta)

    def gross(self) -> Tensor:
        """Return Σ |δ| ⋆ |f(x)| over samples and places: each place writes by itself."""
        found, _ = filter_gradient(
            self.after.delta.abs(), self.before.sent.abs(), self.params["w"], self.spec, False
        )
        return found


@computes(Convolution)
def _convolution_kernel(
    spec: Convolution, params: Params, counter: Counter | None, hooks: MapHooks
) -> ConvolutionKernel:
    return ConvolutionKernel(spec, params, counter, hooks)


@plain(Convolution)
def _plain_convolution(spec: Convolution, params: Params, parents: Sequence[Tensor]) -> Tensor:
    images = FUNCTIONS[spec.f](parents[0])
    parts = []
    for replica, w in enumerate(params["w"]):
        image = images[replica if len(images) > 1 else 0].view(-1, *spec.image)
        b = params["b"][replica] if spec.bias else None
        parts.append(functional.conv2d(image, w, b, spec.stride, spec.padding).flatten(1))
    return FUNCTIONS[spec.g](parts[0].unsqueeze(0) if len(parts) == 1 else torch.stack(parts))
