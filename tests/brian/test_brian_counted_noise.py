"""White noise on somas: the numbers of torch, in every circuit, in synapses and in products."""

import pytest
import torch
import trajectories as tr

from pcsim.backends.brian import BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Seeded

LIMIT = 1e-12
CIRCUITS = {
    "algebraic": {"look_soma": 0.05},
    "error_units": {"tau_err": 0.3},
    "dendritic": {"tau_inter": 0.2},
    "sacramento": {"conductances": Conductances(g_som=0.5), "eta_inter": 0.5, "eta_apical": 0.5},
    "equilibrium": {},
}


def ends(kind, samples=1, seed=4, **brian):
    """Return states and weights after a label was let go and clamped again, by torch or Brian2."""
    circuit = Circuit(kind=kind, tau_w=5.0, sigma_x=0.1, **CIRCUITS[kind])
    network, noise = Network.mlp([3, 4, 4, 2], "tanh", bias=kind != "sacramento"), Seeded(seed)
    params = tr.parameters(network, 2)
    if brian:
        options = {"dt": tr.DT, "noise": noise, "samples": samples, **brian}
        engine = BrianBackend(network, params, circuit, **options)
    else:

        def draw(state, like):
            return noise.draw(f"soma.{state}", "normal", like, engine.steps)

        options = {"dt": tr.DT, "solver_name": "maruyama", "draw": draw, "fast": False}
        engine = Continuous(network, Parameters(network, params.flat.clone()), circuit, **options)
    for part in range(2):
        data = [torch.cat([x] * samples, 1) if x is not None else x for x in shown(network, part)]
        engine.load([None, *data[1:]])
        engine.feedforward()
        engine.advance(30)
        engine.load(data)
        engine.advance(20)
    return engine.flow.states() | {"weights": engine.flow.theta().flat}


def shown(network, part):
    return tr.clamps(network, "supervised", 2, part)


def apart(one, other):
    """The membrane of a clamped output is nobody's: it starts anew when the label is let go."""
    return max(float((one[name] - other[name]).abs().max()) for name in one if name != "u0")


@pytest.mark.parametrize("kind", CIRCUITS)
def test_every_circuit_has_the_noise_of_torch(kind):
    ours, theirs = ends(kind, target="numpy"), ends(kind)
    assert apart(ours, theirs) <= LIMIT
    assert apart(ours, ends(kind, seed=5)) > 1e-3, "control: another seed"


def test_samples_side_by_side_have_noise_of_their_own():
    many = ends("dendritic", 3, dense=True)
    assert apart(many, ends("dendritic", 3)) <= LIMIT
    states = many["x1"]
    assert float((states[:, 0] - states[:, 1]).abs().max()) > 1e-3, "control: not one noise for all"
