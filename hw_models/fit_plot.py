"""A figure of a fit: data and laws, what is left, and steps against the conductance."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from hw_models.fit import Fit
from hw_models.pulse_curve import Direction

_COLOURS: dict[Direction, str] = {"up": "C0", "down": "C3"}
_STYLES = ("-", "--", "-.", ":")


def fit_figure(fit: Fit, title: str) -> Figure:
    """Return three panels: ramps with every law, residuals of the best, its steps."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    data, rest, steps = figure.subplots(1, 3)
    for side, ramps in fit.curve.ramps.items():
        pulses = np.arange(ramps.shape[1])
        data.plot(pulses, ramps.T, ".", ms=2, alpha=0.3, color=_COLOURS[side])
        for law, style in zip(fit.ranking, _STYLES, strict=False):
            label = f"{law.law}, {side}" if law is fit.ranking[0] else None
            width = 1.5 if label else 0.7
            curve = law.curve(side, len(pulses))
            data.plot(pulses, curve, style, lw=width, color=_COLOURS[side], label=label)
        left = ramps - fit.ranking[0].curve(side, len(pulses))
        rest.plot(pulses, 50 * left.T, ".", ms=2, alpha=0.3, color=_COLOURS[side])
        rest.plot(pulses, 50 * left.mean(0), color=_COLOURS[side], lw=1)
    u = np.linspace(-0.99, 0.99, 100)
    for side, colour in _COLOURS.items():
        sizes = [fit.ranking[0].step(side, float(v)) for v in u]
        steps.plot(u, sizes, color=colour, label=f"step {side}")
    point = fit.symmetry_point
    if point is not None:
        steps.axvline(point, color="grey", lw=0.8, label=f"symmetry point {point:.2f}")
    data.set(title=title, xlabel="pulse", ylabel="conductance, −1 … 1 is the range")
    rest.set(title="residuals of the best law", xlabel="pulse", ylabel="% of the range")
    steps.set(title="size of a step", xlabel="conductance, −1 … 1", ylabel="part of half the range")
    rest.axhline(0, color="grey", lw=0.5)
    data.legend(fontsize=8)
    steps.legend(fontsize=8)
    return figure
