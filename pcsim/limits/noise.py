"""What noise of reads and of somas costs an always-on circuit.

Read noise: each read of an error has an independent error of standard deviation s, seen by soma,
feedback and synapse alike; a read every dt, γ = dt/τ_x, α = dt/τ_w. By law 38

    inference    E[F − F*] = (γ s²/4) Σ_k h_k/(1 − γ h_k/2)                       (law 21)
    read-out     variance of a released output unit   ½ γ s²            for small γ, any weights
    learning     variance of a weight                 α s²/(2 − α|r|²)  any data, any T, any depth
                 excess loss of an output unit        ¼ α s² Σ r²       grows with the fan-in

so that the noise of weights is that of a temperature: presentation time does not enter at a given α
(at a given rate per presentation, η = α T/dt, it falls as dt/T).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pcsim.limits.lags import Floats, error_matrix


def energy_of_white_noise(
    sigma: float, curvatures: npt.ArrayLike, gamma: float = 0.0, tau_x: float = 1.0
) -> float:
    """Return E[F − F*] of somas with white noise σ (per √s): (σ² τ_x/4) Σ_k 1/(1 − γ h_k/2).

    n σ² τ_x/4 for n free units in continuous time (γ = 0). Linear somas, weights at rest, γ h < 2.
    """
    h = np.asarray(curvatures, dtype=float)
    return float(sigma**2 * tau_x / 4 * (1 / (1 - gamma * h / 2)).sum())


def energy_of_read_noise(s: float, curvatures: npt.ArrayLike, gamma: float) -> float:
    """Return E[F − F*] of errors that are read with noise s: (γ s²/4) Σ_k h_k/(1 − γ h_k/2)."""
    h = np.asarray(curvatures, dtype=float)
    return float(gamma * s**2 / 4 * (h / (1 - gamma * h / 2)).sum())


def readout_variance(weights: Sequence[npt.ArrayLike], s: float, gamma: float) -> Floats:
    """Return the variance of each output unit, label released, settled, read at one instant.

    (γ s² (2 − γ H)⁻¹) of the output, H that of the released circuit: ½ γ s² to first order in γ,
    whatever the weights. `weights` as in `lags.error_matrix`; linear somas, read noise of errors.
    """
    a = released_matrix(weights)
    outputs = len(a) - error_matrix(weights).shape[1]
    covariance = gamma * s**2 * np.linalg.inv(2 * np.eye(len(a)) - gamma * a.T @ a)
    return np.asarray(np.diag(covariance)[:outputs])


def released_matrix(weights: Sequence[npt.ArrayLike]) -> Floats:
    """Return A of ε = A x − c where the output is free too: identity, minus each weight above."""
    clamped = error_matrix(weights)
    outputs = clamped.shape[0] - clamped.shape[1]
    free = np.vstack([np.eye(outputs), np.zeros((clamped.shape[1], outputs))])
    return np.asarray(np.hstack([free, clamped]))


def weight_variance(s: float, alpha: float, power: float = 0.0) -> float:
    """Return the stationary variance of each weight: α s²/(2 − α Σ r²), α per read.

    `power` is Σ r² of the inputs, the same for all samples (exact then); else its mean serves while
    α Σ r² ≪ 2. Of a hidden layer it is the variance of what the output can feel.
    """
    return alpha * s**2 / (2 - alpha * power)


def excess_of_read_noise(s: float, alpha: float, power: float) -> float:
    """Return the excess loss of an output unit, ½ E(Δw·r)² = ½ Σ r²·α s²/(2 − α Σ r²).

    `power` = Σ E r² = fan-in × mean square of an input.
    """
    return 0.5 * power * weight_variance(s, alpha, power)


def output_variance_in_depth(
    weights: Sequence[npt.ArrayLike], powers: Sequence[float], s: float, alpha: float
) -> float:
    """Return Σ over output units of E(Δy)² of a linear network that learns with read noise.

    ½ α s² Σ_l |P_l|² Σ E (r^{l+1})²: each layer adds its fan-in's power times the squared norm of
    P_l = θ^0 ⋯ θ^{l−1}. For small α Σ r², presentations of many τ_x, about an exact solution.
    `weights` from the output up, all of them; `powers` of the rates that enter each.
    """
    path, total = np.eye(np.atleast_2d(np.asarray(weights[0])).shape[0]), 0.0
    for theta, power in zip(weights, powers, strict=True):
        total += float((path**2).sum()) * power
        path = path @ np.atleast_2d(np.asarray(theta, dtype=float))
    return alpha * s**2 / 2 * total


def line_noise(sigma: float, squares: npt.ArrayLike, span: float | npt.ArrayLike = 1.0) -> float:
    """Return the noise of a line's sum, σ √(Σ_j span_j² E r_j²): it grows as √fan-in.

    Each device is read with noise σ·span_j (its range, or its weight), `squares` = E r_j².
    """
    each = np.broadcast_to(np.asarray(span, dtype=float), np.shape(squares))
    return float(sigma * np.sqrt((each**2 * np.asarray(squares, dtype=float)).sum()))
