"""The study of remedies: what needs one, what is tried together, and what a remedy needs."""

from pathlib import Path

import numpy as np
import pytest

from pcsim import config as configuration
from pcsim.check import DIGITS
from pcsim.check.criterion import Criterion
from pcsim.experiments.presets.study import shipped
from pcsim.experiments.remedies import chips, rounds, study
from pcsim.experiments.remedies.rounds import Candidate, Rounds, Scale

TINY = Scale(40, 40, 2, 2, (0.05,), 2, 1)


PAGE = Path(__file__).parents[1] / "docs" / "presets.md"


def line(preset, loss, seconds):
    return {"preset": preset, "loss": str(loss), "error": "1.0", "cpu_seconds": str(seconds)}


def test_what_loses_more_than_the_tolerance_needs_a_remedy_and_chips_come_before_devices():
    table = [
        line("fine", 100 * Criterion().tolerance, 1),
        line("slow_chip", 70, 400),
        line("slow", 70, 300),
        line("quick", 6, 2),
        line("device", 70, 1),
    ]
    assert chips.failing(table) == ["device", "quick", "slow_chip", "slow"]


def test_remedies_act_together_in_an_order_in_which_both_have_a_place():
    wide, narrow = "range doubled", "range matched"
    assert list(chips.pairs("sot_mram", (narrow, "range matched"))) == []
    assert list(chips.pairs("sot_mram", (narrow, wide))) == [(narrow, wide)]
    both = chips.built("reram_sb_chip", ("range matched", "accumulator of 10 pulses"), 40, 2)
    device = both.setting.hardware.described().pieces["device"]
    made = both.setting.hardware.described().pieces["accumulator"]
    assert device.range == 0.3
    assert made.threshold == pytest.approx(10 * device.quantum), "pulses of the narrow device"
    first = chips.built("reram_sb_chip", ("accumulator of 10 pulses", "range matched"), 40, 2)
    other = first.setting.hardware.described().pieces["accumulator"]
    assert other.threshold > made.threshold, "control: the order matters"
    assert chips.built("sot_mram", ("accumulator",), 40, 2) is None


def test_what_remedies_need_adds_up():
    made = chips.built(
        "reram_sb_chip", ("residual learning over three tiles", "states reset"), 40, 2
    )
    needs = made.needs()
    assert needs["automatic"] == "no"
    assert needs["devices"] == "2"
    assert "a reset per soma" in needs["lines"]
    assert "controller" in needs["lines"]
    assert made.setting.schedule.init == "ff"
    assert made.setting.hardware.chips == 2
    plain = chips.built("dynapse2", ("smooth label",), 40, 2).needs()
    assert (plain["host"], plain["automatic"], plain["devices"]) == ("yes", "yes", "0")


def test_the_best_and_the_best_without_a_controller_go_on():
    scale = Scale(40, 40, 2, 2, (0.05,), 2, 1)
    ranked = [
        Candidate(("a",), 0.9, 0.1, automatic=False),
        Candidate(("b",), 0.8, 0.1, automatic=False),
        Candidate((), 0.7, 0.1, automatic=True),
        Candidate(("c",), 0.6, 0.1, automatic=True),
        Candidate(("d",), -1.0, 0.1, automatic=True, refused="no"),
        Candidate(("e",), -1.0, 0.1, automatic=True),
    ]
    chosen = Rounds(scale, None)._chosen(ranked)
    assert [one.names for one in chosen] == [("a",), ("b",), ("c",), ("e",)]


def test_the_best_remedy_comes_first_at_its_best_rate():
    scores = {"nothing": (0.3, 0.2), "range matched": (0.5, 0.7), "range halved": (0.6, 0.6)}

    class Fake(Rounds):
        def measure(self, name, job, setting):
            score = np.array(scores[name.rpartition(", ")[2]])
            variables = {"score": rounds.Variable(("rate",), score)}
            return rounds.Result(variables, {"rate": np.array([0.1, 0.2])}, {"refused": ""})

    asked = dict.fromkeys(((), ("range matched",), ("range halved",)), (0.1, 0.2))
    ranked = Fake(TINY, None).candidates("sot_mram", asked, 1)
    assert [(one.names, one.score, one.rate) for one in ranked] == [
        (("range matched",), 0.7, 0.2),
        (("range halved",), 0.6, 0.1),
        ((), 0.3, 0.1),
    ]


