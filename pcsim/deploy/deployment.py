"""What became of deployed networks: sentence, table and figure of a stored result."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from pcsim.deploy.plan import Plan
from pcsim.plots import QUANTILES
from pcsim.quantity import duration
from pcsim.rows import Rows
from pcsim.store import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Deployment(Result):
    """Accuracies (seed, chip, wait, compensation), and how well programming went."""

    @property
    def plan(self) -> Plan:
        """How weights were programmed, and when they were read."""
        return Plan.model_validate_json(str(self.attrs["plan"]))

    def quantiles(self, wait: int, compensation: int) -> tuple[float, float, float]:
        """Return the 5, 50 and 95 % quantiles of the accuracy over all chips, in %."""
        values = self["accuracy"][..., wait, compensation].reshape(-1)
        low, middle, high = (float(q) for q in np.quantile(100 * values, QUANTILES))
        return low, middle, high

    def sentence(self) -> str:
        """Return what was found, in one sentence."""
        plan, trained = self.plan, 100 * float(np.mean(self["trained_accuracy"]))
        source = {"ideal": "ideal arithmetic", "chip": "the chips"}[plan.train]
        how = {
            "open-loop": "programmed by one write of each device",
            "write-verify": f"programmed by write–verify ({100 * plan.tolerance:g} % of full "
            f"conductance, up to {plan.attempts} writes)",
            "none": "not programmed",
        }[plan.program]
        low, middle, high = self.quantiles(0, 0)
        text = (
            f"{self.attrs['chip']}: {trained:.1f} % after training on {source}; {how}: "
            f"{middle:.1f} % at once (5–95 % of {self._count}: {low:.1f}–{high:.1f})"
        )
        if len(plan.wait) > 1:
            _, plain, _ = self.quantiles(-1, 0)
            _, helped, _ = self.quantiles(-1, 1)
            text += (
                f"; after {duration(plan.wait[-1])} {plain:.1f} %, with drift compensation "
                f"{helped:.1f} %"
            )
        standing = str(self.attrs["standing"])
        return f"{text} [{standing}]" if standing else text

    @property
    def _count(self) -> str:
        seeds, *chips = self["accuracy"].shape[:-2]
        return f"{seeds} seeds × {chips[0] if chips else 1} chips"

    def tables(self) -> list[Rows]:
        """Return accuracies by time, and what programming came to, by layer."""
        waits = self["wait"]
        columns: tuple[str, ...] = ("time since programming", "5 %", "median", "95 %")
        if len(waits) > 1:
            columns += ("5 %, compensated", "median, compensated", "95 %, compensated")
        rows = []
        for k, seconds in enumerate(waits):
            shown = (0, 1) if len(waits) > 1 else (0,)
            cells = [f"{q:.1f}" for c in shown for q in self.quantiles(k, c)]
            rows.append((duration(float(seconds)), *cells))
        caption = f"Test accuracy in % over {self._count}"
        caption += "; compensated: one gain per array" if len(waits) > 1 else ""
        names = ("error", "attempts", "missed", "clipped")
        programmed = []
        for k, layer in enumerate(self["map"]):
            cells = [self[f"programming.{name}"][..., k].mean() for name in names]
            programmed.append((str(layer), f"{100 * cells[0]:.2f}", f"{cells[1]:.2f}",
                               f"{100 * cells[2]:.1f}", f"{100 * cells[3]:.1f}"))  # fmt: skip
        return [
            Rows(f"accuracy over time: {self.attrs['chip']}", columns, tuple(rows), caption),
            Rows(
                "programming",
                ("layer", "error, % of full", "writes per device", "missed, %", "clipped, %"),
                tuple(programmed),
                "Error: rms of read minus target at once. Missed: outside of the tolerance of "
                "write–verify, whether or not it was used. Clipped: weights above full conductance",
            ),
        ]

    def tables_as_json(self) -> str:
        """Return the tables as a result keeps them, for a report."""
        return json.dumps([json.loads(table.to_json()) for table in self.tables()])

    def plot(self) -> Figure:
        """Draw accuracy over time, with and without compensation."""
        from pcsim.plots import deployment_figure

        return deployment_figure(self)

    def __repr__(self) -> str:
        return f"<Deployment: {self.sentence()}>"

    def _repr_html_(self) -> str:
        tables = "\n".join(table.html() for table in self.tables())
        return f"<p><strong>{escape(self.sentence())}</strong></p>\n{tables}"
