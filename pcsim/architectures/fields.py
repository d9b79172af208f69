"""What the sections of several architectures have in common."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.errors import ConfigError
from pcsim.fields.allowed import Words
from pcsim.frozen import Count as Count
from pcsim.frozen import Frozen, Positive
from pcsim.maps.nonlinearities import CHOICES, EXAMPLE, row

Counts = Annotated[tuple[Count, ...], Field(strict=False)]
"""TOML has lists, not tuples: only there a conversion is wanted."""
Place = Literal["pre_act", "post_act", "post_pool"]


def _elementwise(name: str) -> str:
    try:
        known = row(name)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    if not known.elementwise:
        raise ValueError(f"{name!r} is no function of one unit; {CHOICES}")
    return name


Function = Annotated[
    str, Words(CHOICES.removeprefix("choose ")), Field(examples=["tanh", EXAMPLE]),
    AfterValidator(_elementwise),
]  # fmt: skip
"""A nonlinearity by name, or as an expression in x."""


class EnergyConfig(Frozen):
    """Energy of a node: gaussian (with variance, fixed or learned) or categorical."""

    kind: Literal["gaussian", "categorical"] = "gaussian"
    """gaussian: squared errors over the variance; categorical: cross-entropy of a softmax."""
    variance: Positive = 1.0
    """Variance of the node, at the start if it is learned; gaussian only."""
    learned: bool = False
    """Whether the variance of each unit is learned."""
    floor: Positive = 1e-3
    """Smallest variance that learning may reach."""

    def build(self, *, causal: bool = False) -> Energy:
        """Return the description object."""
        if self.kind == "categorical":
            return Categorical(causal)
        return Gaussian(self.variance, self.learned, self.floor)


class GaussianConfig(Frozen):
    """Energy of nodes that are no logits."""

    variance: Positive = 1.0
    """Variance of the node, at the start if it is learned; gaussian only."""
    learned: bool = False
    """Whether the variance of each unit is learned."""
    floor: Positive = 1e-3
    """Smallest variance that learning may reach."""

    def build(self) -> Gaussian:
        """Return the description object."""
        return Gaussian(self.variance, self.learned, self.floor)


CATEGORICAL = EnergyConfig(kind="categorical")
