"""Hardware on Brian2: with the same chips and the same frozen noise, the steps of torch.

Frozen cases are chosen so that no comparison or rounding is a tie: a tie may fall to either side.
"""

from functools import cache
from types import SimpleNamespace

import brian2
import numpy as np
import pytest
import torch
import trajectories as tr
from brian2.codegen.runtime.numpy_rt import NumpyCodeObject

from hw_models import describe
from pcsim.backends.brian import BrianBackend, Plan, build
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.energies import Categorical, Gaussian
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.network import Network
from pcsim.substrate import Chips, Draw, Effect, Memory, Seeded, Substrate

LIMIT = 1e-12
NETWORK = Network.mlp([3, 4, 2], "tanh")
UNITS = {"kind": "error_units", "tau_err": 0.3}
STEPS = 100
"""Of each of two presentations."""


def made(substrate, seed=7, ids=(0, 1), noise=5):
    return Chips(substrate, ids, seed=seed, dt=tr.DT, noise=Seeded(noise), dtype=torch.float64)


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
    if any(isinstance(n.energy, Gaussian) and n.energy.learned for n in network.nodes):
        return both  # torch shows the energy at the variance that was just learned
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
    # The order of effects matters, and so does which chips they are.
    for controls in ({"effects": effects[::-1]}, {"effects": effects, "seed": 8}):
        assert end_by_torch(**controls).sub(both.brian.theta().flat).abs().max() > 1e-4
    same = end_by_torch(effects).sub(both.brian.theta().flat).abs().max()
    assert same <= LIMIT


def end_by_torch(effects, seed=7):
    chips = made(Substrate(effects=tuple(effects)), seed=seed)
    circuit = Circuit(tau_w=5.0, **UNITS)
    alone = Continuous(NETWORK, tr.parameters(NETWORK, 2), circuit, dt=tr.DT, chips=chips)
    alone.load(tr.clamps(NETWORK, "supervised", 2, 0))
    alone.feedforward()
    alone.advance(STEPS)
    alone.load(tr.clamps(NETWORK, "supervised", 2, 1))
    alone.advance(STEPS)
    return alone.flow.theta().flat


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


GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
LAGS = {"tau_inter": 0.2, "tau_apical": 0.3, "look_inter": 0.1, "look_apical": 0.05}
DENDRITIC = {
    "quasi-static": {"conductances": GENERAL, "transport": "sign"},
    "lags": {"conductances": GENERAL, "transport": "random", **LAGS},
    "interneurons read W": {"inter_learned": False, "tau_inter": 0.2},
}


@pytest.mark.parametrize("name", DENDRITIC)
def test_dendrites(name):
    """Compartments, conductances and interneurons of their own, and three kinds of arrays."""
    lags = [f"tau_{part}" for part in ("inter", "apical") if f"tau_{part}" in DENDRITIC[name]]
    sites = [s for s in SITES if s not in ("tau_err", "tau_w")]
    made_once = [
        effect("tau_x", f"at_{site}").model_copy(update={"site": site})
        for site in (*lags, "g_basal", "g_apical")
    ]
    substrate = Substrate(effects=(*substrate_at(*sites).effects, *made_once))
    agree(substrate, kind="dendritic", let_go=True, **DENDRITIC[name])


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
    "no bias": Network.mlp([3, 4, 2], "leaky_relu", bias=False),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_other_networks(name):
    sites = [s for s in SITES if s not in ("tau_err", "tau_w")]
    agree(substrate_at(*sites), NETWORKS[name], let_go=True)


@pytest.mark.parametrize("mode", ["generative", "associative"])
def test_other_modes(mode):
    network = Network.mlp([3, 4, 2], "tanh", prior=0.2, f_input=True)
    agree(substrate_at(*SITES), network, mode, transport="kolen_pollack", **UNITS)


def test_chips_of_a_grid_and_age_after_a_checkpoint():
    """Constants that differ from chip to chip; a drift that goes on where a checkpoint was made."""
    drift = Effect(
        name="drift",
        site="weight",
        becomes="s*(1 + rate*t) + 0.01*m",
        constants={"rate": 0.01},
        memory={"m": Memory(update="m + s")},
    )
    lists = {("drift", "rate"): [0.01, 0.03]}
    ends = []
    for cut in (0, 30):
        chips = made(Substrate(effects=(drift,)))
        chips.lists = lists
        engine = backend(chips=chips)
        engine.load(tr.clamps(NETWORK, "supervised", 2))
        engine.advance(60 - cut)
        if cut:
            kept, saved = engine.state(), chips.state()
            chips = made(Substrate(effects=(drift,)))
            chips.lists = lists
            engine = backend(chips=chips)
            engine.restore(kept)
            chips.restore(saved)
            engine.advance(cut)
        assert chips.clock.t == pytest.approx(6.0)
        ends.append(engine.theta().flat)
    torch.testing.assert_close(*ends, atol=1e-13, rtol=0)
    chips = made(Substrate(effects=(drift,)))
    chips.lists = lists
    circuit = Circuit(tau_w=5.0)
    reference = Continuous(NETWORK, tr.parameters(NETWORK, 2), circuit, dt=tr.DT, chips=chips)
    reference.load(tr.clamps(NETWORK, "supervised", 2))
    reference.advance(60)
    torch.testing.assert_close(reference.flow.theta().flat, ends[0], atol=LIMIT, rtol=0)


def backend(circuit=None, **options):
    params = tr.parameters(NETWORK, 2)
    return BrianBackend(NETWORK, params, circuit or Circuit(tau_w=5.0), dt=tr.DT, **options)


