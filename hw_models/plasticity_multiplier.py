"""The analog multiplier that computes e·r for each synapse, and is never switched off.

    τ_w dw/dt = clip(gain·z(e·r) + offset·c(t), ±limit) − leak·(w − rest)
    z(p) = p − clip(p, ±dead_zone),   c(t) = 1, or ±1 in turn where the multiplier is chopped

With phases of sleep the whole right hand side but the leak is multiplied by a(t): 1 awake, and
−(time awake)/(time asleep) asleep, when the label is let go and e·r rests at zero.

Offset, dead zone and limit are fractions of the multiplier's full scale. It acts in time: the
offset is integrated as long as the chip runs, whatever is shown, and however long a time step is.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.numbers import Finite, InWeights, Positive, Seconds, Spread, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect

Share = Annotated[float, Field(ge=-10, le=10, allow_inf_nan=False), Unit("fraction")]
"""A signed fraction of a full scale."""
_PER = {"device": "element", "row": "row", "column": "column", "layer": "layer", "chip": "chip"}


class LearningMultiplier(Piece):
    """Offset, gain error, dead zone, range and leak of the multiplier e·r of plasticity.

    A linear unit then settles at w* + C⁻¹·offset/gain with C = E[r rᵀ] (see
    `pcsim.limits.offsets`); with a leak l at (gain·C + l)⁻¹ (gain·C w* + offset + l·rest).
    Chopped, the offset adds up to nothing over a period and leaves a ripple of ±offset·chop/(4 τ_w)
    around its mean. A rule that writes once per batch integrates the offset over the
    batch: nothing switches the multiplier off. Biases have no multiplier. With phases of sleep the
    ripple is offset·(time awake)/τ_w from end to end, once per period.
    """

    kind: Literal["learning_multiplier"] = "learning_multiplier"
    REQUESTS = "adds"
    EXAMPLE: ClassVar[Fields] = {"offset_spread": "1 %", "gain_spread": "5 %", "limit": 1.0}
    PLACE: ClassVar[Place] = "multiplier"
    full_scale: Weight = 1.0
    """Product e·r at which the multiplier is at full scale, network units."""
    offset: Share = 0.0
    """Mean offset of the output, fraction of full scale; drives weights while e·r is zero."""
    offset_spread: Spread = 0.0
    """Standard deviation of the offset between multipliers (see `per`), fraction of full scale."""
    gain_error: Annotated[float, Field(gt=-1, le=10, allow_inf_nan=False), Unit("fraction")] = 0.0
    """Mean error of the gain, relative: the gain is 1 + gain_error."""
    gain_spread: Spread = 0.0
    """Standard deviation of the gain between multipliers, relative; no gain is below zero."""
    dead_zone: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False), Unit("fraction")] = 0.0
    """Products up to this give nothing, larger ones are smaller by it, fraction of full scale."""
    limit: Annotated[Positive, Unit("fraction")] | None = None
    """Largest output including the offset, fraction of full scale; unset: no limit."""
    leak: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False), Unit("e·r per weight")] = 0.0
    """Pull on the weight towards `rest` in units of e·r per unit of weight: what the integrator
    behind the multiplier loses, or is made to lose so that offsets stay bounded."""
    rest: Annotated[Finite, InWeights] = 0.0
    """Weight to which it leaks, network units."""
    chop: Seconds | None = None
    """Period of chopping: inputs and output change sign every half of it, so that the offset does;
    needs a clock that runs by itself. Unset: not chopped."""
    sleep: Seconds | None = None
    """Time asleep at the start of each `wake_every`, in which the multiplier works backwards, so
    that an offset adds up to nothing over both; let the label go for as long (stream.t_settle), so
    that there is nothing to unlearn. Needs a line to all multipliers. Unset: always awake."""
    wake_every: Seconds | None = None
    """Period of sleeping and waking: a whole presentation."""
    per: Literal["device", "row", "column", "layer", "chip"] = "device"
    """What shares one multiplier, hence one draw of offset and gain: each synapse has its own, or
    those of an output line (row), of an input line (column), of a layer, or of a chip."""

    @model_validator(mode="after")
    def _has_range(self) -> Self:
        if self.limit is not None and self.dead_zone >= self.limit:
            raise ValueError(
                f"dead_zone must be below limit, got {self.dead_zone:g} and {self.limit:g}"
            )
        if (self.sleep is None) != (self.wake_every is None):
            raise ValueError("sleep and wake_every go together: give both or neither")
        if self.sleep and self.wake_every and self.sleep >= self.wake_every:
            raise ValueError(
                f"sleep must be shorter than wake_every, got {self.sleep:g} and {self.wake_every:g}"
            )
        if self.sleep and self.chop:
            raise ValueError("chop and sleep both take the offset away: give one of them")
        if self.rest and not self.leak:
            raise ValueError("rest is where a leak leads: set leak above 0")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return clip(gain·z(s) + offset·q, ±limit·q), q = full_scale·dt/τ_w the full scale."""
        full = "(full_scale*dt/tau_w)"
        product = f"(s - clip(s, -dead_zone*{full}, dead_zone*{full}))"
        text = f"gain*{product} + shift*{_chopped(self.chop)}{full}"
        if self.limit is not None:
            text = f"clip({text}, -limit*{full}, limit*{full})"
        if self.sleep is not None:
            text = f"({_awake()})*({text})"
        if self.leak:
            text += " - (w - rest)*(1 - exp(-leak*dt/tau_w))"
        constants = {
            "full_scale": self.full_scale,
            "offset": self.offset,
            "offset_spread": self.offset_spread,
            "gain_error": self.gain_error,
            "gain_spread": self.gain_spread,
            "dead_zone": self.dead_zone,
        }
        constants |= {"limit": self.limit} if self.limit is not None else {}
        constants |= {"leak": self.leak, "rest": self.rest} if self.leak else {}
        constants |= {"chop": self.chop} if self.chop is not None else {}
        if self.sleep is not None and self.wake_every is not None:
            constants |= {"sleep": self.sleep, "wake_every": self.wake_every}
        return (
            Effect(
                name=name,
                site="write",
                becomes=text,
                constants=constants,
                draws={"d_offset": _draw(self.per), "d_gain": _draw(self.per)},
                parameters={
                    "shift": "offset + offset_spread*d_offset",
                    "gain": "clip(1 + gain_error + gain_spread*d_gain, 0, 1e6)",
                },
                about="the learning multiplier, always on: offset, gain, dead zone, range",
            ),
        )


def _chopped(period: float | None) -> str:
    """Return the mean of the chopping wave over one time step, exactly, as a factor.

    Its integral is a triangle, period·(½ − |phase − ½|).
    """
    if period is None:
        return ""
    early, late = (f"abs({at}/chop - floor({at}/chop) - 0.5)" for at in ("t", "(t + dt)"))
    return f"(chop*({early} - {late})/dt)*"


def _awake() -> str:
    """Return the mean over one time step of 1 awake and −awake/asleep asleep, exactly.

    Time asleep until t: `sleep` for each whole period, and what of it has passed in this one.
    """
    whole, rest = zip(
        *(
            (f"floor({at}/wake_every)", f"clip({at} - wake_every*floor({at}/wake_every), 0, sleep)")
            for at in ("t", "(t + dt)")
        ),
        strict=True,
    )
    asleep = f"(({whole[1]} - {whole[0]})*sleep + {rest[1]} - {rest[0]})"
    return f"1 - {asleep}*wake_every/(sleep*dt)"


def _draw(per: str) -> Draw:
    return Draw.model_validate({"per": _PER[per]})
