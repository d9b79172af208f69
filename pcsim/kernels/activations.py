"""A nonlinearity before a map or behind it, with its buffer: r = f(x), and μ = g(a)."""

from __future__ import annotations

import torch
from torch import Tensor

from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.nonlinearity import NONLINEARITIES


class Before:
    """r = f(x) of a parent; the identity passes x on without a copy.

    On hardware x is what the membrane shows, and `sent` what becomes of the rate on its way.
    """

    def __init__(self, name: str, hooks: MapHooks = IDEAL) -> None:
        self.hooks = hooks
        self.f = None if name == "identity" else NONLINEARITIES[name]
        self.r = self.sent = self._seen = torch.empty(0)

    def allocate(self, like: Tensor, units: int, shared: bool) -> None:
        """Make room; an input that all replicas share is transformed once."""
        shared &= not self.hooks.on_rates
        if self.f is not None:
            self.r = like.new_empty(1 if shared else like.shape[0], like.shape[1], units)

    def apply(self, x: Tensor) -> None:
        """Evaluate r = f(x)."""
        if self.hooks.membrane:
            x = self._seen = self.hooks.membrane(x)
        if self.f is None:
            self.r = x
        else:
            self.f.apply(x if self.r.shape[0] == x.shape[0] else x[:1], self.r)
        self.sent = self.hooks.rate(self.r) if self.hooks.rate else self.r

    def pull(self, v: Tensor, x: Tensor) -> Tensor:
        """Return f'(x) ∘ v, written over v."""
        if self.hooks.membrane:
            x = self._seen
        return v if self.f is None else self.f.pull(v, x, self.r)

    def of_replica(self, replica: int) -> Tensor:
        """Return r (sample, unit) of one replica, as sent."""
        return self.sent[replica if self.sent.shape[0] > 1 else 0]


class Behind:
    """What stands behind a drive, with its buffers: μ = g(a) and δ = g'(a) ∘ ξ."""

    def __init__(self, name: str) -> None:
        self.g = None if name == "identity" else NONLINEARITIES[name]
        self.drive = self.mu = self.delta = torch.empty(0)

    def receive(self, xi: Tensor) -> None:
        """Turn the error ξ at μ into δ = g'(a) ∘ ξ at the drive."""
        if self.g is None:
            self.delta = xi
        else:
            self.delta.copy_(xi)
            self.g.pull(self.delta, self.drive, self.mu)


class After(Behind):
    """μ = g(a) of a drive; the identity passes a on without a copy."""

    def emit(self, drive: Tensor) -> Tensor:
        """Return μ = g(a)."""
        self.drive = drive
        if self.g is None:
            return drive
        if self.mu.shape != drive.shape:
            self.mu, self.delta = torch.empty_like(drive), torch.empty_like(drive)
        return self.g.apply(drive, self.mu)
