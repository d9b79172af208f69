"""Step-size and lag advice before a run, from the linearised equations.

Near ε = 0 the errors of all samples obey ε(t+1) = (I − γ A Aᵀ − α K) ε(t), with A = ∂ε/∂x over the
free states and K the Gram matrices of the presynaptic rates. Euler's joint step is stable there
exactly if λ_max(γ A Aᵀ + α K) < 2. Lags and delays add limits of their own, in terms of
h_max = λ_max(A Aᵀ).
"""

from __future__ import annotations

from cmath import sqrt
from dataclasses import dataclass
from math import pi

import torch
from torch import Tensor

from pcsim.circuit import Circuit
from pcsim.circuits import PAGES
from pcsim.kernels.feedforward import FUNCTIONS, feedforward
from pcsim.kernels.optim import Rate
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense
from pcsim.network import UNIT_GAUSSIAN, Network

Errors = list[Tensor]
ITERATIONS = 50
"""Products with the matrix per search for its largest eigenvalue."""
NUMBERS = 5_000_000
"""Weights and states of the chips that the margin looks at together."""
MATRICES = 200
"""Matrices of the search that are in memory at a time."""
PROBES = 256
"""Samples that the margin looks at, at the most."""
WORK = 1e10
"""Multiplications that advice may take in all: about a second. Fewer samples are probed in large
networks; where not even one is affordable, advice says so."""


class StabilityWarning(UserWarning):
    """The linearised system says that this run will blow up, ring, or may do so."""


@dataclass(frozen=True)
class Advice:
    """One finding: `certain` says that the linearised system must blow up."""

    certain: bool
    message: str


