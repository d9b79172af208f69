"""Laws 2–4: Z-IL with γ = 1 is backpropagation, with γ it is γ^l times it, and only as written."""

import energy_oracle as oracle
import pytest
import torch
from torch.nn import functional

from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.field import Field
from pcsim.network import Network

LAYER = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "identity": torch.nn.Identity}
REPLICAS, SAMPLES = 2, 6


def network_of(depth, f, output=None):
    widths = [5, *(4 + k % 3 for k in range(depth - 1)), 3]
    return Network.mlp(widths, f, output=output)


def data(network, seed=0):
    clamps = oracle.clamps_of(network, "supervised", REPLICAS, SAMPLES, seed)
    if isinstance(network.nodes[0].energy, Categorical):
        clamps[0] = functional.one_hot(clamps[0].argmax(-1), clamps[0].shape[-1]).to(oracle.F64)
    return clamps


def zil(network, params, batches, alpha=1.0, gamma=1.0, fast=False, rule="sgd"):
    """Train with pcsim's Z-IL; return the parameters."""
    params = oracle.copy(params)
    schedule = Schedule(rule="zil", gamma=gamma, fast=fast)
    runner = Discrete(network, params, schedule, oracle.optimizer(params, alpha, rule))
    for clamps in batches:
        runner.batch(clamps)
    return params


def bp(network, params, batches, alpha=1.0, rule="sgd"):
    """Train with pcsim's backpropagation."""
    params = oracle.copy(params)
    runner = Backprop(network, params, oracle.optimizer(params, alpha, rule, in_place=False))
    for clamps in batches:
        runner.batch(clamps)
    return params


def sequential(network, params, batches, alpha=1.0, rule="sgd"):
    """Train with torch.nn and torch.optim, replica by replica."""
    params = oracle.copy(params)
    for replica in range(REPLICAS):
        layers = []
        for index in reversed(range(len(network.nodes) - 1)):
            dense = network.nodes[index].map
            linear = torch.nn.Linear(dense.n_in, dense.n_out, dtype=oracle.F64)
            for name, value in (("weight", "w"), ("bias", "b")):
                getattr(linear, name).data = params.of[index][value][replica]  # shared memory
            layers += [LAYER[dense.f](), linear]
        model = torch.nn.Sequential(*layers)
        kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
        optimizer = kinds[rule](model.parameters(), lr=alpha)
        for clamps in batches:
            target, output = clamps[0][replica], model(clamps[-1][replica])
            if isinstance(network.nodes[0].energy, Categorical):
                loss = functional.cross_entropy(output, target.argmax(-1), reduction="sum")
            else:
                variance = network.nodes[0].energy.variance
                loss = 0.5 * ((output - target) ** 2).sum() / variance
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return params


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("depth", range(2, 11))
@pytest.mark.parametrize("f", LAYER)
def test_one_step_is_a_step_of_bp(f, depth, fast):
    network = network_of(depth, f)
    start = oracle.random_parameters(network, REPLICAS, depth)
    batches = [data(network)]
    # With α = 1 the difference of two weights is the difference of two gradients.
    ours = zil(network, start, batches, fast=fast).flat
    for theirs in (bp(network, start, batches).flat, sequential(network, start, batches).flat):
        assert oracle.largest(ours - theirs) <= 1e-12 * oracle.largest(theirs - start.flat)


@pytest.mark.parametrize("output", [Categorical(), Gaussian(2.5)])
@pytest.mark.parametrize("f", LAYER)
def test_with_cross_entropy_and_scaled_outputs(f, output):
    network = network_of(4, f, output)
    start, batches = oracle.random_parameters(network, REPLICAS), [data(network)]
    ours = zil(network, start, batches).flat
    for theirs in (bp(network, start, batches).flat, sequential(network, start, batches).flat):
        assert oracle.largest(ours - theirs) <= 1e-12 * oracle.largest(theirs - start.flat)


