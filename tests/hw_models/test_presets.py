"""Presets: all lower to effects, are shown with equations, and training devices train."""

import math

import numpy as np
import pytest
import torch

from hw_models import describe, known_presets
from hw_models.presets import TRAINING
from hw_models.printed import pages
from pcsim.cli import main
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.experiments.devices import measure as bench
from pcsim.run import run
from pcsim.substrate import Chips, Seeded

NAMES = sorted(known_presets())


def test_the_promised_presets_are_there():
    assert {"ideal", "pcm", "reram_es", "reram_sb", "reram_om", "reram_hfo2"} <= set(NAMES)
    assert {"ecram_li", "ecram_mo", "cmos_capacitor", "idealized", "gokmen_vlasov"} <= set(NAMES)
    assert {"brainscales2", "dynapse2", "loihi", "photonic", "pcm_programmed"} <= set(NAMES)
    assert len(TRAINING) == 10


def test_devices_known_by_few_numbers_have_these_and_say_what_is_left_out():
    """States that a ramp of pulses passes, and the three values of a pair of junctions."""
    for name, states in (("fefet", 32), ("ecram_protonic", 300)):
        hardware = describe(name, {})
        chips = Chips(hardware.substrate(), [0], seed=0, dt=1.0, noise=Seeded(0))
        write = chips.transform("write", 0, (1, 1))
        w, seen = torch.full((1, 1, 1), -1.0), [-1.0]
        for _ in range(2 * states):
            w = w + write(torch.full_like(w, hardware.pieces["device"].quantum), w=w)
            seen.append(round(float(w), 4))
            chips.advance()
        assert len(set(seen)) == pytest.approx(states, abs=1)
        assert seen[-1] == pytest.approx(1.0, abs=1e-5)
        assert "ideal" in hardware.about or "left out" in hardware.about
        assert any(source.startswith("assumption") for source in hardware.sources)
    chips = Chips(describe("sot_mram", {}).substrate(), range(400), seed=0, dt=1.0, noise=Seeded(0))
    read = chips.transform("weight", 0, (1, 3))
    values = read(torch.tensor([-1.0, 0.0, 1.0]).expand(400, 1, 3)).numpy()[:, 0]
    np.testing.assert_allclose(values.mean(0), [-1, 0, 1], atol=0.04)
    low, high = 1 / 1.5, 2.5 / 1.5  # conductances in units of their difference: TMR 150 %
    expected = 0.1 * np.array([np.hypot(low, high), np.hypot(low, low), np.hypot(low, high)])
    np.testing.assert_allclose(values.std(0), expected, rtol=0.12)


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_has_sources_and_shows_its_equations(name):
    hardware = describe(name, {})
    assert hardware.name == name
    assert hardware.about
    if name == "ideal":
        assert not hardware.substrate().effects
        return
    assert hardware.sources
    shown = "\n".join(pages(hardware))
    for effect in hardware.substrate().effects:
        assert f"s ← {effect.becomes}" in shown
        for text in effect.parameters.values():
            assert text in shown


@pytest.mark.parametrize("name", NAMES)
def test_every_preset_gives_finite_writes_and_reads(name):
    """At weights of zero, inside and at the edge of the range, with requests of all sizes."""
    chips = Chips(describe(name, {}).substrate(), [0, 1], seed=0, dt=0.1, noise=Seeded(0))
    w = torch.linspace(-1, 1, 41).expand(2, 1, 41).clone()
    w[:, :, 20] = 0.0
    s = torch.tensor([-3.0, -1e-3, 0.0, 1e-3, 3.0]).repeat(9)[:41].expand(2, 1, 41)
    read, write = chips.transform("weight", 0, (1, 41)), chips.transform("write", 0, (1, 41))
    for _ in range(3):
        seen = w if read is None else read(w)
        w = w + (s if write is None else write(s, w=w))
        chips.advance()
        assert bool(torch.isfinite(w).all())
        assert bool(torch.isfinite(seen).all())
    if write is not None:
        assert float(w.abs().max()) < 6.0  # bounds hold; without them three writes give 10


@pytest.mark.parametrize("hardware", TRAINING, ids=lambda one: one.name)
def test_published_parameters_come_back_from_the_simulated_devices(hardware):
    found = bench.measured(hardware, bench.curve(hardware, points=50))
    given = bench.published(hardware)
    # 200 devices: a spread is known to 5 %, a median to spread/√200·1.25; clipping at the bounds
    # shortens what is larger than them (the coarse HfO2 array, the noise of PCM)
    coarse = hardware.name in ("reram_hfo2", "reram_om", "pcm")
    share = 0.2 if coarse else 0.06
    assert found.step_up == pytest.approx(given.step_up, rel=share)
    assert found.step_down == pytest.approx(given.step_down, rel=share)
    assert found.device_spread == pytest.approx(given.device_spread, rel=max(share, 0.15))
    assert found.cycle_spread == pytest.approx(given.cycle_spread, rel=0.3 if coarse else 0.05)
    assert found.top == pytest.approx(given.top, rel=0.1)
    assert found.bottom == pytest.approx(given.bottom, rel=0.1)
    assert found.top_spread == pytest.approx(given.top_spread, rel=0.2)
    if not math.isnan(given.symmetry):
        assert found.symmetry == pytest.approx(given.symmetry, abs=0.05)
        assert math.isfinite(found.symmetry)


