"""Mismatch, faults, drift and array losses: what is fixed stays, what ages ages as published."""

import numpy as np
import pytest
import torch
from scipy.sparse import diags
from scipy.sparse.linalg import spsolve
from site_world import transform

from hw_models.array import IrDrop, Leak, OutputResistance, Rails, Saturation, SlewRate
from hw_models.drift import ConductanceDrift, PcmDrift, ProgrammingError
from hw_models.faults import DeadLines, DeadNeurons, StuckWeights
from hw_models.mismatch import Mismatch, Offset
from pcsim.errors import ConfigError
from pcsim.substrate import Chips, Seeded, Substrate

WIDE = (200, 200)
ONES = torch.ones(1, *WIDE, dtype=torch.float64)


def line(values):
    return torch.as_tensor(np.atleast_1d(values), dtype=torch.float64).view(1, 1, -1)


@pytest.mark.parametrize(("law", "tol"), [("lognormal", 0.02), ("normal", 0.02)])
def test_relative_mismatch_has_mean_one_and_its_spread(law, tol):
    _, read = transform(Mismatch(of="weight_gain", sigma=0.3, law=law), WIDE)
    gain = read(ONES).numpy()
    assert gain.mean() == pytest.approx(1, abs=0.01)
    spread = np.sqrt(np.expm1(0.3**2)) if law == "lognormal" else 0.3
    assert gain.std() == pytest.approx(spread, rel=tol)
    assert (gain.min() > 0) == (law == "lognormal") or law == "normal"
    assert np.array_equal(gain, read(ONES).numpy())


def test_time_constants_are_made_once():
    piece = Mismatch(of="tau_x", sigma=0.2)
    chips = Chips(
        Substrate(effects=piece.effects("m")),
        range(3),
        seed=0,
        dt=0.1,
        noise=Seeded(0),
        dtype=torch.float64,
    )
    tau = chips.fabricate("tau_x", 1, (500,), 2.0)
    assert tau.shape == (3, 1, 500)
    assert float(tau.mean()) == pytest.approx(2.0, rel=0.03)
    assert (tau > 0).all()


def test_stuck_devices_do_not_listen():
    piece = StuckWeights(fraction=0.25, at="high", range=0.8)
    _, read = transform(piece, WIDE)
    first, second = read(0.1 * ONES), read(-0.5 * ONES)
    stuck = first == 0.8
    assert float(stuck.double().mean()) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(stuck, second == 0.8)
    assert torch.equal(first[~stuck], 0.1 * ONES[~stuck])


@pytest.mark.parametrize(
    ("at", "low", "high"), [("low", -2, -2), ("zero", 0, 0), ("random", -2, 2)]
)
def test_where_devices_are_stuck(at, low, high):
    _, read = transform(StuckWeights(fraction=1.0, at=at, range=2.0), WIDE)
    seen = read(ONES).numpy()
    assert seen.min() == pytest.approx(low, abs=0.01)
    assert seen.max() == pytest.approx(high, abs=0.01)


def test_corners_of_faults():
    _, none = transform(StuckWeights(fraction=0.0, at="high"), WIDE)
    assert torch.equal(none(ONES), ONES)
    _, dead = transform(DeadNeurons(fraction=1.0), (9,))
    assert torch.equal(dead(line(np.ones(9))), torch.zeros(1, 1, 9, dtype=torch.float64))


@pytest.mark.parametrize(("lines", "axis"), [("row", 1), ("column", 0)])
def test_dead_lines_are_whole_lines(lines, axis):
    _, read = transform(DeadLines(fraction=0.3, lines=lines), (300, 300))
    seen = read(torch.ones(1, 300, 300, dtype=torch.float64))[0].numpy()
    along = seen.mean(axis)
    assert set(np.unique(along)) == {0.0, 1.0}
    assert 1 - along.mean() == pytest.approx(0.3, abs=3 * np.sqrt(0.21 / 300))


def test_programming_error_follows_its_polynomial():
    """PCM: σ = 0.26348 + 1.9650x − 1.1731x² µS of 25 µS."""
    coefficients = [c / 25 for c in (0.26348, 1.9650, -1.1731)]
    piece = ProgrammingError(coefficients=coefficients, range=0.5, devices="single")
    _, read = transform(piece, WIDE)
    for x in (0.0, 0.2, 1.0):
        error = read(0.5 * x * ONES) - 0.5 * x
        sigma = 0.5 * (0.26348 + 1.9650 * x - 1.1731 * x**2) / 25
        assert float(error.std()) == pytest.approx(sigma, rel=0.02)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_idle_device_of_a_pair_has_a_programming_error_too(sign):
    """The idle one is half a normal, max(0, σ₀ξ): it takes σ₀/√(2π) off every weight."""
    coefficients = [c / 25 for c in (0.26348, 1.9650, -1.1731)]
    _, read = transform(ProgrammingError(coefficients=coefficients, range=0.5), WIDE)
    idle = coefficients[0]
    for x in (0.2, 1.0):
        error = (sign * read(sign * 0.5 * x * ONES) / 0.5 - x).numpy()
        spread = coefficients[0] + coefficients[1] * x + coefficients[2] * x**2
        assert error.mean() == pytest.approx(-idle / np.sqrt(2 * np.pi), abs=4 * spread / 200)
        half = idle**2 * (0.5 - 0.5 / np.pi)
        assert error.std() == pytest.approx(np.sqrt(spread**2 + half), rel=0.02)
    _, alone = transform(ProgrammingError(coefficients=coefficients, devices="single"), WIDE)
    assert float((alone(ONES) - 1).mean()) > -0.2 * idle  # control: one device is not biased


