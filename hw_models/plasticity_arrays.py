"""Weights held by more than one device: pairs of one-way devices, and a fast array that transfers.

The second array lives in the memory of an effect, one value per weight.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hw_models.piece import Piece
from hw_models.plasticity import TrainingDevice
from pcsim.frozen import NotNegative, Positive
from pcsim.substrate import Effect, Memory


class DevicePair(Piece):
    """w = g⁺ − g⁻ of two devices that can only be raised; a refresh undoes their wear.

    The memory holds what both share, worn = min(g⁺, g⁻), so that g⁺ = worn + max(w, 0) and
    g⁻ = worn + max(−w, 0). Raising the weaker side adds to worn. When one side comes to
    `refresh_at` of its bound, both are reset and the difference is written anew (worn = 0), unless
    they share less than a pulse.
    """

    kind: Literal["device_pair"] = "device_pair"
    device: TrainingDevice
    """Both devices; bounds 0 … w_max, only its up steps are used."""
    refresh_at: Annotated[float, Field(gt=0, le=1)] = 0.75
    """Share of the nominal w_max at which a pair is refreshed; 1 never refreshes."""
    refresh_noise: NotNegative = 0.0
    """Standard deviation of the weight written by a refresh, network units."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.device.w_min != 0:
            raise ValueError(f"device.w_min must be 0 in a pair, got {self.device.w_min:g}")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the change of g⁺ − g⁻ with worn as memory."""
        # g⁺ + g⁻ grew by `raised` in the last step: what |w| did not grow by, both sides share.
        shared = "clip(worn + started*(size + raised - abs(w))/2, 0, 1e30)"
        full = f"int({shared} + abs(w) > limit)*int({shared} > dw)"
        worn = f"{shared}*(1 - {full})"
        plus = self.device.response("abs(s)", f"({worn} + clip(w, 0, 1e30))", "_p", only_up=True)
        minus = self.device.response("abs(s)", f"({worn} + clip(-w, 0, 1e30))", "_m", only_up=True)
        error = f"{full}*refresh_noise*xi_refresh"
        limit = self.refresh_at * self.device.w_max * self.device.range
        never = self.refresh_at == 1
        return (
            *self.device.pulses(name),
            Effect(
                name=name,
                site="write",
                becomes="sign(s)*raised + refreshed*refresh_noise*xi_refresh",
                constants=dict(plus.constants)
                | {"limit": 1e30 if never else limit, "refresh_noise": self.refresh_noise},
                draws=dict(plus.draws) | dict(minus.draws),
                parameters=dict(plus.parameters) | dict(minus.parameters),
                noise={"xi": "normal", "xi_refresh": "normal"},
                memory={
                    "raised": Memory(update=f"int(s > 0)*{plus.text} + int(s < 0)*{minus.text}"),
                    "worn": Memory(update=worn),
                    "refreshed": Memory(update=full),
                    "size": Memory(update=f"abs(w + {error})"),
                    "started": Memory(start="0", update="1"),
                },
                about="difference of two one-way devices, refreshed when one is full",
            ),
        )


class FastArray(Piece):
    """Tiki-Taka-style transfer: a fast array takes the updates, a slow one holds the weight.

        a ← a + response(s; a)          at each write, on the fast devices
        w ← w + rate·a                  every `every` writes (asked of the pieces that follow)

    With `reference = "symmetry"` the fast devices are read relative to their symmetry points, to
    which activity without a mean pulls them: noise averages out before it reaches the weight.
    """

    kind: Literal["fast_array"] = "fast_array"
    device: TrainingDevice
    """The fast devices."""
    rate: Positive
    """Share of the fast weight that one transfer asks for."""
    every: Annotated[int, Field(ge=1)] = 1
    """Writes per transfer."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the transfer; the memory holds the fast weight and counts writes."""
        made = self.device.response("s", "fast")
        return (
            *self.device.pulses(name),
            Effect(
                name=name,
                site="write",
                becomes="rate*fast*int(count < 1)",
                constants=dict(made.constants) | {"rate": self.rate, "every": float(self.every)},
                draws=made.draws,
                parameters=made.parameters,
                noise={"xi": "normal"},
                memory={
                    "fast": Memory(update=f"fast + {made.text}"),
                    "count": Memory(update="(count + 1)*int(count + 1 < every)"),
                },
                about="fast array, transferred to the slow one",
            ),
        )
