"""One table from a number to its law: what it quotes is the law's own function, or nothing."""

from math import inf, isnan

import numpy as np
import pytest

from hw_models import PIECES
from pcsim.limits import Always, lags
from pcsim.limits.axes import AXES, Ground, axis_of
from pcsim.limits.errors import LEVELS, error_of


@pytest.fixture(scope="module")
def unit():
    rng = np.random.default_rng(3)
    x = np.abs(rng.normal(size=(600, 6)))
    labels = (x @ rng.normal(size=(6, 3)) + 0.3 * rng.normal(size=(600, 3))).argmax(1)
    return Always.of(
        x[:400], labels[:400], x[400:], labels[400:],
        points=0.05, dt=0.4, tau_x=1.0, tau_w=400.0, presentation=20.0,
    )  # fmt: skip


def fields_of(kind, **changes):
    piece = PIECES[kind]
    return piece(**{**piece.EXAMPLE, **changes}).model_dump(mode="json")


NOISE = {"where": "error", "t_sample": None, "relative": False, "sigma": 0.1}
ROUNDED = {"bits": 6, "range": 2.0, "accumulator": False, "rounding": "nearest", "t_write": None}
LINES = {"reference": "range", "range": 2.0, "sigma": 0.01, "t_sample": None}
OWN = LINES | {"reference": "weight"}
STEP = {"dw_min": 0.001, "cycle_noise": 0.0, "range": 2.0}
OFFSET = {"offset_spread": 0.1, "full_scale": 2.0, "gain_error": 0.5}


@pytest.mark.parametrize(
    ("kind", "number", "changes", "own"),
    [
        ("read_noise", "sigma", NOISE, lambda u: u.read_noise()),
        ("array_read_noise", "sigma", LINES, lambda u: u.line_noise(2.0)),
        ("array_read_noise", "sigma", OWN, lambda u: u.line_noise(None)),
        (
            "quantized_weights", "bits", ROUNDED,
            lambda u: u.bits(2.0, accumulator=False, stochastic=False, writes_of=1.0),
        ),
        (
            "quantized_weights", "bits", ROUNDED | {"t_write": 4.0},
            lambda u: u.bits(2.0, accumulator=False, stochastic=False, writes_of=10.0),
        ),
        (
            "quantized_weights", "bits", ROUNDED | {"rounding": "stochastic"},
            lambda u: u.bits(2.0, accumulator=False, stochastic=True, writes_of=1.0),
        ),
        ("constant_device", "dw_min", STEP, lambda u: u.granularity().over(2.0)),
        ("constant_device", "cycle_noise", STEP, lambda u: u.cycle_noise(0.002)),
        ("constant_device", "imbalance", STEP, lambda u: u.imbalance()),
        (
            "linear_device", "w_max", STEP | {"gamma_up": 1.0, "gamma_down": 1.0},
            lambda u: u.bounds().over(2.0),
        ),
        ("learning_multiplier", "offset_spread", OFFSET, lambda u: u.offset(2.0, 1.5)),
        ("retention", "lifetime", {"lifetime": 9.0}, lambda u: u.lifetime()),
        ("write_noise", "sigma", {"mode": "walk"}, lambda u: u.write_noise()),
        ("mismatch", "sigma", {"of": "tau_x"}, lambda u: u.times()),
    ],
)  # fmt: skip
def test_a_quoted_limit_is_that_of_the_law(unit, kind, number, changes, own):
    fields = fields_of(kind, **changes)
    axis = axis_of(kind, number, fields)
    assert axis is not None
    found = axis.limit(Ground(unit, dt=0.4), fields)
    assert found == own(unit)
    assert found.law == axis.law


@pytest.mark.parametrize(
    ("kind", "number", "changes"),
    [
        ("read_noise", "sigma", NOISE | {"where": "feedback"}),
        ("read_noise", "sigma", NOISE | {"relative": True}),
        ("read_noise", "sigma", NOISE | {"t_sample": 0.1}),
        ("array_read_noise", "sigma", LINES | {"reference": "root_weight"}),
        ("constant_device", "dw_min", STEP | {"drive": "continuous"}),
        ("constant_device", "w_max", STEP),
        ("linear_device", "w_max", STEP | {"gamma_up": 0.5}),
        ("learning_multiplier", "offset_spread", OFFSET | {"chop": 1.0}),
        ("mismatch", "sigma", {"of": "error_gain"}),
        ("conductance_drift", "nu", {}),
    ],
)
def test_where_a_law_does_not_hold_there_is_none(kind, number, changes):
    assert axis_of(kind, number, fields_of(kind, **changes)) is None


def test_other_fields_and_the_working_point_move_a_limit(unit):
    fields = fields_of("quantized_weights", **ROUNDED)
    bits = axis_of("quantized_weights", "bits", fields)
    here = bits.limit(Ground(unit, dt=0.4), fields).value
    assert bits.limit(Ground(unit, dt=0.4), fields | {"range": 8.0}).value == here + 2
    multiplier = fields_of("learning_multiplier", **OFFSET)
    offset = axis_of("learning_multiplier", "offset_spread", multiplier)
    small = offset.limit(Ground(unit), multiplier).value
    assert offset.limit(Ground(unit), multiplier | {"full_scale": 4.0}).value == small / 2


def test_numbers_of_the_circuit_have_laws_of_learnt_weights(unit):
    theta = np.array([[0.9, -0.3], [0.2, 0.8], [0.5, 0.1]])
    delay = axis_of("circuit", "delay_err", {})
    found = delay.limit(Ground(unit, tau_x=0.5, curvature=2.0), {})
    assert found.value == pytest.approx(0.5 * lags.delay_limit(2.0))
    inter = axis_of("circuit", "tau_inter", {"kind": "dendritic"})
    assert inter.limit(Ground(unit, tau_x=0.5, inter_bound=3.0), {}).value == 1.5
    assert axis_of("circuit", "tau_inter", {"kind": "plain"}) is None
    units = axis_of("circuit", "tau_err", {"kind": "error_units"})
    assert units.limit(Ground(unit), {}).value == inf
    present = axis_of("stream", "t_pres", {})
    assert present.limit(Ground(unit, tau_x=0.5, theta0=theta), {}).value == pytest.approx(
        0.5 * unit.shortest(theta).value
    )
    assert isnan(present.limit(Ground(unit), {}).value), "no weights, no number"


def test_the_table_names_fields_that_exist_and_no_number_twice():
    for axis in AXES:
        if axis.kinds[0] in ("circuit", "stream"):
            continue
        for kind in axis.kinds:
            known = set(PIECES[kind].model_fields)
            assert {axis.number, *axis.given} <= known, axis.name
    rows = [(kind, one.number, repr(one.given)) for one in AXES for kind in one.kinds]
    assert len(set(rows)) == len(rows)


def test_the_error_of_a_law_is_that_at_the_nearest_loss():
    known = {one.name for one in AXES if error_of(one.name, 0.03)}
    assert {"noise", "nearest", "offset", "retention"} <= known
    assert error_of("noise", 0.002) == error_of("noise", LEVELS[0])
    assert error_of("noise", 0.2) == error_of("noise", LEVELS[-1])
    assert error_of("cycle noise", 0.03) is None, "the map has not tried it"
    generous, strict = error_of("offset", 0.03), error_of("line", 0.03)
    assert generous.value > 1 > strict.value
    assert generous.words.endswith("too generous")
    assert strict.words == f"×{1 / strict.value:.2g} too strict"
    assert "bits too generous" in error_of("nearest", 0.03).words
