"""Faults: stuck devices, dead lines, dead neurons. Which ones is drawn once per chip."""

from __future__ import annotations

from typing import ClassVar, Literal

from hw_models.numbers import Probability, Weight
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.substrate import Draw, Effect


class StuckWeights(Piece):
    """A fraction of the weights always reads the same value, whatever is written."""

    kind: Literal["stuck_weights"] = "stuck_weights"
    EXAMPLE: ClassVar[Fields] = {"fraction": "1 %", "at": "zero"}
    PLACE: ClassVar[Place] = "faults"
    fraction: Probability
    """Of all devices, independently."""
    at: Literal["low", "zero", "high", "random"] = "zero"
    """−range, 0, range, or uniform between the two."""
    range: Weight = 1.0
    """Largest weight, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + hit·(value − s)."""
        value = {"low": "(-range)", "zero": "0", "high": "range", "random": "range*(2*v - 1)"}
        draws = {"hit": Draw(law="bernoulli", probability=self.fraction)}
        if self.at == "random":
            draws["v"] = Draw(law="uniform")
        return (
            Effect(
                name=name,
                site="weight",
                becomes=f"s + hit*({value[self.at]} - s)",
                constants={} if self.at == "zero" else {"range": self.range},
                draws=draws,
                about=f"devices stuck {self.at}",
            ),
        )


class DeadLines(Piece):
    """A fraction of the rows (output lines) or columns (input lines) of every array reads zero."""

    kind: Literal["dead_lines"] = "dead_lines"
    EXAMPLE: ClassVar[Fields] = {"fraction": "0.5 %", "lines": "row"}
    PLACE: ClassVar[Place] = "dead"
    fraction: Probability
    """Share of the lines, each independently."""
    lines: Literal["row", "column"] = "row"
    """Rows are output lines, columns are input lines."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s·(1 − dead)."""
        dead = Draw(law="bernoulli", probability=self.fraction, per=self.lines)
        return (
            Effect(
                name=name,
                site="weight",
                becomes="s*(1 - dead)",
                draws={"dead": dead},
                about=f"dead {self.lines}s",
            ),
        )


class DeadNeurons(Piece):
    """A fraction of the neurons never fires (inputs included)."""

    kind: Literal["dead_neurons"] = "dead_neurons"
    EXAMPLE: ClassVar[Fields] = {"fraction": "2 %"}
    PLACE: ClassVar[Place] = "dead"
    fraction: Probability
    """Share of the neurons, each independently."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s·(1 − dead)."""
        return (
            Effect(
                name=name,
                site="rate",
                becomes="s*(1 - dead)",
                draws={"dead": Draw(law="bernoulli", probability=self.fraction)},
                about="neurons that never fire",
            ),
        )
