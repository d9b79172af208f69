"""Weights that are not what was stored: programming error, drift with time, read noise of PCM.

Conductances are fractions g = |w|/range of the full one; x → 0 is allowed everywhere.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hw_models.piece import Piece
from pcsim.frozen import NotNegative, Positive
from pcsim.substrate import Draw, Effect

_TINY = "1e-12"


class ProgrammingError(Piece):
    """The read weight differs from the stored one by a fixed error σ(g) = Σ_k c_k g^k."""

    kind: Literal["programming_error"] = "programming_error"
    coefficients: Annotated[tuple[float, ...], Field(min_length=1, max_length=4, strict=False)]
    """c_0, c_1, …: standard deviation relative to the full conductance, device to device."""
    range: Positive = 1.0
    """Weight at full conductance, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + range·σ(|s|/range)·ξ."""
        terms = ["c_0", "c_1*(abs(s)/range)"] + [f"c_{k}*(abs(s)/range)**{k}" for k in (2, 3)]
        polynomial = " + ".join(terms[: len(self.coefficients)])
        constants = {f"c_{k}": c for k, c in enumerate(self.coefficients)}
        return (
            Effect(
                name=name,
                site="weight",
                becomes=f"s + range*({polynomial})*e",
                constants=constants | {"range": self.range},
                draws={"e": Draw()},
                about="programming error, fixed per device",
            ),
        )


class ConductanceDrift(Piece):
    """Power-law drift: g(t) = g·((age + t + t0)/t0)^−ν, ν per device.

    `programmed`: what was written long ago is read drifted. `learning`: every device relaxes while
    it is being written, dw/dt = −ν w/(age + t + t0), so that learning and drift compete.
    """

    kind: Literal["conductance_drift"] = "conductance_drift"
    nu: NotNegative
    """Mean drift exponent at full conductance."""
    nu_spread: NotNegative = 0.0
    """Device-to-device standard deviation of the exponent."""
    t0: Positive = 20.0
    """Time from programming to the first read, seconds."""
    age: NotNegative = 0.0
    """Seconds since programming at the start of the run."""
    mode: Literal["programmed", "learning"] = "programmed"

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the drifted read, or the loss at each write."""
        exponent = "clip(nu + nu_spread*g, 0, 1e3)"
        becomes = {
            "programmed": f"s*((age + t + t0)/t0)**(-{exponent})",
            "learning": f"s - dt*{exponent}*w/(age + t + t0)",
        }[self.mode]
        return (
            Effect(
                name=name,
                site="weight" if self.mode == "programmed" else "write",
                becomes=becomes,
                constants={
                    "nu": self.nu,
                    "nu_spread": self.nu_spread,
                    "t0": self.t0,
                    "age": self.age,
                },
                draws={"g": Draw()},
                about=f"conductance drift ({self.mode})",
            ),
        )


class PcmDrift(Piece):
    """Drift and read noise of phase-change memory as functions of the conductance g.

        ν = clip(−0.0155 ln g + 0.0244, 0.049, 0.1) + clip(−0.0125 ln g − 0.0059, 0.008, 0.045)·ξ
        g(t) = g·((age + t + t0)/t0)^−ν
        σ_read = g(t)·q·√ln((t′ + t_r)/(2 t_r)),  q = min(0.0088/max(g^0.65, 1e-3), 0.2)

    with t′ = age + t + t0 (Nandakumar et al., ICECS 2019).
    """

    kind: Literal["pcm_drift"] = "pcm_drift"
    t0: Positive = 20.0
    """Time from programming to the first read, seconds."""
    age: NotNegative = 0.0
    """Seconds since programming at the start of the run."""
    t_read: Positive = 250e-9
    """Integration time of a read, seconds."""
    read_noise: NotNegative = 1.0
    """Factor on the read noise; 0 leaves the drift alone."""
    range: Positive = 1.0
    """Weight at full conductance, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return the drifted read with its noise."""
        g = f"(abs(s)/range + {_TINY})"
        nu = (
            f"(clip(-0.0155*log{g} + 0.0244, 0.049, 0.1)"
            f" + clip(-0.0125*log{g} - 0.0059, 0.008, 0.045)*e)"
        )
        q = f"clip(0.0088/clip({g}**0.65, 1e-3, 10), 0, 0.2)"
        time = "(age + t + t0)"
        noise = f"read_noise*{q}*sqrt(log(({time} + t_read)/(2*t_read)))*xi"
        constants = {
            "t0": self.t0,
            "age": self.age,
            "t_read": self.t_read,
            "read_noise": self.read_noise,
            "range": self.range,
        }
        return (
            Effect(
                name=name,
                site="weight",
                becomes=f"s*({time}/t0)**(-{nu})*(1 + {noise})",
                constants=constants,
                draws={"e": Draw()},
                noise={"xi": "normal"},
                about="drift and read noise of PCM",
            ),
        )
