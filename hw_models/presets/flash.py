"""Charge-trapping flash (SONOS): programmed currents with the spread and noise that were measured.

σ(I) = A (1 − e^{−I/B}),   weight 1 is the largest current, 1600 nA
"""

from __future__ import annotations

from hw_models.description import Hardware
from hw_models.drift import ProgrammingError
from hw_models.formula import Formula

FULL = 1600.0
"""Largest current that stores a weight, nA."""
_SOURCES = (
    "Agrawal et al., IEDM 2022, 21.7, subthreshold operation of SONOS analog memory, 40 nm, "
    "via CrossSim (Sandia National Laboratories)",
)


def _sonos(name: str, when: str, size: float, knee: float) -> Hardware:
    """Return SONOS cells with a spread A, B (nA); the cell of a pair that is off has none."""
    return Hardware(
        name=name,
        about=f"SONOS flash, programmed currents {when}: spread of devices and noise of reads "
        "(the drift of the mean, up to 7 % of full scale in 5 days, is left out)",
        sources=_SOURCES,
        pieces={
            "programming": ProgrammingError(coefficients=(size / FULL,), knee=knee / FULL),
            "read": Formula(
                site="weight",
                becomes="sign(s)*clip(abs(s) + size*(1 - exp(-abs(s)/knee))*xi, 0, 1e30)",
                constants={"size": 12.58037 / FULL, "knee": 215.36557 / FULL},
                noise={"xi": "normal"},
                about="noise of each read of a current",
            ),
        },
    )


FLASH: tuple[Hardware, ...] = (
    _sonos("sonos", "when just programmed", 19.88665, 176.3115),
    _sonos("sonos_5_days", "after 5 days", 34.57909, 207.34309),
)
"""Weights as flash presents them after programming."""
