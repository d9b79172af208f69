"""Whole chips: periphery around devices, ranges that follow the errors, and what verdicts say."""

import numpy as np
import pytest
import torch
from site_world import transform

from hw_models import describe, known_presets, preset, standing
from hw_models.converters import Converter
from hw_models.noise import ReadNoise
from hw_models.preset_file import load, text
from hw_models.presets import CHIPS, TRAINING
from hw_models.presets.chips import CYCLE, periphery
from hw_models.printed import pages
from pcsim import config as configuration
from pcsim.check.physical import DIGITS, at_chip_time, physical
from pcsim.errors import ConfigError
from pcsim.hardware import HardwareConfig
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.differences import chips_differ, has_noise


def line(values):
    return torch.as_tensor(np.asarray(values, dtype=float)).view(1, 1, -1)


def test_chips_are_their_devices_with_the_periphery_of_their_source():
    for device in TRAINING:
        if device.name in ("idealized", "gokmen_vlasov"):
            assert f"{device.name}_chip" not in known_presets()
            continue
        chip = preset(f"{device.name}_chip")
        assert chip.chip is not None
        assert chip.chip.learning == "on chip"
        for name, piece in device.pieces.items():
            assert chip.pieces[name].model_dump() == piece.model_dump() | {"t_write": CYCLE} or (
                piece.kind == "stuck_weights" and chip.pieces[name] == piece
            )
        around = {n: p.model_dump() for n, p in chip.pieces.items() if n not in device.pieces}
        bits = {n: (p["where"], p["bits"], p["range"], p["auto_range"])
                for n, p in around.items() if p["kind"] == "converter"}  # fmt: skip
        assert bits == {
            "dac": ("rate", 7, 1.0, False),
            "adc": ("product", 9, 20.0, False),
            "adc_back": ("feedback", 9, 20.0, True),
        }
        sigmas = {n: p["sigma"] for n, p in around.items() if p["kind"] == "read_noise"}
        assert sigmas == {"noise": 0.1, "noise_back": 0.1}


@pytest.mark.parametrize(("name", "dw"), [("reram_sb", 0.002), ("reram_es", 0.00135)])
def test_a_matched_chip_is_its_chip_with_one_range_and_an_accumulator_in_front(name, dw):
    plain, matched = preset(f"{name}_chip"), preset(f"{name}_matched_chip")
    first, *others = matched.pieces
    assert first == "accumulator", "requests add up before the device sees them"
    assert others == list(plain.pieces)
    assert matched.pieces["accumulator"].threshold == pytest.approx(50 * dw * 0.3)
    changed = {n for n in plain.pieces if plain.pieces[n] != matched.pieces[n]}
    assert changed == {"device"}
    fields = matched.pieces["device"].model_dump()
    assert fields == plain.pieces["device"].model_dump() | {"range": 0.3}


def test_a_range_that_follows_the_errors_makes_no_difference_to_small_ones():
    piece = Converter(where="feedback", bits=6, range=2.0, auto_range=True)
    _, read = transform(piece, (101,))
    s = line(np.linspace(-1.5, 1.5, 101))
    whole = read(s, peak=torch.ones(1, 1, 1, dtype=torch.float64))
    small = read(1e-4 * s, peak=torch.full((1, 1, 1), 1e-4, dtype=torch.float64))
    torch.testing.assert_close(small, 1e-4 * whole, rtol=1e-12, atol=0)
    step = 2.0 / 31
    assert float((whole - s).abs().max()) <= step / 2 + 1e-12
    assert len(np.unique(whole.numpy().round(9))) == 2 * int(1.5 / step + 0.5) + 1
    nothing = read(0 * s, peak=torch.zeros(1, 1, 1, dtype=torch.float64))
    assert float(nothing.abs().max()) == 0
    # control: without it small errors are lost
    _, fixed = transform(piece.model_copy(update={"auto_range": False}), (101,))
    assert float(fixed(1e-4 * s).abs().max()) == 0


def test_noise_behind_such_a_range_is_relative_to_the_largest_error():
    for peak in (1.0, 0.01):
        _, read = transform(
            ReadNoise(where="feedback", sigma=0.1, auto_range=True), (20_000,), seed=3
        )
        seen = read(line(np.zeros(20_000)), peak=torch.full((1, 1, 1), peak).double())
        assert float(seen.std()) == pytest.approx(0.1 * peak, rel=0.02)


@pytest.mark.parametrize("where", ["product", "rate", "error"])
def test_other_signals_have_no_such_range(where):
    for kind, more in ((Converter, {"bits": 8}), (ReadNoise, {"sigma": 0.1})):
        with pytest.raises(ConfigError, match="auto_range is for where"):
            kind(where=where, auto_range=True, **more)


