"""The spiking circuit in Brian2: event for event what `SpikingChips` does, whatever its names."""

import re

import numpy as np
import pytest
import torch
from brian2 import Clock, StateMonitor, second
from brian2 import Network as BrianNetwork
from brian2.codegen.runtime.numpy_rt import NumpyCodeObject

from pcsim.backends.brian import build_spiking
from pcsim.backends.brian.spiking_equations import SpikingLayer, spiking_layer_equations
from pcsim.circuit import Circuit
from pcsim.continuous.spiking import SpikingChips
from pcsim.errors import UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.spiking import Spiking

DT, STEPS = 2.5e-4, 600
CIRCUIT = Circuit(kind="error_units", tau_x=0.01, tau_err=0.002, tau_w=0.5)
DEEP = Network.mlp([4, 6, 5, 3], "tanh")
WATCHED = ("x", "err", "mu", "fb", "r_hat", "err_hat")


class Chip:
    """One chip in Brian2 with monitors at the end of each step, when events have arrived."""

    def __init__(self, network, spiking, circuit=CIRCUIT, name="pc"):
        self.network = network
        self.params = initial_parameters(network, [0], torch.float64)
        code = {"codeobj_class": NumpyCodeObject}
        self.clock = Clock(dt=DT * second, name=f"{name}_clock")
        self.parts = build_spiking(
            network, circuit, spiking, self.params, name=name, clock=self.clock, **code
        )
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


def both(network, spiking, circuit=CIRCUIT, disturb=None, name="pc"):
    """Run two samples, carried over; return the chip, the population, and the differences."""
    chip = Chip(network, spiking, circuit, name)
    if disturb:
        disturb(chip.parts)
    made = SpikingChips(
        network, initial_parameters(network, [0], torch.float64), circuit, [spiking], dt=DT
    )
    rows = []
    for label, source in samples(network):
        made.load([torch.tensor(label), *[None] * (made.top - 1), torch.tensor(source)])
        for _ in range(STEPS // 2):
            made.advance(1)
            rows.append({n: state.numpy().copy().ravel() for n, state in named(made)})
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


def named(made):
    """Yield the states of the population by the names they have in Brian2."""
    for k, x in enumerate(made.x):
        yield f"x{k}", x
    for k, (err, mu) in enumerate(zip(made.err, made.mu, strict=True)):
        yield from ((f"err{k}", err), (f"mu{k}", mu))
    yield from ((f"fb{k}", fb) for k, fb in made.fb.items())
    for name, hat in made.hat.items():
        yield name.replace("soma", "r_hat").replace("apical", "err_hat"), hat


@pytest.mark.parametrize(
    ("network", "spiking"),
    [
        (DEEP, Spiking()),
        (DEEP, Spiking(q=0.05, qe=0.02, tau_s=None)),
        (DEEP, Spiking(q=0.7, qe=0.3, tau_s=0.02)),
        (Network.mlp([3, 4, 2], "sigmoid", bias=False, f_input=True), Spiking(q=0.03)),
        (Network.mlp([3, 2], "tanh"), Spiking()),
    ],
    ids=["leaky", "pure", "coarse", "no biases", "one map"],
)
def test_events_and_states_are_the_same(network, spiking):
    chip, made, off = both(network, spiking)
    counts, expected = chip.parts.events(), made.events()
    assert counts.keys() == expected.keys()
    for name, events in counts.items():
        assert np.array_equal(events, expected[name][0]), name
        assert events.sum() > 0
    assert max(off.values()) <= 1e-12, off
    moved = chip.params.flat - made.params.flat
    assert float(moved.abs().max()) > 0.02, "control: weights have moved"


def test_beliefs_in_brian_are_off_by_half_a_step_at_most():
    spiking = Spiking(q=0.2, qe=0.07)
    chip, _, _ = both(DEEP, spiking)
    r_off = np.abs(np.tanh(chip.seen[1].x) - chip.seen[1].r_hat)
    err_off = np.abs(chip.seen[1].err - chip.seen[1].err_hat)
    assert 0.45 * spiking.q < r_off.max() <= 0.5 * spiking.q + 1e-12
    assert 0.45 * spiking.qe < err_off.max() <= 0.5 * spiking.qe + 1e-12


def test_names_do_not_matter_but_order_does():
    """Whatever the objects are called; yet weights that move after the neurons are seen at once."""
    network = Network.mlp([3, 4, 2], "tanh")
    for name in ("aa", "zz"):
        assert max(both(network, Spiking(), name=name)[2].values()) <= 1e-12

    def late(parts):
        for link in parts.maps:
            link.state_updater.order = 1

    off = both(network, Spiking(), disturb=late)[2]
    assert off["w0"] > 1e-6


def test_schedule():
    """Weights, neurons, both kinds of thresholds, arrivals, resets: in this order."""
    chip = Chip(DEEP, Spiking())
    chip.show(*samples(DEEP, 1)[0], 1)
    text = str(chip.net.scheduling_summary())
    places = [
        re.search(rf"^{name} ", text, re.MULTILINE).start()
        for name in (
            "pc_map1_stateupdater",
            "pc_layer1_stateupdater",
            "pc_layer1_spike_thresholder",
            "pc_layer1_apical_thresholder",
            "pc_map1_rate",
            "pc_map1_error",
            "pc_layer1_spike_resetter",
        )
    ]
    assert places == sorted(places)
    assert text.count("resetter (Resetter)") == 5
    assert "pc_soma1_events" in text
    assert "pc_apical0_events" in text
    assert "pc_apical2_events" not in text, "an error that nobody needs is not sent"


def test_the_label_can_be_let_go():
    chip = Chip(Network.mlp([3, 4, 2], "tanh"), Spiking(q=0.01, qe=0.01))
    (label, source), _ = samples(chip.network)
    chip.show(label, source, 100)
    output = chip.parts.layers[0]
    assert np.array_equal(output.x[:], label.ravel())
    output.free = 1
    chip.net.run(1000 * DT * second, namespace={})
    assert np.abs(output.x[:] - output.mu[:] - output.b[:]).max() < 0.02
    assert np.abs(output.x[:] - label.ravel()).max() > 0.1


def test_equations_read_like_the_model():
    text = spiking_layer_equations(SpikingLayer(), Spiking())
    for line in (
        "dx/dt = (slope*fb - err)/tau_x : 1",
        "derr/dt = (x - mu - b - err)/tau_err : 1",
        "dmu/dt = -mu/tau_s : 1",
        "dr_hat/dt = -r_hat/tau_s : 1",
        "k_soma = floor((r - r_hat)/q + 0.5) : 1",
        "k_apical = floor((err - err_hat)/qe + 0.5) : 1",
    ):
        assert line in text
    pure = spiking_layer_equations(SpikingLayer(), Spiking(tau_s=None))
    assert "tau_s" not in pure


def test_refusals():
    network = Network.mlp([2, 3, 1], "gelu")
    params = initial_parameters(network, [0], torch.float64)
    with pytest.raises(UnsupportedError, match=r"network\.f 'gelu'"):
        build_spiking(network, CIRCUIT, Spiking(), params)
    with pytest.raises(UnsupportedError, match=r"circuit\.kind 'dendritic'"):
        build_spiking(network, Circuit(kind="dendritic", tau_w=1.0), Spiking(), params)
    two = initial_parameters(DEEP, [0, 1], torch.float64)
    with pytest.raises(UnsupportedError, match="2 chips"):
        build_spiking(DEEP, CIRCUIT, Spiking(), two)
