"""What may happen to a write besides the law of the device: thresholds, loss, noise, trains."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Clocked, at_writes, gathered
from hw_models.numbers import Finite, InWeights, NotNegative, Positive, Spread, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from hw_models.plasticity_device import touched
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory
from pcsim.substrate.effect import TRAINS


class UpdateThreshold(Clocked):
    """Requests below a threshold are lost, at each write."""

    kind: Literal["update_threshold"] = "update_threshold"
    EXAMPLE: ClassVar[Fields] = {"threshold": 0.001, "t_write": "1 s"}
    PLACE: ClassVar[Place] = "pulses"
    threshold: Annotated[NotNegative, InWeights]
    """Smallest change of a weight that is carried out in one write, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s where |s| ≥ threshold, else 0."""
        return (
            *gathered(name, self.t_write),
            Effect(
                name=name,
                site="write",
                becomes="s*int(abs(s) >= threshold)",
                constants={"threshold": self.threshold},
                about="small updates are lost",
            ),
        )


class UpdateAccumulator(Piece):
    """Requests add up beside the array until they reach a threshold; then an event writes them.

    `whole` releases multiples of the threshold and keeps the rest: the mixed-precision remedy, with
    the threshold at the weight of one pulse. `all` releases everything: event-driven updates.
    """

    kind: Literal["update_accumulator"] = "update_accumulator"
    REQUESTS = "gathers"
    EXAMPLE: ClassVar[Fields] = {"threshold": 0.002}
    PLACE: ClassVar[Place] = "accumulator"
    threshold: Weight
    """Sum of requests that triggers a write, network units."""
    release: Literal["whole", "all"] = "whole"
    """Multiples of the threshold (the rest is kept), or all that has been gathered."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return what is released; the memory keeps the rest."""
        total = "(kept + s)"
        released = {
            "whole": f"threshold*sign{total}*floor(abs{total}/threshold)",
            "all": f"{total}*int(abs{total} >= threshold)",
        }[self.release]
        return (
            Effect(
                name=name,
                site="write",
                becomes="released",
                constants={"threshold": self.threshold},
                memory={
                    "kept": Memory(update=f"{total} - {released}"),
                    "released": Memory(update=released),
                },
                about=f"requests accumulate, {self.release} released at a threshold",
            ),
        )


class Retention(Clocked):
    """Stored weights relax to a reference: dw/dt = (reference − w)/lifetime, while learning.

    Balances learning at w_∞ = w*/(1 + τ_w/(lifetime·σ_f²)) for reference 0.
    """

    kind: Literal["retention"] = "retention"
    REQUESTS = "adds"
    EXAMPLE: ClassVar[Fields] = {"lifetime": "1 h", "lifetime_spread": "30 %"}
    PLACE: ClassVar[Place] = "retention"
    lifetime: Annotated[Positive, Unit("s", ("per", "second"), "updates")]
    """Time constant of the loss: seconds, or number of updates (of t_write each)."""
    per: Literal["second", "update"] = "second"
    """Whether the lifetime counts seconds or updates."""
    lifetime_spread: Spread = 0.0
    """Device-to-device standard deviation of the lifetime, relative."""
    reference: Annotated[Finite, InWeights] = 0.0
    """What weights relax to, network units."""
    reference_spread: Annotated[NotNegative, InWeights] = 0.0
    """Device-to-device standard deviation of the reference, network units."""

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        if self.per == "second" and self.t_write is not None:
            raise ValueError('t_write is for per = "update"; a lifetime in seconds needs no clock')
        if self.per == "update" and self.lifetime < 1:
            raise ValueError(f"lifetime must be at least one update, got {self.lifetime:g}")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + (reference − w)·(1 − e^{−dt/lifetime}), or /lifetime per update."""
        lifetime = "(lifetime*clip(1 + lifetime_spread*d_lifetime, 0.1, 1e6))"
        share = {
            "second": f"(1 - exp(-dt/{lifetime}))",
            "update": f"clip(1/{lifetime}, 0, 1)",
        }[self.per]
        lost = Effect(
            name=name,
            site="write",
            becomes=f"s + (reference + reference_spread*d_reference - w)*{share}",
            constants={
                "lifetime": self.lifetime,
                "lifetime_spread": self.lifetime_spread,
                "reference": self.reference,
                "reference_spread": self.reference_spread,
            },
            draws={"d_lifetime": Draw(), "d_reference": Draw()},
            about=f"loss of the stored weight, lifetime per {self.per}",
        )
        return (*gathered(name, self.t_write), at_writes(lost, self.t_write))


class WriteNoise(Clocked):
    """Noise of each write, of a size that does not depend on the request.

    `walk`: it stays in the stored weight, so that writes make a random walk. `seen`: the stored
    weight is right, but seen with an error that is redrawn whenever the weight is touched (at most
    once per `t_write`).
    """

    kind: Literal["write_noise"] = "write_noise"
    REQUESTS = "adds"
    EXAMPLE: ClassVar[Fields] = {"sigma": 0.01, "mode": "seen"}
    PLACE: ClassVar[Place] = "write noise"
    sigma: Annotated[NotNegative, InWeights]
    """Standard deviation per write, network units."""
    mode: Literal["walk", "seen"] = "walk"
    """Whether the noise stays in the stored weight, or in what is seen of it until the next
    write."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + σξ where something is written, or the error of the seen weight."""
        if self.mode == "seen":
            return touched(name, self.sigma, self.t_write)
        return (
            *gathered(name, self.t_write),
            Effect(
                name=name,
                site="write",
                becomes="s + int(abs(s) > 0)*sigma*xi",
                constants={"sigma": self.sigma},
                noise={"xi": "normal"},
                about="persistent write noise",
            ),
        )


