"""Every kind on a chip of one neuron and one synapse: shorter time steps change nothing.

    x' = −x + drive(t) + product + feedback/5,   w' = request(t),   z' = output(x) − z

2,000 such chips, each with draws and noise of its own. What is compared is the distribution of
x, w and z at the end, at a time step and at a quarter of it.
"""

from functools import cache
from math import cos, sin, sqrt

import numpy as np
import pytest
import torch
from kinds import EXAMPLES, PERIOD, VARIANTS, fields_of

from hw_models import PIECES
from hw_models.description import make_piece
from pcsim.kernels.hooks import row_sums
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.effect import ABOUT

COUNT, END = 2000, 3.0
COARSE, FINE = 0.05, 0.0125
DISCRETISATION = 0.02
"""Of Euler's rule at the coarse step on a piece, beyond its error on an ideal chip."""


def chip(fields: dict[str, object], dt: float, seed: int = 0) -> np.ndarray:
    """Return x, w and z of all copies at the end, (3, copy)."""
    effects = make_piece("piece", fields, None).effects("piece")
    made = Chips(
        Substrate(effects=effects), [0], seed=3, dt=dt, noise=Seeded(seed), dtype=torch.float64
    )
    hooks = {
        site: made.transform(site, 0, _shape(site)) for site in ABOUT if made.substrate.at(site)
    }

    def at(site: str, s: torch.Tensor, **symbols: torch.Tensor) -> torch.Tensor:
        hook = hooks.get(site)
        if hook is None:
            return s
        if hook.aggregates:
            row = row_sums(
                hook.aggregates, symbols["v"].view(-1, 1, 1), symbols["w"].view(-1, 1, 1)
            )
            symbols = {name: value.view(1, 1, -1) for name, value in row.items()}
        return hook(s, **symbols)

    x = torch.full((1, 1, COUNT), 0.2, dtype=torch.float64)
    w, z = torch.full_like(x, 0.1), torch.zeros_like(x)
    for step in range(round(END / dt)):
        t = step * dt
        drive = at("input", torch.full_like(x, 0.5 * sin(2 * t) + 0.3))
        read = at("weight", w)
        rate = at("rate", torch.tanh(at("membrane", x)))
        product = at(
            "product", read * rate, **({"v": rate, "w": read} if hooks.get("product") else {})
        )
        error = at("error", drive - x + product)
        back = at(
            "feedback", read * error, **({"v": error, "w": read} if hooks.get("feedback") else {})
        )
        velocity = at("velocity", error + 0.2 * back, x=x)
        asked = 0.6 * cos(1.1 * t) + 0.1 if t < 2 - 1e-9 else 0.0
        changed = at("write", torch.full_like(w, dt * asked), w=w, tau_w=1.0)
        z = z + dt * (at("output", x) - z)
        x, w = x + dt * velocity, w + changed
        made.advance()
    return torch.cat([x, w, z], 1)[0].numpy()


def _shape(site: str) -> tuple[int, ...]:
    return (1, COUNT) if site in ("weight", "write", "tau_w") else (COUNT,)


@cache
def distribution(name: str, dt: float, clocked: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Return nine numbers (mean, spread and median of x, w and z), and their standard errors."""
    fields = fields_of(name)
    if not clocked:
        fields = {k: v for k, v in fields.items() if k not in ("t_sample", "t_write")}
    end = chip(fields, dt)
    spread = end.std(1)
    numbers = np.stack([end.mean(1), spread, np.median(end, 1)])
    kurtosis = ((end - end.mean(1, keepdims=True)) ** 4).mean(1) / np.maximum(spread, 1e-12) ** 4
    errors = np.stack([spread, spread * np.sqrt(np.maximum(kurtosis - 1, 0) / 4), 1.3 * spread])
    return numbers, errors / sqrt(COUNT)


@cache
def ideal(dt: float) -> np.ndarray:
    """Return the same numbers of chips without any non-ideality."""
    end = chip({"kind": "mismatch", "of": "rate_gain", "sigma": 0.0}, dt)
    return np.stack([end.mean(1), end.std(1), np.median(end, 1)])


def apart(name: str, clocked: bool = True) -> float:
    """Return the largest difference between the two steps beyond Euler's own, in its units."""
    (coarse, some), (fine, more) = (distribution(name, dt, clocked) for dt in (COARSE, FINE))
    euler = ideal(COARSE) - ideal(FINE)
    limit = DISCRETISATION + 4 * np.hypot(some, more)
    return float((np.abs(coarse - fine - euler) / limit).max())


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(PIECES)


@pytest.mark.parametrize("name", [*EXAMPLES, *VARIANTS])
def test_refining_the_time_step_changes_nothing(name):
    assert apart(name) < 1


@pytest.mark.parametrize(
    "name",
    ["read_noise", "array_read_noise", "update_threshold", "retention", "write_noise",
     "quantized_weights", "quantized_states", "read noise of weights"],
)  # fmt: skip
def test_without_a_period_the_time_step_is_the_clock(name):
    """Control: the same pieces without their periods do change with the step."""
    assert apart(name, clocked=False) > 1


@pytest.mark.parametrize("name", [*EXAMPLES, *VARIANTS])
def test_every_kind_matters(name):
    """Control: what is compared differs from ideal hardware."""
    numbers, errors = distribution(name, COARSE)
    assert (np.abs(numbers - ideal(COARSE)) > 4 * errors + 1e-3).any()


@pytest.mark.parametrize(
    "name", [n for n, f in EXAMPLES.items() if {"t_sample", "t_write"} & set(f)]
)
def test_a_period_of_one_step_is_no_period(name):
    """Ticks in every step do what the piece does without a clock."""
    fields = fields_of(name)
    period = next(k for k in ("t_sample", "t_write") if k in fields)
    unset = {k: v for k, v in fields.items() if k != period}
    np.testing.assert_allclose(chip({**fields, period: 0.05}, 0.05), chip(unset, 0.05), atol=1e-9)
    assert PERIOD > 0.05
