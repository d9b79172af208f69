"""Every field of every kind: neither NaN nor infinity, and extremes end in a sentence or work."""

import math
from types import UnionType
from typing import Annotated, Union, get_args, get_origin

import numpy as np
import pytest
import torch
from kinds import EXAMPLES, fields_of
from site_world import transform

from hw_models import PIECES, describe
from hw_models.description import make_piece
from hw_models.plasticity import ExponentialDevice, PulseCurveDevice
from hw_models.quantize import WeightLevels
from pcsim.errors import ConfigError
from pcsim.substrate import Chips, Effect, Seeded, Substrate


def holds_float(kind):
    """Return whether a type is a float, or has one among its alternatives or items."""
    if get_origin(kind) in (Annotated, Union, UnionType, tuple):
        return any(holds_float(one) for one in get_args(kind))
    return kind is float


NUMBERS = [
    (kind, name)
    for kind, piece in PIECES.items()
    for name, field in piece.model_fields.items()
    if holds_float(field.annotation)
]


def given(kind, name, value):
    example = {**EXAMPLES[kind], "kind": kind}
    now = example.get(name, PIECES[kind].model_fields[name].default)
    example[name] = [value, *now[1:]] if isinstance(now, list | tuple) else value
    return example


def test_all_numbers_are_found():
    assert len(NUMBERS) > 150
    assert {kind for kind, _ in NUMBERS} >= set(PIECES) - {"dead_lines", "dead_neurons", "formula"}


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
def test_no_field_takes_nan_or_infinity(kind, name):
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ConfigError, match=r"finite number|must|should"):
            make_piece("mine", given(kind, name, value), None)


@pytest.mark.parametrize(("kind", "name"), NUMBERS)
def test_extremes_are_refused_or_stay_finite(kind, name):
    """What is accepted gives finite numbers in single precision, at usual signals."""
    values = (1e-300, 1e-30, 1e-12, 1e-3, 1e3, 1e9, 1e30, 1e300)
    long = kind in ("device_pair", "device_group")  # their texts take their time
    for value in values[::4] if long else values:
        try:
            piece = make_piece("mine", given(kind, name, value), None)
        except ConfigError:
            continue
        for effect in piece.effects("p"):
            chips = Chips(Substrate(effects=(effect,)), [0], seed=0, dt=0.1, noise=Seeded(0))
            if effect.fabricated:
                continue
            made = chips.transform(effect.site, 0, (3, 4))
            s = torch.linspace(-1, 1, 12).view(1, 3, 4)
            sums = dict.fromkeys(made.aggregates, torch.full_like(s, 0.5))
            of_site = {"velocity": {"x": s}, "write": {"w": s.flip(1), "tau_w": 1.0}}
            more = of_site.get(effect.site, {})
            for _ in range(2):
                seen = made(s * 0.01 if effect.site == "write" else s, **sums, **more)
                chips.advance()
            assert bool(torch.isfinite(seen).all()), (value, effect.becomes)


@pytest.mark.parametrize("count", [2, 512, 1024])
def test_any_number_of_levels_up_to_the_limit(count):
    levels = np.linspace(-1, 1, count)
    _, read = transform(WeightLevels(levels=levels.tolist()), (1, 7))
    w = torch.tensor([[[-2.0, -0.9, -0.301, 0.0, 0.2, 0.71, 5.0]]], dtype=torch.float64)
    nearest = levels[np.abs(levels[:, None] - w.numpy().ravel()).argmin(0)]
    np.testing.assert_allclose(read(w).numpy().ravel(), nearest, atol=2 / count)
    assert np.isin(read(w).numpy().round(9), levels.round(9)).all()


def test_more_levels_are_refused_by_number():
    with pytest.raises(ConfigError, match=r"levels.*1024.*1025"):
        describe("ideal", {"w": {"kind": "weight_levels", "levels": list(range(1025))}})


def test_steep_laws_do_not_overflow():
    steep = ExponentialDevice(
        dw_min=0.01, A_up=-1e6, A_down=1e6, gamma_up=100.0, gamma_down=-100.0, a=100.0, b=100.0
    )
    flat = PulseCurveDevice(dw_min=1e-6, curvature_up=1e6, curvature_down=1e-3)
    for device in (steep, flat):
        _, write = transform(device, (1, 9))
        w = torch.linspace(-1, 1, 9, dtype=torch.float64).view(1, 1, -1)
        for asked in (1.0, -1.0, 1e-6, 0.0):
            assert bool(torch.isfinite(write(torch.full_like(w, asked), w=w)).all())


@pytest.mark.parametrize("name", EXAMPLES)
def test_effects_with_a_clock_are_complete(name):
    """Their texts know every symbol they use: as an effect that is written down anew."""
    for effect in make_piece("mine", fields_of(name), None).effects("p"):
        fields = {field: getattr(effect, field) for field in Effect.model_fields}
        assert Effect(**fields) == effect


@pytest.mark.parametrize("kind", [["a"], {"b": 1}, 3, None])
def test_a_kind_is_a_name(kind):
    with pytest.raises(ConfigError, match=r"^hardware\.pieces\.mine: .*kind"):
        describe("ideal", {"mine": {"kind": kind}})


NOISE = {"kind": "read_noise", "where": "weight", "sigma": 0.1}
DRIFT = {"kind": "conductance_drift", "nu": 0.1}


def test_noise_before_drift_is_refused():
    """It would be taken for writes, and the drift would begin anew in every step."""
    early = {**NOISE, "before": "drift"}
    with pytest.raises(ConfigError, match="puts noise behind it"):
        describe("ideal", {"noise": early, "drift": DRIFT}).substrate()
    seen = {"kind": "write_noise", "sigma": 0.1, "mode": "seen"}
    with pytest.raises(ConfigError, match="puts drift behind it"):
        describe("ideal", {"drift": DRIFT, "seen": {**seen, "after": "drift"}}).substrate()
    assert describe("ideal", {"drift": DRIFT, "noise": NOISE}).substrate().effects
    assert describe("ideal", {"seen": seen, "drift": DRIFT}).substrate().effects


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "quantized_weights", "bits": 4, "t_write": 1.0}, "accumulator = false"),
        ({"kind": "retention", "lifetime": 1.0, "t_write": 1.0}, "needs no clock"),
        ({"kind": "retention", "lifetime": 0.5, "per": "update"}, "at least one update"),
        ({"kind": "converter", "where": "rate", "bits": 4, "t_sample": 0.0}, "greater than 0"),
        ({"kind": "pcm_drift", "t0": 1e-9}, "t_read must not exceed t0"),
        (
            {
                "kind": "fast_array",
                "rate": 0.1,
                "device": {"kind": "constant_device", "dw_min": 0.1, "t_write": 1.0},
            },
            "set t_write of the piece that holds the device",
        ),
        (
            {
                "kind": "device_pair",
                "device": {
                    "kind": "constant_device",
                    "dw_min": 0.1,
                    "w_min": 0.0,
                    "write_noise": 1.0,
                },
            },
            "not seen here",
        ),
    ],
)
def test_clocks_that_would_not_be_heeded_are_refused(fields, sentence):
    with pytest.raises(ConfigError, match=r"^hardware\.pieces\.mine") as caught:
        describe("ideal", {"mine": fields})
    assert sentence in str(caught.value)
