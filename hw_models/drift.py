"""Weights that are not what was stored: programming error, drift with time, read noise of PCM.

Conductances are fractions g = |w|/range of the full one; x → 0 is allowed everywhere. Drift counts
from the last write of each device, told by a change of what is stored; `age` is the age of the
weights at the start of the run, for devices that have not been written since.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Sampled, redrawn
from hw_models.numbers import Duration, Finite, NotNegative, Positive, Seconds, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory

Part = Annotated[Finite, Unit("fraction")]
_TINY = "1e-12"
_SINCE = {
    "since": Memory(
        start="age", update="t - written_at + int(abs(s - last)*seen > 0)*(written_at - t)"
    ),
    "written_at": Memory(
        start="0 - age", update="written_at + int(abs(s - last)*seen > 0)*(t - written_at)"
    ),
    "last": Memory(update="s"),
    "seen": Memory(update="1"),
}
"""Seconds since the last write of a device, as memory of an effect at its read."""


class ProgrammingError(Piece):
    """The read weight differs from the stored one by an error of σ(g) = Σ_k c_k g^k, fixed until it
    is programmed again; with a `knee`, σ(g) = c_0 (1 − e^{−g/knee}).

    A weight is the difference of a pair, w = range·(g⁺ − g⁻), of which one device is off: that one
    has its programming error, too, and no conductance is below zero,
    g = max(0, g_stored + σ(g_stored) ξ). With `devices = "single"` it is s + range·σ(|s|/range)·ξ.
    """

    kind: Literal["programming_error"] = "programming_error"
    EXAMPLE: ClassVar[Fields] = {"coefficients": ["2.6 %", "1.9 %", "-1.1 %"]}
    PLACE: ClassVar[Place] = "write noise"
    coefficients: Annotated[
        tuple[Annotated[Finite, Unit("fraction")], ...],
        Field(min_length=1, max_length=4, strict=False),
    ]
    """c_0, c_1, …: standard deviation relative to the full conductance, device to device."""
    range: Weight = 1.0
    """Weight at full conductance, network units."""
    devices: Literal["pair", "single"] = "pair"
    """Whether a weight is a pair of conductances or one device of either sign."""
    knee: Annotated[Positive, Unit("fraction")] | None = None
    """Conductance at which the error saturates, relative to the full one; c_0 is then all of it."""

    @model_validator(mode="after")
    def _one_law(self) -> Self:
        if self.knee is not None and len(self.coefficients) > 1:
            raise ValueError(
                f"knee goes with one coefficient, the error that is not exceeded, got "
                f"{len(self.coefficients)}"
            )
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return range·(g⁺ − g⁻), or s + range·σ(|s|/range)·ξ."""
        constants = {f"c_{k}": c for k, c in enumerate(self.coefficients)}
        if self.knee is not None:
            constants["knee"] = self.knee
        draws = {"e": Draw()}
        if self.devices == "single":
            becomes = f"s + range*({self._spread('(abs(s)/range)')})*e"
        else:
            draws["e_minus"] = Draw()
            plus, minus = (
                f"clip({g} + ({self._spread(g)})*{e}, 0, 1e30)"
                for g, e in (
                    ("clip(s/range, 0, 1e30)", "e"),
                    ("clip(-s/range, 0, 1e30)", "e_minus"),
                )
            )
            becomes = f"range*({plus} - {minus})"
        return (
            Effect(
                name=name,
                site="weight",
                becomes=becomes,
                constants=constants | {"range": self.range},
                draws=draws,
                about="programming error, fixed per device and programming",
                programming=True,
            ),
        )

    def _spread(self, g: str) -> str:
        """Return σ(g) as text."""
        if self.knee is not None:
            return f"c_0*(1 - exp(-{g}/knee))"
        terms = ["c_0", f"c_1*{g}", f"c_2*{g}**2", f"c_3*{g}**3"]
        return " + ".join(terms[: len(self.coefficients)])


