"""The cost estimate: counts against the counter of real runs, joules against hand arithmetic."""

import json
import re
from contextlib import nullcontext

import pytest
import torch

from hw_models import ConstantDevice, Hardware, cost, known_presets, with_counters
from hw_models.cost import Counts, Estimate, count, estimates, plainly, ratio_moves
from hw_models.cost_entries import (
    CLOCKED,
    CONTINUOUS,
    DIGITAL,
    PULSE,
    CostTable,
    Entry,
    entry,
    tables_for,
    time_constant,
)
from pcsim import config
from pcsim.backends.discrete import Discrete
from pcsim.check import DIGITS, physical
from pcsim.check.cost import cost_of
from pcsim.check.pulses import counted_pulses
from pcsim.cli import app
from pcsim.config import Schedule
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.counter import Counter
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

SIZES = (6, 5, 4, 3)
NETWORK = Network.mlp(SIZES)
WEIGHTS = 6 * 5 + 5 * 4 + 4 * 3


@pytest.mark.parametrize("rule", ["ipc", "pc"])
def test_products_are_those_that_a_run_counts(rule):
    """Besides the feed-forward pass, which the counter leaves out."""
    T, batch, counter = 7, 2, Counter()
    params = initial_parameters(NETWORK, [0], torch.float64)
    schedule = Schedule(rule=rule, T=T, gamma=0.1, fast=False)
    optimizer = Optimizer(OptimizerSpec(), params, 1e-3)
    run = Discrete(NETWORK, params, schedule, optimizer, counter=counter)
    x, y = (
        torch.rand(1, batch, 6, dtype=torch.float64),
        torch.rand(1, batch, 3, dtype=torch.float64),
    )
    run.batch([y, None, None, x])
    counts = count(NETWORK, rule, T=T, batch=batch, batches=1)
    assert counts.products == batch * (counter.mms + 3)
    assert counts.reads_in_turn == batch * (counter.smms + 3)
    assert counts.writes == WEIGHTS * len(counter.updates)
    assert counts.writes_in_turn == len(counter.updates)
    carried = count(NETWORK, rule, T=T, batch=batch, batches=1, carry=True)
    assert carried.products == batch * counter.mms
    assert carried.reads_in_turn == batch * counter.smms


def test_counts_of_backprop_by_hand():
    counts = count(NETWORK, "bp", T=99, batch=10, batches=3)
    assert counts.macs == 30 * (WEIGHTS + 5 * 4 + 4 * 3)  # T plays no part
    assert counts.products == 30 * 5
    assert counts.reads_in_turn == 30 * 5
    assert counts.writes == counts.changes == 3 * WEIGHTS
    assert counts.inputs == 30 * (6 + 5 + 4 + 4 + 3)
    assert counts.outputs == 30 * (5 + 4 + 3 + 5 + 4)
    assert (counts.neurons, counts.weights) == (sum(SIZES), WEIGHTS)


def test_wide_layers_take_several_arrays():
    """A line drives every array to its right, an output is summed over every array above."""
    wide = count(Network.mlp([300, 70]), "bp", T=1, batch=1, batches=1)
    assert wide.inputs == 300 * 3  # 70 outputs fill three arrays of 32
    assert wide.outputs == 70 * 3  # 300 inputs fill three arrays of 128


def test_ipc_costs_more_reads_and_writes_than_backprop_but_fewer_than_steps_times():
    ipc = count(NETWORK, "ipc", T=8, batch=10, batches=3)
    bp = count(NETWORK, "bp", T=8, batch=10, batches=3)
    pc = count(NETWORK, "pc", T=8, batch=10, batches=3)
    zil = count(NETWORK, "zil", T=8, batch=10, batches=3)
    assert ipc.writes == 8 * bp.writes
    assert pc.writes == zil.writes == bp.writes
    assert ipc.changes == bp.changes, "at one rate per sample a weight moves equally far"
    assert zil.macs < pc.macs == ipc.macs < 10 * bp.macs
    # in time, layers in parallel win back a part of it
    assert ipc.reads_in_turn / bp.reads_in_turn < ipc.products / bp.products


PLAIN = {
    name: Entry(low=0.5 * value, typical=value, high=3 * value, source="made up")
    for name, value in {
        "mac": 1.0, "input": 2.0, "output": 3.0, "write": 4.0, "pulses": 5.0, "state": 6.0,
        "t_read": 7.0, "t_write": 8.0, "neuron": 9.0, "weight": 10.0, "tau_x": 1.5,
    }.items()
}  # fmt: skip
ONE = Counts(macs=1, inputs=1, outputs=1, writes=100, changes=1, states=1, reads_in_turn=1,
             writes_in_turn=1, neurons=1, weights=1, simulated=2)  # fmt: skip


