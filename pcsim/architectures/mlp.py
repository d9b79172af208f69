"""Fully connected networks as a section of a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pcsim.architectures.fields import Count, EnergyConfig, Function
from pcsim.frozen import Frozen
from pcsim.network import Convention, Network


class Mlp(Frozen):
    """A multilayer network; see `Network.mlp`."""

    kind: Literal["mlp"] = "mlp"
    sizes: tuple[Count, ...] = Field(min_length=2, strict=False)
    """Units per layer from input (top) to output (datum)."""
    f: Function = "tanh"
    """Nonlinearity of the hidden layers."""
    convention: Convention = "pre"
    """Value nodes hold the potential before f (pre) or the rate behind it (post)."""
    f_input: bool = False
    """Whether f acts on the input, too (convention pre)."""
    f_output: bool = False
    """Whether f acts on the prediction of the output, too (convention post)."""
    bias: bool = True
    """Whether layers have biases."""
    prior: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Mean of a unit Gaussian prior on the top layer; unset: none."""
    output: EnergyConfig = EnergyConfig()
    """Energy of the output layer."""
    hidden: EnergyConfig = EnergyConfig()
    """Energy of the hidden layers."""

    def build(self) -> Network:
        """Return the description object."""
        return Network.mlp(
            self.sizes,
            self.f,
            output=self.output.build(),
            hidden=self.hidden.build(),
            convention=self.convention,
            f_input=self.f_input,
            f_output=self.f_output,
            bias=self.bias,
            prior=self.prior,
        )
