"""Device-to-device mismatch of neurons and compartments: drawn once per chip."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from hw_models.numbers import Finite, InSignal, NotNegative, Spread
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.substrate import Draw, Effect, Site

Target = Literal[
    "tau_x",
    "tau_err",
    "tau_apical",
    "tau_inter",
    "tau_w",
    "g_basal",
    "g_apical",
    "slope",
    "rate_gain",
    "error_gain",
    "weight_gain",
    "input_gain",
]
_SITES: dict[str, Site] = {
    "slope": "membrane",
    "rate_gain": "rate",
    "error_gain": "error",
    "weight_gain": "weight",
    "input_gain": "input",
}
OffsetTarget = Literal["threshold", "rate", "error", "product", "feedback", "velocity"]


class Mismatch(Piece):
    """A parameter p of each device is p·e^{σξ − σ²/2} (lognormal, mean p) or p·(1 + σξ)."""

    kind: Literal["mismatch"] = "mismatch"
    EXAMPLE: ClassVar[Fields] = {"of": "tau_x", "sigma": "5 %"}
    PLACE: ClassVar[Place] = "gain"
    of: Target
    """Time constants, conductances of compartments, slope of the transfer function, gains."""
    sigma: Spread
    """Device-to-device standard deviation relative to the nominal value."""
    law: Literal["lognormal", "normal"] = "lognormal"
    """Lognormal keeps the sign; normal is what small-signal tables usually mean."""
    per: Literal["element", "layer", "chip"] = "element"
    """Each unit (or synapse) its own, or one for a layer or a chip."""
    optional: bool = False
    """Whether a circuit that has no such part may leave it out (else it refuses)."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s·e^{σξ − σ²/2}, or s·(1 + σξ)."""
        factor = {"lognormal": "exp(sigma*g - sigma**2/2)", "normal": "(1 + sigma*g)"}[self.law]
        return (
            Effect(
                name=name,
                site=_SITES.get(self.of, self.of),
                becomes=f"s*{factor}",
                constants={"sigma": self.sigma},
                draws={"g": Draw(per=self.per)},
                about=f"mismatch of {self.of}, relative",
                optional=self.optional,
            ),
        )


class Offset(Piece):
    """A fixed offset of each device: s + σξ."""

    kind: Literal["offset"] = "offset"
    EXAMPLE: ClassVar[Fields] = {"of": "error", "sigma": 0.02}
    PLACE: ClassVar[Place] = "gain"
    of: OffsetTarget
    """Which signal; `threshold` shifts the potential that the transfer function sees."""
    sigma: Annotated[NotNegative, InSignal]
    """Device-to-device standard deviation, units of the signal (per second on `velocity`)."""
    mean: Annotated[Finite, InSignal] = 0.0
    """Common part, units of the signal."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + mean + σξ."""
        site: Site = "membrane" if self.of == "threshold" else self.of
        return (
            Effect(
                name=name,
                site=site,
                becomes="s + mean + sigma*o",
                constants={"mean": self.mean, "sigma": self.sigma},
                draws={"o": Draw()},
                about=f"offset of {self.of}",
            ),
        )