def test_joules_are_counts_times_table():
    def made(mode):
        return Estimate(what="x", counts=ONE, table=CostTable(name="x", mode=mode, **PLAIN))

    parts = {"products": 1, "converters": 5, "writes": 20, "states": 6, "bias": 15 * 19}
    assert made("clocked").joules() == parts
    assert made("clocked").seconds() == 15
    assert made("clocked").total() == sum(parts.values())
    assert made("clocked").total("low") < made("clocked").total() < made("clocked").total("high")
    assert made("continuous").seconds() == 2 * 1.5, "two time constants pass, as they do"
    assert made("continuous").seconds("high") == 2 * 4.5
    assert made("continuous").joules()["bias"] == 2 * 1.5 * 19
    assert made("clocked").seconds(at={"t_read": "high"}) == 21 + 8
    assert made("digital").joules()["writes"] == 100 * 5 * 4, "every occasion is a write"
    clocked = made("clocked")
    assert clocked.largest() == ("bias", pytest.approx(285 / 317))
    moved = clocked.sensitivity()
    assert moved["write"] == pytest.approx((317 + 40) / (317 - 10))
    assert moved["state"] == pytest.approx((317 + 12) / (317 - 3))
    assert list(moved.values()) == sorted(moved.values(), reverse=True)


def test_a_ratio_moves_as_its_entries_do():
    """An entry that both tables share moves in both; counted pulses move one by one."""
    mine = {name: PLAIN[name] for name in ("write", "pulses", "neuron", "tau_x")}
    own = PLAIN["pulses"].model_copy(update={"typical": 2.0})
    one = Estimate(what="one", counts=ONE, table=CostTable(name="x", mode="continuous", **mine))
    theirs = {"write": PLAIN["write"], "pulses": own, "mac": PLAIN["mac"]}
    other = Estimate(what="other", counts=ONE, table=CostTable(name="y", mode="clocked", **theirs))
    # one: pulses·write + 2·tau·neuron = 20 + 27; other: pulses·write + mac = 8 + 1
    moves = {move.entry: (move.low, move.high) for move in ratio_moves(one, other)}
    assert moves == {
        "write": (pytest.approx((10 + 27) / (4 + 1)), pytest.approx((60 + 27) / (24 + 1))),
        "pulses of one": (pytest.approx((10 + 27) / 9), pytest.approx((60 + 27) / 9)),
        "pulses of other": (pytest.approx(47 / (10 + 1)), pytest.approx(47 / (60 + 1))),
        "neuron": (pytest.approx((20 + 13.5) / 9), pytest.approx((20 + 81) / 9)),
        "tau_x": (pytest.approx((20 + 13.5) / 9), pytest.approx((20 + 81) / 9)),
        "mac": (pytest.approx(47 / 8.5), pytest.approx(47 / 11)),
    }
    factors = [move.factor for move in ratio_moves(one, other)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == pytest.approx((47 / 11) / (47 / 61))


def test_a_published_whole_chip_lies_within_the_range():
    """64 cores of 256 × 256 in 14 nm, all that is on the chip included, 8 bits in and out: 2.48 and
    9.76 TOPS/W with four and one phases (Le Gallo et al., Nature Electronics 6, 680, 2023)."""
    read = count(Network.mlp([256, 256]), "bp", T=1, batch=1, batches=1)
    made = Estimate(what="read", counts=read.model_copy(update={"changes": 0}), table=CLOCKED)
    per_mac = {level: made.total(level) / 256**2 for level in ("low", "typical", "high")}
    published = [2 / 9.76e12, 2 / 2.48e12]
    assert per_mac["low"] < published[0] < per_mac["typical"] < published[1] < per_mac["high"]
    # The durations of the table are those of the chip: 2·64·256² operations per read.
    operations = 2 * 64 * 256**2
    assert operations / CLOCKED.t_read.low == pytest.approx(63.1e12, rel=0.01)
    assert operations / CLOCKED.t_read.typical == pytest.approx(16.1e12, rel=0.01)


def test_the_cycle_of_isaac_is_one_bit_on_two_bit_cells():
    """8 bits are 8 cycles of 100 ns, and 4 cells of 2 bits."""
    cycles, cells, cycle = 8, 4, 100e-9
    assert CLOCKED.mac.typical == pytest.approx(cycles * cells * 0.3e-3 * cycle / 128**2, rel=0.01)
    assert CLOCKED.input.typical == pytest.approx(cycles * 4e-3 / 1024 * cycle, rel=0.01)
    assert CLOCKED.output.typical == pytest.approx(cycles * cells * 2e-3 / 1.28e9, rel=0.01)
    assert CLOCKED.t_read.high == pytest.approx(cycles * cycle)
    assert (128, 128 // cells) == cost.TILE


def test_every_entry_rises_and_has_a_source_or_is_an_assumption():
    """Of every preset: a year or an identifier names a source, else it says what it is."""
    founded = re.compile(r"assumption|by definition|[( ](19|20)\d\d\b|arXiv:\d{4}\.\d{4,5}")
    for preset in known_presets():
        for table in tables_for(preset):
            for name, one in table.entries.items():
                assert 0 < one.low <= one.typical <= one.high, (preset, table.name, name)
                assert founded.search(one.source), (preset, table.name, name)
                wide = one.low < one.high or "by definition" in one.source
                assert wide, f"{preset}: {name} of {table.name} has no range"
    assert not founded.search("as usual"), "control"
    with pytest.raises(ConfigError, match="must rise"):
        entry(2, 1, 3, "")


def test_a_preset_has_the_pulse_of_its_technology():
    assert tables_for("pcm_programmed")[0].write == PULSE["pcm"]
    assert tables_for("ecram_li")[1].write == PULSE["ecram"]
    assert tables_for("rram_milo")[0].write == PULSE["reram"]
    assert tables_for("idealized")[0].write.source == "assumption: as of resistive memory"
    assert all(any(name.startswith(tech) for name in known_presets()) for tech in PULSE)
    assert tables_for("photonic")[1].weight.typical == 1e-3, "a heater holds it"
    assert tables_for("photonic")[0].write != tables_for("reram_sb")[0].write


def test_time_constants_are_known_or_assumed():
    assert [getattr(time_constant(2.0), k) for k in ("low", "typical", "high")] == [2, 2, 2]
    guessed = time_constant(2.0, "somas of 2 s")
    assert (guessed.low, guessed.high, guessed.source) == (0.2, 20, "assumption: somas of 2 s")
    of = {
        name: cost_of(physical(config.parse(DIGITS | {"hardware": {"preset": name}})), 834)
        for name in ("dynapse2", "brainscales2", "ecram_li")
    }
    taus = {name: one.estimates[0].table.tau_x for name, one in of.items()}
    assert taus["dynapse2"].low == taus["dynapse2"].high == 20e-3
    assert taus["brainscales2"].source.startswith("assumption: somas of 10 us")
    assert taus["ecram_li"].source.startswith("assumption")


def test_a_continuous_chip_pays_for_time_and_a_clocked_one_for_steps():
    def made(steps, present):
        given = {"batch": 1, "batches": 10}
        found = estimates("ecram_li", NETWORK, steps=steps, present=present, **given)
        return {one.what: one for one in found}

    short, finer, slower = made(10, 10), made(40, 10), made(10, 1000)
    key = "automatic iPC, continuous"
    assert finer[key].total() == short[key].total(), "steps of the simulation cost nothing"
    extra = slower[key].total() - short[key].total()
    assert extra == pytest.approx(99 * short[key].joules()["bias"])
    clocked = "automatic iPC, clocked"
    assert slower[clocked].total() == short[clocked].total()
    assert finer[clocked].joules()["converters"] == 4 * short[clocked].joules()["converters"]
    assert finer[clocked].joules()["writes"] == short[clocked].joules()["writes"]
    text = plainly(list(short.values()))
    ratio = short[clocked].total() / short["BP, clocked"].total()
    assert text.startswith(f"estimate: on a clocked array automatic iPC takes {ratio:.3g} times")


def test_a_check_has_the_times_of_its_chip():
    def found(**sections):
        return cost_of(physical(config.parse(DIGITS | sections)), 834)

    plain, whole = found(), found(hardware={"preset": "dynapse2"})
    assert plain.assumed
    assert plain.estimates[0].counts.simulated == pytest.approx(834 * 20)
    assert plain.estimates[0].seconds() == pytest.approx(834 * 20e-6)
    assert not whole.assumed
    assert whole.estimates[0].seconds() == pytest.approx(834 * 20 * whole.tau_x)
    assert whole.tau_x == known_presets()["dynapse2"].chip.tau_x
    own = found(circuit={"tau_x": 0.5})
    assert (own.tau_x, own.assumed) == (0.5, False)
    assert plain.estimates[1].counts.products == 834 * 50 * 3, "20 τ_x in steps of 0.4, 3 products"
    title, moves, entries = plain.tables()
    assert len(moves.rows) == 6
    assert "estimate" in title.title
    assert "(assumption)" in title.caption
    assert len(entries.rows) == sum(len(t.entries) for t in (CLOCKED, CONTINUOUS, DIGITAL)) + 1
    flow = {"automatic": True, "backend": "continuous"}
    automatic = config.parse({**DIGITS, "learning": {"batch": 0}, "run": flow})
    assert cost_of(automatic, 100) is None


def test_the_command_runs_nothing_and_prints_the_estimate(capsys):
    app(["cost", "--hardware", "ecram_li", "--entries"], standalone_mode=False)
    printed = " ".join(capsys.readouterr().out.split())
    assert "Cost: an estimate" in printed
    assert "ISAAC" in printed
    assert "on a clocked array automatic iPC takes" in printed
    app(["cost", "--json"], standalone_mode=False)
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["ratios"]["automatic iPC, clocked : BP, clocked"]["moves"][0]["low"] > 0
    assert numbers["BP, clocked"]["joules"]["low"] < numbers["BP, clocked"]["joules"]["high"]


def test_counters_count_the_pulses_that_devices_get():
    """Requests of all sizes: |s|/dw in the mean, and the weights of a noiseless device say so."""
    device = ConstantDevice(dw_min=0.01, w_max=100.0, w_min=-100.0)
    chip = with_counters(Hardware(pieces={"device": device}))
    chips = Chips(chip.substrate(), [0], seed=0, dt=1.0, noise=Seeded(2), dtype=torch.float64)
    write = chips.transform("write", 0, (1, 400))
    w, moved, touched = torch.zeros(1, 1, 400, dtype=torch.float64), 0.0, 0
    torch.manual_seed(0)
    for scale in (0.001, 0.02) * 20:
        change = write(scale * torch.randn_like(w), w=w)
        w, moved = w + change, moved + float(change.abs().sum())
        touched += int((change != 0).sum())
        chips.advance()
    found = {name: float(v.sum()) for name, v in chips.state().items() if "counted_device" in name}
    pulses = found["counted_device.pulses.write0"]
    assert pulses == pytest.approx(moved / 0.01, rel=0.02)
    assert found["counted_device.touched.write0"] == pytest.approx(touched, rel=0.02)
    assert touched < 0.85 * pulses, "control: larger requests are several pulses"
    assert with_counters(known_presets()["dynapse2"]) is None
    matched = with_counters(known_presets()["reram_sb_matched_chip"])
    order = list(matched.pieces)
    assert order[:3] == ["accumulator", "counted_device", "device"], "behind the accumulator"
    pair = with_counters(known_presets()["pcm"]).pieces["counted_device"]
    assert pair.constants["dw"] == 0.01


def test_counted_pulses_take_the_place_of_the_assumption(capsys):
    settings = {
        **DIGITS,
        "data": {"name": "digits", "limit": 80, "limit_test": 50},
        "hardware": {"preset": "ecram_li"},
    }
    config_ = physical(config.parse(settings))
    found = counted_pulses(config_, lambda _: nullcontext())
    assert list(found) == ["ipc", "pc", "bp"]
    again = counted_pulses(
        physical(config.parse(settings | {"learning": {"alpha": 0.0005}})), lambda _: nullcontext()
    )
    for rule, one in found.items():
        low, mean, high = one.pulses
        assert 0 < low <= mean <= high
        assert one.touched <= mean
        assert one.samples == 80 - 80 // 6
        assert again[rule].pulses[1] == pytest.approx(mean / 2, rel=0.25), "as the rate"
    cost_ = cost_of(config_, 67, found)
    plain = cost_of(config_, 67)
    tables = {one.what: one.table.pulses.typical for one in cost_.estimates}
    assert tables["BP, clocked"] == found["bp"].pulses[1]
    assert tables["automatic iPC, continuous"] == found["ipc"].pulses[1]
    assert tables["BP, digital"] == 1
    assert {one.table.pulses.typical for one in plain.estimates} == {1.0}
    assert cost_.sentence.endswith("pulses were counted")
    assert len(cost_.tables()) == 4
    named = [move.entry for _, moves in cost_.ratios.values() for move in moves]
    assert "pulses of BP, clocked" in named, "what was counted is each rule's own"
    with pytest.raises(UnsupportedError, match="none to count"):
        app(["cost", "--hardware", "dynapse2", "--measure"], standalone_mode=False)


def test_nonsense_is_refused():
    with pytest.raises(ConfigError, match="choose bp, pc, zil or ipc"):
        count(NETWORK, "sgd", T=1, batch=1, batches=1)
    with pytest.raises(ConfigError, match="at least 1"):
        count(NETWORK, "ipc", T=0, batch=1, batches=1)
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        Entry(low=-1.0, typical=1, high=1, source="")