def test_what_is_not_rescued_is_tried_with_partners(monkeypatch):
    """The best single one behind each that follows; none where the best is good enough."""
    scale = Scale(40, 40, 2, 2, (0.05,), 1, 2)
    tried = []

    class Fake(Rounds):
        lost = 0.2

        def candidates(self, preset, asked, chips, samples=0):
            tried.extend(asked)
            order = ["range matched, accumulator", "accumulator", "4 devices per weight"]
            scores = {(name,): 0.9 - 0.1 * k for k, name in enumerate(order)}
            scores["4 devices per weight", "range matched, accumulator"] = 0.95
            return sorted(
                (Candidate(n, scores.get(n, 0.1), 0.05, automatic=True) for n in asked),
                key=lambda one: -one.score,
            )

        def answer(self, preset, one, against):
            return type("Answer", (), {"loss": np.array([self.lost])})

    ranked, best = Fake(scale, None).search("reram_hfo2", None)
    together = ("4 devices per weight", "range matched, accumulator")
    assert together in tried
    assert ranked[0].names == together
    assert best[0].names == together
    assert sum(len(names) == 2 for names in tried) == scale.partners + 1, "the last is compared"
    tried.clear()
    monkeypatch.setattr(Fake, "lost", 0.02)
    _, best = Fake(scale, None).search("reram_hfo2", None)
    assert best[0].names == ("range matched, accumulator",)
    assert not [names for names in tried if len(names) == 2]


def test_a_tiny_study(tmp_path, monkeypatch, capsys):
    presets = [line(name, 60, 1) for name in ("sot_mram", "pcm_joshi", "pcm_joshi_chip")]
    monkeypatch.setitem(study.SCALES, "small", TINY)
    monkeypatch.setattr(study, "table_of_presets", lambda: presets)
    kept = ("range matched", "states reset")
    few = configuration.parse(
        DIGITS
        | {
            "network": {"sizes": [64, 4, 10]},
            "data": {"name": "digits", "limit": 12, "limit_test": 10},
            "stream": {"t_pres": 4.0},
        }
    )
    monkeypatch.setattr(chips, "digits", lambda samples: few)
    of_all = rounds.with_a_place
    monkeypatch.setattr(
        rounds, "with_a_place", lambda one: {n: r for n, r in of_all(one).items() if n in kept}
    )
    against = rounds.Result(
        {
            "reference": rounds.Variable(("seed",), np.full(3, 0.9)),
            **{n: rounds.Variable((), np.asarray(0.1)) for n in ("guess", "floor", "cpu_seconds")},
        },
        {},
        {},
    )
    monkeypatch.setattr(rounds, "reference", lambda samples: against)
    study.main(tmp_path, "small")
    assert "CPU minutes" in capsys.readouterr().out
    text = (tmp_path / "remedies_small.csv").read_text()
    assert text.startswith("# pcsim experiment remedies --scale small\npreset,without")
    rows = shipped(tmp_path / "remedies_small.csv")
    assert {one["preset"] for one in rows} == {"sot_mram", "pcm_joshi", "pcm_joshi_chip"}
    every = shipped(tmp_path / "remedies_small_screened.csv")
    assert {one["preset"] for one in every} == {"sot_mram", "pcm_joshi_chip"}, "whole chips alone"
    together = [one["remedy"] for one in every if "+" in one["remedy"]]
    assert together, "the best are tried together"
    assert all(one["automatic"] == "no" for one in every if "states reset" in one["remedy"])
    assert not (tmp_path / "remedies_small.cells").exists()


def test_the_page_shows_the_shipped_table():
    """Its losses without a remedy are those of the table of presets, as far as that knows them."""
    rows = shipped(study.SHIPPED)
    assert study.page_table(rows) in PAGE.read_text(encoding="utf-8")
    losses = {one["preset"]: (float(one["loss"]), float(one["error"])) for one in shipped()}
    for one in rows:
        loss, error = losses[one["preset"]]
        without = float(one["without"]), float(one["without_error"])
        assert abs(loss - without[0]) <= error + without[1], one["preset"]
