"""All layers in one batched product is the same iPC; BP by hand is the same BP."""

import pytest
import torch

from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Categorical
from pcsim.errors import UnsupportedError
from pcsim.experiments.update_time.layer_parallel import LayerParallel
from pcsim.experiments.update_time.plain_backprop import PlainBackprop
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

GAMMA, ALPHA, STEPS = 0.3, 0.02, 60
SHAPES = [
    pytest.param((5, 5, 5, 5, 5), 1, id="one stack"),
    pytest.param((7, 4, 4, 4, 3), 3, id="hidden layers equal"),
    pytest.param((6, 3), 1, id="single map"),
    pytest.param((4, 4, 3, 3, 3, 5), 4, id="two bands"),
    pytest.param((6, 5, 4, 3), 3, id="all different"),
]


def world(sizes, samples, seed=0):
    network = Network.mlp(sizes)
    params = initial_parameters(network, [seed], torch.float64)
    generator = torch.Generator().manual_seed(1)
    x, y = (
        torch.rand(1, samples, n, generator=generator, dtype=torch.float64)
        for n in (sizes[0], sizes[-1])
    )
    return network, params, [y, *[None] * (len(sizes) - 2), x]


def both(sizes, samples, gamma=GAMMA):
    """Return the Discrete backend and the layer-parallel one from the same feed-forward start."""
    network, params, clamps = world(sizes, samples)
    schedule = Schedule(rule="ipc", T=STEPS, gamma=GAMMA, fast=False)
    discrete = Discrete(network, params, schedule, Optimizer(OptimizerSpec(), params, ALPHA))
    discrete.start(clamps)
    _, own, _ = world(sizes, samples)
    parallel = LayerParallel(network, own, samples=samples, gamma=gamma, alpha=ALPHA)
    parallel.load(discrete.field.x)
    return discrete, parallel


def distance(discrete, parallel):
    states = zip(discrete.field.x, parallel.states(), strict=True)
    gaps = [float((a - b).abs().max()) for a, b in states]
    return max(*gaps, float((discrete.params.flat - parallel.params.flat).abs().max()))


@pytest.mark.parametrize("samples", [1, 6])
@pytest.mark.parametrize(("sizes", "stacks"), SHAPES)
def test_equals_discrete_ipc(sizes, stacks, samples):
    discrete, parallel = both(sizes, samples)
    assert len(parallel.stacks) == stacks
    start = discrete.params.flat.clone()
    for _ in range(STEPS):
        discrete.step()
        parallel.step()
    assert float((discrete.params.flat - start).abs().max()) > 1e-2, "something was learnt"
    assert distance(discrete, parallel) < 1e-12


def test_control_another_step_size_is_seen():
    discrete, parallel = both((5, 5, 5, 5), 6, gamma=GAMMA * (1 + 1e-6))
    for _ in range(STEPS):
        discrete.step()
        parallel.step()
    assert distance(discrete, parallel) > 1e-10


def test_weights_are_views_and_clamps_stay():
    _, parallel = both((5, 5, 5, 5), 3)
    (stack,) = parallel.stacks
    assert stack.w.shape == (3, 5, 5)
    assert stack.w.data_ptr() == parallel.params.flat.data_ptr()
    first, last = parallel.states()[0].clone(), parallel.states()[-1].clone()
    for _ in range(10):
        parallel.step()
    assert torch.equal(parallel.states()[0], first)
    assert torch.equal(parallel.states()[-1], last)


@pytest.mark.parametrize("samples", [1, 6])
@pytest.mark.parametrize("sizes", [(5, 5, 5, 5), (7, 4, 3), (6, 3)])
def test_backprop_by_hand_equals_autograd(sizes, samples):
    network, params, clamps = world(sizes, samples)
    _, own, _ = world(sizes, samples)
    autograd = Backprop(network, params, Optimizer(OptimizerSpec(), params, ALPHA, in_place=False))
    plain = PlainBackprop(network, own, samples=samples, alpha=ALPHA)
    start = own.flat.clone()
    for _ in range(STEPS):
        autograd.batch(clamps)
        plain.update(clamps[-1][0], clamps[0][0])
    assert float((own.flat - start).abs().max()) > 1e-2
    assert float((own.flat - params.flat).abs().max()) < 1e-12


@pytest.mark.parametrize(
    ("network", "seeds", "words"),
    [
        (Network.mlp((4, 4, 4)), [0, 1], "2 replicas"),
        (Network.mlp((4, 4, 4), "relu"), [0], "map 0 must be θ tanh"),
        (Network.mlp((4, 4, 4), f_input=True), [0], "map 1 must be θ identity"),
        (Network.mlp((4, 4, 4), output=Categorical()), [0], "node 0 must have a unit Gaussian"),
        (Network.mlp((4, 4, 4), prior=0.0), [0], "takes no prior"),
    ],
)
def test_refuses_what_its_equations_do_not_say(network, seeds, words):
    params = initial_parameters(network, seeds, torch.float64)
    with pytest.raises(UnsupportedError, match=words):
        LayerParallel(network, params, samples=1, gamma=GAMMA, alpha=ALPHA)
