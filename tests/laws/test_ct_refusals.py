"""What a run in continuous time cannot honour is refused, in one sentence that names the field."""

import pytest
import torch

from pcsim import config
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.errors import ConfigError, PcsimError, UnsupportedError
from pcsim.kernels.parameters import initial_parameters
from pcsim.runner.chip_run import ChipRun


def setting(**sections):
    """Return a run that is accepted, changed section by section."""
    base = {
        "network": {"sizes": [64, 12, 10]},
        "schedule": {"T": 6, "gamma": 0.2},
        "learning": {"alpha": 2e-3, "batch": 20, "epochs": 2},
        "data": {"name": "digits", "limit": 100},
        "run": {"backend": "continuous", "dtype": "float64"},
    }
    return config.changed(config.parse(base), sections)


def test_control_the_unchanged_run_is_accepted():
    ChipRun(setting())


@pytest.mark.parametrize(
    ("sections", "error", "words"),
    [
        ({"learning": {"optimizer": "adam"}}, UnsupportedError, r"learning\.optimizer 'adam'"),
        ({"schedule": {"rule": "pc"}}, UnsupportedError, r"schedule\.rule 'pc'"),
        ({"schedule": {"init": "normal"}}, UnsupportedError, r"schedule\.init 'normal'"),
        ({"schedule": {"discount": 0.9}}, UnsupportedError, r"schedule\.discount"),
        ({"learning": {"anneal": "cosine"}}, UnsupportedError, r"learning\.anneal"),
        (
            {"circuit": {"delay_err": 0.3}},
            ConfigError,
            r"circuit\.delay_err: 0\.3 s is not a whole",
        ),
        ({"stream": {"t_pres": 0.5}}, ConfigError, r"stream\.t_pres: 0\.5 s is not a whole"),
        ({"stream": {"t_settle": 0.5}}, ConfigError, r"stream\.t_settle: 0\.5 s is not"),
        ({"circuit": {"sigma_x": 0.1}}, UnsupportedError, "cannot integrate noise"),
        (
            {"circuit": {"delay_fb": 0.2}, "solver": {"name": "rk4"}},
            UnsupportedError,
            "whole past steps",
        ),
        ({"grid": {"weight_decay": [0.1, 0.2]}}, UnsupportedError, r"grid\.weight_decay"),
        (
            {"circuit": {"weight_decay": 0.1}, "learning": {"weight_decay": 0.2}},
            ConfigError,
            "contradicts",
        ),
        (
            {"circuit": {"tau_w": 10.0}, "grid": {"alpha": [1e-3, 2e-3]}},
            ConfigError,
            r"grid\.alpha: contradicts circuit\.tau_w",
        ),
        (
            {"learning": {"weight_decay": 0.1, "decay_bias": True}},
            UnsupportedError,
            r"learning\.decay_bias",
        ),
        (
            {"circuit": {"kind": "sacramento", "conductances": {}}},
            ConfigError,
            "g_som must be positive",
        ),
        (
            {"circuit": {"kind": "sacramento", "conductances": {"g_som": 0.5}}},
            UnsupportedError,
            "without biases",
        ),
        (
            {"circuit": {"kind": "dendritic"}, "network": {"convention": "post"}},
            UnsupportedError,
            "use 'pre'",
        ),
        (
            {"circuit": {"kind": "dendritic"}, "network": {"hidden": {"variance": 2.0}}},
            UnsupportedError,
            "has unit variance",
        ),
        (
            {"circuit": {"kind": "dendritic"}, "grid": {"alpha": [1e-3, 2e-3]}},
            UnsupportedError,
            "tau_w per weight",
        ),
        (
            {
                "circuit": {"kind": "error_units", "tau_err": 0.1},
                "network": {"hidden": {"learned": True}},
            },
            UnsupportedError,
            "fixed variance",
        ),
        ({"circuit": {"tau_err": 0.1}}, ConfigError, "circuit.tau_err: unknown name here; it b"),
        ({"data": {"mode": "associative"}}, ConfigError, "is inference, not training"),
    ],
)
def test_what_cannot_be_run_is_refused(sections, error, words):
    assert issubclass(error, PcsimError)
    with pytest.raises(error, match=words) as caught:
        ChipRun(setting(**sections))
    assert "\n" not in str(caught.value)


def test_a_masked_dendritic_layer_is_refused():
    network = setting().network.build()
    params = initial_parameters(network, [0], torch.float64)
    circuit = Circuit(kind="dendritic", tau_w=1.0)
    with pytest.raises(UnsupportedError, match="cannot be clamped in part"):
        Continuous(network, params, circuit, dt=0.1, mode="associative")
