"""`hardware fit` with columns of any name, several devices and cycles, and what it says of them."""

import numpy as np
import pytest

from hw_models.fit import fit_curve
from hw_models.pulse_curve import read_curve
from pcsim.cli import main
from pcsim.errors import ConfigError

UP, DOWN, BEND_UP, BEND_DOWN = 0.05, 0.04, 0.9, 0.6


def linear_table(devices=1, cycles=1, spread=0.0, noise=0.0, seed=0) -> list[tuple]:
    """Return rows (pulse, conductance, direction, device, cycle) of devices with linear steps."""
    rng = np.random.default_rng(seed)
    rows = []
    for device in range(devices):
        gain = 1 + spread * rng.standard_normal()
        for cycle in range(cycles):
            u = -1.0
            for side, step in (
                ("up", lambda u: UP * (1 - BEND_UP * u)),
                ("down", lambda u: -DOWN * (1 + BEND_DOWN * u)),
            ):
                for pulse in range(80):
                    rows.append((pulse, 30 + 20 * u, side, device, cycle))
                    moved = gain * step(u) * (1 + noise * rng.standard_normal())
                    u = float(np.clip(u + moved, -1, 1))
    return rows


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


PLAIN = "pulse,conductance,direction,device,cycle"
NAMED = "Pulse #,G (S),Polarity,Cell,Run"
COLUMNS = {
    "pulse": "Pulse #",
    "conductance": "G (S)",
    "direction": "Polarity",
    "device": "Cell",
    "cycle": "Run",
}


def test_columns_of_any_name_give_the_same_curve(tmp_path):
    rows = linear_table(devices=2, cycles=2, noise=0.2)
    plain = read_curve(write(tmp_path / "a.csv", PLAIN, rows))
    mapped = read_curve(write(tmp_path / "b.csv", NAMED, rows), COLUMNS)
    assert plain.of_device == mapped.of_device
    for side in ("up", "down"):
        assert np.array_equal(plain.ramps[side], mapped.ramps[side])
    with pytest.raises(ConfigError, match="no column 'Puls'"):
        read_curve(tmp_path / "b.csv", {**COLUMNS, "pulse": "Puls"})
    with pytest.raises(ConfigError, match="--pulse and --conductance"):
        read_curve(tmp_path / "b.csv")


def test_the_symmetry_point_states_and_asymmetry_are_those_of_the_law(tmp_path):
    fitted = fit_curve(read_curve(write(tmp_path / "a.csv", PLAIN, linear_table())))
    # the range of the file is rescaled to −1 … 1: compare in units of the file
    curve = fitted.curve
    middle, half = (curve.low + curve.high) / 2, (curve.high - curve.low) / 2
    expected = 30 + 20 * (UP - DOWN) / (UP * BEND_UP + DOWN * BEND_DOWN)
    assert fitted.symmetry_point is not None
    assert middle + half * fitted.symmetry_point == pytest.approx(expected, abs=0.4)
    u = (middle - 30) / 20
    up, down = UP * (1 - BEND_UP * u), DOWN * (1 + BEND_DOWN * u)
    assert fitted.states[0] == pytest.approx(half / 20 * 2 / up, rel=0.03)
    assert fitted.states[1] == pytest.approx(half / 20 * 2 / down, rel=0.03)
    assert fitted.asymmetry == pytest.approx((up - down) / (up + down), abs=0.02)


def test_steps_that_are_alike_everywhere_have_no_symmetry_point(tmp_path):
    rows = [(p, 1.0 + 0.1 * p, "up", 0, 0) for p in range(20)]
    assert fit_curve(read_curve(write(tmp_path / "a.csv", PLAIN, rows))).symmetry_point is None


def test_cycles_of_one_device_are_no_devices(tmp_path):
    """Noise of cycles is not spread between devices; spread is not lost by repetition."""
    rows = linear_table(devices=1, cycles=12, noise=0.6)
    one = fit_curve(read_curve(write(tmp_path / "a.csv", PLAIN, rows)))
    assert (one.curve.devices, one.curve.cycles) == (1, 12)
    assert one.dw_spread == one.bound_spread == 0
    assert one.cycle_noise == pytest.approx(0.6, rel=0.2)
    as_devices = [(p, g, side, f"{d}-{c}", 0) for p, g, side, d, c in rows]
    control = fit_curve(read_curve(write(tmp_path / "b.csv", PLAIN, as_devices)))
    assert control.dw_spread > 0
    many = linear_table(devices=30, cycles=3, spread=0.2, noise=0.3)
    fitted = fit_curve(read_curve(write(tmp_path / "c.csv", PLAIN, many)))
    assert (fitted.curve.devices, fitted.curve.cycles) == (30, 3)
    assert fitted.dw_spread == pytest.approx(0.2, rel=0.35)


@pytest.mark.parametrize("noise", [0.15, 0.3])
def test_pulses_at_the_bound_are_no_noise(noise, tmp_path):
    """A ramp that rests at its bound: steps that are cut off there say nothing of noise."""
    rows = linear_table(devices=4, cycles=3, noise=noise)
    fitted = fit_curve(read_curve(write(tmp_path / "a.csv", PLAIN, rows)))
    assert fitted.cycle_noise == pytest.approx(noise, rel=0.1)
    assert fitted.read_noise < 1e-3


def test_the_command_draws_maps_and_tells(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    write(tmp_path / "d.csv", NAMED, linear_table(devices=3, cycles=2, spread=0.1, noise=0.2))
    options = [x for key, name in COLUMNS.items() for x in (f"--{key}", name)]
    command = ["pcsim", "hardware", "fit", "d.csv", "-o", "mine.toml", *options]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    out = capsys.readouterr().out
    for words in ("3 device(s), 2 cycle(s)", "states:", "asymmetry", "symmetry point:", "spread"):
        assert words in out
    assert (tmp_path / "mine.png").read_bytes()[1:4] == b"PNG"
    assert (tmp_path / "mine.toml").read_text(encoding="utf-8").startswith("#:schema ")
    (tmp_path / "other.png").write_bytes(b"mine")
    monkeypatch.setattr("sys.argv", [*command[:5], "other.toml", *options])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 2  # somebody's picture is not replaced
    assert (tmp_path / "other.png").read_bytes() == b"mine"
