"""The order inside a time step is set by number: what objects are called cannot change it."""

import re

import pytest
import torch
import trajectories as tr

from pcsim.backends.brian import BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.circuits import order
from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips, Effect, Memory, Seeded, Substrate

LIMIT = 1e-12
GENERAL = Conductances(g_lk=0.1, g_B=1.0, g_A=0.8, g_D=0.9, g_som=0.3)
LEARNED = Gaussian(learned=True)
LAGS = {"tau_inter": 0.2, "tau_apical": 0.3, "look_inter": 0.1, "look_apical": 0.05}
CIRCUITS = {
    "algebraic": {},
    "error_units": {"kind": "error_units", "tau_err": 0.3},
    "lags": {"kind": "dendritic", "conductances": GENERAL, **LAGS},
    "sign": {"transport": "sign"},
    "late": {"delay_err": 0.2, "delay_fb": 0.3},
    "late units": {"kind": "error_units", "tau_err": 0.3, "delay_err": 0.1, "delay_fb": 0.2},
    "look_soma": {"look_soma": 0.5},
    "sacramento": {
        "kind": "sacramento",
        "conductances": GENERAL,
        "eta_apical": 0.4,
        "eta_down": 0.3,
    },
    "equilibrium": {"kind": "equilibrium"},
    "learned variances": {},
    "labels": {},
    "hardware": {"kind": "error_units", "tau_err": 0.3, "delay_err": 0.1, "transport": "sign"},
    "hardware, late": {"delay_err": 0.2, "delay_fb": 0.3, "transport": "random"},
}
SITES = ("membrane", "rate", "weight", "product", "error", "feedback", "velocity", "write")


def hardware(name):
    """Memory and noise at every site: what acts too early or too late is seen."""
    if "hardware" not in name:
        return None
    effects = tuple(
        Effect(
            name=f"at_{site}",
            site=site,
            becomes="s + 0.1*held + 0.01*xi",
            noise={"xi": "normal"},
            memory={"held": Memory(update="0.5*held + 0.5*s")},
        )
        for site in SITES
    )
    chips = Substrate(effects=effects)
    return Chips(chips, (0,), seed=0, dt=tr.DT, noise=Seeded(1), dtype=torch.float64)


def network(name):
    energies = {
        "learned variances": {"hidden": LEARNED, "output": LEARNED},
        "labels": {"output": Categorical()},
    }
    return Network.mlp([4, 5, 4, 3], "tanh", bias=name != "sacramento", **energies.get(name, {}))


def backend(name):
    chips = network(name)
    circuit = Circuit(tau_w=5.0, **CIRCUITS[name])
    return BrianBackend(chips, tr.parameters(chips, 1), circuit, dt=tr.DT, chips=hardware(name))


def short(rearrange, name):
    """Return the largest difference after `rearrange` has changed the Brian2 objects."""
    brian = backend(name)
    own = Parameters(brian.network, tr.parameters(brian.network, 1).flat)
    chips = Continuous(brian.network, own, brian.circuit, dt=tr.DT, chips=hardware(name))
    rearrange(brian)
    data = tr.clamps(brian.network, "supervised", 1)
    if name == "labels":
        data[0] = data[0].softmax(-1)
    for engine in (brian, chips):
        engine.load(data)
        engine.advance(60)
    pairs = ((chips.flow.states()[f"x{k}"], brian.states()[f"x{k}"]) for k in (1, 2))
    worst = max(float((a - b).abs().max()) for a, b in pairs)
    return max(worst, float((chips.flow.theta().flat - brian.theta().flat).abs().max()))


def parts_of(brian):
    return brian.parts.layers, brian.parts.maps, brian.parts.within


@pytest.mark.parametrize("name", CIRCUITS)
def test_names_do_not_matter(name):
    """Layers, maps and synapses within layers: first, last, or in the middle of the alphabet."""
    order_of_kinds = ("amz", "zma", "mza")[list(CIRCUITS).index(name) % 3]

    def rename(brian):
        for objects, prefix in zip(parts_of(brian), order_of_kinds, strict=True):
            for number, made in enumerate(objects):
                for part in (made, *made.contained_objects):
                    # the last shall be the first, among objects of one kind too
                    part._name = f"{prefix}{9 - number}_{part.name}"

    assert short(rename, name) <= LIMIT


