"""What writing does to devices beside the weight that is meant: wear, and disturbed neighbours."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from hw_models.clock import Clocked, at_writes, gathered
from hw_models.numbers import Finite, InWeights, NotNegative, Positive, Probability, Spread, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.quantity import Unit
from pcsim.substrate import Draw, Effect, Memory


class Endurance(Piece):
    """Devices wear with the number of their pulses, n = Σ|s|/dw of all that was asked so far.

    `fade`: steps shrink as e^{−n/N}, so that a device can travel N·dw in all. `stuck`: it works as
    new until n reaches N, and then keeps its weight for ever. N differs between devices.
    """

    kind: Literal["endurance"] = "endurance"
    EXAMPLE: ClassVar[Fields] = {"pulses": 1e6, "dw": 0.002, "spread": "50 %"}
    PLACE: ClassVar[Place] = "wear"
    pulses: Annotated[Positive, Unit("pulses")]
    """N, the pulses that a device endures (median over devices)."""
    dw: Weight
    """Change by one pulse, network units: what a pulse is counted by."""
    spread: Spread = 0.0
    """Device-to-device standard deviation of ln N."""
    mode: Literal["fade", "stuck"] = "fade"
    """Whether steps shrink, or end."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s·e^{−n/N}, or s while n < N; the memory counts pulses."""
        left = {"fade": "exp(-before/life)", "stuck": "int(before < life)"}[self.mode]
        return (
            Effect(
                name=name,
                site="write",
                becomes=f"s*{left}",
                constants={"pulses": self.pulses, "dw": self.dw, "spread": self.spread},
                draws={"d_life": Draw()},
                parameters={"life": "pulses*exp(spread*d_life)"},
                memory={
                    "before": Memory(update="count"),
                    "count": Memory(update="count + abs(s)/dw"),
                },
                about=f"wear with the number of pulses ({self.mode})",
            ),
        )


class HalfSelect(Clocked):
    """Writing a device disturbs those that share a line with it, at half the voltage.

    At every write (of t_write each) a device sees `lines`·`activity` half-selected pulses, each of
    which takes it the share `disturb` of its way to `rest`:

        w ← rest + (w − rest)·(1 − disturb)^(lines·activity)

    The number is that of the mean device: who is written on which line is not followed.
    """

    kind: Literal["half_select"] = "half_select"
    REQUESTS = "adds"
    EXAMPLE: ClassVar[Fields] = {"disturb": "1 ppm", "lines": 126, "activity": "10 %"}
    PLACE: ClassVar[Place] = "retention"
    disturb: Probability
    """Share of the way to rest that one half-selected pulse takes a device."""
    lines: Annotated[NotNegative, Unit("devices")]
    """Other devices on the two lines of a device: rows + columns − 2."""
    activity: Probability = 1.0
    """Share of them that is written at a write."""
    rest: Annotated[Finite, InWeights] = 0.0
    """Weight to which disturbed devices move, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + (rest − w)·(1 − (1 − disturb)^n)."""
        kept = (1 - self.disturb) ** (self.lines * self.activity)
        disturbed = Effect(
            name=name,
            site="write",
            becomes="s + (rest - w)*lost",
            constants={"rest": self.rest, "lost": 1 - kept},
            about="writes of neighbours disturb a device",
        )
        return (*gathered(name, self.t_write), at_writes(disturbed, self.t_write))
