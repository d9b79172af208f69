"""Margins against a known truth: a population whose accuracy is a closed form, and the study."""

import sys
from math import exp, inf

import numpy as np
import pytest
from scipy.stats import norm

import pcsim
from pcsim import config, store
from pcsim.check import DIGITS
from pcsim.experiments.margins import study
from pcsim.runner.replicas import Replicas
from pcsim.store import Result, Variable
from pcsim.verdict import Verdict

PATH, SIGMA = "noise.sigma", 0.1
SPREAD = 0.3
NOISE = {"kind": "read_noise", "where": "product", "sigma": SIGMA}
TRUTH = 2.5 * exp(-SPREAD * norm.ppf(0.9))
"""Factor at which a tenth of all chips lose more than 5 points: 0.02 (σ/0.1) e^{0.3 ξ} = 0.05."""


def population(draw):
    """Return what stands for `run`: chip k loses 0.02 (σ/0.1) e^{0.3 ξ_k} and a little noise."""

    def run(setting, path=None, report=None):
        found = Replicas.of(setting)
        value = {}
        if not setting.hardware.ideal:
            value = {one.path: one.value for one in setting.hardware.quantities()}
        accuracy = []
        for cell, seed, chip in zip(found.cells, found.each_seed, found.chip_of, strict=True):
            of_seed = np.random.default_rng([draw, seed]).normal(0, 0.005)
            of_chip = np.random.default_rng([draw, 9, setting.hardware.seed, chip]).normal()
            sigma = (value | dict(cell)).get(PATH, 0.0)
            lost = 0.02 * sigma / 0.1 * exp(SPREAD * of_chip)
            small = np.random.default_rng([draw, seed, chip, int(1e6 * sigma)]).normal(0, 0.003)
            right = 0.9 + of_seed - lost + (small if sigma else 0.0)
            accuracy.append(0.1 if setting.data.shuffled else max(right, 0.0))
        values = found.unfold(np.array(accuracy))
        columns = {name: np.full(values.shape, np.nan) for name in Verdict.__dataclass_fields__}
        columns |= {"accuracy": values, "outcome": np.full(values.shape, "converged")}
        made = {f"verdict.{n}": Variable(found.dims, v) for n, v in columns.items()}
        return Result(made | {"accuracy": Variable(found.dims, values)}, found.coords)

    return run


def test_the_truth_lies_in_the_interval(monkeypatch):
    """In nine of ten populations at least; it is rather too wide, and yet tells ×1.7 from ×1.2."""
    inside, width = [], []
    pieces = {"noise": NOISE | {"sigma": SIGMA}, "fab": {"kind": "mismatch", "of": "tau_x"}}
    pieces["fab"]["sigma"] = 0.01
    setting = config.parse(DIGITS | {"hardware": {"chips": 32, "pieces": pieces}})
    for draw in range(10):
        monkeypatch.setattr(sys.modules["pcsim.check.rows"], "run", population(draw))
        found = pcsim.margins(setting, only=[PATH], bottleneck=False, twins=False, search=False)
        one = found.of(PATH)
        inside.append(one.low <= TRUTH <= one.high)
        width.append((one.low, one.value, one.high))
    assert np.sum(inside) >= 9, width
    assert np.mean([value for _, value, _ in width]) == pytest.approx(TRUTH, rel=0.1)
    assert np.median([low for low, *_ in width]) > 1.15
    assert np.median([high for *_, high in width]) < 2.6


def test_the_study_finds_the_truth_by_brute_force(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["pcsim.check.rows"], "run", population(1))
    case = ("gokmen_vlasov", "device.dw_min", study.GROW)
    monkeypatch.setitem(study.SCALES, "small", study.Scale(200, 6, 32, 400, 3, (case,)))
    monkeypatch.setattr(sys.modules[__name__], "PATH", "device.dw_min")
    monkeypatch.setattr(study, "setting", lambda scale, preset: scaled(scale, preset))
    study.main(tmp_path, "small")
    result = store.load(tmp_path / "margins.h5")
    assert result["brute_force"][0] == pytest.approx(np.log2(TRUTH), abs=0.15)
    assert study.inside(result).all()
    assert (tmp_path / "margins.png").stat().st_size > 5000


def scaled(scale, preset):
    """Return the study's chips with the number of the closed form."""
    device = {"device": {"dw_min": SIGMA}}
    fields = {"preset": preset, "chips": scale.chips, "pieces": device}
    return config.parse(DIGITS | {"hardware": fields, "run": DIGITS["run"] | {"seeds": [0, 1, 2]}})


def test_an_edge_is_where_the_share_falls_below_the_yield():
    assert study.edge([0, 1, 2], [1.0, 1.0, 0.8], 0.9) == pytest.approx(1.5)
    assert study.edge([0, 1, 2], [1.0, 0.9, 0.9], 0.9) == inf
    assert study.edge([0, 1, 2], [0.8, 0.5, 0.5], 0.9) == 0.0
    share = np.array([0.7, 1.0, 0.0])
    assert study.edge([0, 1, 2], share, 0.9, trains=False) == pytest.approx(2 / 3)
    assert study.edge([0, 1, 2], share / 2, 0.9, trains=False) == inf


@pytest.mark.parametrize(
    ("margin", "truth", "hit"),
    [
        ((1.0, 0.5, 1.5), 1.5, True),
        ((1.0, 0.5, 1.5), 1.6, False),
        ((1.0, 0.5, 1.5), 0.4, False),
        ((inf, 3.0, inf), inf, True),
        ((inf, inf, inf), inf, True),
        ((inf, inf, inf), 3.0, False),
        ((3.0, 2.0, inf), inf, True),
    ],
)
def test_inside_is_counted_at_both_ends(margin, truth, hit):
    result = Result(
        {
            "margin": Variable(("case", "end"), np.array([margin])),
            "brute_force": Variable(("case",), np.array([truth])),
        },
        {"place": np.array([0.0, 4.0])},
    )
    assert study.inside(result).tolist() == [hit]
    assert study.factor(2.0, study.SHRINK) == "÷4"
    assert study.factor(inf, study.GROW) == "beyond"
