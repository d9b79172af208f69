"""Weights that are programmed and then read: error of programming, drift, read noise.

The error is a polynomial of the conductance as a fraction x = |w|/range of the full one; sources
give it in µS, here it is divided by the full conductance.
"""

from __future__ import annotations

from hw_models.description import Hardware
from hw_models.drift import PcmDrift, ProgrammingError

_CROSSSIM = "via CrossSim (Sandia National Laboratories)"


def relative(coefficients: tuple[float, ...], full: float) -> tuple[float, ...]:
    """Return c_k for σ/G_max as a polynomial of x, from σ in µS as a polynomial of G in µS."""
    return tuple(c * full ** (k - 1) for k, c in enumerate(coefficients))


PROGRAMMED: tuple[Hardware, ...] = (
    Hardware(
        name="pcm_programmed",
        about="programmed phase-change memory: error, drift and read noise (25 µS, t0 = 20 s)",
        sources=("Nandakumar et al., ICECS 2019, phase-change memory models for deep learning",),
        pieces={
            "programming": ProgrammingError(coefficients=(0.26348 / 25, 1.9650 / 25, -1.1731 / 25)),
            "drift": PcmDrift(),
        },
    ),
    Hardware(
        name="pcm_programmed_pair",
        about="two phase-change devices per weight (20.7 µS, t0 = 300 s)",
        sources=("two-device polynomial as in IBM's aihwkit; drift of Nandakumar et al. 2019",),
        pieces={
            "programming": ProgrammingError(
                coefficients=(0.166 / 20.7, 4.718 / 20.7, -8.481 / 20.7, 4.690 / 20.7)
            ),
            "drift": PcmDrift(t0=300.0),
        },
    ),
    Hardware(
        name="pcm_joshi",
        about="programming error of phase-change memory (25 µS)",
        sources=(f"Joshi et al., Nature Communications 11, 2473 (2020), {_CROSSSIM}",),
        pieces={
            "programming": ProgrammingError(coefficients=relative((0.286, 0.0759, -0.00179), 25))
        },
    ),
    Hardware(
        name="rram_milo",
        about="programming error of resistive memory, measured at 50–225 µS",
        sources=(f"Milo et al., IRPS 2021, 4-kbit array of HfO2 cells, {_CROSSSIM}",),
        pieces={"programming": ProgrammingError(coefficients=relative((4.782, -0.0091), 225))},
    ),
    Hardware(
        name="rram_wan",
        about="programming error of resistive memory (40 µS)",
        sources=(f"Wan et al., Nature 608, 504 (2022), {_CROSSSIM}",),
        pieces={
            "programming": ProgrammingError(
                coefficients=relative((1.053, 0.2374, -0.01167, 1.536e-4), 40)
            )
        },
    ),
)
"""Weights as an array presents them after programming."""
