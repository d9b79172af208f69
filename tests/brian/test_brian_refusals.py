"""What the Brian2 backend cannot do it refuses, with the name of the field and the reason."""

from types import SimpleNamespace

import pytest
import torch
import trajectories as tr
from brian2 import StateMonitor

from pcsim.backends.brian import BrianBackend, Plan, build
from pcsim.circuit import Circuit
from pcsim.circuits.support import refuse
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.maps import Dense
from pcsim.network import Network, Node

NETWORK = Network.mlp([3, 4, 2], "tanh")


def backend(network=NETWORK, mode="supervised", chips=1, circuit=None, **options):
    params = tr.parameters(network, chips)
    return BrianBackend(
        network, params, circuit or Circuit(tau_w=1.0), dt=tr.DT, mode=mode, **options
    )


@pytest.mark.parametrize(
    ("network", "name", "reason"),
    [
        (
            Network.mlp([3, 4, 2], hidden=Categorical()),
            "network node 1: energy categorical",
            "a softmax is not made of",
        ),
        (Network.mlp([3, 4, 2], "gelu"), "network.f 'gelu'", "no elementwise"),
    ],
    ids=["error units of a categorical layer", "gelu"],
)
def test_networks(network, name, reason):
    with pytest.raises(UnsupportedError, match=reason) as error:
        Plan.of(network, Circuit(kind="error_units", tau_err=0.1, tau_w=1.0))
    assert str(error.value).startswith(f"backend brian: {name}")


def test_only_chains():
    """Maps of several parents do not exist yet; this is for the day when they do."""
    nodes = (Node((2,), Dense(3, 2), (2,)), Node((3,), Dense(3, 3), (2,)), Node((3,)))
    with pytest.raises(UnsupportedError, match=r"network node 0: parents: only a chain"):
        refuse(SimpleNamespace(nodes=nodes), Circuit(tau_w=1.0), "supervised")
    nodes = (Node((2,), Dense(3, 2), (1,)), Node((3,)), Node((3,)))
    with pytest.raises(UnsupportedError, match=r"network node 1: parents: only a chain"):
        refuse(SimpleNamespace(nodes=nodes), Circuit(tau_w=1.0), "supervised")


def test_dendritic_layers():
    circuit = Circuit(kind="dendritic", tau_w=1.0)
    with pytest.raises(UnsupportedError, match=r"mode 'associative'.*clamped in part"):
        Plan.of(NETWORK, circuit, "associative")
    network = Network.mlp([3, 4, 2], hidden=Gaussian(2.0))
    with pytest.raises(UnsupportedError, match=r"node 1: energy.variance.*unit variance"):
        Plan.of(network, circuit)
    chip = backend(circuit=circuit)
    data = tr.clamps(NETWORK, "supervised", 1)
    data[1] = torch.zeros(1, 1, 4, dtype=torch.float64)
    with pytest.raises(UnsupportedError, match=r"clamps\[1\].*free in mode 'supervised'"):
        chip.load(data)


@pytest.mark.parametrize("name", ["delay_err", "delay_fb"])
def test_a_delay_is_a_whole_number_of_steps(name):
    with pytest.raises(ConfigError, match=rf"circuit.{name}.*whole number.*nearest is 0.2 s"):
        backend(circuit=Circuit(tau_w=1.0, **{name: 0.25}))


def test_names_of_others():
    """Two objects of one name: told with both, before Brian2 stops somewhere inside."""
    chip = backend()
    chip.load(tr.clamps(NETWORK, "supervised", 1))
    mine = StateMonitor(chip.parts.layers[1], "x", record=True, name="pcsim_layer1")
    chip.net.add(mine)
    sentence = r"name 'pcsim_layer1': your StateMonitor and pcsim's NeuronGroup .*another `name`"
    with pytest.raises(ConfigError, match=sentence):
        chip.advance(1)
    chip.net.remove(mine)
    chip.advance(1)

    parts = build(NETWORK, Circuit(tau_w=1.0), tr.parameters(NETWORK, 1))
    twin = build(NETWORK, Circuit(tau_w=1.0), tr.parameters(NETWORK, 1))
    with pytest.raises(ConfigError, match=r"name 'pc_.*your NeuronGroup|name 'pc_.*StateUpdater"):
        parts.network(*twin.objects)
    other = build(NETWORK, Circuit(tau_w=1.0), tr.parameters(NETWORK, 1), name="other")
    assert len(parts.network(*other.objects).objects) >= 10


def test_batches():
    data = [None if x is None else x.expand(1, 3, -1) for x in tr.clamps(NETWORK, "free", 1)]
    with pytest.raises(
        UnsupportedError, match=r"learning.batch 3.*sees one sample at a time; build"
    ):
        backend(mode="free").load(data)
    with pytest.raises(UnsupportedError, match=r"learning.batch 3.*one sample at a time"):
        backend(samples=3)


def test_inputs_cannot_be_let_go():
    data = tr.clamps(NETWORK, "supervised", 1)
    with pytest.raises(UnsupportedError, match=r"clamps\[2\].*mode='generative'"):
        backend().load([*data[:-1], None])


def test_other_targets():
    with pytest.raises(
        UnsupportedError, match=r"target 'cuda'.*'numpy', 'cython' and 'standalone'"
    ):
        backend(target="cuda")


def test_what_makes_no_sense():
    chip, data = backend(), tr.clamps(NETWORK, "supervised", 1)
    with pytest.raises(ConfigError, match="2 clamps given for 3 layers"):
        chip.load(data[:2])
    with pytest.raises(ConfigError, match=r"clamps\[0\].*expected \(1 or 1, 1, 2\)"):
        chip.load([data[2], *data[1:]])
    with pytest.raises(ConfigError, match="mask"):
        chip.load(data, torch.ones(1, 1, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"circuit.tau_w"):
        backend(circuit=Circuit())
    with pytest.raises(ConfigError, match=r"solver.dt"):
        BrianBackend(NETWORK, tr.parameters(NETWORK, 1), Circuit(tau_w=1.0), dt=0.0)