@pytest.mark.parametrize(
    ("name", "nA", "knee"), [("sonos", 19.9, 176), ("sonos_5_days", 34.6, 207)]
)
def test_currents_of_flash_spread_and_hiss_as_measured(name, nA, knee):
    """σ = A(1 − e^{−I/B}) of 1600 nA; the read noise has 12.6 and 215."""
    size, reads = 4000, 60
    for w in (0.0, 0.2, -0.3, 0.9):
        chips = Chips(describe(name, {}).substrate(), [0], seed=1, dt=0.1, noise=Seeded(2))
        read, seen = chips.transform("weight", 0, (1, size)), []
        for _ in range(reads):
            seen.append(1600 * read(torch.full((1, 1, size), w)).numpy().ravel())
            chips.advance()
        current = 1600 * abs(w)
        spread, hiss = np.mean(seen, axis=0).std(), np.std(seen, axis=0).mean()
        noise = 12.6 * (1 - math.exp(-current / 215))
        expected = math.hypot(nA * (1 - math.exp(-current / knee)), noise / math.sqrt(reads))
        assert spread == pytest.approx(expected, rel=0.04, abs=1e-9)
        assert hiss == pytest.approx(noise, rel=0.05, abs=1e-3)
        assert np.mean(seen) == pytest.approx(1600 * w, abs=2.0)


def test_another_device_would_not_pass():
    """Control: parameters of one preset against the devices of another."""
    wrong = bench.published(describe("ecram_li", {}))
    found = bench.steps(bench.quiet(describe("cmos_capacitor", {})), np.zeros(1), 1)
    assert abs(np.median(found) - wrong.step_up) > 0.5 * wrong.step_up


def test_retention_of_phase_change_memory():
    gains = bench.retention((1.0, 1e2, 1e4, 1e6), size=128)
    assert gains == pytest.approx([0.98, 0.90, 0.73, 0.58], abs=0.03)
    assert list(gains) == sorted(gains, reverse=True)


def tiny(preset: str, alpha: float, **pieces: object) -> Config:
    return Config.model_validate(
        {
            "network": {"sizes": [64, 16, 10]},
            "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
            "learning": {"alpha": alpha, "batch": 100, "epochs": 3},
            "data": {"limit": 600},
            "hardware": {"preset": preset, "pieces": pieces},
        }
    )


def test_training_on_a_device_preset_moves_by_whole_pulses_and_learns():
    better = run(tiny("ecram_li", 2e-3))["test_accuracy"].reshape(-1)[-1]
    assert better > 0.3
    # control: devices whose step is too coarse for any of the weights do not
    coarse = run(tiny("ecram_li", 2e-3, device={"dw_min": 1.5}))["test_accuracy"].reshape(-1)[-1]
    assert coarse < better


def test_fields_can_be_changed_also_inside_a_pair():
    changed = describe("pcm", {"device": {"device": {"dw_min": 0.02}, "refresh_at": 0.5}})
    pair = changed.pieces["device"].model_dump()
    assert pair["device"]["dw_min"] == 0.02
    assert pair["device"]["A_up"] == -27.235
    assert pair["refresh_at"] == 0.5


def test_unknown_presets_are_refused_with_a_hint():
    with pytest.raises(ConfigError, match="did you mean 'reram_es'"):
        describe("reram_ess", {})


def test_field_meanings_come_from_the_source():
    device = describe("ecram_li", {}).pieces["device"]
    meanings = {name: field.description for name, field in type(device).model_fields.items()}
    assert meanings["gamma_up"].startswith("Relative loss of the up step")
    assert meanings["range"] == "Weight of the network at one device unit."


@pytest.mark.parametrize("arguments", [["list"], ["show", "pcm"]])
def test_command_line(arguments, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pcsim", "hardware", *arguments])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    shown = capsys.readouterr().out
    assert "phase-change memory" in shown
    if arguments[0] == "list":
        assert all(name in shown for name in NAMES)
    else:
        assert "Nandakumar" in shown
        assert "memory g_plus" in shown
        assert "clock: it writes in every time step of the run (t_write is not set)" in shown
