"""Laws that `specs` and `margins` quote: at the working point of the check, with their error."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from test_margins import TINY

from pcsim import config
from pcsim.check import CHIP, Criterion
from pcsim.check.tuning import Rate
from pcsim.limits import Always
from pcsim.limits.errors import error_of
from pcsim.runner.task import Task
from pcsim.variants.limit import Estimate
from pcsim.variants.margins_found import Margins
from pcsim.variants.quotes import NO_LAW, Laws
from pcsim.variants.specs_found import Specs

PIECES = {
    "weights": {"kind": "quantized_weights", "bits": 5, "accumulator": False},
    "multiplier": {"kind": "learning_multiplier", "offset_spread": 0.01},
    "adc": {"kind": "converter", "where": "product", "bits": 3, "range": 8.0},
}


def checked(rate=0.05, tolerance=0.05, pieces=PIECES, **changes):
    """Return what `Laws` asks of a check; nothing is trained."""
    sections = {**TINY, "learning": {"batch": 1, "epochs": 2}, **changes}
    setting = config.parse(sections | {"hardware": {"chips": 2, "pieces": pieces}})
    criterion = Criterion(tolerance=tolerance)
    rates = {CHIP: Rate(rate)}
    answer = SimpleNamespace(seeds=3, chips=2, good=SimpleNamespace(count=2))
    return SimpleNamespace(config=setting, criterion=criterion, rates=rates, answer=answer)


def layer(check, rate=0.05, tolerance=0.05):
    """Return the layer that the laws speak of, from the configuration's own numbers."""
    task = Task.load(check.config, check.config.network.build())
    (x, y), (others, theirs) = (
        (part.x.double().numpy(), part.y.numpy()) for part in (task.train, task.validation)
    )
    tau_x, steps = check.config.circuit.tau_x, 5
    return Always.of(
        x, y, others, theirs, points=tolerance, dt=0.4 * tau_x, tau_x=tau_x,
        tau_w=0.4 * tau_x * steps / rate, presentation=2.0 * tau_x, passes=2,
    )  # fmt: skip


def test_a_quote_is_the_number_of_the_law_at_the_rate_of_the_check():
    check = checked()
    laws, own = Laws(check), layer(check)
    offset = laws.of("multiplier.offset_spread")
    assert offset.limit.value == pytest.approx(own.offset().value)
    assert offset.limit.law == 36
    bits = laws.of("weights.bits")
    expected = own.bits(1.0, accumulator=False, stochastic=False, writes_of=1.0)
    assert bits.limit.value == expected.value
    assert bits.error == error_of("nearest", 0.05)
    assert bits.words == f"≥ {expected.value:.3g} by law 24"
    assert "bits too generous" in bits.off


def test_a_number_without_a_law_says_so_and_so_does_a_network_without_a_layer():
    laws = Laws(checked())
    for path in ("adc.bits", "adc.range", "multiplier.gain_spread", "weights.range"):
        quote = laws.of(path)
        assert quote.limit is None
        assert (quote.words, quote.off) == (NO_LAW, "–")
        assert quote.data() == {"limit": None, "reason": NO_LAW}
    crowd = Laws(checked(learning={"batch": 20, "epochs": 2}))
    assert crowd.of("weights.bits").words == "its laws speak of one sample at a time"


def test_rate_tolerance_and_other_numbers_move_a_quote():
    path = "multiplier.offset_spread"
    here = Laws(checked()).of(path).limit.value
    assert Laws(checked(rate=0.4)).of(path).limit.value < here, "it integrates for longer"
    assert Laws(checked(tolerance=0.2)).of(path).limit.value > here
    laws = Laws(checked())
    assert laws.of(path, {"multiplier.full_scale": 2.0}).limit.value == pytest.approx(here / 2)
    assert laws.of(path, {"adc.range": 2.0}).limit.value == here, "control: another piece"
    fast, slow = (Laws(checked(rate=r)).of("weights.bits").limit.value for r in (0.4, 0.0125))
    assert slow == fast + 5, "a rate 32 times smaller writes 32 times less"


def test_specs_and_margins_show_what_was_quoted():
    check = checked()
    laws = Laws(check)
    limits = (Estimate(0.01, 0.0, 0.02), Estimate(0.2, 0.19, 0.21))
    axis = {"multiplier.offset_spread": (0.001, 0.1)}
    quote = laws.of("multiplier.offset_spread")
    found = Specs(check, 2, axis, limits, np.zeros((2, 3, 2)), (quote,))
    assert found.law is quote
    table = found.tables()[0]
    assert table.columns[2:] == ("law", "off")
    assert table.rows[0][2:] == (quote.words, quote.off)
    assert f"beforehand: {quote.words}; on the map that was {quote.off}" in found.sentence()
    said = json.loads(json.dumps(found.data()))["laws"][0]
    assert said["limit"] == pytest.approx(quote.limit.value)
    assert (said["law"], said["map"]["unit"]) == (36, "factor")
    silent = Specs(check, 2, axis, limits, np.zeros((2, 3, 2)), (laws.of("adc.bits"),))
    assert "beforehand" not in silent.sentence()
    assert silent.tables()[0].rows[0][2:] == (NO_LAW, "–")

    numbers = tuple(check.config.hardware.quantities())
    quotes = {one.path: laws.of(one.path) for one in numbers}
    rows = {row[0]: row for row in Margins(check, 2, numbers, (), (), quotes).tables()[0].rows}
    assert rows["multiplier.offset_spread"][-2:] == (quote.words, quote.off)
    assert rows["adc.bits"][-2:] == ("–", "–")
