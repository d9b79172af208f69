"""A run as a folder of transistors: ideal cells are torch's circuit, transistors come near it."""

import subprocess
import sys

import pytest

from pcsim import config as configuration
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.spice import ngspice
from pcsim.spice.cells.library import Sizes
from pcsim.spice.cells.network import ROLES, roles
from pcsim.spice.cells.process import process
from pcsim.spice.folder.transistor import counted, export, with_models

pytestmark = pytest.mark.skipif(bool(ngspice.missing()), reason=ngspice.missing())
PATTERNS = "-1,-1,0,{0}\n-1,1,0,{0}\n1,-1,0,{0}\n1,1,1,{0}\n"
FILE = """
network.sizes = [2, 2, 2]
data.name = "and.csv"
learning = { batch = 1, epochs = 1 }
schedule.init = "carry"
circuit = { kind = "dendritic", tau_x = "1 ms", tau_w = "20 ms" }
solver.dt = "50 us"
stream.t_pres = "5 ms"
run = { backend = "continuous", engine = "spice", dtype = "float64" }
"""


@pytest.fixture
def settings(tmp_path):
    text = "a,b,label,split\n" + 2 * PATTERNS.format("train") + PATTERNS.format("test")
    (tmp_path / "and.csv").write_text(text)
    (tmp_path / "net.toml").write_text(FILE)

    def load(**changes):
        return configuration.load(tmp_path / "net.toml", changes)

    return load


def compared(folder, tolerance):
    command = [sys.executable, "-I", "compare.py", "--tolerance", str(tolerance)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_ideal_cells_are_the_recording_and_transistors_near_it(settings, tmp_path):
    models = process("bsim4-default")
    for ideal, near in ((frozenset(ROLES), 0.003), (frozenset(), 0.3)):
        folder = tmp_path / str(len(ideal))
        export(settings(), folder, 4, models, Sizes(), ideal)
        done = compared(folder, near)
        assert done.returncode == 0, done.stdout + done.stderr
        assert compared(folder, near / 100).returncode == 1
    cells = (tmp_path / "0" / "cells.cir").read_text()
    assert ".subckt multiplier" in cells
    assert "dendritic" in (tmp_path / "0" / "README.md").read_text()


def test_transistors_are_counted_and_the_time_is_proportional(settings):
    some, seconds = counted(settings(), frozenset(), 4)
    assert some > 300
    assert counted(settings(), frozenset(), 8)[1] == pytest.approx(2 * seconds)
    assert counted(settings(), roles("forward,learning"), 4)[0] < some
    with pytest.raises(ConfigError, match="'forwards' is no role"):
        roles("forwards")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"circuit.kind": "algebraic"}, "circuit.kind 'algebraic'"),
        ({"circuit.tau_apical": "0.1"}, "circuit.tau_apical"),
        ({"network.f": "sigmoid"}, "network: the cells make"),
        ({"spice.macro.offset": "0.1"}, "spice.macro and spice.noise"),
        ({"hardware.pieces.a": '{kind = "offset", of = "error", sigma = 0.1}'}, "hardware: trans"),
    ],
)
def test_what_the_cells_cannot_be_is_refused(settings, tmp_path, changes, said):
    with pytest.raises(UnsupportedError, match=said):
        export(settings(**changes), tmp_path / "net", 1, process("bsim4-default"), Sizes())
    assert not (tmp_path / "net").exists()


def test_models_are_copied_into_the_folder(tmp_path):
    """Files that stand alone; one that includes others stays where it is."""
    (tmp_path / "alone.lib").write_text(".model n nmos\n")
    (tmp_path / "other.lib").write_text('.include "alone.lib"\n')
    lines = [f'.include "{tmp_path}/alone.lib"', f'.lib "{tmp_path}/other.lib" tt', ".param a=1"]
    out = tmp_path / "out"
    out.mkdir()
    assert with_models(lines, out) == ['.include "models/alone.lib"', lines[1], ".param a=1"]
    assert (out / "models" / "alone.lib").read_text() == ".model n nmos\n"
