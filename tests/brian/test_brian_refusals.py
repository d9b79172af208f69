"""What the Brian2 backend cannot do it refuses, with the name of the field and the reason."""

from types import SimpleNamespace

import pytest
import torch
import trajectories as tr

from pcsim.backends.brian import BrianBackend, Plan
from pcsim.backends.brian.plan import refuse
from pcsim.circuit import Circuit, Conductances
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
    ("circuit", "name", "reason"),
    [
        (
            {"kind": "sacramento", "conductances": Conductances(g_som=0.5)},
            "circuit.kind 'sacramento'",
            "not written here",
        ),
        ({"transport": "sign"}, "circuit.transport 'sign'", "norm of a whole array"),
        ({"delay_err": 0.1}, "circuit.delay_err", "only spikes have delays"),
        ({"delay_fb": 0.1}, "circuit.delay_fb", "only spikes have delays"),
        ({"look_soma": 0.1}, "circuit.look_soma", "second state"),
        ({"sigma_x": 0.1}, "circuit.sigma_x", "noise of its own"),
    ],
    ids=str,
)
def test_circuits(circuit, name, reason):
    with pytest.raises(UnsupportedError, match=reason) as error:
        backend(circuit=Circuit(tau_w=1.0, **circuit))
    assert str(error.value).startswith(f"backend brian: {name}")


@pytest.mark.parametrize(
    ("network", "name", "reason"),
    [
        (
            Network.mlp([3, 4, 2], output=Categorical()),
            "network node 0: energy categorical",
            "softmax",
        ),
        (
            Network.mlp([3, 4, 2], hidden=Gaussian(learned=True)),
            "network node 1: energy.learned",
            "no equation",
        ),
        (Network.mlp([3, 4, 2], convention="post"), "network.convention 'post'", "potentials"),
        (Network.mlp([3, 4, 2], "gelu"), "network.f 'gelu'", "no elementwise"),
    ],
    ids=["categorical", "learned variance", "post", "gelu"],
)
def test_networks(network, name, reason):
    with pytest.raises(UnsupportedError, match=reason) as error:
        Plan.of(network, Circuit(tau_w=1.0))
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


def test_times_per_weight():
    each = torch.ones_like(tr.parameters(NETWORK, 1).flat)
    with pytest.raises(UnsupportedError, match="tau_w per weight"):
        backend(tau_w=each)


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
