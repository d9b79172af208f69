"""Discrete rules in compiled batches: torch's steps, number by number, with noise and memory."""

import pytest
import torch

from hw_models import describe
from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.native.discrete import NativeBackprop, NativeDiscrete
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

LIMIT = 1e-12
NETWORK = Network.mlp([6, 5, 4, 3], "tanh")
PIECES = {
    "noise": {"kind": "read_noise", "where": "product", "sigma": 0.02},
    "drifting": {
        "kind": "formula",
        "site": "error",
        "becomes": "s + 0.1*m",
        "noise": {"xi": "normal"},
        "memory": {"m": {"start": "0.3*start_xi", "update": "m + dt*(xi - m)"}},
    },
    "leaking": {
        "kind": "formula",
        "site": "feedback",
        "becomes": "s + m",
        "memory": {"m": {"start": "0", "update": "m*exp(-dt) + 0.1*s"}},
    },
}
IDS = (3, 8, 5)


def population(
    compiled,
    rule="pc",
    hardware="ideal",
    pieces=None,
    *,
    network=NETWORK,
    ids=IDS,
    samples=1,
    init="ff",
    alpha=0.05,
    decay=0.0,
    rounds=5,
    mode="supervised",
    dtype=torch.float64,
    **options,
):
    """Return chips under a rule, with steps in torch or compiled."""
    params = initial_parameters(network, list(ids), dtype)
    chips = None
    if hardware != "ideal" or pieces or rule == "bp":
        substrate = describe(hardware, pieces or {}).substrate()
        chips = Chips(substrate, ids, seed=2, dt=0.1, noise=Seeded(4, ids), dtype=dtype)
    optimizer = Optimizer(OptimizerSpec(), params, alpha, decay, 1 / samples, in_place=rule != "bp")
    if rule == "bp":
        kind = NativeBackprop if compiled else ArrayBackprop
        return kind(network, params, optimizer, chips, steps=rounds, **options)
    schedule = Schedule(rule=rule, T=rounds, gamma=0.3, init=init)
    kind = NativeDiscrete if compiled else Discrete
    return kind(network, params, schedule, optimizer, seeds=ids, chips=chips, mode=mode, **options)


def data(network=NETWORK, *, samples=1, ids=IDS, batch=0, mode="supervised"):
    """Return what is clamped; a chip sees the same among any others."""
    rows = []
    for chip in ids:
        generator = torch.Generator().manual_seed(1000 * batch + chip)
        rows.append([torch.rand(samples, n.units, generator=generator) for n in network.nodes])
    clamps = [torch.stack(values).double() for values in zip(*rows, strict=True)]
    clamps[0] = clamps[0] / clamps[0].sum(-1, keepdim=True)
    held = (0,) if mode == "generative" else (0, len(network.nodes) - 1)
    return [clamp if k in held else None for k, clamp in enumerate(clamps)]


def memory(rule):
    return rule.chips.state() if rule.chips else {}


def compared(batches, **setting):
    """Run a setting both ways; return the largest difference of weights, energies and memory."""
    network, samples = setting.get("network", NETWORK), setting.get("samples", 1)
    pair = [population(compiled, **setting) for compiled in (False, True)]
    apart, began = 0.0, pair[0].params.flat.clone()
    for batch in range(batches):
        shown = data(network, samples=samples, batch=batch, mode=setting.get("mode", "supervised"))
        for rule in pair:
            rule.batch([c if c is None else c.clone() for c in shown])
        torch_, ours = pair
        apart = max(apart, float((torch_.params.flat - ours.params.flat).abs().max()))
        apart = max(apart, float((torch_.energy() - ours.energy()).abs().max()) / 10)
    kept = [memory(rule) for rule in pair]
    assert kept[0].keys() == kept[1].keys()
    for name, value in kept[0].items():
        apart = max(apart, float((value - kept[1][name]).abs().double().max()) / 100)
    assert (pair[0].params.flat - began).abs().max() > 1e-3, "control: weights have moved"
    return apart


