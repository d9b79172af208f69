"""The recording of a simulation: a result that can be asked for its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.errors import UnsupportedError
from pcsim.store import Result
from pcsim.verdict import Verdict, verdict_from

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


class Recording(Result):
    """What was recorded, on named axes; everything that takes a result takes a recording."""

    @property
    def config(self) -> Config:
        """The whole description of what was simulated."""
        return configuration.from_json(str(self.attrs["config"]))

    def to_xarray(self) -> xarray.Dataset:
        """Return all variables with axes, labels and units; how far the run was as coordinates."""
        dataset = super().to_xarray()
        units = ("samples", "updates", "simulated_time")
        names = {of + name for of in ("", "accuracy_") for name in units}
        return dataset.set_coords([name for name in self.variables if name in names])

    def verdict(self) -> Verdict:
        """Return what became of every chip."""
        if "verdict.outcome" not in self.variables:
            raise UnsupportedError(
                "Recording.verdict: is about chips in continuous time and automatic runs; a "
                "training in epochs has 'train_energy' and 'accuracy' instead, an automatic run "
                "of pcsim 0.1 'outcome'"
            )
        return verdict_from(self)

    def plot(self, title: str | None = None) -> Figure:
        """Draw energy and accuracy, as `pcsim run` does."""
        from pcsim.plots import chip_run, training_curves

        shown = title or f"{self._rule} on {self.config.data.name}"
        if "time" in self.coords:
            return chip_run(self, shown)
        if {"train_energy", "test_accuracy"} <= set(self.variables):
            return training_curves({self._rule: self}, shown)
        raise UnsupportedError(
            "Recording.plot: draws chips in continuous time, and discrete runs with 'train_energy' "
            "and 'test_accuracy'; figures() has what a report draws of this one"
        )

    def figures(self) -> dict[str, Figure]:
        """Return the figures that `pcsim report` draws of this result, by their titles."""
        from pcsim.report.view import View
        from pcsim.report.write import FIGURES

        view = View("recording", "recording", self)
        return {one.title: one.figure for draw in FIGURES for one in draw(view)}

    @property
    def _rule(self) -> str:
        config = self.config
        if config.run.backend == "discrete":
            return config.schedule.rule
        return f"{config.circuit.kind} circuit"
