"""Law 1: errors, drift and weight changes are the exact gradients of F."""

import itertools

import energy_oracle as oracle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError
from pcsim.kernels.field import Field
from pcsim.kernels.nonlinearity import NONLINEARITIES
from pcsim.maps import Dense
from pcsim.network import Network, Node

TOLERANCE = 1e-12
MODES = ("supervised", "generative", "associative", "free")
FUNCTIONS = ("identity", "tanh", "sigmoid", "relu", "leaky_relu", "gelu")
CONVENTIONS = (
    {"convention": "pre"},
    {"convention": "pre", "f_input": True},
    {"convention": "post"},
    {"convention": "post", "f_output": True},
)
ENERGIES = ("unit", "scalar", "tuple", "learned", "categorical output", "categorical hidden")


def energies(kind, sizes):
    """Energies of node 0 and of the hidden nodes (which must be equally wide for "tuple")."""
    spread = lambda n: Gaussian(tuple(0.5 + 0.3 * k for k in range(n)))  # noqa: E731
    hidden = sizes[1] if len(sizes) > 2 else 1
    return {
        "unit": (Gaussian(), Gaussian()),
        "scalar": (Gaussian(0.4), Gaussian(2.5)),
        "tuple": (spread(sizes[-1]), spread(hidden)),
        "learned": (Gaussian(learned=True), Gaussian(learned=True)),
        "categorical output": (Categorical(), Gaussian()),
        "categorical hidden": (Gaussian(), Categorical()),
    }[kind]


def build(kind, sizes, f, convention, **options):
    output, hidden = energies(kind, sizes)
    return Network.mlp(sizes, f, output=output, hidden=hidden, **convention, **options)


def possible(mode, kind, sizes, convention):
    """Return whether pcsim defines this: logit nodes send probabilities; masks need a Gaussian."""
    if kind == "categorical hidden" and convention["convention"] == "post":
        return len(sizes) == 3 and not convention.get("f_output")
    return not (mode == "associative" and kind == "categorical output")


def gradients(network, params, mode, states, mask=None):
    """Return F, drift by node, and the weight change, from pcsim."""
    field = Field(network, params, mode)
    field.load([x.detach() for x in states], mask)
    field.predict(field.predicted)
    field.errors(field.predicted)
    drift = {i: d.clone() for i, d in field.drift(field.free, field.predicted)}
    change = torch.zeros_like(params.flat)
    field.learn(field.predicted, params.views(change), 1.0, 0.0)
    return field.energy(), drift, change


def by_autograd(network, params, mode, states, mask=None):
    """Return the same from the oracle."""
    flat = params.flat.clone().requires_grad_()
    x = [value.clone().requires_grad_() for value in states]
    total = oracle.energy(network, params.views(flat), mode, x)
    total.sum().backward()
    holds = network.holds(mode)
    drift = {i: -v.grad for i, v in enumerate(x) if holds[i] != "clamped" and v.grad is not None}
    if mask is not None:
        drift[0] = torch.where(mask, 0.0, drift[0])
    return total.detach(), drift, -flat.grad


def deviation(ours, theirs):
    """Return the largest difference of drift or weight change."""
    (_, drift, change), (_, other_drift, other_change) = ours, theirs
    assert drift.keys() == other_drift.keys()
    moved = max((oracle.largest(drift[i] - other_drift[i]) for i in drift), default=0.0)
    return max(moved, oracle.largest(change - other_change))


def check(network, mode, replicas, samples, seed, shared=False):
    params = oracle.random_parameters(network, replicas, seed)
    states = oracle.random_states(network, mode, replicas, samples, seed, shared)
    mask = None
    if mode == "associative":
        mask = torch.rand(states[0].shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    ours = gradients(network, params, mode, states, mask)
    theirs = by_autograd(network, params, mode, states, mask)
    assert set(ours[1]) == {i for i, h in enumerate(network.holds(mode)) if h != "clamped"}
    assert deviation(ours, theirs) <= TOLERANCE
    assert oracle.largest(ours[0] - theirs[0]) <= TOLERANCE * (1 + oracle.largest(theirs[0]))


@pytest.mark.parametrize("kind", ENERGIES)
@pytest.mark.parametrize("mode", MODES)
def test_every_combination(mode, kind):
    sizes = [4, 3, 3, 2] if kind != "categorical hidden" else [4, 3, 2]
    for f, convention, prior in itertools.product(FUNCTIONS, CONVENTIONS, (None, 0.7)):
        if possible(mode, kind, sizes, convention):
            check(build(kind, sizes, f, convention, prior=prior), mode, 2, 3, seed=1)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_any_shape(data):
    mode, kind = data.draw(st.sampled_from(MODES)), data.draw(st.sampled_from(ENERGIES))
    convention = data.draw(st.sampled_from(CONVENTIONS))
    f = data.draw(st.sampled_from(FUNCTIONS))
    width = st.integers(1, 6)
    sizes = data.draw(st.lists(width, min_size=2, max_size=6))
    if kind == "tuple":
        sizes[1:-1] = [sizes[1]] * (len(sizes) - 2)
    if not possible(mode, kind, sizes, convention):
        return
    prior, bias = data.draw(st.sampled_from((None, -0.4))), data.draw(st.booleans())
    network = build(kind, sizes, f, convention, prior=prior, bias=bias)
    replicas, samples = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5))
    check(network, mode, replicas, samples, data.draw(st.integers(0, 99)), data.draw(st.booleans()))


