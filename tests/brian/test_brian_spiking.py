"""The spiking circuit in Brian2: event for event what torch does, whatever its names."""

import re

import numpy as np
import pytest
import torch
from brian2 import Clock, StateMonitor, second
from brian2 import Network as BrianNetwork
from brian2.codegen.runtime.numpy_rt import NumpyCodeObject

from pcsim.backends.brian import BrianBackend, Layer, build, layer_equations
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

DT, STEPS = 2.5e-4, 600
CIRCUIT = Circuit(kind="spiking", tau_x=0.01, tau_err=0.002, tau_w=0.5, tau_s=0.005)
DEEP = Network.mlp([4, 6, 5, 3], "tanh")


def spiking(**fields):
    return CIRCUIT.model_copy(update=fields)


WATCHED = ("x", "err", "mu", "fb", "r_hat", "err_hat")


class Chip:
    """One chip in Brian2 with monitors at the end of each step, when events have arrived."""

    def __init__(self, network, circuit=CIRCUIT, name="pc"):
        self.network = network
        self.params = initial_parameters(network, [0], torch.float64)
        code = {"codeobj_class": NumpyCodeObject}
        self.clock = Clock(dt=DT * second, name=f"{name}_clock")
        self.parts = build(network, circuit, self.params, name=name, clock=self.clock, **code)
        self.seen = []
        for k, layer in enumerate(self.parts.layers):
            names = [n for n in WATCHED if n in layer.variables]
            options = {"record": True, "when": "end", "clock": self.clock, **code}
            self.seen.append(StateMonitor(layer, names, name=f"{name}_seen{k}", **options))
        self.net = BrianNetwork(self.parts.objects, self.seen, name=f"{name}_net")

    def show(self, label, source, steps):
        self.parts.layers[0].x, self.parts.layers[-1].x = label.ravel(), source.ravel()
        self.net.run(steps * DT * second, namespace={})


def samples(network, count=2):
    rng = np.random.default_rng(3)
    sizes = network.nodes[0].units, network.nodes[-1].units
    return [[rng.normal(0, 0.8, (1, 1, n)) for n in sizes] for _ in range(count)]


