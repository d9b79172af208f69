"""Events by compiled steps: the very same ones as in torch, however work is divided."""

import pytest
import torch
from case import DT

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Spiking
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.native.engine import Native
from pcsim.network import Network
from pcsim.substrate import Seeded

NETWORK = Network.mlp([5, 7, 4, 3], "tanh")
CIRCUIT = Spiking(tau_w=5.0, tau_err=0.3, tau_s=0.5, q=0.1, qe=0.05, sigma_x=0.05)
IDS = [5, 2, 9]


def population(ids=IDS, engine=Native, dtype=torch.float64, circuit=CIRCUIT, **options):
    """Chips with noisy somas; the noise of torch is that of the compiled steps."""
    source = Seeded(4, ids)
    params = initial_parameters(NETWORK, ids, dtype)
    if engine is Continuous:
        options["draw"] = lambda state, like: source.draw(
            f"soma.{state}", "normal", like, made.steps
        )
    else:
        options["noise"] = source
    solver = "maruyama" if circuit.sigma_x else "euler"
    made = engine(NETWORK, params, circuit, dt=DT, solver_name=solver, seeds=ids, **options)
    return made


def show(chips, ids, number, samples=1, label=True):
    """Clamp one sample, with data of its own for every chip."""
    rows = []
    for units in (NETWORK.nodes[0].units, NETWORK.nodes[-1].units):
        draws = [
            torch.randn(samples, units, generator=torch.Generator().manual_seed(97 * k + number))
            for k in ids
        ]
        rows.append(torch.stack(draws).to(chips.params.flat.dtype))
    chips.load([rows[0] if label else None, None, None, rows[1]])


def script(chips, ids, samples=1, steps=(150, 100, 150, 200)):
    """Two samples, the label let go in between, and a forward pass."""
    for number, count in enumerate(steps):
        show(chips, ids, number, samples, label=number != 1)
        if number == 3:
            chips.feedforward()
        chips.advance(count)


def shown(chips):
    flow = chips.flow
    found = flow.states() | {"w": chips.params.flat, "energy": flow.energy_by_node()}
    return [{n: v.clone() for n, v in part.items()} for part in (found, flow.events())]


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("leak", [{}, {"tau_s": 0.0, "tau_w": 1000.0}], ids=["leaky", "pure"])
def test_events_are_those_of_torch(samples, leak):
    """600 noisy steps: counts to the last event, states and energies within 1e-12.

    Without a leak fast learning runs away, and amplifies round-off: weights are slow there.
    """
    circuit, found = CIRCUIT.model_copy(update={"weight_decay": 0.1} | leak), []
    for engine in (Native, Continuous):
        chips = population(engine=engine, circuit=circuit)
        script(chips, IDS, samples)
        found.append(shown(chips))
    (states, counts), (expected, events) = found
    assert states.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(states[name], value, rtol=1e-12, atol=1e-12, msg=name)
    for name, value in events.items():
        assert torch.equal(counts[name], value), name
        assert float(value.double().mean()) > 3, f"control: {name} sends"
    assert not torch.equal(counts["soma1"][0], counts["soma1"][1]), "control: chips differ"


def test_single_precision():
    """A signal may reach half a step one time step earlier or later: a count in a thousand."""
    found = []
    for engine in (Native, Continuous):
        chips = population(engine=engine, dtype=torch.float32)
        script(chips, IDS)
        found.append(shown(chips))
    (states, counts), (expected, events) = found
    total = sum(int(value.sum()) for value in events.values())
    apart = sum(int((counts[name] - value).abs().sum()) for name, value in events.items())
    assert total > 5000
    assert apart <= total / 1000
    for name in ("w", "mu0", "x1"):
        torch.testing.assert_close(states[name], expected[name], rtol=0, atol=2e-2, msg=name)


@pytest.mark.parametrize("samples", [1, 3])
def test_a_chip_alone_is_the_chip_among_others_and_threads_change_nothing(samples):
    """Bit for bit."""
    together = population(threads=2)
    script(together, IDS, samples, (40, 20))
    states, counts = shown(together)
    for row, k in enumerate(IDS):
        alone = population([k])
        script(alone, [k], samples, (40, 20))
        own, sent = shown(alone)
        assert all(torch.equal(value[0], states[name][row]) for name, value in own.items()), k
        assert all(torch.equal(value[0], counts[name][row]) for name, value in sent.items()), k


@pytest.mark.parametrize("samples", [1, 3])
def test_interrupted_is_uninterrupted(samples):
    whole = population()
    show(whole, IDS, 0, samples)
    whole.advance(50)
    first = population()
    show(first, IDS, 0, samples)
    first.advance(13)
    kept = {name: value.clone() for name, value in first.state().items()}
    second = population()
    second.restore(kept)
    for steps in (1, 36):
        second.advance(steps)
    for expected, found in zip(shown(whole), shown(second), strict=True):
        assert all(torch.equal(value, found[name]) for name, value in expected.items())


def test_a_chip_that_stopped_sends_nothing():
    free, held = population(), population()
    for chips in (free, held):
        show(chips, IDS, 0)
        chips.advance(10)
    before = shown(held)
    held.stop(torch.tensor([False, True, False]))
    for chips in (free, held):
        chips.advance(20)
    for old, after, expected in zip(before, shown(held), shown(free), strict=True):
        for name in set(old) - {"energy"}:
            assert torch.equal(after[name][1], old[name][1]), name
            assert torch.equal(after[name][[0, 2]], expected[name][[0, 2]]), name


def test_half_a_step_is_sent_and_less_is_not():
    """k = floor(1) at exactly half a step: the border belongs to the event."""
    network = Network.mlp([2, 1], "identity", f_input=True)
    circuit = Spiking(tau_w=1e9, tau_err=0.3, tau_s=0.0, q=0.5, qe=0.5)
    params = initial_parameters(network, [0], torch.float64)
    for engine in (Native, Continuous):
        chips = engine(network, params, circuit, dt=DT)
        source = torch.tensor([[[0.25, 0.25 - 1e-15]]], dtype=torch.float64)
        chips.load([torch.zeros(1, 1, 1, dtype=torch.float64), source])
        chips.advance(1)
        assert chips.flow.events()["soma1"].tolist() == [[1, 0]]
        assert chips.flow.hat["soma1"].tolist() == [[[0.5, 0.0]]]


def test_a_label_is_refused_where_the_output_is_free():
    chips = population(mode="free")
    with pytest.raises(UnsupportedError, match=r"clamps\[0\]: layer 0 is free in mode free"):
        show(chips, IDS, 0)
