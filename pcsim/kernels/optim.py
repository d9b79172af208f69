"""Weight optimisers on the flat (replica, parameter) tensor; rates may differ per replica.

They take the descent direction g = −∂F/∂θ and follow torch.optim's definitions:

    sgd        θ ← θ + α (g − λθ)
    momentum   v ← m v + (g − λθ);  θ ← θ + α v
    adam       the same g − λθ through Adam's moments
    adamw      θ ← (1 − αλ) θ first, then Adam with g alone

Weight decay λ acts on weights, not on biases and log-variances, unless `decay_bias` is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch import Tensor

from pcsim.energies import Gaussian
from pcsim.kernels.parameters import Parameters, Views

Rate = float | Tensor
"""One number for all replicas, or a tensor (replica,)."""

CHUNK = 1 << 17
"""Elements updated at a time: several passes over a chunk stay in the cache."""


@dataclass(frozen=True)
class OptimizerSpec:
    """Which rule, and its constants (torch's defaults)."""

    rule: str = "sgd"
    momentum: float = 0.9
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    decay_bias: bool = False


class Optimizer:
    """One optimiser for all weights of all replicas."""

    def __init__(
        self,
        spec: OptimizerSpec,
        params: Parameters,
        alpha: Rate,
        weight_decay: Rate = 0.0,
        scale: float = 1.0,
        *,
        in_place: bool = True,
    ) -> None:
        self.spec = spec
        self.params = params
        self.alpha = alpha
        self.weight_decay = weight_decay
        self.scale = scale
        self.decays = bool((torch.as_tensor(weight_decay) != 0).any())
        self.steps = [0] * len(params.slices)
        # θ ← θ + α g in place of the gradient buffer, when nothing else happens on the way.
        self.plain = spec.rule == "sgd" and not self.decays
        self.direct = in_place and self.plain and not isinstance(alpha, Tensor)
        empty = torch.empty(0)
        self.gradient = empty if self.direct else torch.zeros_like(params.flat)
        adam = spec.rule in ("adam", "adamw")
        self.first = torch.zeros_like(params.flat) if adam or spec.rule == "momentum" else empty
        self.second = torch.zeros_like(params.flat) if adam else empty
        self._into: Views = params.of if self.direct else params.views(self.gradient)
        self._decayed = self._decay_mask()
        self._floors = [
            (index, log(node.energy.floor))
            for index, node in enumerate(params.network.nodes)
            if isinstance(node.energy, Gaussian) and node.energy.learned
        ]

    def _decay_mask(self) -> Tensor:
        mask = torch.zeros_like(self.params.flat[:1])
        for views in self.params.views(mask):
            for name, view in views.items():
                bias = name == "b" and self.spec.decay_bias
                view.fill_(float(name.startswith("w") or bias))
        return mask

    @property
    def target(self) -> tuple[Views, float, float]:
        """Where `Field.learn` shall put its result, with alpha and beta."""
        if self.direct:
            assert not isinstance(self.alpha, Tensor)
            return self._into, self.alpha * self.scale, 1.0
        return self._into, self.scale, 0.0

    def commit(self, nodes: Sequence[int]) -> None:
        """Apply the gradients of these nodes to their weights."""
        for index in nodes:
            self.steps[index] += 1
        if not self.direct:
            for part, step in self._runs(nodes):
                self._apply(part, step)
        for index, floor in self._floors:
            self.params.of[index]["log_var"].clamp_(min=floor)

    def _runs(self, nodes: Sequence[int]) -> list[tuple[slice, int]]:
        """Join neighbouring nodes with equal step counts, so that few operations do it all."""
        runs: list[tuple[slice, int]] = []
        for index in sorted(nodes):
            part, step = self.params.slices[index], self.steps[index]
            if runs and runs[-1][0].stop == part.start and runs[-1][1] == step:
                runs[-1] = (slice(runs[-1][0].start, part.stop), step)
            elif part.start != part.stop:
                runs.append((part, step))
        return runs

    def _apply(self, part: slice, step: int) -> None:
        rows = max(1, CHUNK // (part.stop - part.start))
        for start in range(0, self.params.replicas, rows):
            self._apply_rows(slice(start, start + rows), part, step)

    def _apply_rows(self, rows: slice, part: slice, step: int) -> None:
        spec, theta, g = self.spec, self.params.flat[rows, part], self.gradient[rows, part]
        alpha, decay = _row(self.alpha, rows), _row(self.weight_decay, rows)
        mask = self._decayed[:, part]
        if self.decays:
            if spec.rule == "adamw":
                theta.mul_(1 - alpha * decay * mask)
            else:
                g.addcmul_(theta, decay * mask, value=-1)
        if spec.rule == "sgd":
            change, scale = g, alpha
        elif spec.rule == "momentum":
            change, scale = self.first[rows, part].mul_(spec.momentum).add_(g), alpha
        else:
            beta1, beta2 = spec.betas
            first, second = self.first[rows, part], self.second[rows, part]
            first.lerp_(g, 1 - beta1)
            second.mul_(beta2).addcmul_(g, g, value=1 - beta2)
            root = second.sqrt().mul_((1 - beta2**step) ** -0.5).add_(spec.eps)
            change, scale = torch.div(first, root, out=root), alpha / (1 - beta1**step)
        if isinstance(scale, Tensor):
            theta.addcmul_(change, scale)
        else:
            theta.add_(change, alpha=scale)

    def moments(self) -> dict[str, Tensor]:
        """Return what is remembered of past gradients, each (replica, parameter)."""
        named = {"first": self.first, "second": self.second}
        return {name: moment for name, moment in named.items() if moment.numel()}

    def state(self) -> dict[str, Tensor]:
        """Return what a checkpoint needs besides the parameters."""
        steps = torch.tensor(self.steps)
        return {"steps": steps, "first": self.first, "second": self.second}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        self.steps = [int(s) for s in state["steps"]]
        for name, moment in (("first", self.first), ("second", self.second)):
            if moment.numel():
                moment.copy_(state[name])


def _row(rate: Rate, rows: slice) -> Rate:
    return rate[rows].view(-1, 1) if isinstance(rate, Tensor) else rate
