"""Hardware on Brian2: with the same chips and the same frozen noise, the steps of the torch backend.

Frozen cases are chosen so that no comparison or rounding is a tie: a tie may fall to either side.
"""

from functools import cache

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
    first, then = (tr.clamps(network, mode, 2, sample) for sample in range(2))
    if isinstance(network.nodes[0].energy, Categorical):
        first[0], then[0] = first[0].softmax(-1), then[0].softmax(-1)
    both.both(lambda engine: engine.load(first, mask))
    both.both(lambda engine: engine.feedforward())
    if mask is not None:
        both.advance(2 * STEPS)
    elif let_go:
        both.advance(2 * STEPS, {STEPS: [None, *then[1:]], STEPS + STEPS // 2: then})
    else:
        both.advance(2 * STEPS, {STEPS: then})
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


@cache
def ideal_end(**circuit):
    """Return the weights at the end on ideal hardware."""
    both = pair(Substrate(), **circuit)
    shown(both)
    return both.brian.theta().flat


@pytest.mark.parametrize("site", SITES)
def test_every_site(site):
    """Fixed patterns, noise, memory, time and row sums, site by site."""
    both = agree(substrate_at(site), **UNITS)
    changed = both.brian.theta().flat - ideal_end(**UNITS)
    assert float(changed.abs().max()) > 1e-3, "control: it matters"


def test_all_sites_at_once_on_other_chips():
    """Two effects at each site, in their order; and another seed makes other chips."""
    effects = [effect(site) for site in SITES] + [effect(site, f"twice_{site}") for site in SITES]
    both = agree(Substrate(effects=tuple(effects)), **UNITS)
    again = pair(Substrate(effects=tuple(effects)), **UNITS)
    assert torch.equal(again.brian.params.flat, both.brian.params.flat)
    turned = pair(Substrate(effects=tuple(effects[::-1])), **UNITS)
    shown(turned)
    assert float((turned.brian.theta().flat - both.brian.theta().flat).abs().max()) > 1e-6
    other = tr.Pair.of(NETWORK, Circuit(tau_w=5.0, **UNITS), on=iter_of(effects, 7, 8))
    assert max(shown(other).values()) > 1e-3, "control: other chips take other ways"


def iter_of(effects, *seeds):
    """Return what makes chips of one seed after the other."""
    left = iter(seeds)
    return lambda: made(Substrate(effects=tuple(effects)), seed=next(left))


BITS = {"kind": "quantized_weights", "bits": 5, "range": 1.7}
PIECES = {
    "few levels": {"memory": BITS, "gain": {"kind": "mismatch", "of": "weight_gain", "sigma": 0.1}},
    "rounded writes": {"memory": {**BITS, "accumulator": False, "rounding": "stochastic"}},
    "conductances": {"pair": {"kind": "conductance_pair", "levels": 33, "spread": 0.1}},
    "mismatch": {
        "slow": {"kind": "mismatch", "of": "tau_x", "sigma": 0.2},
        "gain": {"kind": "mismatch", "of": "rate_gain", "sigma": 0.1},
        "threshold": {"kind": "offset", "of": "threshold", "sigma": 0.1},
        "offset": {"kind": "offset", "of": "velocity", "sigma": 0.1},
    },
    "converters": {
        "dac": {"kind": "converter", "where": "input", "bits": 5, "range": 3.0, "gain_error": 0.1},
        "adc": {"kind": "converter", "where": "product", "bits": 6, "range": 3.0, "dither": True},
        "back": {"kind": "sigma_delta", "where": "feedback", "step": 0.1},
    },
    "events": {
        "rates": {"kind": "send_on_delta", "where": "rate", "delta": 0.03},
        "errors": {"kind": "sigma_delta", "where": "error", "step": 0.05},
    },
    "faults": {
        "stuck": {"kind": "stuck_weights", "fraction": 0.2, "at": "random"},
        "dead": {"kind": "dead_lines", "fraction": 0.2, "lines": "column"},
    },
    "noise": {
        "white": {"kind": "white_noise", "sigma": 0.2, "where": "velocity"},
        "coloured": {"kind": "coloured_noise", "sigma": 0.1, "tau_c": 0.5, "where": "error"},
        "jumps": {
            "kind": "telegraph_noise",
            "amplitude": 0.2,
            "tau_on": 0.7,
            "tau_off": 1.1,
            "where": "weight",
        },
    },
    "array": {
        "read": {"kind": "array_read_noise", "sigma": 0.1, "reference": "root_weight"},
        "wires": {"kind": "ir_drop", "ratio": 1e-3},
        "driver": {"kind": "output_resistance", "rho": 0.05},
    },
    "pulsed writes": {
        "device": {
            "kind": "linear_device",
            "dw_min": 0.01,
            "dw_spread": 0.2,
            "w_max": 1.5,
            "w_min": -1.5,
            "cycle_noise": 0.3,
        },
    },
    "pulse trains": {
        "train": {"kind": "pulse_train", "slots": 7, "dw": 0.004},
        "loss": {"kind": "retention", "lifetime": 50.0, "lifetime_spread": 0.2},
    },
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces(name):
    """Each with one of the two circuits, in turn."""
    circuit = UNITS if list(PIECES).index(name) % 2 else {}
    both = agree(pieces(**PIECES[name]), **circuit)
    changed = both.brian.theta().flat - ideal_end(**circuit)
    assert float(changed.abs().max()) > 1e-3, "control: it matters"


CIRCUITS = {
    "random feedback": {"transport": "random"},
    "signs": {"transport": "sign"},
    "Kolen and Pollack": {"transport": "kolen_pollack", "weight_decay": 0.1},
    "late": {"delay_err": 0.2, "delay_fb": 0.3, "weight_decay": 0.1},
    "late units": {**UNITS, "look_err": 0.1, "delay_err": 0.1},
    "look_soma": {"look_soma": 0.4},
}


@pytest.mark.parametrize("name", CIRCUITS)
def test_other_circuits(name):
    """Separate feedback weights have devices of their own; signals pass delays before hardware."""
    sites = [s for s in SITES if s not in ("tau_err", "tau_w")]
    if name == "Kolen and Pollack":
        sites.remove("write")
    agree(substrate_at(*sites), let_go=True, **CIRCUITS[name])


NETWORKS = {
    "nonlinear prediction": Network.mlp([3, 4, 2], "tanh", convention="post", f_output=True),
    "labels": Network.mlp([3, 4, 2], "sigmoid", output=Categorical()),
    "variances": Network.mlp([3, 4, 2], "relu", hidden=Gaussian(1.5), output=Gaussian((0.5, 2.0))),
    "learned": Network.mlp([3, 4, 2], "tanh", hidden=Gaussian(learned=True, floor=0.7)),
    "no bias": Network.mlp([3, 4, 3, 2], "leaky_relu", bias=False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_other_networks(name):
    sites = [s for s in SITES if s not in ("tau_err", "tau_w")]
    agree(substrate_at(*sites), NETWORKS[name], let_go=True)


@pytest.mark.parametrize("mode", ["generative", "associative"])
def test_other_modes(mode):
    network = Network.mlp([3, 4, 2], "tanh", prior=0.2, f_input=True)
    agree(substrate_at(*SITES), network, mode, transport="kolen_pollack", **UNITS)
