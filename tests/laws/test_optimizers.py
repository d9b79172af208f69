"""Optimisers against torch.optim, with rates that differ per replica."""

from math import log

import energy_oracle as oracle
import pytest
import torch

from pcsim.energies import Gaussian
from pcsim.network import Network

REPLICAS, STEPS = 3, 50
ALPHA = torch.tensor([0.01, 0.05, 0.2], dtype=oracle.F64)
DECAY = torch.tensor([0.0, 0.1, 0.3], dtype=oracle.F64)
RULES = {
    "sgd": lambda p, lr, wd: torch.optim.SGD(p, lr=lr, weight_decay=wd),
    "momentum": lambda p, lr, wd: torch.optim.SGD(p, lr=lr, weight_decay=wd, momentum=0.9),
    "adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd),
    "adamw": lambda p, lr, wd: torch.optim.AdamW(p, lr=lr, weight_decay=wd),
}


def descent(flat, noise):
    """g = −∂/∂θ of a bowl around a moving point: it depends on θ, so that errors would build up."""
    return noise - flat * torch.linspace(0.1, 2.0, flat.shape[-1], dtype=oracle.F64)


def noises(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(REPLICAS, count, generator=generator, dtype=oracle.F64) for _ in range(STEPS)
    ]


def give(optimizer, gradient, nodes):
    """Put a gradient where `Field.learn` would, then commit."""
    into, alpha, beta = optimizer.target
    for index in nodes:
        for name, part in optimizer.params.views(gradient)[index].items():
            target = into[index][name]
            target.copy_(beta * target + alpha * part if beta else alpha * part)
    optimizer.commit(nodes)


def network_of(**options):
    return Network.mlp([4, 3, 3, 2], "tanh", **options)


def everything(network):
    return range(len(network.nodes))


def by_torch(rule, start, alpha, decay, parts=None, scale=1.0):
    """Run torch.optim replica by replica; `parts(t)` are the slices that step t touches."""
    result = start.clone()
    noise = noises(start.shape[1])
    whole = [slice(0, start.shape[1])]
    for replica in range(REPLICAS):
        pieces = parts(None) if parts else whole
        theta = [result[replica, piece].clone().requires_grad_() for piece in pieces]
        rates = [float(r[replica]) if isinstance(r, torch.Tensor) else r for r in (alpha, decay)]
        optimizers = [RULES[rule]([t], *rates) for t in theta]
        for step in range(STEPS):
            now = torch.cat([t.detach() for t in theta])
            g = scale * descent(now, noise[step][replica])
            for piece, t, optimizer in zip(pieces, theta, optimizers, strict=True):
                if parts is None or piece in parts(step):
                    t.grad = -g[piece]
                    optimizer.step()
        for piece, t in zip(pieces, theta, strict=True):
            result[replica, piece] = t.detach()
    return result


@pytest.mark.parametrize(("in_place", "chunk"), [(True, 1 << 17), (False, 8)])
@pytest.mark.parametrize("decay", [0.0, 0.2, DECAY], ids=["none", "one", "each"])
@pytest.mark.parametrize("alpha", [0.05, ALPHA], ids=["one", "each"])
@pytest.mark.parametrize("rule", RULES)
def test_as_torch(rule, alpha, decay, in_place, chunk, monkeypatch):
    """Also when rows are treated in several chunks."""
    monkeypatch.setattr("pcsim.kernels.optim.CHUNK", chunk)
    network = network_of()
    params = oracle.random_parameters(network, REPLICAS)
    start = params.flat.clone()
    optimizer = oracle.optimizer(params, alpha, rule, decay, in_place=in_place, decay_bias=True)
    for noise in noises(start.shape[1]):
        give(optimizer, descent(params.flat.clone(), noise), everything(network))
    expected = by_torch(rule, start, alpha, decay)
    assert oracle.largest(params.flat - expected) <= 1e-12
    wrong = by_torch(rule, start, 1.01 * alpha, decay)
    assert oracle.largest(params.flat - wrong) > 1e-4, "control: a rate 1 % off shows"


