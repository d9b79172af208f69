"""Every kind of non-ideality and every preset on every engine that takes it, number by number.

The chips, their draws and their noise are the same; Brian2 runs the effects as its own statements,
the discrete backend where Euler's steps are the steps of iPC. A refusal is listed with its reason.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from adapter import differences
from brian_adapter import NUMPY
from case import Case, Presentation
from continuous_adapter import CONTINUOUS
from discrete_adapter import DISCRETE
from hardware_pieces import KINDS, of_kind
from native_adapter import NATIVE

from hw_models import PIECES, describe, known_presets
from hw_models.presets import CHIPS
from pcsim.circuit import Circuit
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.network import Network

LIMIT = 1e-12
NETWORK = Network.mlp([3, 4, 2], "tanh")
ENGINES = {"brian": NUMPY, "discrete": DISCRETE, "native": NATIVE}
SHORT = (Presentation(0, 30, feedforward=True), Presentation(1, 30))
RUNNING = (Presentation(0, 30), Presentation(1, 30))
LONG = (Presentation(0, 100, feedforward=True), Presentation(1, 100))
SOME_CHIPS = ("reram_sb_chip", "dynapse2_on_chip")
"""Whole chips are the other presets with converters and noise: these two stand for all."""
ALIKE = {"ideal", *(chip.name for chip in CHIPS)} - set(SOME_CHIPS)
PRESETS = [name for name in known_presets() if name not in ALIKE]
AT_ZERO = ("conductance_drift",)
"""What asks whether a change is exactly zero: not to be asked right after a feed-forward pass,
where changes are zero but for the last bit of a sum, which no two engines share."""
REFUSED: dict[tuple[str, str], str] = {
    (chip.name, "brian"): "auto_range needs the largest signal of a row"
    for chip in CHIPS
    if chip.name in SOME_CHIPS and "adc_back" in chip.pieces
}
"""(kind or preset, engine) → a pattern of its refusal."""


def case(name: str, substrate, script=SHORT) -> Case:
    circuit = Circuit(kind="algebraic", tau_w=5.0)
    return Case(name, NETWORK, circuit, script=script, hardware=substrate)


@cache
def of(name: str, preset: bool) -> tuple[Case, dict[str, np.ndarray]]:
    """Return a case with the trajectory of the continuous engine."""
    substrate = describe(name, {}).substrate() if preset else of_kind(name)
    made = case(name, substrate, LONG if preset else RUNNING if name in AT_ZERO else SHORT)
    return made, CONTINUOUS.run(made)


def agrees(name: str, engine: str, preset: bool) -> None:
    adapter = ENGINES[engine]
    made, expected = of(name, preset)
    if (reason := REFUSED.get((name, engine))) is not None:
        with pytest.raises((UnsupportedError, ConfigError), match=reason):
            adapter.run(made)
        return
    found = differences(expected, adapter.run(made), adapter.not_shown(made))
    assert max(found.values()) <= LIMIT, found


def test_every_kind_has_an_example():
    assert set(KINDS) == set(PIECES)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind, engine):
    agrees(kind, engine, preset=False)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_for_two_hundred_steps(name, engine):
    made, _ = of(name, True)
    assert made.steps == 200
    agrees(name, engine, preset=True)


SITES = {
    "write": ("s*(1 + 0.3*xi) + 0.1*m*dt/tau_w", "m + dt*(w - m)"),
    "weight": ("s + 0.02*m", "m + dt*(xi - m)"),
    "product": ("s + 0.1*m*sqrt(power)", "m + dt*(xi - m)"),
    "velocity": ("s + 0.1*xi/sqrt(dt) - 0.2*m*x", "m + dt*(t - m)"),
    "membrane": ("s + m", "m*exp(-dt/0.7) + 0.1*sqrt(1 - exp(-2*dt/0.7))*xi"),
}
"""A formula with noise and memory at each of these: what the signal becomes, and its memory."""


@pytest.mark.parametrize("site", SITES)
def test_a_formula_with_noise_and_memory(site):
    becomes, update = SITES[site]
    fields = {"kind": "formula", "site": site, "becomes": becomes, "noise": {"xi": "normal"}}
    fields["memory"] = {"m": {"start": "0.3*start_xi", "update": update}}
    made = case(site, describe("ideal", {"mine": fields}).substrate())
    expected = CONTINUOUS.run(made)
    for adapter in (NUMPY, NATIVE):
        found = differences(expected, adapter.run(made), adapter.not_shown(made))
        assert max(found.values()) <= LIMIT, found
    assert np.abs(expected["w0"] - ideal()["w0"]).max() > 1e-4  # control


SETTINGS = {
    "mean over samples": {"scale": 0.5},
    "time constants of their own": {"mismatch": ("tau_w",)},
    "interneurons that learn": {"circuit": {"kind": "dendritic", "inter_rate": 1.3}},
    "feedback that learns": {
        "circuit": {"transport": "kolen_pollack"},
        "network": Network.mlp([3, 4, 2], "tanh", prior=0.0),
        "mode": "generative",
    },
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_time_constant_of_plasticity_is_the_same_number_everywhere(setting):
    fields = dict(SETTINGS[setting])
    circuit = Circuit(**{"kind": "algebraic", "tau_w": 5.0, **fields.pop("circuit", {})})
    made = replace(case(setting, of_kind("learning_multiplier")), circuit=circuit, **fields)
    expected = CONTINUOUS.run(made)
    for adapter in (NUMPY, NATIVE):
        found = differences(expected, adapter.run(made), adapter.not_shown(made))
        assert max(found.values()) <= LIMIT, found
    other = replace(made, circuit=circuit.model_copy(update={"tau_w": 6.0}))
    assert np.abs(CONTINUOUS.run(other)["w0"] - expected["w0"]).max() > 1e-4  # control


@cache
def ideal() -> dict[str, np.ndarray]:
    return CONTINUOUS.run(replace(case("ideal", None), hardware=None))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_matters(kind):
    """Control: the trajectory is not that of ideal hardware."""
    _, found = of(kind, False)
    assert max(np.abs(found[name] - ideal()[name]).max() for name in ("w0", "w1", "x1")) > 1e-4
