"""The four rules on images and sequences: Z-IL is BP, iPC descends, shortcuts change nothing."""

import layer_oracle as oracle
import pytest
import torch
from energy_oracle import copy, optimizer

from pcsim.architectures.levelling import levelled
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Categorical
from pcsim.kernels.counter import Counter
from pcsim.kernels.feedforward import feedforward
from pcsim.kernels.field import Field
from pcsim.network import Network

REPLICAS, SAMPLES = 2, 3
CHAINS = [n for n in oracle.NETWORKS if oracle.NETWORKS[n]().levelled and n != "relays"]
SEQUENCES = {
    "full": {},
    "causal": {"causal": True},
    "layer norm": {"layer_norm": True},
    "two heads": {"heads": 2, "layer_norm": True, "causal": True},
    "post-act": {"place": "post_act"},
    "every operation a node": {"nodes": "all", "layer_norm": True},
}


def train(network, params, batches, rule, alpha=1.0, how="sgd", counter=None, **options):
    """Return parameters after some batches of a rule."""
    params = copy(params)
    if rule == "bp":
        opt = optimizer(params, alpha, how, in_place=False)
        runner = Backprop(network, params, opt, counter=counter)
    else:
        schedule = Schedule(rule=rule, **options)
        runner = Discrete(network, params, schedule, optimizer(params, alpha, how), counter=counter)
    for clamps in batches:
        runner.batch(clamps)
    return params, runner


def relative(network, rule="zil", levels=True, alpha=1.0, **options):
    """Return the largest deviation of a rule's weight change from BP's, relative to BP's."""
    relayed = levelled(network) if levels else network
    start = oracle.random_parameters(network, REPLICAS)
    batch = oracle.clamps_of(network, REPLICAS, SAMPLES)
    clamps = [batch[0], *[None] * (len(relayed.nodes) - 2), batch[-1]]
    expected, _ = train(network, start, [batch], "bp", alpha)
    moved = oracle.largest(expected.flat - start.flat)
    assert moved > 1e-2 * alpha
    same = type(start)(relayed, start.flat)
    ours, _ = train(relayed, same, [clamps], rule, alpha, **options)
    return oracle.largest(ours.flat - expected.flat) / moved


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", [n for n in CHAINS if "variances" not in n])
def test_zil_is_bp_on_images(name, fast):
    assert relative(oracle.NETWORKS[name](), fast=fast) <= 1e-10


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", SEQUENCES)
def test_zil_is_bp_on_levelled_sequences(name, fast):
    network = oracle.transformer(scores=oracle.GAUSSIAN, **SEQUENCES[name])
    assert not network.levelled
    assert levelled(network).levelled
    assert relative(network, fast=fast) <= 1e-10


@pytest.mark.parametrize("network", [oracle.cnn, oracle.alexnet])
def test_zil_with_adam_over_several_batches(network):
    network = network(output=oracle.CATEGORICAL)
    start = oracle.random_parameters(network, REPLICAS)
    batches = [oracle.clamps_of(network, REPLICAS, SAMPLES, seed) for seed in range(4)]
    ours, _ = train(network, start, batches, "zil", 1e-2, "adam")
    theirs, _ = train(network, start, batches, "bp", 1e-2, "adam")
    assert oracle.largest(ours.flat - start.flat) > 1e-2
    assert oracle.largest(ours.flat - theirs.flat) <= 1e-9


def test_controls_for_zil():
    """Short cuts without relays, logits as hidden nodes, a smaller step: none of them is BP."""
    network = oracle.transformer(scores=oracle.GAUSSIAN)
    small = {"alpha": 1e-5}  # they may blow up, but shall do so by the rule alone
    assert relative(network, **small) <= 1e-8
    assert relative(network, levels=False, **small) > 1e-2
    assert relative(oracle.transformer(), **small) > 1e-2
    assert relative(network, gamma=0.9, **small) > 1e-2
    assert relative(oracle.cnn(), rule="pc", T=3, gamma=0.5, **small) > 1e-2


def test_relays_keep_function_and_weights():
    network = oracle.transformer(layer_norm=True, heads=2)
    relayed = levelled(network)
    assert len(relayed.nodes) > len(network.nodes)
    assert levelled(relayed) is relayed
    params = oracle.random_parameters(network, REPLICAS)
    tokens = oracle.clamps_of(network, REPLICAS, SAMPLES)[-1]
    views = type(params)(relayed, params.flat).of
    first, second = (
        feedforward(n, of, [tokens])[0] for n, of in ((network, params.of), (relayed, views))
    )
    assert oracle.largest(first - second) <= 1e-14


@pytest.mark.parametrize("name", oracle.NETWORKS)
def test_feedforward_state_has_no_error(name):
    """Kernels and the differentiable pass agree, and the free state is the minimum."""
    network = oracle.NETWORKS[name]()
    params = oracle.random_parameters(network, REPLICAS)
    states = oracle.random_states(network, "free", REPLICAS, SAMPLES)
    field = Field(network, params, "free")
    field.load(states)
    field.feedforward()
    values = feedforward(network, params.of, [states[-1]])
    for index in field.predicted:
        assert oracle.largest(field.x[index] - values[index]) <= 1e-12
    field.predict(field.predicted)
    field.errors(field.predicted)
    assert max(oracle.largest(d) for _, d in field.drift(field.free, field.predicted)) <= 1e-12


