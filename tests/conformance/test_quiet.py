"""Devices that get no pulse: what is left of their law there, and that all of it is exact."""

from dataclasses import replace

import pytest
from adapter import differences
from case import Presentation
from cases import CASES
from continuous_adapter import CONTINUOUS
from native_adapter import NATIVE

from hw_models import describe
from pcsim.native import devices
from pcsim.native.formula import evaluate, names, parse
from pcsim.native.quiet import quiet

LAW = "clip(step*s1*(2 + exp(w)) + sqrt(abs(s1))*xi, low - w, high - w)"
PULSES = "dw*floor(s/dw + u)"


def test_what_is_left_without_a_pulse():
    law = parse(LAW, {"s1": parse(PULSES)})
    found = quiet([law], {"xi", "u"}, ())
    assert found is not None
    assert found.gates == (parse(PULSES),)
    assert found.roots == (parse("clip(0, low - w, high - w)"),)
    known = {"step": 0.1, "w": 0.9, "xi": 0.3, "low": -0.8, "high": 0.8, "dw": 0.1, "u": 0.2}
    assert evaluate(law, known | {"s": 0.05}) == evaluate(found.roots[0], known)
    assert evaluate(law, known | {"s": 0.09}) != 0, "control: a pulse"


def test_noise_that_is_always_there_leaves_nothing_to_skip():
    always = parse("s1 + 0.1*xi", {"s1": parse(PULSES)})
    assert quiet([always], {"xi", "u"}, ()) is None
    assert quiet([parse("s*gain + offset")], {"xi"}, ()) is None, "nothing to save"


def test_several_gates_memory_among_them():
    law = parse("int(g > limit)*xi + exp(waiting)*waiting + s1*xi2", {"s1": parse(PULSES)})
    found = quiet([law], {"xi", "xi2", "u"}, {"waiting"})
    assert found is not None
    assert not names(*found.roots)
    assert set(found.gates) == {parse(PULSES), parse("int(g > limit)"), parse("waiting")}


def test_two_noisy_reads_that_decide_on_something_dear_are_a_gate():
    """As of a pair of devices that is refreshed: most are not, and nothing else is drawn there."""
    decides = "int(g + misread*xi_a > limit)*int(h + misread*xi_b > least)"
    dear = "*(xi_c + exp(g)*xi_d + xi_e)"
    found = quiet([parse(decides + dear)], {f"xi_{k}" for k in "abcde"}, ())
    assert found is not None
    assert found.gates == (parse(decides),)


DEVICE = {"kind": "linear_device", "w_max": 0.5, "w_min": -0.5, "cycle_noise": 0.3}


@pytest.mark.parametrize("dw", [1e-4, 3e-3, 0.1], ids=["always", "often", "seldom"])
@pytest.mark.parametrize("samples", [1, 3])
def test_pulses_that_come_often_or_seldom(dw, samples, monkeypatch):
    """Weights start outside their bounds, too: they are clipped without any pulse."""
    substrate = describe("ideal", {"device": DEVICE | {"dw_min": dw}}).substrate()
    script = (Presentation(0, 60, feedforward=True), Presentation(1, 60))
    case = replace(CASES["linear"], hardware=substrate, script=script, samples=samples, gain=1.5)
    used = []
    original = devices.quiet
    monkeypatch.setattr(devices, "quiet", lambda *given: used.append(original(*given)) or used[-1])
    apart = differences(CONTINUOUS.run(case), NATIVE.run(case))
    assert max(apart.values()) <= 1e-12, apart
    assert any(used)
