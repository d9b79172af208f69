"""Fully connected networks as a section of a file."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from pcsim.architectures.fields import Count, EnergyConfig, Function
from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.errors import ConfigError
from pcsim.frozen import Frozen
from pcsim.maps import Dense, Prior
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

    @classmethod
    def of(cls, network: Network) -> Mlp | None:
        """Return the section of a network that is a multilayer one, else None."""
        maps = [node.map for node in network.nodes[:-1]]
        if not all(isinstance(one, Dense) for one in maps):
            return None
        dense = [one for one in maps if isinstance(one, Dense)]
        before = {one.f for one in dense} - {"identity", "softmax"}
        behind = {one.g for one in dense} - {"identity"}
        top, middle = network.nodes[-1].map, network.nodes[1:-1]
        fields: dict[str, Any] = {
            "sizes": tuple(node.units for node in reversed(network.nodes)),
            "f": next(iter(before | behind), "identity" if middle else "tanh"),
            "convention": "post" if behind else "pre",
            "f_input": not behind and dense[-1].f not in ("identity", "softmax"),
            "f_output": dense[0].g != "identity",
            "bias": dense[0].bias,
            "prior": top.mean if isinstance(top, Prior) else None,
            "output": _energy(network.nodes[0].energy),
            "hidden": _energy(middle[0].energy) if middle else {},
        }
        standard = {name: field.default for name, field in cls.model_fields.items()}
        try:
            section = cls.model_validate(
                {n: v for n, v in fields.items() if v not in (standard[n], {})}
            )
            return section if section.build() == network else None
        except (ValidationError, ConfigError):
            return None


def _energy(energy: Energy | None) -> dict[str, Any]:
    """Return what an energy has that differs from a unit Gaussian."""
    if isinstance(energy, Categorical):
        return {"kind": "categorical"}
    fields = asdict(energy) if energy else {}
    return {name: value for name, value in fields.items() if value != getattr(Gaussian(), name)}