@pytest.mark.parametrize("rule", ["ipc", "pc", "zil"])
@pytest.mark.parametrize("samples", [1, 40])
def test_ideal_layers(rule, samples):
    """40 samples and an input that is wide enough to be followed."""
    network = Network.mlp([70, 17, 9, 5], "tanh")
    assert compared(65, rule=rule, network=network, samples=samples, rounds=8) <= LIMIT


PRESETS = (
    ("ipc", "ecram_li"),
    ("zil", "ecram_li"),
    ("pc", "reram_sb_chip"),
    ("bp", "reram_sb_chip"),
)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "preset"), PRESETS)
def test_presets_for_five_hundred_steps(rule, preset):
    assert compared(100, rule=rule, hardware=preset) <= LIMIT


@pytest.mark.parametrize("rule", ["pc", "bp"])
def test_noise_and_memory_at_several_places_with_samples_side_by_side(rule):
    assert compared(100, rule=rule, hardware="ecram_li", pieces=PIECES, samples=3) <= LIMIT


SETTINGS = {
    "carried over": {"init": "carry", "hardware": "ecram_li", "pieces": PIECES},
    "drawn": {"init": "normal"},
    "decay": {"decay": 0.2, "samples": 3, "rule": "ipc"},
    "post": {"network": Network.mlp([6, 5, 3], "sigmoid", convention="post"), "samples": 2},
    "relu without biases": {"network": Network.mlp([6, 5, 3], "relu", bias=False), "rule": "ipc"},
    "categorical": {"network": Network.mlp([6, 5, 3], "tanh", output=Categorical()), "rule": "ipc"},
    "categorical bp": {
        "network": Network.mlp([6, 5, 3], "tanh", output=Categorical()),
        "rule": "bp",
        "samples": 2,
    },
    "categorical hidden": {
        "network": Network.mlp([6, 5, 4, 3], hidden=Categorical(), output=Categorical()),
        "samples": 2,
        "rule": "ipc",
    },
    "categorical hidden on chip": {
        "network": Network.mlp([6, 5, 3], hidden=Categorical()),
        "samples": 2,
        "hardware": "ecram_li",
        "pieces": PIECES,
    },
    "categorical hidden bp": {
        "network": Network.mlp([6, 5, 4, 3], hidden=Categorical()),
        "samples": 2,
        "rule": "bp",
        "hardware": "ecram_li",
        "pieces": PIECES,
    },
    "learned variance": {
        "network": Network.mlp([6, 5, 3], "tanh", hidden=Gaussian(1.2, learned=True)),
        "samples": 2,
        "rule": "ipc",
        "rounds": 9,
        "alpha": 0.01,
    },
    "generative": {
        "network": Network.mlp([4, 5, 6], "tanh", prior=0.1),
        "mode": "generative",
        "init": "zero",
        "alpha": 0.2,
    },
    "a rate per chip": {"alpha": torch.tensor([0.05, 0.02, 0.0], dtype=torch.float64)},
    "a rate per chip, many samples": {
        "alpha": torch.tensor([0.05, 0.02, 0.0], dtype=torch.float64),
        "gamma": torch.tensor([0.3, 0.2, 0.1], dtype=torch.float64),
        "samples": 40,
        "rule": "ipc",
        "network": Network.mlp([70, 17, 5], "tanh"),
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(name):
    assert compared(40, **SETTINGS[name]) <= LIMIT


def test_another_rate_is_another_trajectory():
    """Control: what is compared depends on what is set."""
    one, other = (population(True, alpha=alpha) for alpha in (0.05, 0.05 * (1 + 1e-9)))
    for rule in (one, other):
        for batch in range(20):
            rule.batch(data(batch=batch))
    assert float((one.params.flat - other.params.flat).abs().max()) > LIMIT


@pytest.mark.parametrize("rule", ["pc", "bp"])
def test_a_chip_alone_and_by_two_threads_is_the_same_chip(rule):
    fields = {"rule": rule, "hardware": "ecram_li", "pieces": PIECES, "samples": 3}
    among = population(True, threads=1, **fields)
    threaded = population(True, threads=2, **fields)
    alone = population(True, threads=1, ids=(8,), **fields)
    for batch in range(30):
        among.batch(data(samples=3, batch=batch))
        threaded.batch(data(samples=3, batch=batch))
        alone.batch(data(samples=3, batch=batch, ids=(8,)))
    assert torch.equal(among.params.flat, threaded.params.flat)
    assert torch.equal(among.params.flat[1:2], alone.params.flat)


@pytest.mark.parametrize("rule", ["pc", "bp"])
def test_resumed_is_not_interrupted(rule):
    fields = {"rule": rule, "hardware": "ecram_li", "pieces": PIECES}
    whole = population(True, **fields)
    for batch in range(20):
        if batch == 9:
            kept = {name: value.clone() for name, value in whole.chips.state().items()}
            weights = whole.params.flat.clone()
        whole.batch(data(batch=batch))
    later = population(True, **fields)
    later.params.flat.copy_(weights)
    later.chips.restore(kept)
    for batch in range(9, 20):
        later.batch(data(batch=batch))
    assert torch.equal(whole.params.flat, later.params.flat)
    assert all(torch.equal(value, later.chips.state()[n]) for n, value in memory(whole).items())


def test_chips_that_have_stopped_stay_as_they_were():
    rule = population(True, hardware="ecram_li", init="carry")
    rule.batch(data())
    rule.stop(torch.tensor([False, True, False]))
    before = rule.params.flat.clone()
    rule.batch(data(batch=1))
    assert torch.equal(rule.params.flat[1], before[1])
    assert (rule.params.flat[0] != before[0]).any()


def test_steps_one_by_one_are_those_of_a_batch():
    """To round-off: a batch follows its input, steps multiply by the weights."""
    network = Network.mlp([70, 17, 5], "tanh")
    setting = {"network": network, "samples": 40, "rule": "ipc", "rounds": 8}
    at_once, stepped = (population(True, **setting) for _ in range(2))
    shown = data(network, samples=40)
    at_once.batch(shown)
    assert at_once._followed(8) == {1}
    stepped.start(shown)
    for _ in range(8):
        stepped.step()
    assert float((at_once.params.flat - stepped.params.flat).abs().max()) < 1e-13


def test_float32_agrees_within_its_digits():
    pair = [population(c, samples=3, dtype=torch.float32) for c in (False, True)]
    for batch in range(50):
        for rule in pair:
            shown = [c if c is None else c.float() for c in data(samples=3, batch=batch)]
            rule.batch(shown)
    assert float((pair[0].params.flat - pair[1].params.flat).abs().max()) < 1e-5


REFUSED = {
    "discount": ({"discount": 0.9}, "schedule.discount"),
    "after": ({"pc_update_at": "after"}, "pc_update_at 'after'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_schedules_that_are_refused(name):
    fields, words = REFUSED[name]
    params = initial_parameters(NETWORK, [0], torch.float64)
    schedule = Schedule(**{"rule": "pc", "T": 5, **fields})
    with pytest.raises(UnsupportedError, match=words):
        NativeDiscrete(NETWORK, params, schedule, Optimizer(OptimizerSpec(), params, 0.1))


@pytest.mark.parametrize("rule", ["adam", "momentum"])
def test_optimisers_that_are_refused(rule):
    params = initial_parameters(NETWORK, [0], torch.float64)
    optimizer = Optimizer(OptimizerSpec(rule), params, 0.1)
    with pytest.raises(UnsupportedError, match=f"learning.optimizer '{rule}'"):
        NativeDiscrete(NETWORK, params, Schedule(rule="pc"), optimizer)