class ConductanceDrift(Piece):
    """Power-law drift since the last write: g = g_written·((since + t0)/t0)^−ν, ν per device.

    `programmed`: what is stored is read drifted; a write begins anew from what is stored.
    `learning`: what is stored is lost, dw/dt = −ν w/(since + t0), so that learning and drift
    compete; a device that is written all the time loses at the rate ν/t0.
    """

    kind: Literal["conductance_drift"] = "conductance_drift"
    EXAMPLE: ClassVar[Fields] = {"nu": 0.06, "nu_spread": 0.02, "t0": "20 s", "age": "1 d"}
    PLACE: ClassVar[Place] = "retention"
    nu: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
    """Mean drift exponent at full conductance."""
    nu_spread: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)] = 0.0
    """Device-to-device standard deviation of the exponent; no exponent is below 0."""
    t0: Seconds = 20.0
    """Time from programming to the first read, seconds."""
    age: Duration = 0.0
    """Seconds since programming at the start of the run, for devices not written since."""
    mode: Literal["programmed", "learning"] = "programmed"
    """Whether reads are drifted and what is stored stays, or what is stored is lost."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the drifted read, or the loss at each write."""
        exponent = "clip(nu + nu_spread*g, 0, 1e3)"
        constants = {"nu": self.nu, "nu_spread": self.nu_spread, "t0": self.t0, "age": self.age}
        about = f"conductance drift since the last write ({self.mode})"
        if self.mode == "programmed":
            return (
                Effect(
                    name=name,
                    site="weight",
                    becomes=f"s*((since + t0)/t0)**(-{exponent})",
                    constants=constants,
                    draws={"g": Draw()},
                    memory=_SINCE,
                    about=about,
                ),
            )
        return (
            Effect(
                name=name,
                site="write",
                becomes="s + w*(kept - 1)",
                constants=constants,
                draws={"g": Draw()},
                memory={
                    "kept": Memory(
                        start="1", update=f"((since + dt + t0)/(since + t0))**(-{exponent})"
                    ),
                    "since": Memory(start="age", update="(since + dt)*(1 - int(abs(s) > 0))"),
                },
                about=about,
            ),
        )


class PcmDrift(Sampled):
    """Drift and read noise of phase-change memory as functions of the conductance g.

        ν = max(0, clip(−0.0155 ln g + 0.0244, 0.049, 0.1)
                   + clip(−0.0125 ln g − 0.0059, 0.008, 0.045)·ξ)
        g(t) = g·(t′/t0)^−ν,   t′ = t0 + time since the last write
        σ_read = g(t)·q·√ln((t′ + t_r)/(2 t_r)),  q = min(0.0088/max(g^0.65, 1e-3), 0.2)

    (Nandakumar et al., ICECS 2019). The noise is redrawn at each read, once for all samples.
    """

    kind: Literal["pcm_drift"] = "pcm_drift"
    EXAMPLE: ClassVar[Fields] = {"t0": "20 s", "age": "1 h"}
    PLACE: ClassVar[Place] = "retention"
    t0: Seconds = 20.0
    """Time from programming to the first read, seconds."""
    age: Duration = 0.0
    """Seconds since programming at the start of the run, for devices not written since."""
    t_read: Seconds = 250e-9
    """Integration time of a read, seconds; at most t0."""
    read_noise: NotNegative = 1.0
    """Factor on the read noise; 0 leaves the drift alone."""
    range: Weight = 1.0
    """Weight at full conductance, network units."""

    @model_validator(mode="after")
    def _short_reads(self) -> Self:
        if self.t_read > self.t0:
            raise ValueError(f"t_read must not exceed t0, got {self.t_read:g} > {self.t0:g}")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the drifted read with its noise."""
        g = f"(abs(s)/range + {_TINY})"
        nu = (
            f"clip(clip(-0.0155*log{g} + 0.0244, 0.049, 0.1)"
            f" + clip(-0.0125*log{g} - 0.0059, 0.008, 0.045)*e, 0, 1)"
        )
        q = f"clip(0.0088/clip({g}**0.65, 1e-3, 10), 0, 0.2)"
        time = "(since + t0)"
        noise = f"read_noise*{q}*sqrt(log(({time} + t_read)/(2*t_read)))*xi"
        constants = {
            "t0": self.t0,
            "age": self.age,
            "t_read": self.t_read,
            "read_noise": self.read_noise,
            "range": self.range,
        }
        made = Effect(
            name=name,
            site="weight",
            becomes=f"s*({time}/t0)**(-{nu})*(1 + {noise})",
            constants=constants,
            draws={"e": Draw()},
            noise={"xi": "normal"},
            memory=_SINCE,
            about="drift since the last write and read noise of PCM",
        )
        return (redrawn(made, self.t_sample),)
