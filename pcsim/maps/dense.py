"""The fully connected map, once for all units or once per position of a sequence."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.maps.initial import Initial, by_fan_in
from pcsim.maps.nonlinearities import check_nonlinearities, check_sizes


@dataclass(frozen=True)
class Dense:
    """Fully connected: μ = g( W f(x) + b ).

    `f` acts on the parent's value before the weights, `g` on the drive after them. Pre-activation
    nodes have g = identity, post-activation nodes have f = identity (never both non-trivial).
    With `positions` > 1 the same W acts at each position of a sequence (position, n_in).
    """

    n_in: int
    n_out: int
    f: str = "identity"
    g: str = "identity"
    bias: bool = True
    positions: int = 1

    def __post_init__(self) -> None:
        """Check sizes and names."""
        check_sizes("Dense", n_in=self.n_in, n_out=self.n_out, positions=self.positions)
        check_nonlinearities("Dense", self.f, self.g)

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""
        return (self.positions * self.n_in,)

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return self.positions * self.n_out

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is learnt (post, pre)."""
        shapes: dict[str, tuple[int, ...]] = {"w": (self.n_out, self.n_in)}
        return shapes | ({"b": (self.n_out,)} if self.bias else {})

    @property
    def initial(self) -> dict[str, Initial]:
        """How it starts."""
        return dict.fromkeys(self.parameters, by_fan_in(self.n_in))