def test_no_conductance_and_no_exponent_is_below_zero():
    """Errors larger than the conductance leave zero, not a negative conductance."""
    _, read = transform(ProgrammingError(coefficients=[2.0]), WIDE)
    seen = read(0.01 * ONES).numpy()
    assert (seen == 0).mean() == pytest.approx(0.25, abs=0.01)  # both are at zero
    chips, drifted = transform(ConductanceDrift(nu=0.01, nu_spread=0.5), WIDE)
    drifted(ONES)
    chips.clock.step = round(1e5 / chips.clock.dt)
    assert float(drifted(ONES).max()) <= 1.0  # no device gains by drifting
    chips, pcm = transform(PcmDrift(read_noise=0.0), WIDE)
    pcm(ONES)
    chips.clock.step = round(1e9 / chips.clock.dt)
    assert float(pcm(ONES).max()) <= 1.0


@pytest.mark.parametrize("kind", ["power law", "pcm"])
def test_drift_counts_from_the_last_write_of_each_device(kind):
    """Written at 0 (never again), at 30 and at 400 s: each has its own (t′/t0)^−ν."""
    t0, age, nu = 20.0, 1000.0, 0.06
    pieces = {
        "power law": ConductanceDrift(nu=nu, t0=t0, age=age),
        "pcm": PcmDrift(t0=t0, age=age, read_noise=0.0),
    }
    chips, read = transform(pieces[kind], (1, 3), dt=10.0)
    if kind == "pcm":  # its exponent at full conductance, with the draw of each device
        draw = chips.fixed(chips.substrate.effects[0], 0, (1, 3))["e"].numpy().ravel()
        nu = np.maximum(0, 0.049 + 0.008 * draw)
    w = line([0.5, 0.2, 0.7])
    writes = {30.0: 1, 400.0: 2}
    written = np.array([-age, -age, -age])
    for _ in range(100):
        t = chips.clock.t
        if t in writes:
            w = w.clone()
            w[0, 0, writes[t]] = 1.0
            written[writes[t]] = t
        seen = (read(w) / w).numpy().ravel()
        if kind == "power law" or t >= 400:
            which = slice(None) if kind == "power law" else slice(1, None)
            expected = ((t - written + t0) / t0) ** -np.broadcast_to(nu, 3)
            np.testing.assert_allclose(seen[which], expected[which], rtol=1e-12)
    assert seen[2] > seen[1] > seen[0]  # control: the older, the lower


def test_an_old_chip_is_not_better_to_train_on():
    """Learning losses of devices that are written all the time do not depend on the age."""
    ends = []
    for age in (0.0, 1e6):
        piece = ConductanceDrift(nu=0.5, t0=1.0, age=age, mode="learning")
        _, write = transform(piece, (1, 1), dt=0.01)
        w = torch.full((1, 1, 1), 0.5, dtype=torch.float64)
        for _ in range(500):
            w = w + write(0.01 * (0.8 - w), w=w)
        ends.append(float(w))
    assert ends[0] == pytest.approx(ends[1], rel=0.01)


def test_drift_has_its_exponent():
    chips, read = transform(ConductanceDrift(nu=0.06, nu_spread=0.0, t0=20.0), (2, 2), dt=1.0)
    times, seen = np.array([0.0, 1e2, 1e4, 1e6]), []
    for t in times:
        chips.clock.step = round(t / chips.clock.dt)
        seen.append(float(read(torch.ones(1, 2, 2, dtype=torch.float64))[0, 0, 0]))
    slope = np.polyfit(np.log((times + 20) / 20), np.log(seen), 1)[0]
    assert slope == pytest.approx(-0.06, abs=1e-12)
    assert seen[0] == 1.0


