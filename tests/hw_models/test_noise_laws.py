"""Noise means what its fields say: variances, spectra and dwell times, for any time step."""

import numpy as np
import pytest
import torch
from scipy.signal import welch
from site_world import relaxed, transform

from hw_models.noise import (
    ArrayReadNoise,
    ColouredNoise,
    PinkNoise,
    ReadNoise,
    ShotNoise,
    TelegraphNoise,
    ThermalNoise,
    WhiteNoise,
)
from pcsim.errors import ConfigError

STEPS = (0.2, 0.05, 0.0125)
"""A range of 16×."""


def euler(dt, tau=1.0):
    """Euler's own factor on the variance of a leaky state under white noise."""
    return 1 / (1 - dt / (2 * tau))


@pytest.mark.parametrize("dt", STEPS)
def test_white_noise_has_one_variance_for_any_step(dt):
    x = relaxed(WhiteNoise(sigma=0.3), dt)
    assert x.var() / euler(dt) == pytest.approx(0.3**2 / 2, rel=0.03)


@pytest.mark.parametrize("dt", STEPS)
def test_noise_per_read_with_a_period_has_one_variance_for_any_step(dt):
    """Reads every p: x ← x e^{−p} + (1 − e^{−p}) n, of variance σ² (1 − e^{−p})/(1 + e^{−p})."""
    period, sigma = 0.4, 0.3
    _, read = transform(ReadNoise(sigma=sigma, where="error", t_sample=period), (20_000,), dt=dt)
    x = torch.zeros(1, 1, 20_000, dtype=torch.float64)
    for _ in range(round(6 / dt)):
        x = x - dt * read(x)
    kept = (1 - dt) ** round(period / dt)  # what Euler's rule keeps over a period
    assert float(x.var()) == pytest.approx(sigma**2 * (1 - kept) / (1 + kept), rel=0.04)


@pytest.mark.parametrize("relative", [False, True])
def test_weights_read_once_or_for_each_sample(relative):
    """Shared: one array for all samples of a batch. Independent: equal variance, each its own."""
    from pcsim.kernels.hooks import row_sums

    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(3, 40)), rng.normal(size=40)
    signal, array = torch.tensor(np.tile(v, (1, 2000, 1))), torch.tensor(w)[None]
    fields = {"sigma": 0.1, "where": "weight", "relative": relative}
    expected = 0.01 * ((w if relative else 1) ** 2 * v**2 * np.ones((3, 1))).sum(1)
    _, shared = transform(ReadNoise(**fields), (3, 40))
    noisy = [(signal @ shared(array).mT - signal @ array.mT)[0].numpy() for _ in range(400)]
    assert all(np.ptp(one, axis=0).max() < 1e-9 for one in noisy)  # one draw for the batch
    assert np.stack([one[0] for one in noisy]).var(0) == pytest.approx(expected, rel=0.3)
    _, lines = transform(ReadNoise(**fields, batch="independent"), (3,))
    sums = row_sums(lines.aggregates, signal, array)
    each = (lines(signal @ array.mT, **sums) - signal @ array.mT)[0].numpy()
    assert each.var(0) == pytest.approx(expected, rel=0.15)


def test_only_weights_are_shared_by_a_batch():
    with pytest.raises(ConfigError, match="differs between samples anyway"):
        ReadNoise(sigma=0.1, where="rate", batch="independent")


@pytest.mark.parametrize("dt", STEPS)
def test_noise_per_read_does_depend_on_the_step(dt):
    """Negative control: what is drawn per read averages out as steps become shorter."""
    _, read = transform(ReadNoise(sigma=0.3, where="error"), (20_000,), dt=dt)
    x = torch.zeros(1, 1, 20_000, dtype=torch.float64)
    for _ in range(round(6 / dt)):
        x = x - dt * read(x)
    assert float(x.var()) / euler(dt) == pytest.approx(0.3**2 * dt / 2, rel=0.04)


