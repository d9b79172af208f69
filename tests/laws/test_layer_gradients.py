"""Law 1 for images and sequences: errors, drift and weight changes are the gradients of F."""

import layer_oracle as oracle
import pytest
import torch

from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.field import Field
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense, LayerNorm, Mix, Pool, Scores, Sum
from pcsim.network import Network, Node

TOLERANCE = 1e-10


def gradients(network, params, mode, states, alpha=1.0):
    """Return F, drift by node, and the weight change, from pcsim."""
    field = Field(network, params, mode)
    field.load([x if x is None else x.detach() for x in states])
    field.predict(field.predicted)
    field.errors(field.predicted)
    drift = {i: d.clone() for i, d in field.drift(field.free, field.predicted)}
    change = torch.zeros_like(params.flat)
    field.learn(field.predicted, params.views(change), alpha, 0.0)
    return field.energy(), drift, change


def by_autograd(network, params, mode, states):
    """Return the same from the oracle."""
    flat = params.flat.clone().requires_grad_()
    x = [value if value is None else value.clone().requires_grad_() for value in states]
    total = oracle.energy(network, params.views(flat), mode, x)
    total.sum().backward()
    free = [i for i, hold in enumerate(network.holds(mode)) if hold == "free"]
    return total.detach(), {i: -x[i].grad for i in free}, -flat.grad


def deviation(ours, theirs):
    """Return the largest difference of drift or weight change."""
    (_, drift, change), (_, other_drift, other_change) = ours, theirs
    assert drift.keys() == other_drift.keys()
    moved = max((oracle.largest(drift[i] - other_drift[i]) for i in drift), default=0.0)
    return max(moved, oracle.largest(change - other_change))


def check(network, mode, replicas=2, samples=3, seed=0, shared=False):
    params = oracle.random_parameters(network, replicas, seed)
    states = oracle.random_states(network, mode, replicas, samples, seed, shared)
    ours = gradients(network, params, mode, states)
    theirs = by_autograd(network, params, mode, states)
    assert oracle.largest(theirs[2]) > 1e-2
    assert deviation(ours, theirs) <= TOLERANCE
    assert oracle.largest(ours[0] - theirs[0]) <= TOLERANCE * (1 + oracle.largest(theirs[0]))
    return ours, theirs


@pytest.mark.parametrize("mode", ["supervised", "free"])
@pytest.mark.parametrize("name", oracle.NETWORKS)
def test_every_network(name, mode):
    network = oracle.NETWORKS[name]()
    check(network, mode)
    check(network, mode, replicas=1, seed=1)
    check(network, mode, replicas=3, samples=1, seed=2, shared=True)


@pytest.mark.parametrize("name", ["strided", "max pool", "post-pool", "learned variances"])
def test_images_are_inferred_too(name):
    """Generative mode: the input of the convolutions is a free state."""
    check(oracle.NETWORKS[name](), "generative")


@pytest.mark.parametrize("energy", [None, Gaussian(0.7)])
@pytest.mark.parametrize("same", [False, True])
def test_one_node_in_several_places(same, energy):
    """Queries and keys, or both terms of a sum, may be one node."""
    sizes = (4, 6, 2)  # positions, features, heads
    q, k = (5, 5) if same else (5, 4)
    nodes = (
        Node((24,), Sum(24, 3), (1, 5, 5)),
        Node((4, 6), LayerNorm(4, 6, f="gelu"), (2,), energy),
        Node((4, 6), Mix(*sizes), (3, 4), energy),
        Node((2, 4, 4), Scores(*sizes), (q, k), energy),
        Node((4, 6), Dense(6, 6, "tanh", positions=4), (5,), energy),
        Node((4, 6)),
    )
    for mode in ("supervised", "generative", "free"):
        check(Network(nodes), mode)


