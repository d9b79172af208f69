"""Fits of measured pulse curves: known devices are recovered, other files are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import describe, preset_file
from hw_models.fit import fit_curve
from hw_models.plasticity import ConstantDevice, ExponentialDevice, LinearDevice, PowerDevice
from hw_models.plasticity_device import Device
from hw_models.pulse_curve import read_curve
from pcsim.cli import main
from pcsim.errors import ConfigError

KNOWN: dict[str, Device] = {
    "constant_device": ConstantDevice(dw_min=0.03, imbalance=0.2),
    "linear_device": LinearDevice(dw_min=0.05, imbalance=0.3, gamma_up=0.95, gamma_down=0.6),
    "power_device": PowerDevice(dw_min=0.2, gamma_up=2.2, gamma_down=1.4),
    "exponential_device": ExponentialDevice(
        dw_min=0.03, A_up=0.15, A_down=0.3, gamma_up=1.6, gamma_down=1.1
    ),
}


def measure(
    device: Device,
    path: Path,
    pulses: int = 120,
    count: int = 1,
    seed: int = 0,
    reading: float = 0.0,
) -> Path:
    """Write the CSV that a person would have measured: conductance 10 … 50 µS, with read noise."""
    rng = np.random.default_rng(seed)
    devices = Devices(device, count=count, w=-1.0, seed=seed)
    if count > 1:
        devices.w = devices.fixed("bottom").clone()
    lines = ["pulse,conductance,direction,device"]
    for side, asked in (("up", 1.0), ("down", -1.0)):
        for pulse in range(pulses):
            errors = torch.tensor(reading * rng.standard_normal(count))
            values = 30 + 20 * (devices.w.flatten() + errors)
            lines += [f"{pulse},{float(v)!r},{side},d{k}" for k, v in enumerate(values)]
            devices.write(asked * device.dw_min)
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("law", KNOWN)
def test_fit_recovers_known_devices(law, tmp_path):
    known = KNOWN[law]
    fitted = fit_curve(read_curve(measure(known, tmp_path / "curve.csv")))
    best = fitted.ranking[0]
    assert best.residual < 2e-3
    assert best.law == law
    device = fitted.device(best)
    for name in type(known).model_fields:
        expected = getattr(known, name)
        if name in ("dw_min", "imbalance") or name.startswith(("gamma_u", "gamma_d", "A_")):
            assert getattr(device, name) == pytest.approx(expected, rel=0.15, abs=0.03), name


def test_wrong_laws_fit_worse(tmp_path):
    fitted = fit_curve(read_curve(measure(KNOWN["power_device"], tmp_path / "curve.csv")))
    residuals = {one.law: one.residual for one in fitted.ranking}
    assert residuals["constant_device"] > 20 * residuals["power_device"]
    assert residuals["linear_device"] > 5 * residuals["power_device"]


def test_fit_measures_noise_and_spread_of_many_devices(tmp_path):
    device = LinearDevice(
        dw_min=0.02, gamma_up=0.5, gamma_down=0.5, dw_spread=0.15, cycle_noise=0.4
    )
    fitted = fit_curve(read_curve(measure(device, tmp_path / "c.csv", pulses=60, count=60)))
    assert fitted.curve.devices == 60
    assert fitted.cycle_noise == pytest.approx(0.4, rel=0.1)
    assert fitted.dw_spread == pytest.approx(0.15, rel=0.25)
    quiet = device.model_copy(update={"cycle_noise": 0.0, "dw_spread": 0.0})
    control = fit_curve(read_curve(measure(quiet, tmp_path / "q.csv", pulses=60, count=5)))
    assert control.cycle_noise < 0.05
    assert control.dw_spread < 1e-6


@pytest.mark.parametrize(
    ("cycle", "reading"), [(0.3, 0.02), (0.3, 0.0), (0.0, 0.02), (0.0, 0.0), (1.5, 0.02)]
)
def test_noise_of_the_reading_is_not_noise_of_the_device(cycle, reading, tmp_path):
    """Readings with 1 % of the range (0.02) used to turn a cycle noise of 0.31 into 1.59."""
    device = LinearDevice(dw_min=0.02, gamma_up=0.5, gamma_down=0.5, cycle_noise=cycle)
    path = measure(device, tmp_path / "c.csv", pulses=100, count=12, seed=4, reading=reading)
    fitted = fit_curve(read_curve(path))
    assert fitted.cycle_noise == pytest.approx(cycle, rel=0.2, abs=0.06)
    assert fitted.read_noise == pytest.approx(reading, rel=0.15, abs=1e-3)
    pieces = fitted.hardware("mine", "c.csv").pieces
    assert pieces["device"].cycle_noise == fitted.cycle_noise
    assert ("reading" in pieces) == (reading > 0)
    if reading:
        assert pieces["reading"].sigma == fitted.read_noise
        written = tmp_path / "mine.toml"
        written.write_text(preset_file.text(fitted.hardware("mine", "c.csv")), encoding="utf-8")
        assert preset_file.load(written).pieces == pieces


def test_fitted_preset_reproduces_the_curve_it_came_from(tmp_path, monkeypatch):
    source = measure(KNOWN["linear_device"], tmp_path / "curve.csv")
    out = tmp_path / "mine.toml"
    monkeypatch.setattr("sys.argv", ["pcsim", "hardware", "fit", str(source), "--out", str(out)])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    device = describe(str(out), {"device": {"cycle_noise": 0.0}}).pieces["device"]
    assert isinstance(device, LinearDevice)
    measured = read_curve(source)
    devices = Devices(device, w=-1.0)
    simulated = []
    for _ in range(120):
        simulated.append(float(devices.w))
        # the number of pulses is what was applied, not the request: one pulse each
        devices.write(device.dw_min)
    assert np.abs(np.array(simulated) - measured.ramps["up"][0]).max() < 0.01


def test_preset_files_round_trip(tmp_path):
    for name in ("pcm", "reram_om", "cmos_capacitor", "brainscales2"):
        hardware = describe(name, {})
        path = tmp_path / f"{name}.toml"
        path.write_text(preset_file.text(hardware), encoding="utf-8")
        assert preset_file.load(path) == hardware


RISING = "\n".join(f"{p},{1 + p}" for p in range(10))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "needs the columns pulse and conductance, found none"),
        ("a,b\n1,2\n", "found a, b"),
        ("pulse,conductance\n", "it has no rows"),
        ("pulse,conductance\n1,x\n", "conductance must be a number, got 'x'"),
        ("pulse,conductance\n1,nan\n", "conductance must be a number"),
        ("pulse,conductance\n1,2\n1,3\n", "occurs twice"),
        ("pulse,conductance\n1,2\n2,3\n", "2 points"),
        ("pulse,conductance,direction\n1,2,left\n", "must be up or down"),
        ("pulse,conductance\n" + "\n".join(f"{p},5" for p in range(10)), "does not change"),
        (
            "pulse,conductance\n" + "\n".join(f"{p},{5 - abs(p - 10)}" for p in range(21)),
            "needs a column direction",
        ),
        ("pulse,conductance,direction\n" + RISING.replace("\n", ",down\n") + ",down", "fall"),
    ],
)
def test_what_is_not_a_pulse_curve_is_refused_in_one_sentence(content, sentence, tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"is not a pulse curve") as caught:
        read_curve(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_curve_without_directions_is_taken_by_its_trend(tmp_path):
    path = tmp_path / "curve.csv"
    path.write_text("pulse,conductance\n" + RISING)
    assert list(read_curve(path).ramps) == ["up"]
    fitted = fit_curve(read_curve(path))
    device = fitted.device(fitted.ranking[0])
    assert device.imbalance == 0  # the other direction mirrors it
    assert torch.isfinite(Devices(device).write(-device.dw_min)).all()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("name = ", "is not TOML"),
        ("colour = 1", "unknown key colour"),
        ("name = 'x'", "at least one table"),
        ("[pieces]\ndevice = 3", "must be a table"),
        ("[pieces.device]\nkind = 'constant_device'", "dw_min"),
    ],
)
def test_bad_preset_files_are_refused_in_one_sentence(content, sentence, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        describe(str(path), {})
    assert sentence in str(caught.value)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        describe(str(tmp_path / "none.toml"), {})
    with pytest.raises(ConfigError, match=r"none\.csv: No such file"):
        read_curve(tmp_path / "none.csv")
