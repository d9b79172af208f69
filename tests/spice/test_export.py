"""A folder of `pcsim spice export` needs ngspice, Python and NumPy alone, and says the truth."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pcsim.cli import app
from pcsim.config import Config, parse
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.spice import ngspice
from pcsim.spice.folder.export import expected_seconds, export

pytestmark = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())

HARDWARE = {
    "weights": {"kind": "mismatch", "of": "weight_gain", "sigma": 0.2},
    "rows": {"kind": "offset", "of": "product", "sigma": 0.1},
    "hiss": {"kind": "read_noise", "where": "rate", "sigma": 0.05},
}


def settings(**sections: object) -> Config:
    given = {
        "network": {"sizes": [64, 3, 10]},
        "data": {"name": "digits", "limit": 4, "limit_test": 10},
        "learning": {"batch": 1, "epochs": 1},
        "schedule": {"init": "carry"},
        "circuit": {"tau_w": 20.0},
        "solver": {"dt": 0.1},
        "stream": {"t_pres": 2.0},
        "spice": {"reltol": 1e-4},
        "run": {"backend": "continuous", "engine": "spice", "dtype": "float64"},
    }
    return parse(given | sections)


def compared(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the folder's own script, isolated from this environment's paths."""
    command = [sys.executable, "-I", "compare.py", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("changes", "tolerance"),
    [
        ({}, 0.001),
        ({"circuit": {"kind": "dendritic", "tau_w": 20.0}}, 0.001),
        ({"hardware": {"pieces": HARDWARE, "chips": 2}, "solver": {"dt": 0.05}}, 0.05),
    ],
    ids=["ideal", "dendritic", "hardware and frozen noise"],
)
def test_a_folder_agrees_with_its_recording(tmp_path, changes, tolerance):
    folder = tmp_path / "net"
    export(settings(**changes), folder, samples=3, chip=0)
    script = (folder / "compare.py").read_text()
    assert "import pcsim" not in script
    assert "from pcsim" not in script
    done = compared(folder, "--tolerance", str(tolerance))
    assert done.returncode == 0, done.stdout + done.stderr
    cells = (folder / "cells.cir").read_text()
    assert all(
        f".subckt {cell}" in cells for cell in ("neuron1", "error1", "synapse0", "learning1")
    )
    again = (folder / "circuit.raw").stat().st_mtime_ns
    assert compared(folder, "--keep", "--tolerance", "1e-9").returncode == 1
    assert (folder / "circuit.raw").stat().st_mtime_ns == again


def test_another_circuit_is_not_within(tmp_path):
    """Negative control: somas that feel no feedback, learning of the other sign, another chip."""
    folder = tmp_path / "net"
    export(settings(), folder, samples=3)
    cells = (folder / "cells.cir").read_text()
    for old, new in (("v(slope)*v(fb)", "0*v(fb)"), ("I=(v(err_post)*v(r_pre))", "I=-v(err_post)")):
        assert old in cells
        (folder / "cells.cir").write_text(cells.replace(old, new))
        assert compared(folder).returncode == 1
    (folder / "cells.cir").write_text("* nothing\n")
    assert compared(folder).returncode == 2
    assert "did not come to the end" in compared(folder).stderr
    two = {"pieces": {"weights": HARDWARE["weights"]}, "chips": 2}
    for chip in (0, 1):
        export(settings(hardware=two), tmp_path / f"chip{chip}", samples=1, chip=chip)
    (tmp_path / "chip0" / "chip.cir").write_text((tmp_path / "chip1" / "chip.cir").read_text())
    assert compared(tmp_path / "chip0", "--tolerance", "0.02").returncode == 1


@pytest.mark.parametrize(
    ("changes", "options", "said"),
    [
        ({"schedule": {"init": "ff"}}, {}, r"schedule.init 'ff': nothing resets"),
        ({"stream": {"t_pres": 2.0, "tau_label": 1.0}}, {}, "stream.tau_label"),
        ({"stream": {"t_pres": 2.0, "t_settle": 1.0}}, {}, "stream.t_settle"),
        ({"learning": {"batch": 2, "epochs": 1}}, {}, "learning.batch 2"),
        ({}, {"samples": 0}, "samples: must be at least 1"),
        ({}, {"samples": 5}, "samples: the stream has 4, got 5"),
        ({}, {"chip": 1}, "chip: there are 1"),
    ],
)
def test_what_a_folder_cannot_show_is_refused(tmp_path, changes, options, said):
    with pytest.raises((ConfigError, UnsupportedError), match=said):
        export(settings(**changes), tmp_path / "net", **{"samples": 1, **options})
    assert not (tmp_path / "net").exists()


def test_the_expected_time_is_proportional_and_said_before(tmp_path):
    assert expected_seconds(settings(), 6) == pytest.approx(3 * expected_seconds(settings(), 2))
    config = tmp_path / "net.toml"
    config.write_text('network.sizes = [64, 100, 10]\ndata.name = "digits"\nlearning.batch = 1\n')
    command = ["spice", "export", str(config), "--out", str(tmp_path / "net"), "--samples", "1000"]
    done = CliRunner().invoke(app, [*command, "--minutes", "0.01"])
    assert "about" in done.output
    assert isinstance(done.exception, UnsupportedError)
    assert "more than --minutes 0.01" in str(done.exception)


def test_limits_of_the_tier_macro_are_in_the_folder(tmp_path):
    """Mild ones are within the tolerance, poor ones are not; the tier and its table go together."""
    for resistance, code in ((1e12, 0), (2e7, 1)):
        macro = {"macro": {"output_resistance": resistance}, "reltol": 1e-4}
        folder = tmp_path / str(code)
        export(settings(spice=macro), folder, samples=2)
        assert ".subckt transconductor" in (folder / "cells.cir").read_text()
        assert "recording has none" in (folder / "README.md").read_text()
        assert compared(folder).returncode == code
    config = tmp_path / "net.toml"
    config.write_text('network.sizes = [64, 3, 10]\ndata.name = "digits"\nlearning.batch = 1\n')
    command = ["spice", "export", str(config), "--out", str(tmp_path / "net")]
    for more in (["--tier", "macro"], ["--set", "spice.macro.offset=0.1"]):
        error = CliRunner().invoke(app, [*command, *more]).exception
        assert isinstance(error, ConfigError)
        assert "tier: 'macro'" in str(error)


def test_a_full_folder_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="not empty"):
        export(settings(), tmp_path, samples=1)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