@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("f", ["identity", "tanh", "gelu", "leaky_relu"])
def test_pooling_leaves_incomplete_windows_out(f, kind):
    spec = Pool((2, 7, 5), kind, 3, f)
    network = Network((Node((4,), spec, (1,)), Node((2, 7, 5))))
    params = Parameters(network, torch.zeros(2, 0, dtype=oracle.F64))
    states = oracle.random_states(network, "generative", 2, 3)
    flat = torch.zeros(2, 0, dtype=oracle.F64)
    ours = gradients(network, params, "generative", states)
    x = [s.clone().requires_grad_() for s in states]
    oracle.energy(network, params.views(flat), "generative", x).sum().backward()
    assert oracle.largest(ours[1][1] + x[1].grad) <= TOLERANCE
    assert oracle.largest(x[1].grad[..., -1]) == 0


@pytest.mark.parametrize("name", ["max pool", "relays", "two heads, causal"])
def test_accumulation_with_alpha_and_beta(name):
    network = oracle.NETWORKS[name]()
    params = oracle.random_parameters(network, 2)
    states = oracle.random_states(network, "supervised", 2, 3)
    _, _, change = gradients(network, params, "supervised", states)
    field = Field(network, params, "supervised")
    field.load(states)
    field.predict(field.predicted)
    field.errors(field.predicted)
    for alpha, beta in ((0.3, 1.0), (0.3, 0.0), (-2.0, 0.5)):
        into = torch.ones_like(change)
        field.learn(field.predicted, params.views(into), alpha, beta)
        assert oracle.largest(into - (beta + alpha * change)) <= TOLERANCE


def test_rows_of_zeros_ask_for_nothing():
    """Words without a target cost nothing and teach nothing."""
    network = oracle.transformer()
    params = oracle.random_parameters(network, 1)
    states = oracle.random_states(network, "supervised", 1, 2)
    rows = states[0].view(1, 2, 4, 7)
    rows[:, :, 1:3] = 0
    ours, theirs = (f(network, params, "supervised", states) for f in (gradients, by_autograd))
    assert deviation(ours, theirs) <= TOLERANCE
    field = Field(network, params, "supervised")
    field.load(states)
    field.predict(field.predicted)
    field.errors(field.predicted)
    errors = field.energies[0].xi.view(1, 2, 4, 7)
    assert oracle.largest(errors[:, :, 1:3]) == 0
    assert oracle.largest(errors[:, :, 0]) > 1e-2


def test_what_lies_ahead_does_not_matter():
    """Causal: a change of a later token, or of a masked score, changes no earlier output."""
    network = oracle.transformer(causal=True, layer_norm=True)
    params = oracle.random_parameters(network, 1)
    states = oracle.random_states(network, "supervised", 1, 2)
    score = next(i for i, n in enumerate(network.nodes) if isinstance(n.energy, Categorical) and i)
    field = Field(network, params, "free")

    def outputs(later, masked):
        x = [s if s is None else s.clone() for s in states]
        x[-1][..., 3] = later
        field.load(x)
        field.feedforward()
        field.x[score].view(1, 2, 4, 4)[..., 0, 1] += masked
        field.predict(field.predicted)
        field.errors(field.predicted)
        return field.mu[0].clone().view(1, 2, 4, 7), field.energy()

    (first, cost), (other, _), (moved, same) = outputs(1, 0), outputs(2, 0), outputs(1, 5)
    assert oracle.largest((first - other)[:, :, :3]) == 0
    assert oracle.largest((first - other)[:, :, 3]) > 1e-3
    assert oracle.largest(first - moved) == 0
    assert oracle.largest(cost - same) == 0


PAIRS = [
    ("strided", lambda: oracle.cnn(f="gelu")),
    ("max pool", lambda: oracle.cnn(stride=1, pool="average")),
    ("max pool", lambda: oracle.cnn(stride=1, pool="max", place="post_act")),
    ("full attention", lambda: oracle.transformer(causal=True)),
    ("full attention", lambda: oracle.transformer(scores=oracle.GAUSSIAN)),
    ("full attention", lambda: oracle.transformer(heads=2)),
]


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_control_another_network_is_told_apart(name, other):
    ours, _ = check(oracle.NETWORKS[name](), "supervised")
    network = other()
    params = oracle.random_parameters(network, 2)
    states = oracle.random_states(network, "supervised", 2, 3)
    theirs = by_autograd(network, params, "supervised", states)
    assert ours[2].shape == theirs[2].shape
    assert oracle.largest(ours[2] - theirs[2]) > 1e-2