def test_control_rules_differ():
    network = network_of()
    start = oracle.random_parameters(network, REPLICAS).flat
    ends = [by_torch(rule, start, 0.05, 0.2) for rule in RULES]
    for i, one in enumerate(ends):
        for other in ends[:i]:
            assert oracle.largest(one - other) > 1e-3


def test_scale_is_a_factor_of_the_gradient():
    network = network_of()
    for rule in RULES:
        params = oracle.random_parameters(network, REPLICAS)
        start = params.flat.clone()
        optimizer = oracle.optimizer(params, ALPHA, rule, 0.1, decay_bias=True)
        optimizer.scale = 0.25
        for noise in noises(start.shape[1]):
            give(optimizer, descent(params.flat.clone(), noise), everything(network))
        expected = by_torch(rule, start, ALPHA, 0.1, scale=0.25)
        assert oracle.largest(params.flat - expected) <= 1e-12


@pytest.mark.parametrize("rule", RULES)
def test_subset_of_nodes(rule):
    """A node that is not committed keeps its weights, its moments and its step count."""
    network = network_of()
    params = oracle.random_parameters(network, REPLICAS)
    start = params.flat.clone()
    optimizer = oracle.optimizer(params, 0.05, rule, 0.1, decay_bias=True)

    def nodes(step):
        return [i for i in range(3) if step % (i + 1) == 0]

    for step, noise in enumerate(noises(start.shape[1])):
        chosen = nodes(step)
        before = params.flat.clone()
        give(optimizer, descent(before, noise), chosen)
        for index in set(range(3)) - set(chosen):
            part = params.slices[index]
            assert torch.equal(params.flat[:, part], before[:, part])

    def parts(step):
        return [params.slices[i] for i in (range(3) if step is None else nodes(step))]

    expected = by_torch(rule, start, 0.05, 0.1, parts)
    assert oracle.largest(params.flat - expected) <= 1e-12


@pytest.mark.parametrize("rule", RULES)
def test_decay_spares_biases_and_log_variances(rule):
    network = network_of(hidden=Gaussian(learned=True))
    for decay_bias in (False, True):
        params = oracle.random_parameters(network, REPLICAS)
        start = oracle.copy(params)
        optimizer = oracle.optimizer(params, 0.05, rule, 0.5, decay_bias=decay_bias)
        for _ in range(5):
            give(optimizer, torch.zeros_like(params.flat), everything(network))
        for before, after in zip(start.of, params.of, strict=True):
            for name in before:
                decays = name == "w" or (name == "b" and decay_bias)
                assert torch.equal(before[name], after[name]) != decays


@pytest.mark.parametrize("alpha", [0.05, ALPHA], ids=["one", "each"])
@pytest.mark.parametrize("rule", RULES)
def test_log_variance_stays_above_its_floor(rule, alpha):
    floor = 0.2
    network = network_of(hidden=Gaussian(learned=True, floor=floor))
    params = oracle.random_parameters(network, REPLICAS)
    optimizer = oracle.optimizer(params, alpha, rule)
    reached = False
    for step in range(STEPS):
        downwards = -torch.ones_like(params.flat)
        give(optimizer, downwards if step < 40 else -downwards, everything(network))
        for views in params.of[1:3]:
            assert float(views["log_var"].min()) >= log(floor)
            reached |= bool((views["log_var"] == log(floor)).any())
    assert reached, "control: the floor was in the way"
    assert float(params.of[0]["w"].min()) < log(floor), "control: weights have no floor"


@pytest.mark.parametrize("rule", RULES)
def test_going_on_from_a_checkpoint(rule):
    network = network_of()
    noise = noises(network.parameter_count)
    params = oracle.random_parameters(network, REPLICAS)
    optimizer = oracle.optimizer(params, 0.05, rule)
    for step in range(20):
        give(optimizer, descent(params.flat.clone(), noise[step]), everything(network))
        if step == 9:
            kept = {name: value.clone() for name, value in optimizer.state().items()}
            resumed = oracle.copy(params)
    other = oracle.optimizer(resumed, 0.05, rule)
    other.restore(kept)
    for step in range(10, 20):
        give(other, descent(resumed.flat.clone(), noise[step]), everything(network))
    assert torch.equal(resumed.flat, params.flat)
