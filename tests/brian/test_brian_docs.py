"""The page on Brian2 runs as it is printed; and so does the verb that prints equations."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pcsim.backends.brian.describe import describe
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.cli import main
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "brian.md"
# A reader may compile; a test need not. The preference is the script's, in its own process.
NUMPY = "from brian2 import prefs\nprefs.codegen.target = 'numpy'\n"
SAVE = "\nimport json\nprint(json.dumps([seen.x[:, -1].tolist(), parts.maps[0].w[:].tolist()]))\n"


def test_the_page_runs_and_is_exact():
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-c", NUMPY + code + SAVE],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    x, w = (np.array(part) for part in json.loads(done.stdout.splitlines()[-1]))
    layers = Network.mlp([2, 8, 1], "tanh")
    circuit = Circuit(kind="dendritic", tau_x=0.01, tau_w=1.0, tau_inter=0.002)
    params = initial_parameters(layers, [0], torch.float64)
    chip = Continuous(layers, params, circuit, dt=1e-3)
    chip.load([torch.full((1, 1, 1), 0.5).double(), None, torch.tensor([[[1.0, -1.0]]]).double()])
    chip.advance(199)
    assert np.abs(chip.flow.states()["x1"].numpy().ravel() - x).max() <= 1e-12
    chip.advance(1)
    assert np.abs(chip.flow.params.of[0]["w"].numpy().ravel() - w).max() <= 1e-12


CONFIG = """
[network]
sizes = [4, 3, 2]
[circuit]
kind = "dendritic"
tau_x = 0.01
tau_w = 1.0
"""


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    (tmp_path / "chip.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["pcsim", "equations", "chip.toml", *options])
        with pytest.raises(SystemExit) as end:
            main()
        return int(end.value.code or 0), *capsys.readouterr()

    return run


def test_equations_are_printed(printed):
    code, out, _ = printed()
    assert code == 0
    assert "dw_inter/dt = rate_inter*err_inter_post*r_pre/tau_w : 1 (clock-driven)" in out
    assert "# tau_x = 0.01*second" in out
    assert out.count("neurons") == 3
    assert out.count("synapses from") == 2


def test_equations_in_latex(printed):
    code, out, _ = printed("--latex", "--set", "circuit.kind=algebraic")
    assert code == 0
    assert r"\frac{\mathrm{d}w}{\mathrm{d}t} &= \frac{err_{post} r_{pre}}{\tau_{w}}" in out
    assert "rad" not in out
    assert out.count(r"\begin{align*}") == out.count(r"\end{align*}") == 5


def test_a_refusal_is_one_sentence(printed):
    code, out, error = printed("--set", "network.f=gelu")
    assert (code, out) == (2, "")
    assert "network.f 'gelu'" in error


def test_rings_and_steps_are_printed(printed):
    """What acts within a layer is shown too, with its constants and what it does at each step."""
    code, out, _ = printed("--set", "circuit.kind=algebraic", "--set", "circuit.delay_err=0.02")
    assert code == 0
    assert "pc_delay_err1: synapses from pc_layer1 to itself, a ring per unit" in out
    assert "# delay_err = 0.02*second" in out
    assert "# each step: held = err_now_pre*int(" in out
    code, out, _ = printed("--set", "circuit.sigma_x=0.3", "--latex")
    assert code == 0
    assert "% sigma_x = 0.3*second**-0.5" in out


def test_algebraic_text_reads_like_the_equations():
    text = describe(Network.mlp([2, 3, 1], "tanh"), Circuit(tau_w=1.0))
    for line in (
        "dx/dt = (slope*fb - err)/tau_x : 1",
        "err = x - mu - b : 1",
        "db/dt = err/tau_w : 1",
        "dw/dt = err_post*r_pre/tau_w : 1 (clock-driven)",
        "mu_post = w*r_pre : 1 (summed)",
        "fb_pre = w*err_post : 1 (summed)",
    ):
        assert line in text