@pytest.mark.parametrize("name", oracle.NETWORKS)
def test_ipc_descends(name):
    """Small joint steps lower F at each of them; uphill they do not."""
    network = oracle.NETWORKS[name]()
    curves = {}
    for sign in (1.0, -1.0):
        params = oracle.random_parameters(network, REPLICAS)
        schedule = Schedule(rule="ipc", gamma=0.02, T=30, fast=False)
        runner = Discrete(network, params, schedule, optimizer(params, sign * 2e-4))
        runner.gamma = sign * 0.02
        runner.start(oracle.clamps_of(network, REPLICAS, SAMPLES))
        energies = []
        for step in runner.steps:
            runner.step(step)
            energies.append(runner.energy())
        curves[sign] = torch.stack(energies)
    steps = curves[1.0].diff(dim=0)
    assert (steps < 0).all()
    assert ((curves[1.0][0] - curves[1.0][-1]) > 1e-2 * curves[1.0][0].abs().clamp_max(10)).all()
    assert (curves[-1.0][1] > curves[-1.0][0]).all()


@pytest.mark.parametrize("how", ["sgd", "adam"])
@pytest.mark.parametrize("rule", ["pc", "zil", "ipc"])
@pytest.mark.parametrize(
    "name",
    ["max pool", "post-pool", "learned variances", "two heads, causal", "every operation a node"],
)
def test_shortcuts_change_nothing(name, rule, how):
    network = oracle.NETWORKS[name]()
    start = oracle.random_parameters(network, REPLICAS)
    batches = [oracle.clamps_of(network, REPLICAS, SAMPLES, seed, shared=True) for seed in (0, 1)]
    results = []
    for fast in (True, False):
        ours, runner = train(network, start, batches, rule, 1e-3, how, gamma=0.1, T=4, fast=fast)
        results.append((ours.flat, runner.energy()))
    for fast, literal in zip(*results, strict=True):
        assert oracle.largest(fast - literal) <= 1e-11 * (1 + oracle.largest(literal))
    assert oracle.largest(results[0][0] - start.flat) > 1e-4


@pytest.mark.parametrize("init", ["carry", "zero", "normal"])
@pytest.mark.parametrize("name", ["average pool, gelu", "causal attention"])
def test_other_starts_than_feedforward(name, init):
    network = oracle.NETWORKS[name]()
    start = oracle.random_parameters(network, REPLICAS)
    batches = [oracle.clamps_of(network, REPLICAS, SAMPLES)] * 12
    _, first = train(network, start, batches[:1], "ipc", 1e-3, init=init, T=8, gamma=0.1)
    _, last = train(network, start, batches, "ipc", 1e-3, init=init, T=8, gamma=0.1)
    assert (last.energy() < first.energy()).all()


def test_products_are_counted():
    """A chain counts as the text says; pooling is no product, outer products are not counted."""
    network = oracle.cnn(stride=1, pool="max")
    start = oracle.random_parameters(network, 1)
    batch = [oracle.clamps_of(network, 1, SAMPLES)]
    for rule, mms, smms in (("ipc", 2 * 4 - 1, 2), ("bp", 2 * 4 - 1, 2 * 4 - 1)):
        counter = Counter()
        options = {} if rule == "bp" else {"T": 1, "fast": False}
        train(network, start, batch, rule, 1e-3, counter=counter, **options)
        assert (counter.mms, counter.smms) == (mms, smms)
        touched = counter.updates[-1][1]
        learning = {i for i, views in enumerate(start.of) if views}
        assert learning & set(touched) == (learning if rule == "bp" else {0})


def test_all_replicas_are_independent():
    """Training two replicas at once is training each alone."""
    for name in ("max pool", "two heads, causal"):
        network = oracle.NETWORKS[name]()
        start = oracle.random_parameters(network, 2)
        batch = oracle.clamps_of(network, 2, SAMPLES)
        both, _ = train(network, start, [batch], "ipc", 1e-2, T=4)
        for k in range(2):
            alone = type(start)(network, start.flat[k : k + 1].clone())
            own = [c if c is None else c[k : k + 1] for c in batch]
            single, _ = train(network, alone, [own], "ipc", 1e-2, T=4)
            assert oracle.largest(single.flat[0] - both.flat[k]) <= 1e-13


def test_levels_of_the_published_transformer():
    """Six value-node groups: two scores, two intermediates, head and output."""
    network = Network.transformer()
    values = [i for i, n in enumerate(network.nodes) if n.map and not n.transparent]
    assert [network.levels[i] for i in values] == [0, 1, 2, 3, 4, 5]
    logits = [i for i in values if isinstance(network.nodes[i].energy, Categorical)]
    assert len(values) == 6
    assert len(logits) == 3
    assert network.depth == 6