def test_drift_while_learning_is_the_same_law_without_writes():
    """dw/dt = −νw/(t + t0) from the start is w·((t + t0)/t0)^−ν."""
    _chips, write = transform(ConductanceDrift(nu=0.06, t0=2.0, mode="learning"), (1, 1), dt=1e-3)
    w = torch.ones(1, 1, 1, dtype=torch.float64)
    for _ in range(10_000):
        w = w + write(torch.zeros_like(w), w=w)
    assert float(w) == pytest.approx(((10 + 2) / 2) ** -0.06, rel=3e-5)


def test_drift_and_learning_find_a_balance():
    """A device that is written all the time loses at ν/t0: it lags by w (ν/t0)(τ_w/σ_f²)."""
    rate, chips_write = (
        0.5,
        transform(ConductanceDrift(nu=0.5, t0=1.0, mode="learning"), (1, 1), dt=0.01),
    )
    _chips, write = chips_write
    w = torch.zeros(1, 1, 1, dtype=torch.float64)
    for _ in range(10_000):
        w = w + write(0.01 * rate * (0.8 - w), w=w)
    assert float(w) == pytest.approx(0.8 / (1 + 0.5 / 1.0 / rate), rel=0.01)


def test_drift_between_writes_while_learning():
    """Writes at 0, 1, 3 and 10 s: in between the weight falls as ((since + t0)/t0)^−ν, any dt."""
    for dt in (0.25, 0.01):
        _, write = transform(ConductanceDrift(nu=0.3, t0=0.5, mode="learning"), (1, 1), dt=dt)
        w, expected, last = torch.ones(1, 1, 1, dtype=torch.float64), 1.0, 0.0
        for step in range(round(12 / dt) + 1):
            asked = 0.2 if step in [round(t / dt) for t in (1, 3, 10)] else 0.0
            if asked:
                expected = expected * ((step * dt - last + 0.5) / 0.5) ** -0.3 + asked
                last = step * dt
            if step:  # the write of step k covers the time since the write before
                w = w + write(torch.full_like(w, asked), w=w)
        expected *= ((12 - last + 0.5) / 0.5) ** -0.3
        assert float(w) == pytest.approx(expected, rel=1e-9)


def test_pcm_retention_of_a_matrix_vector_product():
    """Gain after 1, 1e2, 1e4, 1e6 s falls to about .98, .90, .73, .58 (Nandakumar et al. 2019)."""
    rng = np.random.default_rng(0)
    w = np.clip(rng.normal(0, 0.3, size=(1, 256, 256)), -1, 1)
    v = rng.normal(size=256)
    chips, read = transform(PcmDrift(read_noise=0.0), (256, 256))
    clean = w[0] @ v
    gains = []
    for t in (1.0, 1e2, 1e4, 1e6):
        chips.clock.step = round(t / chips.clock.dt)
        seen = read(torch.tensor(w))[0].numpy() @ v
        gains.append((seen @ clean) / (clean @ clean))
    np.testing.assert_allclose(gains, [0.98, 0.90, 0.73, 0.58], atol=0.04)


def test_pcm_at_zero_conductance_stays_zero():
    chips, read = transform(PcmDrift(), (3, 3))
    chips.clock.step = round(1e6 / chips.clock.dt)
    assert torch.equal(read(torch.zeros(1, 3, 3, dtype=torch.float64)), torch.zeros(1, 3, 3))


def test_read_noise_of_pcm():
    chips, read = transform(PcmDrift(), WIDE)
    chips.clock.step = round(1.0 / chips.clock.dt)
    seen = read(0.5 * ONES).numpy()
    quiet_chips, quiet = transform(PcmDrift(read_noise=0.0), WIDE)
    quiet_chips.clock.step = round(1.0 / quiet_chips.clock.dt)
    relative = seen / quiet(0.5 * ONES).numpy() - 1
    q = 0.0088 / 0.5**0.65
    expected = q * np.sqrt(np.log((21.0 + 250e-9) / (2 * 250e-9)))
    assert relative.std() == pytest.approx(expected, rel=0.02)


def test_ir_drop_matches_its_formula_and_vanishes_without_wires():
    rng = np.random.default_rng(1)
    w, v = rng.uniform(-1, 1, size=(6, 8)), rng.normal(size=8)
    from pcsim.kernels.hooks import row_sums

    def run(ratio):
        _, hook = transform(IrDrop(ratio=ratio, columns=256), (6,))
        sums = row_sums(hook.aggregates, line(v), torch.tensor(w)[None])
        return hook(line(w @ v), **sums).numpy().ravel()

    np.testing.assert_array_equal(run(0.0), w @ v)
    a = 256 * 1e-3 * (abs(w) * abs(v)).sum(1)
    c = 1.5 * (1 - np.tanh(np.sqrt(a)) / np.sqrt(a))
    position = np.arange(1, 9) / 8
    lost = c * (w * v * (1 - (1 - position) ** 2)).sum(1)
    np.testing.assert_allclose(run(1e-3), w @ v - lost, atol=1e-10)


