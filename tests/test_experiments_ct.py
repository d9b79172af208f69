"""Building blocks of the studies `stability` and `streaming`, on reduced settings."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
import torch

from pcsim.experiments.stability import measure
from pcsim.experiments.stability.maps import Map
from pcsim.experiments.streaming import study as streaming
from pcsim.experiments.streaming.bias import KINDS, World, measured_bias
from pcsim.experiments.streaming.regimes import REGIMES, Presenter, Regime, StreamRun
from pcsim.limits import lags
from pcsim.runner.chip_run import ChipRun


@pytest.mark.parametrize("tau_e", [0.05, 0.3, 4.0])
def test_error_lag_poles_and_damping(tau_e: float) -> None:
    expected = lags.error_lag_poles(5, 1.3, tau_e)
    assert measure.pole_error(5, 1.3, tau_e, expected) < 1e-9
    assert measure.damping(1.3, tau_e) == pytest.approx(lags.damping(1 + 1.3**2, tau_e), rel=1e-9)


@pytest.mark.parametrize("tau_e", [0.1, 0.3, 2.0])
def test_overshoot_of_a_simulated_step(tau_e: float) -> None:
    expected = lags.overshoot(2.0, tau_e)
    assert measure.step_overshoot(1.0, tau_e, 30) == pytest.approx(expected, rel=0.01, abs=1e-9)


@pytest.mark.parametrize(("depth", "w", "limit"), [(6, 2.0, 2.067), (3, 10.0, 0.709)])
def test_apical_lag_limit(depth: int, w: float, limit: float) -> None:
    measured = measure.lag_limit(depth, w, "tau_apical")
    assert measured == pytest.approx(limit, rel=1e-3)
    assert measured == pytest.approx(lags.apical_lag_limit(depth, w), rel=1e-6)


def test_no_limit_where_none_is_expected() -> None:
    assert measure.lag_limit(2, 3.0, "tau_apical") == inf
    assert measure.lag_limit(2, 3.0, "tau_inter") == inf
    assert measure.lag_limit(4, 1.0, "tau_apical") == inf
    assert lags.interneuron_lag_limit(3, 1.0) == inf
    assert lags.feedback_delay_limit(1.0) == inf


@pytest.mark.parametrize(("depth", "w"), [(3, 2.0), (6, 1.0)])
def test_interneuron_lag_limit(depth: int, w: float) -> None:
    measured = measure.lag_limit(depth, w, "tau_inter")
    assert measured == pytest.approx(lags.interneuron_lag_limit(depth, w), rel=1e-6)


def test_delay_limits_by_simulation() -> None:
    weights = [1.5, 2.5]
    fast = {"per_delay": 30, "halvings": 9}
    loop = measure.delay_limits(3, weights, "delay_err", **fast)
    assert loop == pytest.approx([lags.loop_delay_limit(3, w) for w in weights], rel=0.04)
    branch = measure.delay_limits(2, weights, "delay_fb", **fast)
    assert branch == pytest.approx([lags.feedback_delay_limit(w) for w in weights], rel=0.05)


def test_relative_error_of_a_map() -> None:
    one = Map(
        "m", "m", "", ("a", "b"), np.array([[2.0, inf, 0.0, inf]]), np.array([[1.0, inf, 0.0, 1.0]])
    )
    assert one.error.tolist() == [[1.0, 0.0, 0.0, inf]]


@pytest.mark.parametrize("kind", KINDS)
def test_streaming_bias_follows_its_closed_form(kind: str) -> None:
    world = World.make()
    for t in (1.0, 5.0):
        mean, error = measured_bias(world, kind, t, streams=2000, presentations=2)
        assert np.abs((mean - world.bias(kind, t)) / error).max() < 3
        # The bias is seen, not hidden in the noise.
        assert np.linalg.norm(mean) > 8 * np.linalg.norm(error)


def test_label_free_settling_writes_more_than_carry_over() -> None:
    world = World.make()
    free, carried = world.bias("label free first", 20.0), world.bias("carry-over", 20.0)
    assert np.linalg.norm(free) > np.linalg.norm(carried)


@pytest.mark.parametrize("index", [0, 1, 3, 6])
def test_presenter_does_what_the_configuration_says(index: int) -> None:
    regime = REGIMES[index]
    settings = streaming.digits_config(regime, 2.0, samples=4, epochs=1)
    plain, own = ChipRun(settings), StreamRun(settings)
    own.presenter = Presenter(own.engine, regime, 2.0, streaming.TAU_X)
    plain.run()
    own.run()
    assert plain.engine.steps == own.engine.steps
    assert torch.equal(plain.engine.flow.theta().flat, own.engine.flow.theta().flat)


def test_a_closed_gate_writes_nothing() -> None:
    regime = Regime("gate", gate=3.0)
    run = StreamRun(streaming.digits_config(regime, 2.0, samples=1, epochs=1))
    presenter = Presenter(run.engine, regime, 2.0, streaming.TAU_X)
    presenter.segments = presenter.segments[:1]
    before = run.engine.flow.theta().flat.clone()
    run.presenter = presenter
    run.run()
    assert run.engine.steps == 15
    assert torch.equal(run.engine.flow.theta().flat, before)


def test_xor_needs_more_than_plain_carry_over() -> None:
    carried, reset, ahead = (
        streaming.xor_accuracy(REGIMES[k], 5.0, presentations=200).mean() for k in (0, 1, 3)
    )
    assert carried < 0.8
    assert min(reset, ahead) > 0.95