def test_accumulation_with_alpha_and_beta():
    network = build("learned", [4, 3, 3, 2], "tanh", CONVENTIONS[0])
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


@pytest.mark.parametrize("parents", [(2, 2, 3), (1, 3, 3)])
@pytest.mark.parametrize("mode", ["supervised", "generative", "free"])
def test_node_with_two_children(parents, mode):
    """The sum over children; a node without children is refused by `Network` itself."""
    sizes = (2, 3, 3, 4)
    nodes = [
        Node((n,), Dense(sizes[p], n, f), (p,))
        for n, p, f in zip(sizes, parents, ("tanh", "sigmoid", "gelu"), strict=False)
    ]
    nodes.append(Node((4,)))
    with pytest.raises(ConfigError, match="needs a child"):
        Network(tuple(nodes))

    class Branched(Network):
        def __post_init__(self):
            pass

    check(Branched(tuple(nodes)), mode, 2, 3, seed=0)


def test_finite_differences_of_the_energy():
    """Independent of autograd, and of the oracle's energy: F is pcsim's own."""
    network = build("learned", [3, 3, 3, 2], "tanh", CONVENTIONS[0], prior=0.5)
    params = oracle.random_parameters(network, 1)
    states = oracle.random_states(network, "generative", 1, 2)
    _, drift, change = gradients(network, params, "generative", states)
    h = 1e-5
    for tensor, slope in [*((states[i], d) for i, d in drift.items()), (params.flat, change)]:
        flat = tensor.view(-1)
        for k in range(len(flat)):
            kept, values = float(flat[k]), []
            for sign in (1, -1):
                flat[k] = kept + sign * h
                values.append(float(gradients(network, params, "generative", states)[0]))
            flat[k] = kept
            assert -(values[0] - values[1]) / (2 * h) == pytest.approx(
                float(slope.view(-1)[k]), abs=1e-8
            )


@pytest.mark.parametrize("name", NONLINEARITIES)
def test_pull_backs(name):
    x = torch.linspace(-30, 30, 3000, dtype=oracle.F64).view(10, 50, 6).contiguous()
    x = x.clone().requires_grad_()
    v = torch.randn(x.shape, dtype=oracle.F64, generator=torch.Generator().manual_seed(0))
    (expected,) = torch.autograd.grad(oracle.FUNCTIONS[name](x), x, v)
    f, plain = NONLINEARITIES[name], x.detach()
    r = f.apply(plain, torch.empty_like(plain))
    assert oracle.largest(r - oracle.FUNCTIONS[name](plain)) <= TOLERANCE
    assert oracle.largest(f.pull(v.clone(), plain, r) - expected) <= TOLERANCE


@pytest.mark.parametrize(
    "other",
    [
        lambda: build("unit", [4, 3, 3, 2], "tanh", CONVENTIONS[1]),
        lambda: build("unit", [4, 3, 3, 2], "tanh", CONVENTIONS[2]),
        lambda: build("unit", [4, 3, 3, 2], "gelu", CONVENTIONS[0]),
        lambda: build("scalar", [4, 3, 3, 2], "tanh", CONVENTIONS[0]),
        lambda: build("categorical output", [4, 3, 3, 2], "tanh", CONVENTIONS[0]),
    ],
)
def test_control_another_energy_is_told_apart(other):
    network = build("unit", [4, 3, 3, 2], "tanh", CONVENTIONS[0])
    params = oracle.random_parameters(network, 2)
    states = oracle.random_states(network, "generative", 2, 3)
    ours = gradients(network, params, "generative", states)
    assert deviation(ours, by_autograd(network, params, "generative", states)) <= TOLERANCE
    assert deviation(ours, by_autograd(other(), params, "generative", states)) > 1e-2


def test_control_prior_is_told_apart():
    networks = [build("unit", [4, 3, 2], "tanh", CONVENTIONS[0], prior=p) for p in (None, 0.0, 0.7)]
    params = oracle.random_parameters(networks[0], 2)
    states = oracle.random_states(networks[0], "generative", 2, 3)
    results = [by_autograd(n, params, "generative", states) for n in networks]
    ours = gradients(networks[1], params, "generative", states)
    assert deviation(ours, results[1]) <= TOLERANCE
    assert deviation(ours, results[0]) > 1e-2
    assert deviation(ours, results[2]) > 1e-2


def test_control_hebb_needs_the_nonlinearity():
    """The weight change is ε f(x)ᵀ; ε xᵀ, as sometimes printed, is far off."""
    network = build("unit", [4, 3, 2], "tanh", CONVENTIONS[0], bias=False)
    params = oracle.random_parameters(network, 1)
    states = oracle.random_states(network, "supervised", 1, 3)
    _, _, change = gradients(network, params, "supervised", states)
    eps = states[0] - oracle.prediction(network.nodes[0], params.of[0], states)
    right = eps[0].mT @ torch.tanh(states[1][0])
    wrong = eps[0].mT @ states[1][0]
    ours = params.views(change)[0]["w"][0]
    assert oracle.largest(ours - right) <= TOLERANCE
    assert oracle.largest(ours - wrong) > 0.1 * oracle.largest(right)
