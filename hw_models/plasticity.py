"""Training devices by update law: constant, linear (soft bounds), exponential, power, pulse curve.

Each law gives the step at conductance u relative to dw_min; `plasticity_device` adds gains, bounds,
spreads and noise.
"""

from __future__ import annotations

from math import expm1
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.numbers import Curvature, Exponent, InDevice, NotNegative, Spread
from hw_models.piece import Fields
from hw_models.plasticity_device import Device, Law, affine_law
from hw_models.several import Curve

Steepness = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Amplitude = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class ConstantDevice(Device):
    """Every pulse changes the weight by the same amount: law = 1, up to the bounds."""

    kind: Literal["constant_device"] = "constant_device"
    EXAMPLE: ClassVar[Fields] = {
        "dw_min": 0.002,
        "dw_spread": "30 %",
        "cycle_noise": "30 %",
        "w_max_spread": "30 %",
    }

    def law(self) -> Law:
        """Return 1."""
        return affine_law(("1", "0"), ("1", "0"), {}, {})


class LinearDevice(Device):
    """The step falls linearly towards the bound ahead: law = 1 − γ u/b; γ = 1 is soft bounds.

    Balanced pulses pull the weight to the symmetry point
    u* = (α₊ − α₋)/(α₊γ₊/b₊ − α₋γ₋/b₋), where up and down steps are equal.
    """

    kind: Literal["linear_device"] = "linear_device"
    EXAMPLE: ClassVar[Fields] = {
        "dw_min": 0.002,
        "gamma_up": 0.5,
        "gamma_down": 0.5,
        "cycle_noise": "30 %",
    }
    gamma_up: Steepness = 1.0
    """Relative loss of the up step at the upper bound."""
    gamma_down: Steepness = 1.0
    """Relative loss of the down step at the lower bound."""
    gamma_spread: Spread = 0.0
    """Device-to-device standard deviation of both, relative, each drawn on its own."""
    slope_at: Literal["device", "nominal"] = "device"
    """Whether the slope refers to the device's own bound or to the nominal one."""
    reference: Literal["zero", "symmetry"] = "zero"
    """What is read as weight zero: conductance 0, or the device's own symmetry point."""
    reference_spread: Annotated[NotNegative, InDevice] = 0.0
    """Standard deviation of the error of the reference, device units."""

    @model_validator(mode="after")
    def _two_sided(self) -> Self:
        if not self.w_min < 0:
            raise ValueError(f"w_min must be below 0 for a slope towards it, got {self.w_min:g}")
        if self.reference == "symmetry" and not (self.gamma_up > 0 and self.gamma_down > 0):
            raise ValueError(
                'reference = "symmetry" needs gamma_up and gamma_down above 0: '
                "steps that do not depend on the weight have no symmetry point"
            )
        return self

    def law(self) -> Law:
        """Return 1 − γ u/b."""
        top, bottom = ("top", "bottom") if self.slope_at == "device" else ("w_max", "w_min")
        vary = "clip(1 + gamma_spread*d_gamma_{side}, 0, 1e6)"
        constants = {
            "gamma_up": self.gamma_up,
            "gamma_down": self.gamma_down,
            "gamma_spread": self.gamma_spread,
        }
        draws = ["d_gamma_up", "d_gamma_down"]
        if self.reference == "symmetry":
            constants["reference_spread"] = self.reference_spread
            draws.append("d_reference")
        return affine_law(
            ("1", "slope_up"),
            ("1", "slope_down"),
            constants,
            {
                "slope_up": f"gamma_up*{vary.format(side='up')}/{top}",
                "slope_down": f"gamma_down*{vary.format(side='down')}/{bottom}",
            },
            tuple(draws),
        )

    def zero(self) -> str:
        """Return nothing, or the symmetry point with the error of the reference."""
        if self.reference == "zero":
            return ""
        point = "(gain_up - gain_down)/(gain_up*slope_up - gain_down*slope_down)"
        return f"{point} + reference_spread*d_reference"


