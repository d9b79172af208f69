"""What language models are asked, and what the answers cost: laws with independent oracles."""

import language_world as world
import numpy as np
import pytest
import torch

from pcsim.architectures.levelling import levelled
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.experiments.common.language.questions import (
    NOTHING,
    Questions,
    clamps,
    conditional,
    masked,
    perplexity,
)
from pcsim.experiments.common.language.text import END, MASK
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters


def hide(windows, share=0.3, seed=0):
    return masked(windows, share, np.random.default_rng(seed))


def logits(network, params, inputs):
    found = outputs(network, params, torch.as_tensor(inputs).to(params.flat))
    return found[0].view(len(inputs), *network.nodes[0].shape).numpy()


def sgd(params, alpha):
    return Optimizer(OptimizerSpec(), params, alpha, in_place=False)


def trained(network, params, asked, rule, alpha=1.0, **options):
    """Return the weights after one batch, and the rule."""
    params = Parameters(network, params.flat.clone())
    optimizer = sgd(params, alpha)
    if rule == "bp":
        runner = Backprop(network, params, optimizer)
    else:
        runner = Discrete(network, params, Schedule(rule=rule, **options), optimizer)
    runner.batch(clamps(network, asked, params.flat))
    return params.flat, runner


def test_masking_hides_exactly_what_is_asked_for():
    windows = world.tokens(2000)
    asked, original = hide(windows, 0.15), windows[:, :-1]
    chosen = asked.targets != NOTHING
    assert (asked.inputs[chosen] == MASK).all()
    np.testing.assert_array_equal(asked.targets[chosen], original[chosen])
    np.testing.assert_array_equal(asked.inputs[~chosen], original[~chosen])
    assert not (original[chosen] == END).any()
    count = (original != END).sum()
    assert abs(chosen.sum() / count - 0.15) < 4 * np.sqrt(0.15 * 0.85 / count)
    again, other = hide(windows, 0.15), hide(windows, 0.15, seed=1)
    np.testing.assert_array_equal(again.targets, asked.targets)
    assert (other.targets != asked.targets).any()


def test_conditional_asks_for_what_comes_next():
    windows = world.tokens(50)
    asked = conditional(windows)
    wanted = asked.targets != NOTHING
    np.testing.assert_array_equal(asked.inputs, windows[:, :-1])
    np.testing.assert_array_equal(asked.targets[wanted], windows[:, 1:][wanted])
    np.testing.assert_array_equal(~wanted, windows[:, 1:] == END)
    assert (~wanted).any()


@pytest.mark.parametrize("model", ["masked", "conditional"])
def test_a_uniform_model_has_the_perplexity_of_its_vocabulary(model):
    network = world.network(causal=model == "conditional")
    params = world.parameters(network)
    windows = world.tokens(100)
    asked = hide(windows) if model == "masked" else conditional(windows)
    assert perplexity(network, params, asked) != pytest.approx(12, rel=1e-4)
    for view in params.of[0].values():
        view.zero_()
    assert perplexity(network, params, asked) == pytest.approx(12, rel=1e-12)


def test_perplexity_and_loss_count_what_is_asked_alone():
    network = world.network()
    params = world.parameters(network)
    asked = hide(world.tokens(100))  # more than one chunk
    scores = logits(network, params, asked.inputs)
    costs = [
        np.log(np.exp(scores[n, i]).sum()) - scores[n, i, asked.targets[n, i]]
        for n, i in np.argwhere(asked.targets != NOTHING)
    ]
    assert perplexity(network, params, asked) == pytest.approx(np.exp(np.mean(costs)), rel=1e-12)
    _, bp = trained(network, params, asked, "bp", alpha=1e-9)
    assert float(bp.energy()) == pytest.approx(np.sum(costs), rel=1e-12)
    _, ipc = trained(network, params, asked, "ipc", alpha=1e-9, T=1)
    assert float(ipc.energy()) == pytest.approx(np.sum(costs), rel=1e-12)
    params.flat[0, 0] = np.nan
    assert np.isnan(perplexity(network, params, asked))


@pytest.mark.parametrize("rule", ["bp", "pc", "ipc"])
def test_where_nothing_is_asked_nothing_is_learnt(rule):
    network = world.network()
    params = world.parameters(network)
    asked = hide(world.tokens())
    silent = Questions(asked.inputs, np.full_like(asked.targets, NOTHING))
    flat, runner = trained(network, params, silent, rule)
    assert (flat - params.flat).abs().max() < 1e-14
    assert float(runner.energy()) == pytest.approx(0, abs=1e-13)
    one = Questions(asked.inputs, silent.targets.copy())
    one.targets[0, 3] = 5
    flat, _ = trained(network, params, one, rule, alpha=0.01)
    assert (flat - params.flat).abs().max() > 1e-4


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("moment", [0, 4, 8])
def test_a_causal_model_does_not_see_what_comes_later(moment, layer_norm):
    windows = world.tokens()[:, :-1]
    changed = windows.copy()
    changed[:, moment + 1 :] = (changed[:, moment + 1 :] + 5) % 12
    early, late = slice(moment + 1), slice(moment + 1, None)
    for causal in (True, False):
        network = world.network(causal=causal, layer_norm=layer_norm)
        params = world.parameters(network)
        first, second = (logits(network, params, tokens) for tokens in (windows, changed))
        assert np.abs(first - second)[:, late].max(-1).min() > 1e-6
        if causal:
            np.testing.assert_array_equal(first[:, early], second[:, early])
        else:
            assert np.abs(first - second)[:, early].max(-1).min() > 1e-6


@pytest.mark.parametrize("model", ["masked", "conditional"])
def test_zil_is_bp_on_one_batch_of_questions(model):
    network = world.network(causal=model == "conditional", scores={"kind": "gaussian"})
    params = world.parameters(network)
    windows = world.tokens()
    asked = hide(windows) if model == "masked" else conditional(windows)
    expected, _ = trained(network, params, asked, "bp")
    moved = expected - params.flat
    relayed = levelled(network)
    ours, _ = trained(relayed, Parameters(relayed, params.flat), asked, "zil")
    assert (ours - expected).abs().max() <= 1e-10 * moved.abs().max()
    without, _ = trained(network, params, asked, "zil", alpha=1e-5)
    assert (without - params.flat - 1e-5 * moved).abs().max() > 1e-2 * 1e-5 * moved.abs().max()


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("model", ["masked", "conditional"])
def test_ipc_lowers_the_energy(model, layer_norm):
    """Small joint steps lower F_KL at each of them; uphill steps raise it."""
    network = world.network(causal=model == "conditional", layer_norm=layer_norm)
    windows = world.tokens()
    asked = hide(windows) if model == "masked" else conditional(windows)
    curves = {}
    for sign in (1.0, -1.0):
        params = world.parameters(network)
        schedule = Schedule(rule="ipc", T=20, gamma=0.02, fast=False)
        runner = Discrete(network, params, schedule, sgd(params, sign * 1e-3))
        runner.gamma = sign * 0.02
        runner.start(clamps(network, asked, params.flat))
        energies = []
        for step in runner.steps:
            runner.step(step)
            energies.append(float(runner.energy()))
        curves[sign] = np.array(energies)
    assert (np.diff(curves[1.0]) < 0).all()
    assert curves[1.0][-1] < 0.99 * curves[1.0][0]
    assert curves[-1.0][1] > curves[-1.0][0]
