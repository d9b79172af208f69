"""Pages and scripts of the gallery run, at reduced length, and learn."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs"
# A reader may compile; a test need not. The preference is the script's, in its own process.
NUMPY = "from brian2 import prefs\nprefs.codegen.target = 'numpy'\n"


def run(*arguments):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=DOCS.parent,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dendritic_gallery(tmp_path):
    figure = tmp_path / "gallery.png"
    out = run(DOCS / "gallery_dendritic.py", "--cycles", 2, "--out", figure)
    first, last = (float(n) for n in re.findall(r"(?:cycle|last) (\d\.\d+)", out))
    assert last < 0.9 * first, out
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert len(re.search("answers (.*) to be", out)[1].split()) == 4


def test_the_page_on_spikes_runs():
    page = (DOCS / "spiking.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    out = run("-c", NUMPY + code + "print(abs(seen.r[:] - seen.r_hat[:]).max())")
    assert {"soma1", "soma2", "apical0"} == set(re.findall(r"^\w+\d", out, re.MULTILINE))
    assert np.isclose(float(out.split()[-1]), 0.05, rtol=0.02)
    assert float(out.split()[-1]) <= 0.05 + 1e-12
