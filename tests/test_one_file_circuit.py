"""A circuit is one file: a new page in the package is a kind that every part of pcsim knows."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pcsim

PAGE = '''
"""The circuit `leaky`: algebraic errors of somas that also leak towards rest."""

from typing import Literal

from pcsim.circuits.error import ALGEBRAIC, Algebraic, error_layer
from pcsim.circuits.page import Page
from pcsim.frozen import NotNegative
from dataclasses import replace


class Leaky(Algebraic):
    """Algebraic errors, and a leak of the somas."""

    kind: Literal["leaky"] = "leaky"
    leak: NotNegative = 0.0
    """Pull of a soma towards 0, in units of its own error."""


def layer(circuit, layer):
    """Return the equations of one layer."""
    lines = error_layer(circuit, layer)
    pull = f" - {circuit.leak}*x)/tau_x"
    return [lines[0].replace(")/tau_x", pull, 1), *lines[1:]]


LEAKY = replace(ALGEBRAIC, fields=Leaky, about="errors are exact, somas leak", layer=layer)
'''
PROGRAM = """
import numpy as np
from pcsim import config, run

def accuracy_free_run(engine, **circuit):
    settings = config.parse({
        "network": {"sizes": [64, 6, 10]},
        "circuit": circuit,
        "schedule": {"init": "carry", "gamma": 0.2},
        "learning": {"batch": 1, "epochs": 1, "alpha": 0.01},
        "data": {"name": "digits", "limit": 6, "limit_test": 20},
        "run": {"backend": "continuous", "engine": engine, "dtype": "float64"},
    })
    result = run(settings)
    return result["parameters"]

ideal = accuracy_free_run("torch", kind="algebraic")
assert np.allclose(ideal, accuracy_free_run("torch", kind="leaky"), atol=1e-13)
leaky = accuracy_free_run("torch", kind="leaky", leak=0.5)
assert not np.allclose(ideal, leaky, atol=1e-6)
assert np.allclose(leaky, accuracy_free_run("native", kind="leaky", leak=0.5), atol=1e-12)
print("one file")
"""


def test_one_file_is_a_circuit_on_torch_and_in_compiled_code(tmp_path):
    """The first source file of a circuit is also its last."""
    root = Path(pcsim.__file__).parents[1]
    for package in ("pcsim", "hw_models", "data"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / package, tmp_path / package, ignore=ignored)
    (tmp_path / "pcsim" / "circuits" / "leaky.py").write_text(textwrap.dedent(PAGE).lstrip())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "one file\n", done.stderr
