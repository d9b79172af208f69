"""No field that was set is ignored: it changes what is computed or kept, or it is refused."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from pcsim import config, datasets, store
from pcsim.architectures.cnn import Cnn
from pcsim.architectures.mlp import Mlp
from pcsim.config import Config
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.fields.pages import models_of
from pcsim.meaning import NEEDS, OFF, meaningless, set_fields
from pcsim.run import run
from pcsim.runner.chip_run import ChipRun
from pcsim.spice_settings import Macro


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    sections: dict[str, Any] = {}
    for part in parts:
        for name, value in part.items():
            if isinstance(value, dict) and isinstance(sections.get(name), dict):
                sections[name] = merged(sections[name], value)
            elif value is None:
                sections.pop(name, None)
            else:
                sections[name] = value
    return sections


TINY: dict[str, Any] = {
    "network": {"sizes": [64, 5, 10]},
    "schedule": {},
    "learning": {"batch": 2, "epochs": 2},
    "data": {"limit": 4},
    "run": {"dtype": "float64"},
}
IN_TIME = {"run": {"backend": "continuous"}}
PIECES = {
    "age": {"kind": "conductance_drift", "nu": 0.3, "nu_spread": 0.1, "t0": 1.0},
    "noise": {"kind": "read_noise", "where": "weight", "sigma": 0.1},
}
EVERY = ("network", "schedule", "learning", "data", "run", "convergence", "grid", "circuit")
EVERY += ("solver", "stream", "record", "hardware", "brian", "spice")
CNN = {"kind": "cnn", "sizes": None, "image": [1, 8, 8], "channels": [2], "dense": []}
AUTOMATIC = {
    "learning": {"batch": 0, "epochs": None},
    "convergence": {"max_steps": 100, "window": 2, "rtol": 0.03},
}
BRIAN = {"run": {"backend": "brian"}, "data": {"limit": 2}, "learning": {"epochs": 1, "batch": 1}}
CONTEXTS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "ipc": ({}, EVERY),
    "pc": ({"schedule": {"rule": "pc"}}, ("schedule", "grid", "network")),
    "zil": ({"schedule": {"rule": "zil"}}, ("schedule", "grid")),
    "bp": ({"schedule": {"rule": "bp"}}, EVERY),
    "bp on hardware": (
        {"schedule": {"rule": "bp"}, "hardware": {"pieces": PIECES}},
        ("schedule", "circuit", "solver", "hardware", "record"),
    ),
    "ipc on hardware": (
        {"hardware": {"pieces": PIECES}},
        ("schedule", "circuit", "solver", "hardware", "grid"),
    ),
    "momentum": (
        {"learning": {"optimizer": "momentum", "weight_decay": 0.1}},
        ("learning", "grid"),
    ),
    "adam": ({"learning": {"optimizer": "adamw"}}, ("learning",)),
    "held out": ({"data": {"validation": 2}, "learning": {"epochs": 4}}, ("learning.patience",)),
    "rising": ({"schedule": {"gamma": 1.9, "init": "zero"}}, ("schedule.discount",)),
    "no hidden layer": ({"network": {"sizes": [64, 10]}}, ("network", "schedule", "grid")),
    "generative": (
        {"data": {"mode": "generative"}, "network": {"sizes": [3, 5, 64]}},
        ("network", "schedule", "data", "record", "learning"),
    ),
    "normal": ({"schedule": {"init": "normal"}}, ("schedule",)),
    "learned": (
        {"network": {"output": {"learned": True}, "hidden": {"learned": True}}},
        ("network",),
    ),
    "categorical": ({"network": {"output": {"kind": "categorical"}}}, ("network",)),
    "behind f": ({"network": {"convention": "post"}}, ("network",)),
    "grid": (
        {"grid": {"alpha": [0.01, 0.02], "gamma": [0.1, 0.2], "weight_decay": [0.1]}},
        ("learning", "schedule"),
    ),
    "automatic": (merged(AUTOMATIC, {"run": {"automatic": True}}), EVERY),
    "automatic and strict": (
        merged(AUTOMATIC, {"run": {"automatic": True}, "convergence": {"rtol": 1e-4}}),
        ("convergence.atol", "convergence.rtol"),
    ),
    "algebraic": (IN_TIME, EVERY),
    "error units": (
        IN_TIME | {"circuit": {"kind": "error_units", "tau_err": 0.7}},
        ("circuit", "solver", "schedule", "learning"),
    ),
    "dendritic": (
        IN_TIME
        | {
            "circuit": {
                "kind": "dendritic",
                "tau_apical": 0.7,
                "tau_inter": 0.7,
                "conductances": {"g_lk": 0.3, "g_som": 0.4},
                "inhibition": 0.8,
            }
        },
        ("circuit", "solver", "schedule", "learning", "network"),
    ),
    "sacramento": (
        IN_TIME
        | {
            "circuit": {"kind": "sacramento", "conductances": {"g_lk": 0.1, "g_som": 0.5}},
            "network": {"bias": False},
        },
        ("circuit", "solver", "schedule", "learning", "network"),
    ),
    "equilibrium": (
        IN_TIME | {"circuit": {"kind": "equilibrium"}, "stream": {"t_settle": 0.5}},
        ("circuit", "solver", "schedule", "learning"),
    ),
    "spiking": (
        IN_TIME | {"circuit": {"kind": "spiking", "tau_err": 0.7, "tau_s": 0.0}},
        ("circuit", "solver", "schedule", "learning"),
    ),
    "random feedback": (IN_TIME | {"circuit": {"transport": "random"}}, ("circuit",)),
    "noisy": (
        IN_TIME | {"circuit": {"sigma_x": 0.1}, "solver": {"name": "maruyama"}},
        ("circuit.sigma_x", "solver"),
    ),
    "on hardware": (
        IN_TIME | {"hardware": {"pieces": PIECES}},
        ("hardware", "grid", "solver.noise_seed"),
    ),
    "watched": (
        IN_TIME | {"record": {"trajectories": True}, "hardware": {"chips": 3}},
        ("record", "hardware.chips"),
    ),
    "generative in time": (
        {
            "run": {"backend": "continuous"},
            "data": {"mode": "generative"},
            "network": {"sizes": [3, 5, 64]},
        },
        ("stream", "record", "schedule", "data", "network.prior"),
    ),
    "automatic in time": (
        merged(AUTOMATIC, {"run": {"backend": "continuous", "automatic": True}}),
        ("schedule", "learning", "convergence", "stream", "record", "data"),
    ),
    "fixed times": (
        IN_TIME | {"solver": {"dt": 0.25}, "circuit": {"tau_w": 90.0}, "stream": {"t_pres": 0.75}},
        ("schedule", "learning.alpha", "circuit.tau_x", "circuit.tau_w", "stream"),
    ),
    "rk4": (IN_TIME | {"solver": {"name": "rk4"}}, ("schedule", "circuit.delay_err")),
    "brian": (
        BRIAN,
        ("schedule.fast", "schedule.gamma", "solver", "record.every", "run.dtype", "brian"),
    ),
    "cnn": ({"network": CNN}, ("network",)),
    "pooling": ({"network": CNN | {"dense": [3], "pool": "max", "stride": 1}}, ("network",)),
}
"""Settings in which every field of some sections is tried."""
VALUES: dict[str, Any] = {
    "network.f": "sigmoid",
    "network.convention": "post",
    "network.f_input": True,
    "network.f_output": True,
    "network.bias": False,
    "network.prior": 0.7,
    "network.channels": [3],
    "network.kernel": 5,
    "network.stride": 3,
    "network.padding": 0,
    "network.pool": "average",
    "network.pool_size": 4,
    "network.dense": [4],
    "network.place": "post_act",
    "network.output.kind": "categorical",
    "network.output.variance": 2.0,
    "network.output.learned": True,
    "network.output.floor": 0.999,
    "network.hidden.kind": "categorical",
    "network.hidden.variance": 2.0,
    "network.hidden.learned": True,
    "network.hidden.floor": 0.999,
    "schedule.rule": "pc",
    "schedule.T": 3,
    "schedule.gamma": 0.3,
    "schedule.init": "zero",
    "schedule.init_sd": 0.4,
    "schedule.pc_update_at": "after",
    "schedule.discount": 0.5,
    "schedule.fast": False,
    "learning.optimizer": "momentum",
    "learning.alpha": 2e-3,
    "learning.weight_decay": 0.2,
    "learning.reduction": "mean",
    "learning.momentum": 0.5,
    "learning.betas": [0.5, 0.6],
    "learning.eps": 0.1,
    "learning.decay_bias": True,
    "learning.batch": 1,
    "learning.epochs": 1,
    "learning.patience": 1,
    "learning.anneal": "cosine",
    "data.mode": "generative",
    "data.limit": 3,
    "data.validation": 1,
    "data.limit_test": 7,
    "data.centre": True,
    "data.augment": True,
    "data.shuffled": True,
    "run.backend": "continuous",
    "run.seeds": [1],
    "run.dtype": "float32",
    "run.automatic": True,
    "convergence.window": 40,
    "convergence.rtol": 0.5,
    "convergence.atol": 0.9,
    "convergence.max_steps": 4,
    "grid.alpha": [0.1, 0.2],
    "grid.weight_decay": [0.2],
    "grid.gamma": [0.05, 0.1],
    "grid.hardware": {"noise.sigma": [0.1, 0.2]},
    "grid.trials": [{"noise.sigma": 0.1}, {"noise.sigma": 0.2}],
    "circuit.kind": "dendritic",
    "circuit.tau_x": 2.0,
    "circuit.tau_w": 70.0,
    "circuit.weight_decay": 0.3,
    "circuit.transport": "sign",
    "circuit.feedback_gain": 0.5,
    "circuit.tau_err": 0.8,
    "circuit.delay_err": 1.0,
    "circuit.delay_fb": 1.0,
    "circuit.conductances.g_lk": 0.2,
    "circuit.conductances.g_B": 2.0,
    "circuit.conductances.g_A": 2.0,
    "circuit.conductances.g_D": 2.0,
    "circuit.conductances.g_som": 0.8,
    "circuit.tau_apical": 0.8,
    "circuit.tau_inter": 0.8,
    "circuit.inter_learned": False,
    "circuit.inter_rate": 0.5,
    "circuit.inhibition": 0.5,
    "circuit.look_err": 0.2,
    "circuit.look_inter": 0.2,
    "circuit.look_apical": 0.2,
    "circuit.look_soma": 0.3,
    "circuit.eta_inter": 0.5,
    "circuit.eta_apical": 0.5,
    "circuit.eta_down": 0.5,
    "circuit.self_predicting": False,
    "circuit.beta": 0.3,
    "circuit.plastic": "always",
    "circuit.sigma_x": 0.2,
    "circuit.tau_s": 2.0,
    "circuit.q": 0.2,
    "circuit.qe": 0.1,
    "solver.name": "heun",
    "solver.dt": 0.2,
    "solver.noise_seed": 3,
    "stream.t_pres": 1.0,
    "stream.t_settle": 1.0,
    "stream.tau_label": 0.5,
    "record.every": 2,
    "record.trajectories": True,
    "record.units": 2,
    "record.chips": 1,
    "record.predictions": False,
    "hardware.preset": "ecram_li",
    "hardware.chips": 2,
    "hardware.seed": 3,
    "hardware.pieces": {"more": {"kind": "mismatch", "of": "tau_x", "sigma": 0.3}},
    "hardware.lenient": True,
    "brian.products": False,
    "brian.fused": False,
}
"""For every field a value other than its default."""
QUIET = {
    "schedule.fast": "leaves out products whose results are known: exact to round-off",
    "schedule.discount": "acts only where the energy rises",
    "convergence.atol": "acts only where the other tolerance is the smaller one",
    "hardware.lenient": "acts only where a rule has no place for an effect",
}
"""Accepted fields that may leave no trace, and why."""
NOT_TRIED = {
    "run.device": "only 'cpu' is everywhere",
    "run.engine": "who computes; tests/conformance and tests/spice have them",
    "data.name": "other data sets are files",
    "data.unverified": "a permission for files",
    "data.sha256": "is filled in",
    "network.kind": "the contexts",
    "network.sizes": "the contexts",
    "network.image": "follows from the data",
    "network.classes": "follows from the data",
    "brian.target": "compilers: tests/brian",
    "brian.folder": "compilers: tests/brian",
    "spice.reltol": "ngspice: tests/spice",
    "spice.folder": "ngspice: tests/spice",
    "spice.noise": "ngspice: tests/spice",
    **{f"spice.macro.{name}": "ngspice: tests/spice/test_macro.py" for name in Macro.model_fields},
    "hardware.device": "is filled in",
}
SOMEWHERE_ELSE = {"data.mode", "run.automatic", "schedule.rule", "schedule.fast"}
SOMEWHERE_ELSE |= {"network.hidden.kind", "hardware.lenient", "brian.fused"}
"""Fields that need others changed along with them, or leave no trace of their own."""
ACTS = {
    field: name
    for name, fields in {
        "ipc": """
            network.f network.convention network.f_input network.bias network.output.kind
            network.output.variance network.output.learned network.hidden.variance
            network.hidden.learned schedule.T schedule.gamma schedule.init learning.optimizer
            learning.alpha learning.weight_decay learning.reduction learning.batch
            learning.epochs learning.anneal data.limit data.validation data.limit_test
            data.centre data.augment data.shuffled run.backend run.seeds run.dtype grid.alpha
            grid.weight_decay grid.gamma record.predictions hardware.preset hardware.chips
            hardware.pieces
        """,
        "behind f": """
            network.f_output
        """,
        "generative": """
            network.prior schedule.init_sd
        """,
        "cnn": """
            network.channels network.kernel network.stride network.padding network.pool
            network.dense network.place
        """,
        "pooling": """
            network.pool_size
        """,
        "learned": """
            network.output.floor network.hidden.floor
        """,
        "pc": """
            schedule.pc_update_at
        """,
        "ipc on hardware": """
            grid.hardware grid.trials
        """,
        "momentum": """
            learning.momentum learning.decay_bias
        """,
        "adam": """
            learning.betas learning.eps
        """,
        "held out": """
            learning.patience
        """,
        "automatic": """
            convergence.window convergence.max_steps
        """,
        "automatic and strict": """
            convergence.atol convergence.rtol
        """,
        "algebraic": """
            circuit.kind circuit.tau_w circuit.weight_decay circuit.transport circuit.delay_err
            circuit.delay_fb circuit.look_soma solver.name stream.t_pres stream.t_settle
            stream.tau_label record.every record.trajectories
        """,
        "bp on hardware": """
            circuit.tau_x solver.dt solver.noise_seed hardware.seed
        """,
        "sacramento": """
            circuit.feedback_gain circuit.eta_inter circuit.eta_apical circuit.eta_down
            circuit.self_predicting
        """,
        "error units": """
            circuit.tau_err circuit.look_err
        """,
        "equilibrium": """
            circuit.beta circuit.plastic
        """,
        "spiking": """
            circuit.tau_s circuit.q circuit.qe
        """,
        "dendritic": """
            circuit.conductances.g_lk circuit.conductances.g_B circuit.conductances.g_A
            circuit.conductances.g_D circuit.conductances.g_som circuit.tau_apical
            circuit.tau_inter circuit.inter_learned circuit.inter_rate circuit.inhibition
            circuit.look_inter circuit.look_apical
        """,
        "noisy": """
            circuit.sigma_x
        """,
        "watched": """
            record.units record.chips
        """,
        "brian": """
            brian.products
        """,
        "rising": """
            schedule.discount
        """,
    }.items()
    for field in fields.split()
}
"""A context for every field in which it must act."""


def nested(field: str, value: Any) -> dict[str, Any]:
    for name in reversed(field.split(".")):
        value = {name: value}
    return value


@pytest.fixture
def quick(monkeypatch):
    """Read the digits once, and leave out the look at stability: neither depends on a field."""
    monkeypatch.setattr(datasets, "load", functools.cache(datasets.load))
    monkeypatch.setattr(ChipRun, "warn", lambda self: None)
    monkeypatch.setattr(ChipRun, "_margin", lambda self: None)


def computed(setting: Config, folder: Path) -> dict[str, Any]:
    """Return all arrays of a run, its axes, and its trajectories."""
    out = folder / "run.h5" if setting.record.trajectories else None
    result = run(setting, out, overwrite=True)
    arrays = {name: variable.values for name, variable in result.variables.items()}
    arrays |= {f"axis {name}": labels for name, labels in result.coords.items()}
    if out and out.with_suffix(".trajectories.h5").exists():
        kept = store.load(out.with_suffix(".trajectories.h5"))
        arrays |= {f"kept {name}": variable.values for name, variable in kept.variables.items()}
    return arrays


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(
        a[name].shape == b[name].shape
        and a[name].dtype == b[name].dtype
        and np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f")
        for name in a
    )


def acts(base: dict[str, Any], reference: dict[str, Any], field: str, folder: Path) -> bool | None:
    """Return whether a field leaves a trace in a run; None if it is refused."""
    try:
        setting = config.parse(merged(base, nested(field, VALUES[field])))
        return not same(reference, computed(setting, folder))
    except (ConfigError, UnsupportedError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTEXTS)
def test_what_is_set_acts_or_is_refused(name, quick, tmp_path):
    changes, parts = CONTEXTS[name]
    base = merged(TINY, changes)
    setting = config.parse(base)
    reference = computed(setting, tmp_path)
    network = type(setting.network).model_fields
    already = {field for field, value, _ in set_fields(setting)}
    silent, idle = [], []
    for field in VALUES:
        tried = any(field == part or field.startswith(f"{part}.") for part in parts)
        if not tried or (field.startswith("network.") and field.split(".")[1] not in network):
            continue
        trace = acts(base, reference, field, tmp_path)
        if trace is False and field not in QUIET and field not in already:
            silent.append(field)
        if ACTS.get(field) == name and not trace:
            idle.append(field)
    assert silent == [], "accepted, and ignored"
    assert idle == [], "refused or ignored where it has a meaning"


def leaves(model: type[BaseModel], prefix: str = "") -> set[str]:
    names = set()
    for name, field in model.model_fields.items():
        inner = models_of(field.annotation) if name not in ("network", "device") else []
        for one in inner:
            names |= leaves(one, f"{prefix}{name}.")
        if not inner and name != "network":
            names.add(f"{prefix}{name}")
    return names


def test_every_field_is_tried():
    fields = leaves(Config) | leaves(Mlp, "network.") | leaves(Cnn, "network.")
    assert fields == VALUES.keys() | NOT_TRIED.keys()
    assert VALUES.keys() == ACTS.keys() | SOMEWHERE_ELSE
    sections = {field.rpartition(".")[0] for field in fields}
    assert {f for f in NEEDS if not f.startswith("network.")} <= fields | sections
    assert fields | {"network.scores.learned"} >= OFF
    for field, value in VALUES.items():
        assert field.startswith("network.") or value != default_of(field)


def default_of(field: str) -> Any:
    model: Any = config.parse(TINY)
    for name in field.split("."):
        model = getattr(model, name, None)  # none, where the circuit is of another kind
    return model


def test_the_search_can_find_an_ignored_field(quick, tmp_path, monkeypatch):
    """Without the table, what only a dendritic chip has leaves no trace in a discrete run."""
    monkeypatch.setattr(config, "meaningless", lambda _: {})
    reference = computed(config.parse(TINY), tmp_path)
    for field in ("circuit.delay_fb", "stream.t_pres", "record.every"):
        assert acts(TINY, reference, field, tmp_path) is False
    assert acts(TINY, reference, "learning.alpha", tmp_path) is True


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (
            {"circuit": {"kind": "dendritic"}},
            "circuit.kind: has no meaning in this run, and would be ignored; it needs run.backend "
            "'continuous' or 'brian'",
        ),
        ({"circuit": {"kind": "algebraic"}, "solver": {"name": "euler"}}, ""),
        ({"record": {"trajectories": True}}, "record.trajectories: has no meaning"),
        ({"record": {"units": 4}}, "record.units: has no meaning"),
        ({"schedule": {"rule": "zil", "T": 8}}, "a rule other than 'zil', which takes T = depth"),
        ({"schedule": {"rule": "bp", "gamma": 0.5}}, "schedule.gamma: has no meaning"),
        ({"learning": {"momentum": 0.9}}, "it needs learning.optimizer 'momentum'"),
        ({"learning": {"weight_decay": 0}, "stream": {"t_settle": 0}}, ""),
        ({"brian": {"target": "numpy"}}, "brian.target: has no meaning"),
        ({"convergence": {"rtol": 1e-3}}, "it needs run.automatic = true"),
        (IN_TIME | {"circuit": {"inter_rate": 1.0}}, "it belongs to circuit.kind 'dendritic'"),
        (
            IN_TIME | {"circuit": {"conductances": {"g_A": 1}}},
            "circuit.conductances: unknown name here; it belongs to circuit.kind 'dendritic' or 's",
        ),
        (
            IN_TIME | {"solver": {"dt": 0.1}, "schedule": {"gamma": 0.5}},
            "it needs no solver.dt, which says the same (γ = solver.dt/circuit.tau_x)",
        ),
    ],
)
def test_words(sections, words):
    data = merged(TINY, sections)
    if words:
        with pytest.raises(ConfigError) as caught:
            config.parse(data, "here.toml")
        assert str(caught.value).startswith("here.toml: ")
        assert words in str(caught.value)
    else:
        config.parse(data)


def test_a_stored_configuration_stays_itself():
    """Results keep every default; read back, only what has a meaning counts as set."""
    for changes, _ in CONTEXTS.values():
        setting = config.parse(merged(TINY, changes))
        back = config.from_json(setting.to_json())
        assert back == setting
        assert meaningless(back) == {}
        assert {f for f, value, default in set_fields(setting) if value != default} <= {
            f for f, _, _ in set_fields(back)
        }


def test_changes_leave_out_what_they_make_meaningless_and_are_refused_themselves():
    chip = config.parse(merged(TINY, CONTEXTS["dendritic"][0], {"record": {"every": 3}}))
    twin = config.changed(chip, {"run": {"backend": "discrete"}, "circuit": {"kind": "algebraic"}})
    assert twin == config.changed(config.parse(TINY), {"run": {"backend": "discrete"}})
    with pytest.raises(ConfigError, match=r"record\.units: has no meaning"):
        config.changed(chip, {"record": {"units": 3}})