def both(network, circuit=CIRCUIT, disturb=None, name="pc"):
    """Run two samples, carried over; return the chip, the population, and the differences."""
    chip = Chip(network, circuit, name)
    if disturb:
        disturb(chip.parts)
    made = Continuous(network, initial_parameters(network, [0], torch.float64), circuit, dt=DT)
    rows = []
    for label, source in samples(network):
        made.load([torch.tensor(label), *[None] * (made.flow.top - 1), torch.tensor(source)])
        for _ in range(STEPS // 2):
            made.advance(1)
            rows.append({n: s.numpy().copy().ravel() for n, s in made.flow.states().items()})
        chip.show(label, source, STEPS // 2)
    off = {}
    for k, monitor in enumerate(chip.seen):
        for variable in monitor.record_variables:
            expected = np.stack([row[f"{variable}{k}"] for row in rows])
            off[f"{variable}{k}"] = np.abs(np.array(getattr(monitor, variable)).T - expected).max()
    for k, link in enumerate(chip.parts.maps):
        views, layer = made.params.of[k], chip.parts.layers[k]
        off[f"w{k}"] = np.abs(link.w[:] - views["w"].numpy().ravel()).max()
        if "b" in views:
            off[f"b{k}"] = np.abs(layer.b[:] - views["b"].numpy().ravel()).max()
    return chip, made, off


@pytest.mark.parametrize(
    ("network", "circuit"),
    [
        (DEEP, spiking()),
        (DEEP, spiking(q=0.05, qe=0.02, tau_s=0.0)),
        (DEEP, spiking(q=0.7, qe=0.3, tau_s=0.02)),
        (Network.mlp([3, 4, 2], "sigmoid", bias=False, f_input=True), spiking(q=0.03)),
        (Network.mlp([3, 2], "tanh"), spiking()),
    ],
    ids=["leaky", "pure", "coarse", "no biases", "one map"],
)
def test_events_and_states_are_the_same(network, circuit):
    chip, made, off = both(network, circuit)
    counts, expected = chip.parts.events(), made.flow.events()
    assert list(counts) == list(expected)
    for name, events in counts.items():
        assert np.array_equal(events, expected[name][0].numpy()), name
        assert events.sum() > 0
    assert max(off.values()) <= 1e-12, off
    moved = chip.params.flat - made.params.flat
    assert float(moved.abs().max()) > 0.02, "control: weights have moved"


def test_beliefs_in_brian_are_off_by_half_a_step_at_most():
    circuit = spiking(q=0.2, qe=0.07)
    chip, _, _ = both(DEEP, circuit)
    r_off = np.abs(np.tanh(chip.seen[1].x) - chip.seen[1].r_hat)
    err_off = np.abs(chip.seen[1].err - chip.seen[1].err_hat)
    assert 0.45 * circuit.q < r_off.max() <= 0.5 * circuit.q + 1e-12
    assert 0.45 * circuit.qe < err_off.max() <= 0.5 * circuit.qe + 1e-12


def test_names_do_not_matter_but_order_does():
    """Whatever the objects are called; yet weights that move after the neurons are seen at once."""
    network = Network.mlp([3, 4, 2], "tanh")
    for name in ("aa", "zz"):
        assert max(both(network, spiking(), name=name)[2].values()) <= 1e-12

    def late(parts):
        for link in parts.maps:
            link.state_updater.order = 1

    off = both(network, spiking(), disturb=late)[2]
    assert off["w0"] > 1e-6


def test_schedule():
    """Weights, neurons, both kinds of thresholds, arrivals, resets: in this order."""
    chip = Chip(DEEP, spiking())
    chip.show(*samples(DEEP, 1)[0], 1)
    text = str(chip.net.scheduling_summary())
    places = [
        re.search(rf"^{name} ", text, re.MULTILINE).start()
        for name in (
            "pc_map1_stateupdater",
            "pc_layer1_stateupdater",
            "pc_layer1_spike_thresholder",
            "pc_layer1_apical_thresholder",
            "pc_map1_spike",
            "pc_map1_apical",
            "pc_layer1_spike_resetter",
        )
    ]
    assert places == sorted(places)
    assert text.count("resetter (Resetter)") == 5
    assert set(chip.parts.counters) == {"soma1", "soma2", "soma3", "apical0", "apical1"}
    assert "pc_layer2_apical" not in text, "an error that nobody needs is not sent"


def test_the_label_can_be_let_go():
    chip = Chip(Network.mlp([3, 4, 2], "tanh"), spiking(q=0.01, qe=0.01))
    (label, source), _ = samples(chip.network)
    chip.show(label, source, 100)
    output = chip.parts.layers[0]
    assert np.array_equal(output.x[:], label.ravel())
    output.free = 1
    chip.net.run(1000 * DT * second, namespace={})
    assert np.abs(output.x[:] - output.mu[:] - output.b[:]).max() < 0.02
    assert np.abs(output.x[:] - label.ravel()).max() > 0.1


def test_equations_read_like_the_model():
    text = layer_equations(CIRCUIT, Layer(sends_feedback=True))
    for line in (
        "dx/dt = (slope*fb - err)/tau_x : 1",
        "derr/dt = (x - mu - b - err)/tau_err : 1",
        "dmu/dt = -mu/tau_s : 1",
        "dr_hat/dt = -r_hat/tau_s : 1",
        "k_soma = floor((r - r_hat)/q + 0.5) : 1",
        "k_apical = floor((err - err_hat)/qe + 0.5) : 1",
    ):
        assert line in text
    assert "tau_s" not in layer_equations(spiking(tau_s=0.0), Layer(sends_feedback=True))
    assert "err_hat" not in layer_equations(CIRCUIT, Layer())


def test_refusals():
    network = Network.mlp([2, 3, 1], "gelu")
    params = initial_parameters(network, [0], torch.float64)
    with pytest.raises(UnsupportedError, match=r"network\.f 'gelu'"):
        build(network, CIRCUIT, params)
    params = initial_parameters(DEEP, [0], torch.float64)
    with pytest.raises(UnsupportedError, match="events are no products of whole layers"):
        BrianBackend(DEEP, params, CIRCUIT, dt=DT, dense=True)
    with pytest.raises(UnsupportedError, match=r"'spiking' with brian\.target 'standalone'"):
        BrianBackend(DEEP, params, CIRCUIT, dt=DT, target="standalone")
    with pytest.raises(UnsupportedError, match="mode 'generative'"):
        BrianBackend(DEEP, params, CIRCUIT, dt=DT, mode="generative")
