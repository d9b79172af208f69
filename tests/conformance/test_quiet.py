"""Devices that get no pulse: what is left of their law there, and that all of it is exact."""

from dataclasses import replace

import numpy as np
import pytest
from adapter import differences
from case import Presentation
from cases import CASES
from continuous_adapter import CONTINUOUS
from native_adapter import NATIVE

from hw_models import describe
from pcsim.native import devices
from pcsim.native.formula import evaluate, names, parse, symbol
from pcsim.native.quiet import possible, quiet

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


TICK = "int(floor((t + dt)/period) > ticks)"


def test_a_clock_that_ticks_in_every_step_is_not_the_only_gate():
    law = parse(f"g + {TICK}*(exp(g)*s1 + sqrt(abs(s1))*xi)", {"s1": parse(PULSES)})
    found = quiet([law], {"xi", "u"}, {"ticks"})
    assert found is not None
    assert found.clock is not None
    assert found.gates == (parse(PULSES),)
    assert found.clock.gates == (parse(TICK),)
    assert found.clock.roots == (parse("g"),), "between two ticks, nothing is drawn"
    alone = quiet([parse(f"g + {TICK}*(xi - g)")], {"xi"}, {"ticks"})
    assert alone is not None
    assert alone.clock is None
    assert alone.gates == (parse(TICK),), "where there is nothing else, the clock is the gate"


REFRESH = "int(g + misread*xi_a > limit)*int(least <= h - misread*xi_b)"


def test_a_condition_on_noise_holds_only_where_it_is_possible():
    generator = np.random.default_rng(0)
    reach = {f"xi_{k}": symbol(f"reach_{k}") for k in "ab"}
    gate, could = parse(REFRESH), possible(parse(REFRESH), reach)
    assert could is not None
    assert names(could).isdisjoint(reach)
    seen = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    beyond = 0
    for _ in range(2000):
        known = dict(zip(("g", "h", "misread"), generator.normal(size=3), strict=True))
        known |= {"limit": 1.0, "least": 0.0}
        noise = {f"xi_{k}": float(generator.normal()) for k in "ab"}
        most = {f"reach_{k}": 1.1 * abs(noise[f"xi_{k}"]) for k in "ab"}
        holds = bool(evaluate(gate, known | noise))
        seen[holds, bool(evaluate(could, known | most))] += 1
        less = {name: 0.5 * value for name, value in most.items()}
        beyond += holds and not evaluate(could, known | less)
    assert seen[True, False] == 0
    assert seen[True, True] > 100
    assert seen[False, False] > 100
    assert beyond > 10, "control: noise that exceeds what it is said to reach"
    assert possible(parse("int(exp(xi_a) > g)"), reach) is None
    assert possible(parse("step*floor(g + xi_a)"), reach) is None, "no condition"


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


PAIR = {
    "kind": "device_pair",
    "device": {"kind": "exponential_device", "dw_min": 0.01, "w_min": 0.0, "w_max": 1.0}
    | {"A_up": -8.0, "A_down": -2.0, "gamma_up": 2.0, "gamma_down": 2.0, "a": -1.0},
    "refresh_at": 0.4,
    "refresh_floor": 0.05,
    "refresh_read": 0.1,
}


@pytest.mark.parametrize("period", [0.05, 0.37], ids=["every step", "seldom"])
def test_pairs_that_are_refreshed_by_noisy_reads_at_the_ticks_of_a_clock(period):
    substrate = describe("ideal", {"device": PAIR | {"t_write": period}}).substrate()
    script = (Presentation(0, 60, feedforward=True), Presentation(1, 60))
    case = replace(CASES["linear"], hardware=substrate, script=script, gain=1.5)
    by_torch = CONTINUOUS.run(case)
    apart = differences(by_torch, NATIVE.run(case))
    assert max(apart.values()) <= 1e-12, apart
    never = describe("ideal", {"device": PAIR | {"t_write": period, "refresh_at": 1.0}})
    other = CONTINUOUS.run(replace(case, hardware=never.substrate()))
    assert max(differences(by_torch, other).values()) > 1e-3, "control: some are refreshed"
