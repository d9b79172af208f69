"""How samples follow one another on a chip: the regimes that are compared, and a presenter.

One presentation lasts T_pres with the label on. What a regime adds to it is written in units of
the somatic time constant τ_x. `pcsim` itself offers most of them (see `options`); the presenter
here adds those that are only studied: letting the label go before the switch, low-passing input
and label together, and a plasticity gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.continuous.error_flow import ErrorFlow
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.task import Clamps

Segment = tuple[int, bool, bool]
"""Time steps, label clamped, weights plastic."""
FROZEN = 1e30


@dataclass(frozen=True)
class Regime:
    """What happens around a switch; times in τ_x."""

    name: str
    init: str = "carry"
    settle: float = 0.0
    """Label free for so long after the switch."""
    release: float = 0.0
    """Label free for so long before the switch."""
    tau_label: float = 0.0
    """The label follows with this time constant."""
    tau_both: float = 0.0
    """Input and label follow together with this time constant."""
    look: float = 0.0
    """Look-ahead of the somas."""
    gate: float = 0.0
    """Weights frozen for so long after the switch (needs a control signal)."""

    @property
    def extra(self) -> float:
        """What a sample takes beyond T_pres, in τ_x."""
        return self.settle + self.release + self.gate

    @property
    def automatic(self) -> bool:
        """Whether a chip needs no signal that tells it of a switch."""
        return self.init == "carry" and not self.gate

    @property
    def built_in(self) -> bool:
        """Whether a configuration of pcsim describes it completely."""
        return not (self.release or self.tau_both or self.gate)

    def options(self, tau_x: float) -> dict[str, dict[str, Any]]:
        """Return the sections of a configuration that describe this regime."""
        return {
            "schedule": {"init": self.init, "fast": not self.tau_both},
            "stream": {"t_settle": self.settle * tau_x, "tau_label": self.tau_label * tau_x},
            "circuit": {"look_soma": self.look * tau_x},
        }


REGIMES = (
    Regime("carry-over"),
    Regime("feed-forward reset", init="ff"),
    Regime("plasticity gate 3 τ_x", gate=3.0),
    Regime("soma look-ahead τ_x", look=1.0),
    Regime("smooth input+label 2 τ_x", tau_both=2.0),
    Regime("smooth label τ_x", tau_label=1.0),
    Regime("label free 3 τ_x after", settle=3.0),
    Regime("label free 3 τ_x before", release=3.0),
)


class Presenter:
    """Shows one sample after the other to a population of chips in one regime."""

    def __init__(self, engine: Continuous, regime: Regime, t_pres: float, tau_x: float) -> None:
        """`t_pres` and `tau_x` in seconds."""
        self.engine, self.regime = engine, regime
        self._shown: list[Tensor | None] = []
        steps = round(t_pres / engine.dt)
        settle, release, gate = (
            round(part * tau_x / engine.dt) for part in (regime.settle, regime.release, regime.gate)
        )
        parts = [(settle, False, True), (gate, True, False)]
        parts += [(steps, True, True), (release, False, True)]
        self.segments: list[Segment] = [part for part in parts if part[0]]
        tau = (regime.tau_both or regime.tau_label) * tau_x
        self._follow = 1 - exp(-engine.dt / tau) if tau else 0.0

    def present(self, clamps: Clamps) -> None:
        """Show one sample through all segments."""
        engine = self.engine
        first = engine.steps == 0
        target = clamps
        if self._follow:
            clamps = self._following(clamps)
        for position, (steps, label, plastic) in enumerate(self.segments):
            engine.load([clamps[0] if label else None, *clamps[1:]], steps=steps)
            if not position and (first or self.regime.init == "ff"):
                engine.feedforward()
            if plastic:
                self._advance(steps, target)
            else:
                self._advance_frozen(steps, target)

    def _following(self, clamps: Clamps) -> Clamps:
        """Replace the label (and the input) by tensors that will follow them."""
        if not self._shown:
            self._shown = [None if c is None else c.clone() for c in clamps]
        if self.regime.tau_label:
            return [self._shown[0], *clamps[1:]]
        return list(self._shown)

    def _advance(self, steps: int, target: Sequence[Tensor | None]) -> None:
        if not self._follow:
            self.engine.advance(steps)
            return
        for _ in range(steps):
            for shown, wanted in zip(self._shown, target, strict=True):
                if shown is not None and wanted is not None:
                    shown.add_(wanted - shown, alpha=self._follow)
            self.engine.advance(1)

    def _advance_frozen(self, steps: int, target: Sequence[Tensor | None]) -> None:
        flow = self.engine.flow
        assert isinstance(flow, ErrorFlow)
        tau_w, flow.tau_w = flow.tau_w, FROZEN
        self._advance(steps, target)
        flow.settle_weights()
        flow.tau_w = tau_w


class StreamRun(ChipRun):
    """A run of chips in a regime that pcsim's configuration does not offer."""

    presenter: Presenter | None = None

    def present(self, clamps: Clamps) -> Iterator[None]:
        """Show one batch; the presenter takes all steps itself."""
        assert self.presenter is not None
        self.presenter.present(clamps)
        yield from ()