@pytest.mark.parametrize("dt", STEPS)
def test_thermal_noise_is_kt_over_c(dt):
    piece = ThermalNoise(capacitance=1e-13, tau=1.0, volts_per_unit=1e-3)
    x = relaxed(piece, dt) * 1e-3
    assert x.std() / euler(dt) ** 0.5 == pytest.approx(204e-6, rel=0.02)  # 0.1 pF at 300 K


@pytest.mark.parametrize("dt", STEPS)
def test_shot_noise_of_a_node_at_equilibrium_is_kt_over_c(dt):
    """q = e/C and b = kT/e give kT/C where no net current flows."""
    charge, boltzmann, capacitance = 1.602176634e-19, 1.380649e-23, 1e-13
    millivolts = 1e3
    piece = ShotNoise(
        quantum=charge / capacitance * millivolts,
        tau=1.0,
        bias=boltzmann * 300 / charge * millivolts,
    )
    x = relaxed(piece, dt) / millivolts
    assert x.std() / euler(dt) ** 0.5 == pytest.approx(204e-6, rel=0.02)
    idle = relaxed(piece.model_copy(update={"bias": 0.0}), dt)
    assert not idle.any()  # control: nothing flows, nothing is noisy


@pytest.mark.parametrize("dt", STEPS)
def test_shot_noise_has_the_variance_of_a_count(dt):
    """Carriers come at a rate x*/(qτ) and leave at random: x/q is Poisson with mean x*/q."""
    tau, quantum, level = 0.5, 0.01, 3.0
    _, velocity = transform(ShotNoise(quantum=quantum, tau=tau, bias=0.0), (40_000,), dt=dt)
    x = torch.full((1, 1, 40_000), level, dtype=torch.float64)
    for _ in range(round(6 * tau / dt)):
        x = x + dt * velocity((level - x) / tau, x=x)
    assert float(x.mean()) == pytest.approx(level, rel=1e-3)
    assert float(x.var()) / euler(dt, tau) == pytest.approx(quantum * level, rel=0.03)


@pytest.mark.parametrize("dt", STEPS)
def test_coloured_noise_is_stationary_from_the_first_step(dt):
    _, seen = transform(ColouredNoise(sigma=0.5, tau_c=0.4, where="rate"), (40_000,), dt=dt)
    zero = torch.zeros(1, 1, 40_000, dtype=torch.float64)
    first = seen(zero)
    for _ in range(round(0.4 / dt)):
        last = seen(zero)
    assert float(first.var()) == pytest.approx(0.25, rel=0.03)
    assert float(last.var()) == pytest.approx(0.25, rel=0.03)
    lag = round(0.4 / dt) * dt
    assert float((first * last).mean()) == pytest.approx(0.25 * np.exp(-lag / 0.4), abs=0.005)


def test_coloured_noise_on_a_leaky_state_follows_n2():
    """τẋ = −hx + η: Var = s²/[h(h + τ/τ_c)] as dt → 0."""
    x = relaxed(ColouredNoise(sigma=0.5, tau_c=0.5), 0.01, times=8)
    assert x.var() == pytest.approx(0.25 / (1 + 1 / 0.5), rel=0.03)


@pytest.mark.slow
def test_spectrum_of_pink_noise_falls_as_one_over_f():
    dt, units = 0.01, 24
    piece = PinkNoise(sigma=1.0, tau_min=0.01, tau_max=100.0, sources=10, where="rate")
    _, seen = transform(piece, (units,), dt=dt)
    zero = torch.zeros(1, 1, units, dtype=torch.float64)
    trace = np.stack([seen(zero).numpy().ravel() for _ in range(2**14)])
    frequency, power = welch(trace, 1 / dt, nperseg=2**12, axis=0)
    band = (frequency > 0.05) & (frequency < 5.0)  # two decades
    mean = power.mean(1)[band]
    slope = np.polyfit(np.log(frequency[band]), np.log(mean), 1, w=frequency[band] ** -0.5)[0]
    assert slope == pytest.approx(-1, abs=0.1)
    level = np.log(100 / 0.01) * 10 / 9
    assert np.median(mean * frequency[band]) == pytest.approx(1 / level, rel=0.1)


