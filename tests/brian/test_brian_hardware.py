"""Hardware on Brian2: with the same chips and the same frozen noise, the steps of the torch backend.

Frozen cases are chosen so that no comparison or rounding is a tie: a tie may fall to either side.
"""

import brian2
import numpy as np
import pytest
import torch
import trajectories as tr

from hw_models import describe
from pcsim.backends.brian import BrianBackend, build
from pcsim.circuit import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.network import Network
from pcsim.substrate import Chips, Draw, Effect, Frozen, Memory, Substrate

LIMIT = 1e-12
NETWORK = Network.mlp([3, 4, 2], "tanh")
UNITS = {"kind": "error_units", "tau_err": 0.3}
STEPS = 100
"""Of each of two presentations."""


def made(substrate, seed=7, ids=(0, 1), noise=5):
    return Chips(
        substrate, ids, seed=seed, dt=tr.DT, noise=Frozen(noise), dtype=torch.float64
    )


def pair(substrate, network=NETWORK, mode="supervised", **circuit):
    """Return both backends on the same chips."""
    setting = Circuit(**{"tau_w": 5.0, **circuit})
    both = tr.Pair.of(network, setting, mode=mode, on=lambda: made(substrate))
    return both


def shown(both, network=NETWORK, mode="supervised", let_go=False):
    """Present two samples, with a reset before the first, and return the differences by name."""
    mask = torch.tensor([True, False]).view(1, 1, 2) if mode == "associative" else None
    for sample in range(2):
        data = tr.clamps(network, mode, 2, sample)
        if isinstance(network.nodes[0].energy, Categorical):
            data[0] = data[0].softmax(-1)
        if let_go and sample:
            both.both(lambda engine, data=data: engine.load([None, *data[1:]]))
            both.advance(STEPS // 2)
        both.both(lambda engine, data=data: engine.load(data, mask))
        if sample == 0:
            both.both(lambda engine: engine.feedforward())
        both.advance(STEPS)
    return both.differences()


def agree(substrate, network=NETWORK, mode="supervised", let_go=False, **circuit):
    both = pair(substrate, network, mode, **circuit)
    found = shown(both, network, mode, let_go)
    assert max(found.values()) <= LIMIT, found
    energies = [engine.flow.energy_by_node() for engine in (both.continuous, both.brian)]
    torch.testing.assert_close(*energies, atol=1e-11, rtol=0)
    return both


def pieces(**named):
    return describe("ideal", named).substrate()


SITES = {
    "tau_x": ("s*exp(a*g)", {}),
    "tau_err": ("s*exp(a*g)", {}),
    "tau_w": ("s*exp(a*g)", {}),
    "input": ("s*(1 + a*g) + a*m", {"m": "0.9*m + s"}),
    "membrane": ("s*(1 + a*g) + 0.1*m", {"m": "0.9*m + 0.1*s"}),
    "rate": ("s*(1 + a*g) + a*xi", {}),
    "weight": ("s*(1 + a*g) + 0.02*m*sqrt(t)", {"m": "0.9*m + 0.1*xi"}),
    "product": ("s + a*g*power/(1 + load) + 0.01*xi*sqrt(squared_power + weighted_power)", {}),
    "error": ("s + a*(m - s)", {"m": "m + dt*(s - m)"}),
    "feedback": ("s*(1 + a*g) - 0.1*current*tapered/(1 + abs(load))", {}),
    "velocity": ("s*(1 + a*g) - 0.1*x*m", {"m": "0.5*m + u"}),
    "write": ("s*(1 - 0.3*w*sign(s))*(1 + a*g) + 0.001*xi", {}),
}


def effect(site, name=None):
    becomes, memory = SITES[site]
    texts = [becomes, *memory.values()]
    return Effect(
        name=name or f"at_{site}",
        site=site,
        becomes=becomes,
        constants={"a": 0.2},
        draws={"g": Draw()},
        noise={n: law for n, law in (("xi", "normal"), ("u", "uniform")) if n in str(texts)},
        memory={n: Memory(start="0.3*start_u", update=text) for n, text in memory.items()},
    )


def substrate_at(*sites):
    return Substrate(effects=tuple(effect(site) for site in sites))


@pytest.mark.parametrize("site", SITES)
def test_every_site(site):
    """Fixed patterns, noise, memory, time and row sums, site by site."""
    both = agree(substrate_at(site), **UNITS)
    ideal = shown(pair(Substrate(), **UNITS))
    assert max(ideal.values()) <= LIMIT
    end = both.brian.theta().flat - pair_end()
    assert float(end.abs().max()) > 1e-3, "control: it matters"


_IDEAL = {}


def pair_end():
    """Return the weights at the end on ideal hardware."""
    if not _IDEAL:
        both = pair(Substrate(), **UNITS)
        shown(both)
        _IDEAL["end"] = both.brian.theta().flat
    return _IDEAL["end"]
