"""Results that must not move: one small run of every circuit, rule, engine, solver and stream.

`python tests/golden/golden.py` writes them anew: only when a change of results is meant, and then
the changelog says which and why.
"""

import json
import sys
from pathlib import Path

import numpy as np

from pcsim import config
from pcsim.run import run

STORE = Path(__file__).with_name("golden.json")
BASE = {
    "network": {"sizes": [64, 6, 5, 10]},
    "schedule": {"T": 3, "gamma": 0.2},
    "learning": {"alpha": 0.05, "batch": 4, "epochs": 1},
    "data": {"name": "digits", "limit": 24, "limit_test": 40},
    "run": {"backend": "continuous", "engine": "torch", "dtype": "float64", "seeds": [3, 5]},
}
SIGMA = {"g_lk": 0.1, "g_B": 1.0, "g_A": 0.8, "g_D": 1.0, "g_som": 0.8}
PHYSICAL = {"schedule": {"init": "carry"}, "learning": {"batch": 1}}
CIRCUITS = {
    "algebraic": {},
    "random_feedback": {"circuit": {"transport": "random", "feedback_gain": 0.5}},
    "kolen_pollack": {"circuit": {"transport": "kolen_pollack", "weight_decay": 0.1}},
    "sign_feedback": {"circuit": {"transport": "sign"}},
    "late": {"circuit": {"delay_err": 0.4}},
    "look_soma": {"circuit": {"look_soma": 1.0}},
    "error_units": {"circuit": {"kind": "error_units", "tau_err": 0.3, "look_err": 0.2}},
    "dendritic": {"circuit": {"kind": "dendritic", "conductances": SIGMA}},
    "dendritic_lags": {
        "circuit": {"kind": "dendritic", "tau_apical": 0.3, "tau_inter": 0.2, "inhibition": 0.9}
    },
    "sacramento": {
        "network": {"bias": False},
        "circuit": {"kind": "sacramento", "conductances": SIGMA, "eta_apical": 0.5},
    },
    "equilibrium": {
        "circuit": {"kind": "equilibrium"},
        "stream": {"t_settle": 0.4},
        "learning": {"alpha": 0.003},
    },
    "spiking": {
        "circuit": {"kind": "spiking", "tau_err": 0.3, "tau_s": 0.4, "q": 0.2, "qe": 0.1},
        "learning": {"alpha": 0.01},
    },
}
SOLVERS = {name: {"solver": {"name": name}} for name in ("exponential", "heun", "rk4")} | {
    "maruyama": {"solver": {"name": "maruyama"}, "circuit": {"sigma_x": 0.1}},
    "stochastic_heun": {"solver": {"name": "stochastic_heun"}, "circuit": {"sigma_x": 0.1}},
}
STREAMS = {
    "carried": PHYSICAL,
    "settled": PHYSICAL | {"stream": {"t_settle": 0.4}},
    "smooth_label": PHYSICAL | {"stream": {"tau_label": 0.5}},
    "categorical": {"network": {"output": {"kind": "categorical"}}, "stream": {"tau_label": 0.5}},
    "generative": {"network": {"sizes": [10, 6, 64]}, "data": {"mode": "generative"}},
}
RULES = {
    rule: {"run": {"backend": "discrete"}, "schedule": {"rule": rule}}
    for rule in ("ipc", "pc", "zil", "bp")
} | {
    "adam": {
        "run": {"backend": "discrete"},
        "learning": {"optimizer": "adamw", "alpha": 0.003, "weight_decay": 0.01},
    },
    "momentum": {"run": {"backend": "discrete"}, "learning": {"optimizer": "momentum"}},
}
PRESETS = ("ecram_li", "reram_sb", "pcm", "pcm_programmed", "dynapse2", "loihi", "cmos_capacitor")
HARDWARE = {
    f"{preset}_{backend}": {
        "hardware": {"preset": preset, "chips": 2},
        "run": {"backend": backend, "seeds": [3]},
    }
    for preset in PRESETS
    for backend in ("continuous", "discrete")
}
BRIAN = {
    f"brian_{name}": {**case, "run": {"backend": "brian", "seeds": [3]}, "learning": {"batch": 1}}
    for name, case in (
        ("algebraic", {}),
        ("dendritic", CIRCUITS["dendritic_lags"]),
        ("spiking", CIRCUITS["spiking"]),
        ("ecram_li", {"hardware": {"preset": "ecram_li", "chips": 2}}),
    )
}
CASES = CIRCUITS | SOLVERS | STREAMS | RULES | HARDWARE | BRIAN


def settings(case):
    """Return the configuration of a case."""
    merged = {name: {**BASE.get(name, {}), **case.get(name, {})} for name in BASE | case}
    if merged["run"]["backend"] != "continuous":
        del merged["run"]["engine"]
    if merged["data"].get("mode") == "generative":
        del merged["data"]["limit_test"]
    if merged["schedule"].get("rule") == "zil":
        del merged["schedule"]["T"]
    if merged["schedule"].get("rule") == "bp":
        merged["schedule"] = {"rule": "bp"}  # which has no states
    return config.parse(merged, "golden")


def summary(case):
    """Return what is pinned: eight projections of all weights, accuracies, the last energy."""
    result = run(settings(case))
    weights = result["parameters"].reshape(-1, result["parameters"].shape[-1])
    axes = np.random.default_rng(1).standard_normal((8, weights.shape[1])) / weights.shape[1] ** 0.5
    pinned = {"weights": (weights @ axes.T).round(14).tolist()}
    for name in ("accuracy", "energy", "train_energy"):
        if name in result.variables:
            pinned[name] = np.asarray(result[name], float).reshape(-1)[-4:].tolist()
    return pinned


def main():
    """Write all results."""
    made = {name: summary(case) for name, case in CASES.items()}
    STORE.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
