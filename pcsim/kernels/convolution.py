"""The convolution: μ = g(a), a = W ∗ f(x) + b, and its vector–Jacobian products.

    δ = g'(a) ∘ ξ
    pull:   f'(x) ∘ (transposed convolution of δ with W)
    learn:  Σ_samples, places  δ ⋆ f(x)

Replicas have weights of their own and are convolved one after another: each convolution is large
enough to keep all cores busy, and a grouped one would have to move the replica axis by a copy.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.accumulation import accumulate
from pcsim.kernels.activations import After, Before
from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.place_sums import backward_sum, forward_sum, refuse_losses
from pcsim.maps import Convolution
from pcsim.substrate.expression import Value

aten = torch.ops.aten


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
        self._drive = torch.empty(0)
        self._options = ((spec.stride,) * 2, (spec.padding,) * 2, (1, 1), False, (0, 0), 1)

    def read_weights(self) -> None:
        """Let the array present its weights for this step."""
        if self.hooks.weight:
            stored = self.params["w"]
            self._read = self.hooks.weight(stored.flatten(2)).view(stored.shape)

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self.before.allocate(like, self.spec.parent_units[0], shared_input)
        self._drive = like.new_empty(*like.shape[:2], self.spec.units)

    def activate(self, *parents: Tensor) -> None:
        """Evaluate r = f(x)."""
        self.before.apply(parents[0])

    def predict(self) -> Tensor:
        """Return μ = g(W ∗ r + b)."""
        spec, drive = self.spec, self._drive
        for replica, w in enumerate(self._read):
            b = self.params["b"][replica] if spec.bias else None
            image = self.before.of_replica(replica).view(-1, *spec.image)
            a = functional.conv2d(image, w, b, spec.stride, spec.padding)
            if len(drive) == 1:
                drive = a.view(1, len(a), -1)
            else:
                drive[replica].copy_(a.view(len(a), -1))
        if self.counter:
            self.counter.product("forward")
        if hook := self.hooks.product:
            drive = hook(drive, **self._forward_sums(hook.aggregates))
        return self.after.emit(drive)

    def _forward_sums(self, names: tuple[str, ...]) -> dict[str, Value]:
        spec = self.spec
        images = [self.before.of_replica(k).view(-1, *spec.image) for k in range(len(self._read))]
        return {
            name: torch.stack(
                [forward_sum(name, v, w, spec) for v, w in zip(images, self._read, strict=True)]
            )
            for name in names
        }

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ and turn it into δ at the drive."""
        self.after.receive(xi)

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return f'(x) ∘ (Wᵀ ∗ δ)."""
        back = self._read if self.feedback is None else self.feedback
        parts = [
            self._backward(replica, back, (True, False, False))[0].view(1, -1, x.shape[2])
            for replica in range(len(back))
        ]
        if self.counter:
            self.counter.product("backward")
        pulled = parts[0] if len(parts) == 1 else torch.cat(parts)
        if hook := self.hooks.feedback:
            pulled = hook(pulled, **self._backward_sums(hook.aggregates, back))
        pulled = self.before.pull(pulled, x)
        return pulled if onto is None else onto.add_(pulled)

    def _backward_sums(self, names: tuple[str, ...], back: Tensor) -> dict[str, Value]:
        spec, delta = self.spec, self.after.delta
        errors = [delta[k].view(-1, *spec.shape) for k in range(len(back))]
        return {
            name: torch.stack(
                [backward_sum(name, d, w, spec) for d, w in zip(errors, back, strict=True)]
            )
            for name in names
        }

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Do into ← beta·into + alpha·gradient, for weights and bias."""
        for replica in range(len(into["w"])):
            _, w, b = self._backward(replica, self.params["w"], (False, True, "b" in into))
            accumulate(into["w"][replica], w, alpha, beta)
            if "b" in into:
                accumulate(into["b"][replica], b, alpha, beta)

    def _backward(
        self, replica: int, weights: Tensor, wanted: tuple[bool, bool, bool]
    ) -> tuple[Tensor, Tensor, Tensor]:
        spec = self.spec
        result: tuple[Tensor, Tensor, Tensor] = aten.convolution_backward(
            self.after.delta[replica].view(-1, *spec.shape),
            self.before.of_replica(replica).view(-1, *spec.image),
            weights[replica],
            [spec.channels],
            *self._options,
            wanted,
        )
        return result