def test_plain_objects_draw_their_own_noise():
    """In your own network, Brian2 draws: standard normal and uniform, fixed by its seed."""
    substrate = Substrate(effects=(effect("rate"), effect("velocity")))
    seen = []
    for seed in (3, 3, 4):
        chips = made(substrate)
        options = {"chips": chips, "dt": tr.DT * brian2.second, "codeobj_class": NumpyCodeObject}
        parts = build(NETWORK, Circuit(tau_w=5.0), tr.parameters(NETWORK, 2), **options)
        watched = brian2.StateMonitor(
            parts.layers[1],
            ["at_rate_xi", "at_velocity_u"],
            record=True,
            when="end",
            dt=tr.DT * brian2.second,
            codeobj_class=NumpyCodeObject,
        )
        brian2.seed(seed)
        parts.network(watched).run(300 * tr.DT * brian2.second, namespace={})
        seen.append(np.stack([watched.at_rate_xi, watched.at_velocity_u]))
    assert np.array_equal(seen[0], seen[1])
    assert not np.array_equal(seen[0], seen[2])
    normal, uniform = seen[0]
    assert abs(normal.mean()) < 0.08
    assert abs(normal.std() - 1) < 0.08
    assert 0 <= uniform.min() < 0.05
    assert 0.95 < uniform.max() < 1
    like = torch.zeros(len(chips), 1, normal.shape[0] // len(chips), dtype=torch.float64)
    own = chips.noise.draw("at_rate.xi.rate1", "normal", like, 0).flatten().numpy()
    assert not np.isclose(normal[:, 0], own).any(), "the chips' own noise was not asked"


def test_refused_by_name():
    chips = made(substrate_at("rate", "weight"))
    without = Network.mlp([3, 4, 2], "tanh", bias=False)
    cells = Circuit(tau_w=1.0, kind="sacramento", conductances=Conductances(g_som=0.5))
    with pytest.raises(UnsupportedError, match=r"circuit.kind sacramento: hardware effects"):
        BrianBackend(without, tr.parameters(without, 2), cells, dt=tr.DT, chips=chips)
    own = made(substrate_at("rate"))
    own.noise = SimpleNamespace(draw=None)
    with pytest.raises(UnsupportedError, match=r"target 'standalone': only counted noise"):
        backend(chips=own, target="standalone")
    with pytest.raises(UnsupportedError, match=r"noise: circuit.sigma_x needs a source of counted"):
        backend(Circuit(tau_w=5.0, sigma_x=0.1))
    with pytest.raises(UnsupportedError, match=r"brian.products.*effects of hardware \(rate1\)"):
        backend(chips=chips, dense=True)
    assert backend(chips=chips, dense=None).parts.maps[0].w[:].size == 16, "synapses instead"
    lag = Effect(name="lag", site="tau_apical", becomes="2*s")
    with pytest.raises(UnsupportedError, match=r"'lag': circuit.kind algebraic has no site"):
        backend(chips=made(Substrate(effects=(lag,))))
    writes = made(substrate_at("write"))
    with pytest.raises(UnsupportedError, match=r"'at_write' with circuit.transport 'kolen_pol"):
        backend(Circuit(tau_w=1.0, transport="kolen_pollack"), chips=writes)
    with pytest.raises(ConfigError, match="chips: 3 given for 2 replicas"):
        backend(chips=made(substrate_at("rate"), ids=(0, 1, 2)))


def test_names_that_mean_something_else():
    clash = Effect(name="x", site="rate", becomes="s*seen", constants={"seen": 2.0})
    slope = Effect(name="slope", site="membrane", becomes="s")
    with pytest.raises(ConfigError, match=r"rate1: a variable would be called 'x_seen'.*another"):
        backend(chips=made(Substrate(effects=(slope, clash))))
    odd = Effect(name="my-gain", site="rate", becomes="s*g", constants={"g": 1.5})
    code = Plan.of(NETWORK, Circuit(tau_w=1.0), chips=made(Substrate(effects=(odd,))))
    assert code.groups[1].blocks[0].code == "s = fired\nr = s * my_gain_g"


def test_every_effect_has_variables_of_its_own():
    """Names that differ only in what an identifier may not contain, or in where they are cut."""
    named = {
        "a-b": Effect(name="a-b", site="rate", becomes="s*g", constants={"g": 0.5}),
        "a_b": Effect(name="a_b", site="rate", becomes="s*g", constants={"g": 1.7}),
        "é": Effect(name="é", site="rate", becomes="s*g", constants={"g": 1.3}),
        "2": Effect(name="2", site="rate", becomes="s*g", constants={"g": 0.9}),
        "a": Effect(name="a", site="rate", becomes="s*b_g", constants={"b_g": 1.1}),
    }
    agree(Substrate(effects=tuple(named.values())))
    held = {"m": Memory(start="0", update="0.5*m + 0.5*s")}
    for other in ("new_h", "h_back"):
        memory = Effect(name="h", site="weight", becomes="s + 0.1*m", memory=held)
        clash = Effect(name=other, site="weight", becomes="s*m", constants={"m": 1.2})
        agree(Substrate(effects=(memory, clash)), transport="random")


def test_time_constants_alone_keep_the_products():
    """Whole layers can be multiplied where every soma has a time constant of its own."""
    chips = made(pieces(slow={"kind": "mismatch", "of": "tau_x", "sigma": 0.3}))
    fast, plain = backend(chips=chips, dense=None), backend(chips=chips)
    assert fast.parts.maps[0].__class__.__name__ == "NeuronGroup"
    for engine in (fast, plain):
        engine.load(tr.clamps(NETWORK, "supervised", 2))
        engine.advance(50)
    torch.testing.assert_close(fast.theta().flat, plain.theta().flat, atol=LIMIT, rtol=0)