class Linearisation:
    """A, K and their largest eigenvalues at the feed-forward state of a batch, per chip."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        x_top: Tensor,
        scale: float,
        batch: int | None = None,
    ) -> None:
        """Samples of one batch share weights; several batches of `batch` samples do not."""
        self.depth = len(network.nodes) - 1
        maps = [node.map for node in network.nodes[:-1]]
        if not all(
            isinstance(m, Dense) and m.g == "identity" and m.f != "softmax" and m.positions == 1
            for m in maps
        ) or any(node.parents != (k + 1,) for k, node in enumerate(network.nodes[:-1])):
            raise NotImplementedError("the linearisation covers chains of pre-activation maps")
        if any(node.energy != UNIT_GAUSSIAN for node in network.nodes[:-1]):
            raise NotImplementedError("the linearisation knows unit variances only")
        # On the host, in double precision: this is done once, before or after a run.
        of = [{n: v.double().cpu() for n, v in views.items()} for views in params.of]
        self.w = [of[k]["w"] for k in range(self.depth)]
        self.bias = ["b" in of[k] for k in range(self.depth)]
        values = feedforward(network, of, (x_top.double().cpu(),))
        self.batch = x_top.shape[1] if batch is None else batch
        self.slopes: list[Tensor] = []
        self.grams: list[Tensor] = []
        for k in range(1, self.depth + 1):
            name = maps[k - 1].f  # type: ignore[union-attr]
            with torch.enable_grad():
                x = values[k].detach().expand(params.replicas, -1, -1).clone().requires_grad_()
                rate = FUNCTIONS[name](x)
                (slope,) = torch.autograd.grad(rate.sum(), x)
            rate = rate.detach()
            self.slopes.append(slope)
            rate = self._batches(rate)
            self.grams.append(scale * (rate @ rate.mT + float(self.bias[k - 1])))

    def curvature(self, u: Errors) -> Errors:
        """Return A Aᵀ u over the hidden states 1 … L−1."""
        v = {
            k: u[k] - self.slopes[k - 1] * torch.bmm(u[k - 1], self.w[k - 1])
            for k in range(1, self.depth)
        }
        result = []
        for k in range(self.depth):
            value = v[k] if k else torch.zeros_like(u[0])
            if k + 1 < self.depth:
                value = value - torch.bmm(self.slopes[k] * v[k + 1], self.w[k].mT)
            result.append(value)
        return result

    def learning(self, u: Errors) -> Errors:
        """Return K u."""
        return [
            (gram @ self._batches(part)).flatten(1, 2)
            for gram, part in zip(self.grams, u, strict=True)
        ]

    def largest(self, gamma: Rate, alpha: Rate, iterations: int = ITERATIONS) -> Tensor:
        """Return λ_max(γ A Aᵀ + α K) (chip,) by Lanczos' method (the matrix is symmetric ⪰ 0).

        Its error shrinks with the square root of the gap that power iteration sees; a loss of
        orthogonality repeats eigenvalues and does not harm the largest. Every batch has a matrix of
        its own, since the largest eigenvalues of different batches are close to each other.
        """
        gamma, alpha = (r.view(-1, 1, 1) if isinstance(r, Tensor) else r for r in (gamma, alpha))
        generator = torch.Generator().manual_seed(0)
        # One start for all chips: what is found of a chip does not depend on who else is there.
        u = [
            torch.randn(1, s.shape[1], w.shape[1], dtype=w.dtype, generator=generator).expand(
                len(w), -1, -1
            )
            for w, s in zip(self.w, self.slopes, strict=True)
        ]
        size = self._inner(u, u).sqrt()
        before: Errors = [torch.zeros_like(part) for part in u]
        diagonal: list[Tensor] = []
        beside: list[Tensor] = []
        for _ in range(min(iterations, self.batch * sum(part.shape[2] for part in u))):
            u = [part / self._each(size.clamp_min(1e-300)) for part in u]
            image = [
                gamma * c + alpha * k
                for c, k in zip(self.curvature(u), self.learning(u), strict=True)
            ]
            along = self._inner(u, image)
            if diagonal:
                beside.append(size)
            diagonal.append(along)
            back = size if beside else torch.zeros_like(size)
            rest = [
                v - self._each(along) * now - self._each(back) * old
                for v, now, old in zip(image, u, before, strict=True)
            ]
            before, u = u, rest
            size = self._inner(u, u).sqrt()
        on, off = torch.stack(diagonal, -1), torch.stack([*beside, size], -1)[..., :-1]
        shape, on, off = on.shape[:2], on.flatten(0, 1), off.flatten(0, 1)
        found = [
            _largest(on[k : k + MATRICES], off[k : k + MATRICES])
            for k in range(0, len(on), MATRICES)
        ]
        return torch.cat(found).view(shape).amax(1)

    def _inner(self, a: Errors, b: Errors) -> Tensor:
        """Return the scalar product (chip, batch) over nodes, samples and units."""
        each = torch.stack([(p * q).sum(2) for p, q in zip(a, b, strict=True)]).sum(0)
        return self._batches(each.unsqueeze(2)).sum((2, 3))

    def _batches(self, value: Tensor) -> Tensor:
        """Return (chip, sample, unit) as (chip, batch, sample, unit)."""
        return value.reshape(len(value), -1, self.batch, value.shape[2])

    def _each(self, value: Tensor) -> Tensor:
        """Return what (chip, batch) share, for every sample."""
        return value.repeat_interleave(self.batch, 1).unsqueeze(2)


def _largest(diagonal: Tensor, beside: Tensor) -> Tensor:
    """Return the largest eigenvalues (matrix,) of tridiagonal matrices, NaN where none is known."""
    matrix = torch.diag_embed(diagonal) + torch.diag_embed(beside, -1)  # the lower half counts
    finite = matrix.isfinite().all(-1).all(-1)
    found = torch.linalg.eigvalsh(matrix.nan_to_num(0.0, 0.0, 0.0))[..., -1]
    return torch.where(finite, found, torch.nan)


def affordable_probes(numbers: int) -> int:
    """Return how many samples the margin of a population of so many weights may look at."""
    return min(PROBES, max(1, int(WORK / (200 * numbers))))


def margin(
    network: Network,
    params: Parameters,
    circuit: Circuit,
    x_top: Tensor,
    scale: float,
    rates: tuple[Rate, Rate],
    batch: int | None = None,
) -> Tensor:
    """Return 1 − λ_max(γAAᵀ + αK)/2 (chip,) at these weights: 1 is far from the limit, 0 is at it.

    `rates` are γ = dt/τ_x and α = dt/τ_w. With `batch`, the inputs are those of several batches of
    so many samples, and the worst of them counts. NaN where the linearisation does not hold: other
    circuits than the ideal one (or its exact dendritic equivalent), other energies, separate
    feedback.
    """
    unknown = torch.full((params.replicas,), float("nan"), dtype=torch.float64)
    ideal = circuit.kind in ("algebraic", "dendritic") and circuit.transport == "shared"
    late = circuit.tau_inter or circuit.tau_apical or circuit.delay_err or circuit.delay_fb
    if not ideal or late or circuit.look_soma or circuit.inhibition != 1:
        return unknown
    samples = x_top.shape[1] * sum(node.units for node in network.nodes)
    rows = max(1, NUMBERS // (network.parameter_count + 4 * samples))
    found = []
    for first in range(0, params.replicas, rows):  # chips share nothing

        def of(value: Rate, some: slice = slice(first, first + rows)) -> Rate:
            return value[some] if isinstance(value, Tensor) and value.numel() > 1 else value

        some = Parameters(network, params.flat[first : first + rows])
        top = x_top[first : first + rows] if len(x_top) > 1 else x_top
        try:
            linear = Linearisation(network, some, top, scale, batch)
        except NotImplementedError:
            return unknown
        found.append(1 - linear.largest(of(rates[0]), of(rates[1])) / 2)
    return torch.cat(found)


def advise(
    network: Network,
    params: Parameters,
    circuit: Circuit,
    dt: float,
    x_top: Tensor,
    scale: float = 1.0,
) -> list[Advice]:
    """Return what the linearised system says about this run; empty when nothing is to be feared."""
    if circuit.transport != "shared" or PAGES[circuit.kind].output_fires:
        return []  # other feedback, or a target that pulls: another linear system
    samples = int(WORK / (8 * ITERATIONS * params.flat.nelement()))
    if not samples:
        return [
            Advice(
                False,
                f"the step size was not examined: {params.flat.nelement():,} weights are too many "
                f"to do so in seconds; try it with a smaller network first",
            )
        ]
    if samples < x_top.shape[1]:
        scale = scale * x_top.shape[1] / samples
        x_top = x_top[:, :samples]
    try:
        linear = Linearisation(network, params, x_top, scale)
    except NotImplementedError:
        return []
    gamma, alpha = dt / circuit.tau_x, dt / circuit.weight_time
    found = []
    if circuit.look_soma == circuit.tau_x:
        gamma = 1.0  # latent equilibrium: rates take a whole step, whatever the time step
    joint = float(linear.largest(gamma, alpha).max())
    h_max = float(linear.largest(1.0, 0.0).max())
    direct = not circuit.tau_err and circuit.look_soma in (0.0, circuit.tau_x)
    if joint >= 2 and direct:
        found.append(
            Advice(
                True,
                f"the joint Euler step is unstable: λ_max(γAAᵀ + αK) = {joint:.3g} ≥ 2 with "
                f"γ = {gamma:.3g}, α = {alpha:.3g}, h_max = {h_max:.3g}; multiply solver.dt, or "
                f"gamma and alpha, by at most {1.9 / joint:.2g}",
            )
        )
    return found + _lag_advice(circuit, dt, h_max, joint)


def _lag_advice(circuit: Circuit, dt: float, h_max: float, joint: float) -> list[Advice]:
    found = []
    tau_x = circuit.tau_x
    if circuit.tau_err:  # events of small steps follow the same equations
        # States and weights see the same lagged error: learning acts like more curvature.
        h = joint * tau_x / dt
        a, b = tau_x * circuit.tau_err, tau_x + h * circuit.look_err
        swing = sqrt(b * b - 4 * a * h)
        roots = ((-b + swing) / (2 * a), (-b - swing) / (2 * a), complex(-1 / circuit.tau_err))
        root = max(roots, key=lambda s: abs(1 + dt * s))
        size = abs(1 + dt * root)
        if size >= 1:
            found.append(
                Advice(
                    True,
                    f"Euler's step is too large for the error units: a mode grows by "
                    f"{size:.4g} per step; solver.dt must be below "
                    f"{-2 * root.real / abs(root) ** 2:.3g} s",
                )
            )
        elif 4 * h_max * circuit.tau_err > tau_x and not circuit.look_err:
            found.append(
                Advice(
                    False,
                    f"errors ring: circuit.tau_err = {circuit.tau_err:.3g} s is above "
                    f"τ_x/(4 h_max) = {tau_x / (4 * h_max):.3g} s (stable, but it oscillates)",
                )
            )
    if circuit.delay_err and h_max * circuit.delay_err / tau_x > pi / 2:
        found.append(
            Advice(
                True,
                f"circuit.delay_err = {circuit.delay_err:.3g} s is above the limit "
                f"(π/2) τ_x/h_max = {pi / 2 * tau_x / h_max:.3g} s",
            )
        )
    # No closed form covers all networks here: the rule of thumb h_max·lag ≤ τ_x/4 is safe.
    for name in ("tau_inter", "tau_apical"):
        lag = getattr(circuit, name)
        if lag and lag * h_max > tau_x / 4:
            found.append(
                Advice(
                    False,
                    f"circuit.{name} = {lag:.3g} s may be unstable: it is above τ_x/(4 h_max) = "
                    f"{tau_x / (4 * h_max):.3g} s; see `pcsim experiment stability`",
                )
            )
    return found