@pytest.mark.parametrize("dt", STEPS)
def test_telegraph_noise_keeps_its_dwell_times(dt):
    piece = TelegraphNoise(amplitude=1.0, tau_on=2.0, tau_off=0.5, where="rate", relative=False)
    _, seen = transform(piece, (4000,), dt=dt)
    zero = torch.zeros(1, 1, 4000, dtype=torch.float64)
    trace = np.stack([seen(zero).numpy().ravel() for _ in range(round(20 / dt))])
    assert trace.mean() == pytest.approx(0.8, abs=0.01)
    # Chains of the two-state process: P(stay on over a lag) is known in closed form.
    lag = round(0.4 / dt)
    stay = (trace[lag:] * trace[:-lag]).sum() / trace[:-lag].sum()
    rate = 1 / 2.0 + 1 / 0.5
    assert stay == pytest.approx(0.8 + 0.2 * np.exp(-rate * lag * dt), abs=0.01)
    if dt == STEPS[-1]:
        # Dwell times themselves, where steps are short: leaving is a Bernoulli event per step.
        left = (trace[:-1] == 1) & (trace[1:] == 0)
        leave = (1 - np.exp(-rate * dt)) * 0.2
        assert left.sum() / trace[:-1].sum() == pytest.approx(leave, rel=0.03)


@pytest.mark.parametrize(
    ("reference", "variance"),
    [
        ("weight", lambda w, v: (w**2 * v**2).sum(-1)),
        ("root_weight", lambda w, v: (2.0 * abs(w) * v**2).sum(-1)),
        ("range", lambda w, v: (4.0 * np.ones_like(w) * v**2).sum(-1)),
    ],
)
@pytest.mark.parametrize("site", ["product", "feedback"])
def test_noise_of_all_devices_adds_up_on_the_line(site, reference, variance):
    """Against devices drawn one by one: variance Σ_j σ_ij² v_j², forwards and backwards alike."""
    from pcsim.kernels.hooks import row_sums

    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(3, 5)), rng.normal(size=5)
    piece = ArrayReadNoise(sigma=0.1, reference=reference, range=2.0)
    _, hook = transform(piece, (3,), site=site)
    signal = torch.tensor(np.tile(v, (1, 60_000, 1)))
    sums = row_sums(hook.aggregates, signal, torch.tensor(w)[None])
    noisy = hook(torch.zeros(1, 60_000, 3, dtype=torch.float64), **sums)
    np.testing.assert_allclose(noisy[0].var(0), 0.01 * variance(w, v), rtol=0.03)


@pytest.mark.parametrize(
    "piece",
    [
        WhiteNoise(sigma=0.0),
        ShotNoise(quantum=0.0, tau=1.0, bias=0.1),
        ThermalNoise(capacitance=1e-12, tau=1.0, temperature=0.0),
        ColouredNoise(sigma=0.0, tau_c=1.0),
        PinkNoise(sigma=0.0, tau_min=0.1, tau_max=10.0),
        TelegraphNoise(amplitude=0.0, tau_on=1.0, tau_off=1.0, where="velocity", relative=False),
    ],
    ids=lambda p: p.kind,
)
def test_zero_noise_changes_nothing(piece):
    _, velocity = transform(piece, (50,))
    s = torch.linspace(-3, 3, 50, dtype=torch.float64).view(1, 1, -1)
    for _ in range(3):
        assert torch.equal(velocity(s, x=s), s)


def test_relative_noise_is_relative_to_the_signal():
    _, seen = transform(WhiteNoise(sigma=0.1, where="weight", relative=True), (200, 200), dt=1.0)
    w = torch.full((1, 200, 200), 5.0, dtype=torch.float64)
    assert float(seen(w).std()) == pytest.approx(0.5, rel=0.02)
    assert torch.equal(seen(torch.zeros_like(w)), torch.zeros_like(w))