def nodal(w, v, ratio):
    """Return the current of a line by its nodal equations, in units of the full conductance.

    Node j of the wire is fed by device j from its input, and tied to its neighbours by one segment
    each; the line is read at its near end, which is held at zero. Inputs of zero are disconnected.
    """
    n, wire = len(w), 1 / ratio
    device = np.where(v != 0, w, 0.0)
    far = np.append(np.full(n - 1, wire), 0.0)
    matrix = diags([device + wire + far, -far[:-1], -far[:-1]], [0, 1, -1], format="csc")
    return wire * spsolve(matrix, device * v)[0]


def with_ir_drop(w, v, ratio):
    from pcsim.kernels.hooks import row_sums

    _, hook = transform(IrDrop(ratio=ratio, columns=len(w)), (1,))
    sums = row_sums(hook.aggregates, line(v), torch.tensor(w)[None, None])
    return float(hook(line(w @ v), **sums))


@pytest.mark.parametrize(
    ("a", "limit"), [(0.1, 0.02), (0.5, 0.02), (1.5, 0.02), (3, 0.05), (10, 0.05)]
)
def test_ir_drop_against_the_nodal_equations_of_the_line(a, limit):
    """Random devices and inputs; a = n·ratio·Σ w v. The first-order cubic explodes beyond 2."""
    rng = np.random.default_rng(3)
    worst, cubic = 0.0, 0.0
    for _ in range(12):
        w, v = rng.uniform(0, 1, 256), (rng.random(256) < 0.6).astype(float)
        ratio = a / (256 * (w @ v))
        exact = nodal(w, v, ratio)
        worst = max(worst, abs(with_ir_drop(w, v, ratio) - exact) / (w @ v))
        taper = 1 - (1 - np.arange(1, 257) / 256) ** 2
        first_order = w @ v - a * (0.05 * a**2 - 0.2 * a + 0.5) * (w * v) @ taper
        cubic = max(cubic, abs(first_order - exact) / (w @ v))
    assert worst < limit
    if a >= 3:
        assert cubic > 2 * worst  # control


def test_ir_drop_of_a_heavily_loaded_line():
    """Gain −4.7 by the cubic where the nodal equations give 0.40."""
    w = np.full(512, 1.0)
    a = 6.2
    ratio = a / (512 * 512)
    exact = nodal(w, np.ones(512), ratio) / 512
    assert exact == pytest.approx(0.40, abs=0.01)
    assert with_ir_drop(w, np.ones(512), ratio) / 512 == pytest.approx(exact, abs=0.01)


def test_loaded_driver():
    _, hook = transform(OutputResistance(rho=0.01, range=2.0), (1,))
    got = hook(line(3.0), load=torch.tensor(40.0, dtype=torch.float64))
    assert float(got) == pytest.approx(3.0 / 1.2)


def test_limits():
    _, hard = transform(Saturation(where="product", limit=0.5), (3,))
    np.testing.assert_allclose(hard(line([-2, 0.3, 9])).ravel(), [-0.5, 0.3, 0.5])
    _, soft = transform(Saturation(where="product", limit=0.5, shape="tanh"), (2,))
    np.testing.assert_allclose(soft(line([0.01, 99])).ravel(), [0.5 * np.tanh(0.02), 0.5])
    _, slew = transform(SlewRate(limit=2.0), (2,))
    np.testing.assert_allclose(slew(line([-5, 1]), x=line([0, 0])).ravel(), [-2, 1])
    _, rails = transform(Rails(limit=1.0), (2,), dt=0.1)
    x = line([0.95, 0.2])
    np.testing.assert_allclose((x + 0.1 * rails(line([3, 3]), x=x)).ravel(), [1.0, 0.5])
    _, leak = transform(Leak(tau=2.0, rest=1.0), (1,))
    assert float(leak(line(0.0), x=line(3.0))) == pytest.approx(-1.0)


@pytest.mark.parametrize("of", ["threshold", "rate", "error", "product", "feedback", "velocity"])
def test_offsets_have_mean_and_spread(of):
    piece = Offset(of=of, sigma=0.2, mean=0.1)
    _, hook = transform(piece, (40_000,))
    got = hook(line(np.zeros(40_000)), x=line(np.zeros(40_000)))
    assert float(got.mean()) == pytest.approx(0.1, abs=0.005)
    assert float(got.std()) == pytest.approx(0.2, rel=0.02)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: StuckWeights(fraction=1.2), "less than or equal to 1"),
        (lambda: Mismatch(of="tau_y", sigma=0.1), "tau_x"),
        (lambda: Mismatch(of="tau_x", sigma=-0.1), "greater than or equal to 0"),
        (lambda: ConductanceDrift(nu=0.1, t0=0.0), "greater than 0"),
        (lambda: Saturation(where="rate", limit=float("nan")), "finite number"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(ConfigError, match=words):
        make()