class ExponentialDevice(Device):
    """Steps that depend exponentially on the conductance.

    law = max(0, 1 − A·e^{±γ z}), z = 2a·u/(b₊ − b₋) + b, with + for up and − for down steps.
    """

    kind: Literal["exponential_device"] = "exponential_device"
    EXAMPLE: ClassVar[Fields] = {
        "dw_min": 0.002,
        "A_up": -1.2,
        "A_down": -0.1,
        "gamma_up": 5.0,
        "gamma_down": 5.0,
        "a": -0.5,
        "b": -0.5,
    }
    A_up: Amplitude
    """Amplitude of the exponential in up steps."""
    A_down: Amplitude
    """Amplitude of the exponential in down steps; negative values raise a step above dw_min where
    the exponential is large."""
    gamma_up: Exponent
    """Exponent of up steps: how fast they change with the conductance."""
    gamma_down: Exponent
    """Exponent of down steps."""
    a: Exponent = 1.0
    """Scale of the conductance in the exponent."""
    b: Exponent = 0.0
    """Offset in the exponent."""

    def law(self) -> Law:
        """Return max(0, 1 − A e^{±γz})."""
        z = "(u*scale + b)"
        # c in e^{c u}, kept away from zero: there steps do not depend on u
        bend = "gamma_{0}*scale + int(abs(gamma_{0}*scale) < 1e-6)*(1e-6 - gamma_{0}*scale)"
        return Law(
            f"clip(1 - A_up*exp(clip(gamma_up*{z}, -60, 60)), 0, 1e6)",
            f"clip(1 - A_down*exp(clip(-gamma_down*{z}, -60, 60)), 0, 1e6)",
            {
                "A_up": self.A_up,
                "A_down": self.A_down,
                "gamma_up": self.gamma_up,
                "gamma_down": self.gamma_down,
                "a": self.a,
                "b": self.b,
            },
            {"scale": "2*a/(top - bottom)"},
            curve=Curve("exponential", bend.format("up"), bend.format("down")),
        )


class PowerDevice(Device):
    """Steps that fall with a power of the relative distance to the bound ahead: law = ω^γ."""

    kind: Literal["power_device"] = "power_device"
    EXAMPLE: ClassVar[Fields] = {"dw_min": 0.002, "gamma_up": 0.5, "gamma_down": 1.5}
    gamma_up: Steepness = 1.0
    """Exponent of up steps; 0 is a constant step."""
    gamma_down: Steepness = 1.0
    """Exponent of down steps; 0 is a constant step."""
    gamma_spread: Spread = 0.0
    """Device-to-device standard deviation of both, relative, each drawn on its own."""

    def law(self) -> Law:
        """Return ω^γ with ω₊ = (b₊ − u)/(b₊ − b₋), ω₋ = (u − b₋)/(b₊ − b₋)."""
        left = (
            "clip((top - u)/(top - bottom), 0, 1)",
            "clip((u - bottom)/(top - bottom), 0, 1)",
        )
        # 1 − γ, kept away from zero: there the flow of the law has another form
        bend = "1 - power_{0} + int(abs(1 - power_{0}) < 1e-3)*(1e-3 - 1 + power_{0})"
        return Law(
            f"{left[0]}**power_up",
            f"{left[1]}**power_down",
            {
                "gamma_up": self.gamma_up,
                "gamma_down": self.gamma_down,
                "gamma_spread": self.gamma_spread,
            },
            {
                "power_up": "gamma_up*clip(1 + gamma_spread*d_gamma_up, 0, 1e6)",
                "power_down": "gamma_down*clip(1 + gamma_spread*d_gamma_down, 0, 1e6)",
            },
            ("d_gamma_up", "d_gamma_down"),
            curve=Curve("power", bend.format("up"), bend.format("down"), left),
        )


class PulseCurveDevice(Device):
    """A measured pulse curve: G(p) = B(1 − e^{−p/A}) + b₋, B = (b₊ − b₋)/(1 − e^{−P/A}).

    One pulse from u goes to b₋ + B − (b₋ + B − u)·e^{−1/A}; down pulses mirror it. P = range/dw_min
    pulses lead from bound to bound. (As in DNN+NeuroSim, whose label of nonlinearity is a table
    of A.)
    """

    kind: Literal["pulse_curve_device"] = "pulse_curve_device"
    EXAMPLE: ClassVar[Fields] = {"dw_min": 0.02, "curvature_up": 0.3, "curvature_down": 0.8}
    curvature_up: Curvature
    """A/P: pulses per e-fold, relative to the pulses from bound to bound; large is straight."""
    curvature_down: Curvature
    """The same for down pulses."""

    @model_validator(mode="after")
    def _granular(self) -> Self:
        if not self.dw_min:
            raise ValueError("a pulse curve needs its number of pulses: dw_min must be above 0")
        return self

    def law(self) -> Law:
        """Return the step from u to the curve's next pulse, in units of dw_min."""
        pulses = (self.w_max - self.w_min) / self.dw_min
        constants: dict[str, float] = {}
        for side, curvature in (("up", self.curvature_up), ("down", self.curvature_down)):
            # B relative to the distance of the bounds, and what one pulse takes of the way to B
            constants[f"reach_{side}"] = -1 / expm1(-1 / curvature)
            constants[f"share_{side}"] = -expm1(-1 / (curvature * pulses)) / self.dw_min
        return affine_law(
            ("share_up*ahead_up", "share_up"),
            ("-share_down*ahead_down", "(-share_down)"),
            constants,
            {
                "ahead_up": "bottom + reach_up*(top - bottom)",
                "ahead_down": "top - reach_down*(top - bottom)",
            },
        )


TrainingDevice = Annotated[
    ConstantDevice | LinearDevice | ExponentialDevice | PowerDevice | PulseCurveDevice,
    Field(discriminator="kind"),
]
"""Any of the laws, told apart by `kind`."""
