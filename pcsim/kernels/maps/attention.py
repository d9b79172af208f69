"""Self-attention in two kernels, with room for a value node between them.

    scores    s = q kᵀ/√d           pull:  q ← ξ k/√d,  k ← ξᵀ q/√d
    mixture   μ = p v, p = softmax(s)    pull:  s ← p ∘ (u − Σ_j p u), u = ξ vᵀ;   v ← pᵀ ξ

Sequences are (replica, sample, position·feature); heads are slices of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain, refuse_hardware
from pcsim.maps import Mix, Scores

aten = torch.ops.aten


def split_heads(x: Tensor, positions: int, heads: int) -> Tensor:
    """Return (replica·sample·head, position, feature of a head); a view if there is one head."""
    return (
        x.reshape(-1, positions, heads, x.shape[2] // (positions * heads))
        .transpose(1, 2)
        .reshape(-1, positions, x.shape[2] // (positions * heads))
    )


def join_heads(y: Tensor, axes: tuple[int, int], heads: int) -> Tensor:
    """Undo `split_heads`."""
    _, positions, features = y.shape
    return y.view(-1, heads, positions, features).transpose(1, 2).reshape(*axes, -1)


def add(pulled: Tensor, onto: Tensor | None) -> Tensor:
    """Return the sum, in `onto` if there is one."""
    return pulled if onto is None else onto.add_(pulled)


class ScoresKernel:
    """How much position i looks at position j."""

    hooks = IDEAL

    def __init__(self, spec: Scores) -> None:
        self.spec = spec
        self.params: dict[str, Tensor] = {}
        self._scale = sqrt(spec.heads / spec.features)
        self._q = self._k = self._mu = self._xi = torch.empty(0)
        self._axes = (0, 0)

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self._axes = (like.shape[0], like.shape[1])
        self._mu = like.new_empty(
            like.shape[0] * like.shape[1] * self.spec.heads,
            self.spec.positions,
            self.spec.positions,
        )

    def activate(self, *parents: Tensor) -> None:
        """Take queries and keys."""
        positions, heads = self.spec.positions, self.spec.heads
        self._q, self._k = (split_heads(x, positions, heads) for x in parents)

    def _scaled(self, a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
        """Return a b/√d."""
        out = a.new_empty(a.shape[0], a.shape[1], b.shape[2]) if out is None else out
        return torch.baddbmm(out, a, b, beta=0, alpha=self._scale, out=out)

    def predict(self) -> Tensor:
        """Return μ = q kᵀ/√d."""
        mu = self._scaled(self._q, self._k.mT, self._mu)
        if self.spec.causal:
            mu.tril_()
        return mu.view(*self._axes, -1)

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        xi = xi.view(self._mu.shape)
        self._xi = xi.tril() if self.spec.causal else xi

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return what queries (slot 0) or keys (slot 1) receive."""
        if slot == 0:
            pulled = self._scaled(self._xi, self._k)
        else:
            pulled = self._scaled(self._xi.mT, self._q)
        return add(join_heads(pulled, self._axes, self.spec.heads), onto)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


class MixKernel:
    """What position i sees: the values it looks at, mixed."""

    hooks = IDEAL

    def __init__(self, spec: Mix) -> None:
        self.spec = spec
        self.params: dict[str, Tensor] = {}
        self._p = self._v = self._xi = self._later = torch.empty(0)
        self._axes = (0, 0)

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Make room for states of `like`'s (replica, sample) axes, type and device."""
        self._axes = (like.shape[0], like.shape[1])
        side = self.spec.positions
        self._later = torch.ones(side, side, dtype=torch.bool, device=like.device).triu(1)

    def activate(self, *parents: Tensor) -> None:
        """Take scores and values."""
        spec = self.spec
        scores = parents[0].reshape(-1, spec.positions, spec.positions)
        if spec.causal:
            scores = scores.masked_fill(self._later, float("-inf"))
        self._p = torch.softmax(scores, -1)
        self._v = split_heads(parents[1], spec.positions, spec.heads)

    def predict(self) -> Tensor:
        """Return μ = p v."""
        return join_heads(torch.bmm(self._p, self._v), self._axes, self.spec.heads)

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self._xi = split_heads(xi, self.spec.positions, self.spec.heads)

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return what scores (slot 0) or values (slot 1) receive."""
        if slot == 0:
            u = torch.bmm(self._xi, self._v.mT)
            u = aten._softmax_backward_data(u, self._p, -1, u.dtype)
            return add(u.view(*self._axes, -1), onto)
        pulled = torch.bmm(self._p.mT, self._xi)
        return add(join_heads(pulled, self._axes, self.spec.heads), onto)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


@computes(Scores)
def _scores_kernel(
    spec: Scores, params: Params, counter: Counter | None, hooks: MapHooks
) -> ScoresKernel:
    refuse_hardware(spec, hooks)
    return ScoresKernel(spec)


@computes(Mix)
def _mix_kernel(spec: Mix, params: Params, counter: Counter | None, hooks: MapHooks) -> MixKernel:
    refuse_hardware(spec, hooks)
    return MixKernel(spec)


def _heads(x: Tensor, spec: Scores | Mix) -> Tensor:
    """Return (replica, sample, head, position, feature of a head)."""
    return x.view(*x.shape[:2], spec.positions, spec.heads, -1).transpose(2, 3)


@plain(Scores)
def _plain_scores(spec: Scores, params: Params, parents: Sequence[Tensor]) -> Tensor:
    q, k = (_heads(x, spec) for x in parents)
    scores: Tensor = q @ k.mT * (spec.heads / spec.features) ** 0.5
    return (scores.tril() if spec.causal else scores).flatten(2)


@plain(Mix)
def _plain_mix(spec: Mix, params: Params, parents: Sequence[Tensor]) -> Tensor:
    scores, values = parents
    logits = scores.view(*scores.shape[:2], spec.heads, spec.positions, spec.positions)
    if spec.causal:
        side = spec.positions
        later = torch.ones(side, side, dtype=torch.bool, device=scores.device).triu(1)
        logits = logits.masked_fill(later, float("-inf"))
    mixed: Tensor = functional.softmax(logits, -1) @ _heads(values, spec)
    return mixed.transpose(2, 3).flatten(2)
