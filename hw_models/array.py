"""Periphery of arrays and somas: IR drop, output resistance, saturation, rails, slew rate, leak."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hw_models.numbers import Finite, InSignal, InState, NotNegative, Positive, Seconds, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.quantity import Unit
from pcsim.substrate import Effect


class IrDrop(Piece):
    """Voltage lost along the wires (both directions):

        y − c·Σ_j w_ij r_j (1 − (1 − j/n)²),   c = 3/2 (1 − tanh(√a)/√a),
        a = columns·ratio·Σ_j |w_ij r_j|/range.

    A line of equal devices keeps tanh(√a)/√a of its current, exactly; c = a/2 − a²/5 + … begins as
    the usual first-order expansion does, and saturates where that one explodes (a > 2). Against the
    nodal equations of random lines the error is below 2 % of the product up to a = 1.5, and below
    5 % up to a = 10.
    """

    kind: Literal["ir_drop"] = "ir_drop"
    EXAMPLE: ClassVar[Fields] = {"ratio": 8.75e-06, "columns": 256}
    PLACE: ClassVar[Place] = "wires"
    ratio: NotNegative
    """Full conductance of a device over that of one wire segment (0.35 Ω per cell and 25 µS give
    8.75e-6)."""
    columns: Annotated[int, Field(ge=1, le=10**6)] = 256
    """Devices along a physical line."""
    range: Weight = 1.0
    """Weight at full conductance, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s − c·tapered."""
        a = "(columns*ratio*current/range)"
        root = f"sqrt({a} + 1e-12)"
        small = f"int({a} < 1e-3)"  # where the difference from 1 is lost to rounding
        c = f"({small}*{a}*(0.5 - 0.2*{a}) + (1 - {small})*1.5*(1 - tanh({root})/{root}))"
        return tuple(
            Effect(
                name=f"{name}_{site}",
                site=site,
                becomes=f"s - {c}*tapered",
                constants={"ratio": self.ratio, "columns": self.columns, "range": self.range},
                about="IR drop",
            )
            for site in ("product", "feedback")
        )


class OutputResistance(Piece):
    """A driver of finite output resistance is loaded by its row: y/(1 + ρ Σ_j |w_ij|/range)."""

    kind: Literal["output_resistance"] = "output_resistance"
    EXAMPLE: ClassVar[Fields] = {"rho": 0.001}
    PLACE: ClassVar[Place] = "wires"
    rho: NotNegative
    """Output resistance times the full conductance of one device."""
    range: Weight = 1.0
    """Weight at full conductance, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s/(1 + ρ load/range)."""
        return tuple(
            Effect(
                name=f"{name}_{site}",
                site=site,
                becomes="s/(1 + rho*load/range)",
                constants={"rho": self.rho, "range": self.range},
                about="finite output resistance",
            )
            for site in ("product", "feedback")
        )


class Saturation(Piece):
    """A signal that cannot exceed its limit: hard clipping, or limit·tanh(s/limit)."""

    kind: Literal["saturation"] = "saturation"
    EXAMPLE: ClassVar[Fields] = {"where": "product", "limit": 4.0, "shape": "tanh"}
    PLACE: ClassVar[Place] = "limits"
    where: Literal["rate", "error", "product", "feedback", "output"]
    """Signal that saturates: rates, errors, array sums in either direction, or the read-out."""
    limit: Annotated[Positive, InSignal]
    """Largest magnitude of the signal."""
    shape: Literal["hard", "tanh"] = "hard"
    """Clipped at the limit, or bent towards it."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return clip(s, ±limit)."""
        becomes = "clip(s, -limit, limit)" if self.shape == "hard" else "limit*tanh(s/limit)"
        return (
            Effect(
                name=name,
                site=self.where,
                becomes=becomes,
                constants={"limit": self.limit},
                about=f"{self.shape} saturation of {self.where}",
            ),
        )


class Rails(Piece):
    """Potentials stay within the supply: x ← clip(x + dt·s, ±limit)."""

    kind: Literal["rails"] = "rails"
    EXAMPLE: ClassVar[Fields] = {"limit": 5.0}
    PLACE: ClassVar[Place] = "limits"
    limit: Annotated[Positive, InState]
    """Largest potential, units of x."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the velocity that ends at the rail."""
        return (
            Effect(
                name=name,
                site="velocity",
                becomes="(clip(x + dt*s, -limit, limit) - x)/dt",
                constants={"limit": self.limit},
                about="supply rails of the potentials",
            ),
        )


class SlewRate(Piece):
    """Amplifiers move at most so fast: |dx/dt| ≤ limit."""

    kind: Literal["slew_rate"] = "slew_rate"
    EXAMPLE: ClassVar[Fields] = {"limit": 10.0}
    PLACE: ClassVar[Place] = "limits"
    limit: Annotated[Positive, Unit("units of x per second")]
    """Largest rate of change of a potential."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return clip(s, ±limit)."""
        return (
            Effect(
                name=name,
                site="velocity",
                becomes="clip(s, -limit, limit)",
                constants={"limit": self.limit},
                about="slew rate of the potentials",
            ),
        )


class Leak(Piece):
    """A parasitic leak of every soma towards rest: s − (x − rest)/tau."""

    kind: Literal["leak"] = "leak"
    EXAMPLE: ClassVar[Fields] = {"tau": "100 s", "rest": 0.0}
    PLACE: ClassVar[Place] = "noise"
    tau: Seconds
    """Time constant of the leak."""
    rest: Annotated[Finite, InState] = 0.0
    """Potential to which the somas leak."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s − (x − rest)/tau."""
        return (
            Effect(
                name=name,
                site="velocity",
                becomes="s - (x - rest)/tau",
                constants={"tau": self.tau, "rest": self.rest},
                about="parasitic leak",
            ),
        )
