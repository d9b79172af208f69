"""`pcsim run` and `pcsim equations` with `[hardware]` on Brian2."""

import sys

import numpy as np
import pytest

from pcsim import config, run
from pcsim.cli import main
from pcsim.errors import InterruptedRunError, UnsupportedError
from pcsim.runner import checkpoint
from pcsim.runner.chip_run import ChipRun

LIMIT = 1e-12
FIXED = {
    "memory": {"kind": "quantized_weights", "bits": 5, "range": 1.3},
    "tau": {"kind": "mismatch", "of": "tau_x", "sigma": 0.2},
    "link": {"kind": "send_on_delta", "where": "rate", "delta": 0.03},
    "dac": {"kind": "converter", "where": "input", "bits": 4, "gain_error": 0.1},
    "out": {"kind": "converter", "where": "output", "bits": 4},
}
NOISY = {
    "read": {"kind": "array_read_noise", "sigma": 0.1},
    "jumps": {"kind": "telegraph_noise", "amplitude": 0.1, "tau_on": 0.7, "tau_off": 1.1},
}


def setting(pieces, backend="brian", **sections):
    """Return a few presentations of digits to two chips that are made with one seed."""
    base = {
        "network": {"sizes": [64, 4, 10]},
        "schedule": {"T": 4, "gamma": 0.2, "init": "carry"},
        "learning": {"alpha": 2e-2, "batch": 1, "epochs": 1},
        "data": {"name": "digits", "limit": 8},
        "hardware": {"chips": 2, "seed": 3, "pieces": pieces},
        "run": {"backend": backend, "dtype": "float64", "seeds": [1]},
    }
    return config.changed(config.parse(base), sections)


def apart(one, other, name="parameters"):
    return float(np.abs(one[name] - other[name]).max())


def test_the_same_chips_as_torch():
    """Fixed patterns belong to the chip, not to the backend: weights, energy and accuracy agree."""
    grid = {"hardware": {"memory.bits": [4, 6]}}
    ours, theirs = (run(setting(FIXED, b, grid=grid)) for b in ("brian", "continuous"))
    for name in ("parameters", "energy", "accuracy"):
        assert apart(ours, theirs, name) <= LIMIT, name
    assert np.ptp(ours["parameters"], axis=-2).max() > 1e-3, "control: the chips differ"
    other = run(setting(FIXED, grid=grid, hardware={"seed": 4}))
    assert apart(other, ours) > 1e-3, "control: another seed, other chips"


def test_noise_is_fixed_by_its_seed_and_survives_an_interruption(tmp_path, monkeypatch):
    one = setting(FIXED | NOISY)
    whole = run(one)
    assert apart(run(setting(FIXED | NOISY, solver={"noise_seed": 9})), whole) > 1e-4
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    shown = ChipRun.present

    def fails(self, clamps):
        yield from shown(self, clamps)
        if self.engine.steps >= 5 * 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ChipRun, "present", fails)
    with pytest.raises(InterruptedRunError):
        run(one, out=tmp_path / "a.h5")
    monkeypatch.setattr(ChipRun, "present", shown)
    assert apart(run(one, out=tmp_path / "a.h5"), whole) <= LIMIT


def test_refused():
    with pytest.raises(UnsupportedError, match=r"brian.fused.*effects of hardware"):
        run(setting(FIXED, brian={"target": "standalone", "fused": True}))
    with pytest.raises(UnsupportedError, match=r"brian.products.*effects of hardware"):
        run(setting(FIXED, brian={"products": True}))
    with pytest.raises(UnsupportedError, match=r"learning.batch 2.*one sample at a time"):
        run(setting(FIXED, learning={"batch": 2}))
    with pytest.raises(UnsupportedError, match=r"'slow': circuit.kind algebraic has no site"):
        run(setting({"slow": {"kind": "mismatch", "of": "tau_inter", "sigma": 0.1}}))


CONFIG = """
[network]
sizes = [4, 3, 2]
[circuit]
tau_w = 1.0
[hardware.pieces.adc]
kind = "converter"
where = "rate"
bits = 3
[hardware.pieces.read]
kind = "read_noise"
where = "error"
sigma = 0.1
[hardware.pieces.slow]
kind = "mismatch"
of = "tau_x"
sigma = 0.2
"""


@pytest.mark.parametrize("options", [(), ("--latex",)], ids=["text", "latex"])
def test_equations_print_the_hardware(options, tmp_path, monkeypatch, capsys):
    (tmp_path / "chip.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pcsim", "equations", "chip.toml", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert int(end.value.code or 0) == 0
    out, sign = capsys.readouterr().out, "%" if options else "#"
    for line in (
        "hardware slow at tau_x (once): s ← s*exp(sigma*g - sigma**2/2), sigma = 0.2",
        "each step: hardware at rate1, adc_lsb = 0.333333, adc_m = 3, adc_gain = 0, adc_offset = 0",
        "    s = fired",
        "each step: hardware at error1, read_sigma = 0.1",
        "    read_xi = randn()",
        "    s = err_unread",
        "    err = s + read_sigma * read_xi",
    ):
        assert f"{sign} {line}\n" in out, line