@pytest.mark.parametrize(
    "name", ["algebraic", "lags", "late", "sacramento", "equilibrium", "hardware"]
)
def test_other_orders_would_be_wrong(name):
    def forget(brian):
        for made in (*brian.parts.maps, *brian.parts.within):
            for updater in made.summed_updaters.values():
                updater.order = -1
        for made in brian.parts.maps:
            made.state_updater.order = 1

    assert short(forget, name) > 1e-6


def phases(brian):
    """Return, by the name of every scheduled object, what it does."""
    found = {}
    for layer in brian.parts.layers:
        found |= {part.name: "rates" for part in layer.contained_objects}
        if layer.state_updater is not None:
            found[layer.state_updater.name] = "neurons"
        found |= {part.name: "after" for part in layer.contained_objects if "_after" in part.name}
    for made in (*brian.parts.maps, *brian.parts.within):
        if made.state_updater is not None:
            found[made.state_updater.name] = "weights"
        for part in made.contained_objects:
            if part.name.endswith("_store"):
                found[part.name] = "store fb" if "delay_fb" in part.name else "store err"
            elif part not in made.summed_updaters.values():
                found.setdefault(part.name, "rates")
        for name, updater in made.summed_updaters.items():
            found[updater.name] = SUMS[name]
    for made in (*brian.parts.layers, *brian.parts.maps):
        for part in made.contained_objects:
            site = re.fullmatch(r".*_([a-z]+)\d(feedback)?", part.name)
            if site and site[1] in OF_SITE:
                found[part.name] = (
                    "read err" if site[2] and site[1] == "weight" else OF_SITE[site[1]]
                )
    return found | {"pcsim_noise": "noise"}


OF_SITE = {
    "membrane": "membrane",
    "rate": "read",
    "weight": "read",
    "product": "product",
    "error": "read err",
    "feedback": "read fb",
    "velocity": "change",
    "write": "change",
}


SUMS = {
    "mu_post": "predict",
    "mu_line_post": "predict",
    "fb_line_pre": "feedback",
    "err_unread_post": "deliver err",
    "basal_post": "predict",
    "inter_in_post": "predict",
    "row_power_post": "predict",
    "total_q_post": "softmax",
    "total_p_post": "softmax",
    "mass_post": "own",
    "mean_ratio_post": "own",
    "array_power_post": "deliver err",
    "err_post": "deliver err",
    "err_seen_post": "deliver err",
    "err_fb_post": "deliver fb",
    "fb_pre": "feedback",
    "td_pre": "feedback",
    "lateral_pre": "feedback",
}
IN_ORDER = (
    "noise",
    "membrane",
    "rates",
    "read",
    "predict",
    "product",
    "softmax",
    "own",
    "store err",
    "deliver err",
    "read err",
    "store fb",
    "deliver fb",
    "feedback",
    "read fb",
    "change",
    "record",
    "weights",
    "neurons",
    "after",
    "count",
)


@pytest.mark.parametrize("name", CIRCUITS)
def test_scheduling_summary(name):
    """Every phase comes after those whose results it reads, and shares its order with none."""
    brian = backend(name)
    brian.net.add(*[m for pair in tr.watch(brian) for m in pair if m])
    known, seen, places = phases(brian), [], {}
    for entry in brian.net.scheduling_summary().entries:
        default = "count" if entry.when == "end" else "record"
        phase = known.get(entry.name, default)
        assert phase != "record" or entry.order == order.RECORD
        if seen[-1:] != [phase]:
            seen.append(phase)
        places.setdefault((entry.when, entry.order), set()).add(phase)
    assert seen == [phase for phase in IN_ORDER if phase in seen]
    assert {"rates", "predict", "feedback", "record", "weights", "neurons"} <= set(seen)
    assert [shared for shared in places.values() if len(shared) > 1] == []
