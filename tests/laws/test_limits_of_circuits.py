"""Streams, lags and gains: laws 42 to 45, against circuits and exact solutions."""

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from hw_models.description import Hardware
from hw_models.formula import Formula
from hw_models.mismatch import Mismatch
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.limits import gains, lags, streams
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

# -- streams ---------------------------------------------------------------------------------------


def streamed(theta0, teacher, t, *, reset=False, presentations=4000, seed=0):
    """Learn θ^1 with θ^0 at rest, by exact solutions of each presentation; return θ^1."""
    rng = np.random.default_rng(seed)
    hidden, inputs, chips = theta0.shape[1], teacher.shape[1], 60
    h = np.eye(hidden) + theta0.T @ theta0
    values, modes = np.linalg.eigh(h)
    phi = modes * (-np.expm1(-values * t) / (values * t)) @ modes.T
    stay = modes * np.exp(-values * t) @ modes.T
    theta1, x, mean = np.zeros((chips, hidden, inputs)), np.zeros((chips, hidden)), 0.0
    for number in range(presentations):
        u = rng.normal(size=(chips, inputs))
        ahead = np.einsum("chi,ci->ch", theta1, u)
        goal = np.linalg.solve(h, (ahead + u @ teacher.T @ theta0).T).T
        start = ahead if reset else x
        average = goal + (start - goal) @ phi
        x = goal + (start - goal) @ stay
        theta1 = theta1 + 0.02 * np.einsum("ch,ci->chi", average - ahead, u)
        if number >= presentations // 2:
            mean = mean + theta1.mean(0)
    return mean / (presentations - presentations // 2)


@pytest.mark.parametrize("t", [2.0, 8.0])
def test_carrying_over_takes_its_share_of_every_mode(t):
    rng = np.random.default_rng(1)
    left, _ = np.linalg.qr(rng.normal(size=(2, 2)))
    right, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    roots = np.array([1.4, 0.6])
    theta0 = left * roots @ right[:2]
    teacher = rng.normal(size=(2, 3))
    answer = theta0 @ streamed(theta0, teacher, t)
    kept = left.T @ answer @ teacher.T @ left
    share = np.diag(kept) / np.diag(left.T @ teacher @ teacher.T @ left)
    np.testing.assert_allclose(1 - share, streams.loss_of_mode(roots**2, t), atol=0.025)
    gap = answer - teacher
    lost = 0.5 * np.trace(gap @ gap.T) / 2
    predicted = streams.excess_of_carrying(theta0, teacher @ teacher.T, t)
    assert lost == pytest.approx(predicted, rel=0.08)
    whole = theta0 @ streamed(theta0, teacher, t, reset=True)
    np.testing.assert_allclose(whole, teacher, atol=0.03)  # control: nothing is lost with a reset


@pytest.mark.parametrize("t", [2.0, 8.0])
def test_what_no_output_uses_is_forgotten(t):
    """Neurons learn a stream: θ^1 that θ^0 does not read decays along each input variance."""
    rate, samples, deviation = 0.1, 300, np.array([1.0, 0.5, 0.2])
    rng = np.random.default_rng(0)
    u = rng.normal(size=(samples, 3)) * deviation
    kept = {}
    for start in ("carry", "ff"):
        # one output that reads the first of two hidden units: the second is of no use to it
        theta0, theta1 = np.array([[1.0, 0.0]]), np.full((2, 3), 0.3)
        x, steps = np.zeros(2), round(t / 0.02)
        for one in u:
            x = theta1 @ one if start == "ff" else x
            for _ in range(steps):
                error, wrong = x - theta1 @ one, one[:1] - theta0 @ x
                x = x + 0.02 * (-error + theta0.T @ wrong)
                theta1 = theta1 + rate / steps * np.outer(error, one)
        kept[start] = theta1[1] / 0.3
    mean = (u**2).mean(0)
    np.testing.assert_allclose(
        kept["carry"], streams.kept_unused(mean, rate, samples, t), atol=0.07
    )
    np.testing.assert_allclose(kept["ff"], 1, atol=1e-12)  # control: a reset forgets nothing
    half = streams.samples_until_forgotten(mean[1], rate, t)
    assert streams.kept_unused(mean[1], rate, half, t) == pytest.approx(np.exp(-1))


def test_the_shortest_presentation_loses_what_was_tolerated():
    theta0, wanted = np.array([[1.2, 0.0], [0.3, 0.5]]), np.diag([0.3, 0.1])
    t = streams.shortest_presentation(theta0, wanted, 1e-3)
    assert streams.excess_of_carrying(theta0, wanted, t) == pytest.approx(1e-3)
    weak = streams.shortest_presentation(theta0 / 2, wanted, 1e-3)
    assert weak == pytest.approx(4 * t, rel=0.1), "weak feedback needs longer presentations"
    assert streams.loss_of_mode(0.5, 400.0) == pytest.approx(1 / (0.5 * 400), rel=0.01)
    assert streams.shortest_presentation(theta0, wanted, 0.0) == np.inf
    h = np.eye(2) + theta0.T @ theta0
    np.testing.assert_allclose(streams.transient(h, 1e-6), np.eye(2), atol=1e-5)
    np.testing.assert_allclose(
        streams.bias(h, wanted, 500.0) @ np.linalg.inv(wanted) * -500 @ h, np.eye(2), atol=1e-6
    )


# -- lags ------------------------------------------------------------------------------------------

SIZES = (2, 3, 4, 3, 2)


def network_of(gain, seed=0):
    network = Network.mlp(SIZES, "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=seed, gain=gain)
    return network, params, [views["w"][0].numpy().copy() for views in params.of[:-1]]


def turned(gain):
    """Return a network of four layers of three units: rotations, and three different gains."""
    network = Network.mlp((3,) * 5, "identity", bias=False)
    params = oracle.random_parameters(network, 1)
    rng = np.random.default_rng(2)
    for views in params.of[:-1]:
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0] * [1.0, 0.9, 0.8]
        views["w"].copy_(torch.tensor(gain * turn))
    return network, params, [views["w"][0].numpy().copy() for views in params.of[:-1]]


def growth(network, params, **circuit):
    """Return the largest real part of the eigenvalues of the circuit's own Jacobian."""
    chips = ct.engine(network, params, 0.01, "rk4", tau_w=1e12, **circuit)
    chips.load(oracle.clamps_of(network, "supervised", 1, 1, seed=2))
    chips.feedforward()

    return np.linalg.eigvals(ct.jacobian(chips)).real.max()


@pytest.mark.parametrize(
    ("branch", "field", "gain"), [("inter", "tau_inter", 1.6), ("apical", "tau_apical", 4.0)]
)
def test_growth_with_a_lag_is_that_of_the_circuit(branch, field, gain):
    signs = set()
    for lag in (0.05, 0.6, 5.0):
        network, params, theta = turned(gain)  # anew: a circuit keeps weights in its own units
        found = growth(network, params, kind="dendritic", **{field: lag})
        assert lags.growth_with_lag(theta, branch, lag) == pytest.approx(found, abs=1e-8)
        signs.add(found > 0)
    assert signs == {True, False}, "control: both sides of the limit were tried"


def test_no_lag_of_interneurons_below_the_bound_is_unstable():
    for seed in range(12):
        _, _, theta = network_of(1.5, seed)
        bound = lags.interneuron_lag_bound(theta)
        limit = lags.branch_lag_limit(theta, "inter")
        assert bound <= limit
        assert lags.interneuron_lag_bound(lags.norms(theta)) <= bound
        assert lags.largest_curvature(lags.norms(theta)) >= lags.largest_curvature(theta)
    assert limit < np.inf, "control: there is a limit"


@pytest.mark.parametrize(("depth", "w"), [(4, 1.5), (7, 0.9)])
def test_chains_are_networks_of_numbers(depth, w):
    chain = [w] * depth
    h = lags.curvatures(depth, w)
    assert lags.largest_curvature(chain) == pytest.approx(h.max())
    assert lags.slowest_curvature(chain) == pytest.approx(h.min())
    assert lags.interneuron_lag_bound(chain) == pytest.approx(lags.interneuron_lag_limit(depth, w))
    assert lags.branch_lag_limit(chain, "inter") == pytest.approx(
        lags.interneuron_lag_limit(depth, w), rel=1e-6
    )
    assert lags.branch_lag_limit(chain, "apical") == pytest.approx(
        lags.apical_lag_limit(depth, w), rel=1e-6
    )
    assert lags.delay_limit(h.max()) == pytest.approx(lags.loop_delay_limit(depth, w))


def test_eulers_step_is_stable_up_to_its_limit():
    network, params, theta = network_of(1.2)
    limit = lags.step_limit(lags.largest_curvature(theta))
    sizes = {}
    for factor in (0.97, 1.03):
        chips = ct.engine(network, params, factor * limit, tau_w=1e30)
        chips.load(oracle.clamps_of(network, "supervised", 1, 1, seed=2))
        chips.advance(400)
        sizes[factor] = oracle.largest(chips.flow.states()["x1"])
    assert sizes[0.97] < 1e2 < 1e6 < sizes[1.03]


@pytest.mark.parametrize("tau_err", [0.05, 3.0])
def test_error_units_settle_with_their_slowest_pole(tau_err):
    network, params, theta = network_of(0.8)
    a = lags.error_matrix(theta)
    found = growth(network, params, kind="error_units", tau_err=tau_err)
    each = [lags.settling_with_error_lag(h, tau_err) for h in np.linalg.eigvalsh(a.T @ a)]
    free = [tau_err]  # the errors that no state can change
    assert -1 / found == pytest.approx(max(each + free), rel=1e-6)
    assert lags.settling_with_error_lag(2.0, 0.0) == pytest.approx(0.5)
    assert lags.settling_with_error_lag(1.0, 5.0) == pytest.approx(10.0)
    assert lags.ringing_lag(2.0) == 0.125


# -- gains -----------------------------------------------------------------------------------------


def rest(piece):
    """Return a chip's x* of a network 2-3-2 with its θ^0, μ, y and parameters of the effect."""
    network = Network.mlp((2, 3, 2), "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=3, gain=0.9)
    theta = [views["w"][0].numpy().copy() for views in params.of[:-1]]
    substrate = Hardware(pieces={"p": piece}).substrate()
    made = Chips(substrate, [0], seed=5, dt=0.2, noise=Seeded(0), dtype=torch.float64)
    circuit = Circuit(tau_w=1e16)
    chips = Continuous(network, Parameters(network, params.flat), circuit, dt=0.2, chips=made)
    y, u = np.array([0.7, -0.4]), np.array([1.0, 0.5])
    chips.load([torch.tensor(y).view(1, 1, -1), None, torch.tensor(u).view(1, 1, -1)])
    chips.advance(2000)
    return chips.flow.states()["x1"][0, 0].numpy(), theta[0], theta[1] @ u, y, made


def test_gains_of_errors_are_precisions():
    x, theta0, mu, y, chips = rest(Mismatch(of="error_gain", sigma=0.4))
    effect = chips.substrate.effects[0]
    output, soma = (
        np.exp(0.4 * chips.fixed(effect, k, (n,))["g"].numpy().ravel() - 0.08)
        for k, n in ((0, 2), (1, 3))
    )
    np.testing.assert_allclose(
        x, gains.rest_with_gains(theta0, mu, y, soma=soma, output=output), atol=1e-9
    )
    assert np.abs(x - gains.rest_with_gains(theta0, mu, y)).max() > 0.01, "control"


def test_gain_of_feedback_moves_the_rest_and_time_constants_do_not():
    piece = Formula(site="feedback", becomes="s*k", constants={"k": 0.7})
    x, theta0, mu, y, _ = rest(piece)
    np.testing.assert_allclose(x, gains.rest_with_gains(theta0, mu, y, feedback=0.7), atol=1e-9)
    assert np.abs(x - gains.rest_with_gains(theta0, mu, y)).max() > 0.01, "control"
    x, *_ = rest(Mismatch(of="tau_x", sigma=0.4))
    np.testing.assert_allclose(x, gains.rest_with_gains(theta0, mu, y), atol=1e-9)


def test_no_gain_moves_what_the_network_explains():
    rng = np.random.default_rng(0)
    theta0, mu = rng.normal(size=(2, 3)), rng.normal(size=3)
    some = {"soma": [0.5, 1.0, 2.0], "feedback": [1.0, 3.0, 0.2], "output": [0.4, 2.0]}
    np.testing.assert_allclose(gains.rest_with_gains(theta0, mu, theta0 @ mu, **some), mu)
    assert np.abs(gains.rest_with_gains(theta0, mu, [1.0, -1.0], **some) - mu).max() > 0.1