class PulseTrain(Clocked):
    """A request as coincidences of two stochastic pulse trains of BL slots.

    Each slot has a coincidence with p = |s|/(dw·BL): mean |s|, variance dw·|s|·(1 − p); |s| above
    dw·BL is clipped. With `lines = "device"` every device has trains of its own, one per write (see
    `t_write`); on a sum over a batch the variance is that of one train. With `lines = "shared"` a
    row sends one train for all its devices and a column another, one of each per sample and time
    step; devices are written where both meet:

        row i sends with p_i = g·|e_i|, column j with q_j = g·|r_j|,    g = √(α/(dw·BL)), α = dt/τ_w
        mean         BL·p_i·q_j·dw = α·|e_i r_j|
        variance     dw²·BL·p_i·q_j·(1 − p_i·q_j)
        covariance   dw²·BL·p_i·(1 − p_i)·q_j·q_k    of two devices of row i; columns likewise

    It acts before a pulsed device, which of the same dw responds to whole pulses.
    """

    kind: Literal["pulse_train"] = "pulse_train"
    EXAMPLE: ClassVar[Fields] = {"dw": 0.002, "slots": 31, "t_write": "1 s"}
    PLACE: ClassVar[Place] = "pulses"
    slots: Annotated[int, Field(ge=1, le=63)] = 31
    """BL, the length of the trains; costs one random number per slot and device."""
    dw: Weight
    """Change by one coincidence, network units."""
    lines: Literal["device", "shared"] = "device"
    """Whether each device has trains of its own, or those of its row and column."""

    @model_validator(mode="after")
    def _one_clock(self) -> Self:
        if self.lines == "shared" and self.t_write is not None:
            raise ValueError(
                'lines = "shared" sends a train in every time step of the run: leave t_write out'
            )
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return dw·sign(s)·(number of slots with a coincidence), or the pulses of both lines."""
        if self.lines == "shared":
            return self._of_lines(name)
        names = [f"u_{k}" for k in range(self.slots)]
        hits = " + ".join(f"int({u}*(dw*slots) < abs(s))" for u in names)
        return (
            *gathered(name, self.t_write),
            Effect(
                name=name,
                site="write",
                becomes=f"dw*sign(s)*({hits})",
                constants={"dw": self.dw, "slots": float(self.slots)},
                noise=dict.fromkeys(names, "uniform"),
                about=f"stochastic pulse trains of {self.slots} slots",
            ),
        )

    def _of_lines(self, name: str) -> tuple[Effect, ...]:
        """Return √dw·sign(s) with probability |s|·√(α/(dw·slots)), for rows and columns."""
        return tuple(
            Effect(
                name=f"{name}_{site.removesuffix('_pulses')}s",
                site=site,
                becomes="sqrt(dw)*sign(s)*int(u*sqrt(dw*slots) < abs(s)*sqrt(rate))",
                constants={"dw": self.dw, "slots": float(self.slots)},
                noise={"u": "uniform"},
                slots=self.slots,
                about=f"pulse trains of {self.slots} slots, one per line",
            )
            for site in TRAINS
        )
