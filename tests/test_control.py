"""α = 0 is a control: states, errors and read-outs as ever, and weights that do not move a bit."""

import numpy as np
import pytest
import torch

from pcsim import config
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.run import run

TINY = {
    "network": {"sizes": [64, 6, 10]},
    "data": {"limit": 12, "limit_test": 10},
    "learning": {"batch": 4, "epochs": 1, "alpha": 0},
    "run": {"dtype": "float64"},
}
IN_TIME = {"run": {"backend": "continuous"}, "schedule": {"gamma": 0.05}}
ON_BRIAN = {"run": {"backend": "brian"}, "learning": {"batch": 1}, "data": {"limit": 2}}
CASES = {
    "ipc": {},
    "pc": {"schedule": {"rule": "pc"}},
    "zil": {"schedule": {"rule": "zil"}},
    "bp": {"schedule": {"rule": "bp"}},
    "adamw": {"learning": {"optimizer": "adamw", "weight_decay": 0.1}},
    "algebraic": IN_TIME,
    "error units": IN_TIME | {"circuit": {"kind": "error_units", "tau_err": 0.1}},
    "dendritic": IN_TIME | {"circuit": {"kind": "dendritic"}},
    "feedback": IN_TIME | {"circuit": {"transport": "kolen_pollack"}},
    "decay": IN_TIME | {"learning": {"weight_decay": 0.1}},
    "rk4": IN_TIME | {"solver": {"name": "rk4"}},
    "alone in a grid": IN_TIME | {"grid": {"alpha": [0.0]}},
    "automatic": {
        "run": {"backend": "continuous", "automatic": True},
        "learning": {"batch": 0},
        "convergence": {"max_steps": 10},
    },
    "brian": ON_BRIAN,
    "synapses": ON_BRIAN | {"brian": {"products": False}},
}


def merged(*parts: dict) -> dict:
    sections: dict = {}
    for part in parts:
        for name, fields in part.items():
            sections[name] = sections.get(name, {}) | fields
    return sections


def start_of(setting: config.Config) -> np.ndarray:
    seeds = list(setting.run.seeds)
    return initial_parameters(setting.network.build(), seeds, torch.float64).flat.numpy()


@pytest.mark.parametrize("name", CASES)
def test_weights_stay_where_they_are(name):
    changes = CASES[name]
    setting, _ = config.pruned(merged(TINY, changes), "control")
    result = run(setting)
    assert np.array_equal(result["parameters"].reshape(1, -1), start_of(setting))
    assert np.isfinite(result["accuracy"]).all()
    moved = run(config.changed(setting, {"learning": {"alpha": 1e-3}, "grid": {"alpha": []}}))
    assert not np.array_equal(moved["parameters"].reshape(1, -1), start_of(setting))


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
def test_the_control_beside_others(backend):
    beside = {"run": {"backend": backend}, "grid": {"alpha": [0.0, 0.01]}}
    setting, _ = config.pruned(merged(TINY, beside), "control")
    weights = run(setting)["parameters"].reshape(2, -1)
    assert np.array_equal(weights[:1], start_of(setting))
    assert not np.array_equal(weights[1:], start_of(setting))


def test_discount_is_as_precise_as_the_states():
    """0.7 is no float32: a rate rounded to one would be 1e-8 off."""
    network = Network.mlp([3, 4, 2], "tanh")
    params = initial_parameters(network, [0], torch.float64)
    schedule = Schedule(T=4, gamma=0.3, discount=0.7)
    rule = Discrete(network, params, schedule, Optimizer(OptimizerSpec(), params, 0.0, 0.0, 1.0))
    rule.start([torch.ones(1, 1, 2).double(), None, torch.ones(1, 1, 3).double()])
    rule._last_energy = torch.zeros(1, dtype=torch.float64)  # so that the energy has risen
    rule.evaluate(rule._full)
    rule._discount()
    assert isinstance(rule._rate, torch.Tensor)
    assert float(rule._rate[0]) == 0.7 * 0.3