@pytest.mark.parametrize("output", [None, Categorical()])
@pytest.mark.parametrize("f", ["tanh", "relu"])
def test_adam_over_several_batches(f, output):
    """The gradient is the same, so any optimiser goes the same way."""
    network = network_of(4, f, output)
    start = oracle.random_parameters(network, REPLICAS)
    batches = [data(network, seed) for seed in range(8)]
    ours = zil(network, start, batches, 1e-2, rule="adam").flat
    moved = oracle.largest(ours - start.flat)
    assert moved > 1e-2
    for train in (bp, sequential):
        theirs = train(network, start, batches, 1e-2, rule="adam").flat
        assert oracle.largest(ours - theirs) <= 1e-9 * moved


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("gamma", [0.9, 0.5, 0.1])
@pytest.mark.parametrize("f", LAYER)
def test_gamma_scales_each_layer(f, gamma, fast):
    network = network_of(5, f)
    start, batches = oracle.random_parameters(network, REPLICAS, gain=1.5), [data(network)]
    ours = zil(network, start, batches, gamma=gamma, fast=fast).flat - start.flat
    theirs = bp(network, start, batches).flat - start.flat
    for layer, part in enumerate(start.slices[:-1]):
        gradient = theirs[:, part]
        difference = oracle.largest(ours[:, part] / gamma**layer - gradient)
        assert difference <= 1e-10 * oracle.largest(gradient)


def variant(network, params, clamps, *, order="same state", zero=False):
    """Z-IL spelled out with the field, in the right order and in wrong ones; return ∂θ."""
    params = oracle.copy(params)
    field = Field(network, params, "supervised")
    states = [
        torch.zeros(REPLICAS, SAMPLES, node.units, dtype=oracle.F64) if c is None else c
        for c, node in zip(clamps, network.nodes, strict=True)
    ]
    field.load(states)
    if not zero:
        field.feedforward()
    gradient = torch.zeros_like(params.flat)
    views = params.views(gradient)

    def errors():
        field.predict(field.predicted)
        field.errors(field.predicted)

    def move():
        for index, d in field.drift(field.free, field.predicted):
            field.x[index].add_(d)

    def commit(level):
        params.flat[:, params.slices[level]] += gradient[:, params.slices[level]]

    for t in range(network.depth):
        errors()
        if order == "x first":
            move()
            errors()
            field.learn((t,), views, 1.0, 0.0)
            commit(t)
        elif order == "weights first":
            field.learn((t,), views, 1.0, 0.0)
            commit(t)
            move()
        else:
            field.learn((t,), views, 1.0, 0.0)
            move()
            commit(t)
    return gradient


@pytest.mark.parametrize("f", LAYER)
@pytest.mark.parametrize("depth", [2, 3, 6])
def test_controls_every_violation_deviates(f, depth):
    network = network_of(depth, f)
    start, clamps = oracle.random_parameters(network, REPLICAS), data(network)
    exact = bp(network, start, [clamps]).flat - start.flat

    def worst(gradient):
        return max(
            oracle.largest((gradient - exact)[:, part]) / oracle.largest(exact[:, part])
            for part in start.slices[:-1]
        )

    assert worst(variant(network, start, clamps)) <= 1e-12
    assert worst(variant(network, start, clamps, order="x first")) > 0.1
    assert worst(variant(network, start, clamps, order="weights first")) > 0.1
    assert worst(variant(network, start, clamps, zero=True)) > 0.1


def test_control_gamma_below_one_is_not_bp():
    network = network_of(3, "tanh")
    start, batches = oracle.random_parameters(network, REPLICAS), [data(network)]
    ours = zil(network, start, batches, gamma=0.9).flat
    theirs = bp(network, start, batches).flat
    for part in start.slices[1:-1]:  # layer 0 has γ⁰ = 1
        gradient = oracle.largest((theirs - start.flat)[:, part])
        assert oracle.largest((ours - theirs)[:, part]) > 0.09 * gradient
