"""Maps: how a value node is predicted from its parents. Pure data, no tensors.

A map says *what* is computed; `pcsim.kernels` holds one implementation per map type, each with a
prediction and its vector–Jacobian products. A new layer type is a new dataclass here and a kernel
registered for it there.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.errors import ConfigError

NONLINEARITIES = ("identity", "tanh", "sigmoid", "relu", "leaky_relu", "gelu", "softmax")


@dataclass(frozen=True)
class Dense:
    """Fully connected: μ = g( W f(x) + b ).

    `f` acts on the parent's value before the weights, `g` on the drive after them. Pre-activation
    nodes have g = identity, post-activation nodes have f = identity (never both non-trivial).
    """

    n_in: int
    n_out: int
    f: str = "identity"
    g: str = "identity"
    bias: bool = True

    def __post_init__(self) -> None:
        """Check sizes and names."""
        for field in ("n_in", "n_out"):
            if getattr(self, field) < 1:
                raise ConfigError(f"Dense.{field}: must be at least 1, got {getattr(self, field)}")
        for field in ("f", "g"):
            if getattr(self, field) not in NONLINEARITIES:
                raise ConfigError(
                    f"Dense.{field}: unknown nonlinearity {getattr(self, field)!r}; "
                    f"choose one of {', '.join(NONLINEARITIES)}"
                )
        if self.g == "softmax":
            raise ConfigError(
                "Dense.g: softmax outputs are logit nodes with the categorical energy"
            )
        if self.f != "identity" and self.g != "identity":
            raise ConfigError("Dense.f, Dense.g: the node conventions must not be mixed in one map")

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is learnt (post, pre)."""
        shapes: dict[str, tuple[int, ...]] = {"w": (self.n_out, self.n_in)}
        return shapes | ({"b": (self.n_out,)} if self.bias else {})


@dataclass(frozen=True)
class Prior:
    """A root that is drawn towards a fixed mean: μ = mean. It has no parents and learns nothing."""

    mean: float = 0.0

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Nothing is learnt."""
        return {}


Map = Dense | Prior