def test_composed_periphery_has_the_noise_and_the_fixed_error_of_its_parts():
    """256 × 256: noise √(σ² + lsb²/12) and, behind its dither, the rounding of the inputs alone."""
    rng = np.random.default_rng(1)
    n, size, reads = 256, 0.31, 400
    x, w = rng.uniform(-1, 1, n), rng.uniform(-1, 1, (n, n)) * size * np.sqrt(3)
    pieces = periphery(7, 9, 20.0, 0.1)
    effects = tuple(e for name, piece in pieces.items() for e in piece.effects(name))
    chips = Chips(
        Substrate(effects=effects), [0], seed=0, dt=CYCLE, noise=Seeded(5), dtype=torch.float64
    )
    rate, product = chips.transform("rate", 0, (n,)), chips.transform("product", 0, (n,))
    seen = []
    for _ in range(reads):
        sent = rate(line(x))
        seen.append(product(sent @ torch.tensor(w).T).numpy().ravel())
        chips.advance()
    exact = w @ x
    spread = exact.std()
    noise = np.std(seen, axis=0, ddof=1).mean() / spread
    fixed = (np.mean(seen, axis=0) - exact).std() / spread
    lsb_out, lsb_in = 20 / 255, 1 / 63
    assert noise == pytest.approx(np.sqrt(0.1**2 + lsb_out**2 / 12) / spread, rel=0.02)
    expected = np.sqrt(n * size**2 * lsb_in**2 / 12 + 0.1**2 / reads) / spread
    assert fixed == pytest.approx(expected, rel=0.15)
    # the figures of the source, whose inputs and weights are of such sizes
    assert 0.035 < noise < 0.045
    assert 0.007 < fixed < 0.011


def test_what_differs_from_chip_to_chip_is_told_from_spreads_of_zero():
    plain = describe("ideal", {"adc": {"kind": "converter", "where": "product", "bits": 8}})
    assert not chips_differ(plain.substrate())
    assert not has_noise(plain.substrate())
    spread = describe(plain, {"adc": {"gain_error": 0.01}}).substrate()
    assert chips_differ(spread)
    noisy = describe(plain, {"adc": {"dither": True}}).substrate()
    assert has_noise(noisy)
    assert not chips_differ(noisy)
    stuck = {"kind": "stuck_weights", "fraction": 0.0}
    assert not chips_differ(describe("ideal", {"stuck": stuck}).substrate())
    assert chips_differ(describe("ideal", {"stuck": {**stuck, "fraction": 0.1}}).substrate())
    for name in ("spinnaker2", "photonic"):
        assert HardwareConfig(preset=name).identical
    for name in ("ecram_li", "dynapse2", "brainscales2", "loihi"):
        assert not HardwareConfig(preset=name).identical


def test_every_verdict_can_say_what_is_on_chip():
    words = {name: " | ".join(standing(one)) for name, one in known_presets().items()}
    assert words["ideal"] == ""
    for name in ("dynapse2", "brainscales2", "photonic", "rram_wan_chip"):
        assert "host in the loop | hidden accumulator" in words[name]
    for name in ("dynapse2_on_chip", "brainscales2_on_chip", "reram_sb_chip"):
        assert "whole chip" in words[name]
        assert "host" not in words[name]
        assert "hidden" not in words[name]
    assert "hidden accumulator" in words["rram_wan"]
    assert words["ecram_li"].startswith("no whole chip")
    assert "one chip" in words["photonic"]
    assert "one chip" not in words["ecram_li_chip"]
    assert all("ideal biases" in text for name, text in words.items() if name != "ideal")
    shown = "\n".join(pages(preset("ecram_li_chip")))
    assert "whole chip, clocked, τ_x = 1 us" in shown
    assert "assumption: one cycle of 400 ns" in shown


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.name)
def test_a_chip_comes_back_from_its_file(chip, tmp_path):
    path = tmp_path / "chip.toml"
    path.write_text(text(chip), encoding="utf-8")
    again = load(path)
    assert again.chip == chip.chip
    assert again.pieces == chip.pieces
    stored = HardwareConfig(preset=str(path)).device
    assert stored is not None
    assert stored.hardware.chip == chip.chip


def test_a_check_without_times_runs_at_those_of_the_chip():
    def settings(preset, **sections):
        given = {**DIGITS, "hardware": {"preset": preset}, **sections}
        return configuration.parse(given, "check")

    filled = physical(settings("ecram_li_chip"))
    assert filled.circuit.tau_x == 1e-6
    assert filled.stream.t_pres == pytest.approx(20e-6)
    assert physical(settings("ecram_li")).circuit.tau_x == 1.0
    own = settings("ecram_li_chip", circuit={"tau_x": 2.0})
    assert at_chip_time(own).circuit.tau_x == 2.0
    shown = settings("ecram_li_chip", stream={"t_pres": 50.0})
    assert at_chip_time(shown).circuit.tau_x == 1.0
    assert physical(settings("photonic")).hardware.chips == 1
    assert physical(settings("ecram_li")).hardware.chips == 32
