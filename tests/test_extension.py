"""A circuit is one file, a layer two: what their packages hold, every part of pcsim knows."""

import shutil
import subprocess
import sys
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


MAP = '''
"""A fixed gain."""

from dataclasses import dataclass

from pcsim.maps.initial import Initial


@dataclass(frozen=True)
class Gain:
    """μ = gain x."""

    units: int
    gain: float

    @property
    def parent_units(self):
        """Units of the parent."""
        return (self.units,)

    @property
    def parameters(self):
        """Nothing is learnt."""
        return {}

    initial = parameters
'''
KERNEL = '''
"""A fixed gain: μ = gain x."""

from pcsim.kernels.map_kernel import computes, plain
from pcsim.kernels.maps.total import SumKernel
from pcsim.maps.gain import Gain


class GainKernel(SumKernel):
    """One gain of one network."""

    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    def predict(self):
        """Return μ."""
        return super().predict().mul_(self.gain)

    def pull(self, x, slot=0, onto=None):
        """Return gain ξ."""
        pulled = self.gain * self._xi
        return pulled if onto is None else onto.add_(pulled)


@computes(Gain)
def kernel(spec, params, counter, hooks):
    """Return the kernel."""
    return GainKernel(spec.gain)


@plain(Gain)
def plainly(spec, params, parents):
    """Return μ."""
    return spec.gain * parents[0]
'''
LAYERED = """
import numpy as np
from pcsim import config, run

def weights(rule):
    nodes = [
        {"shape": [10], "parents": [1], "map": {"type": "dense", "n_in": 6, "n_out": 10},
         "energy": {"type": "gaussian"}},
        {"shape": [6], "parents": [2], "map": {"type": "gain", "units": 6, "gain": 3.0},
         "energy": {"type": "gaussian"}},
        {"shape": [6], "parents": [3],
         "map": {"type": "dense", "n_in": 64, "n_out": 6}, "energy": {"type": "gaussian"}},
        {"shape": [64], "energy": {"type": "gaussian"}},
    ]
    schedule = {"rule": rule} | ({"gamma": 1.0} if rule == "zil" else {})
    settings = config.parse({
        "network": {"kind": "graph", "nodes": nodes},
        "schedule": schedule,
        "learning": {"batch": 4, "epochs": 1, "alpha": 0.01},
        "data": {"name": "digits", "limit": 4, "limit_test": 20},
        "run": {"dtype": "float64"},
    })
    return run(settings)["parameters"]

assert np.allclose(weights("bp"), weights("zil"), atol=1e-12)
print("two files")
"""


def ran(folder, files, program):
    """Run a program with a copy of pcsim that has more files; return what it prints."""
    root = Path(pcsim.__file__).parents[1]
    for package in ("pcsim", "hw_models", "data"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(root / package, folder / package, ignore=ignored)
    for name, text in files.items():
        (folder / name).write_text(text.lstrip())
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_file_is_a_circuit_on_torch_and_in_compiled_code(tmp_path):
    """The first source file of a circuit is also its last."""
    assert ran(tmp_path, {"pcsim/circuits/leaky.py": PAGE}, PROGRAM) == "one file\n"


def test_two_files_are_a_layer_for_backpropagation_and_for_kernels(tmp_path):
    """Z-IL is backpropagation through the new layer too: its kernel is its plain form's pull."""
    files = {"pcsim/maps/gain.py": MAP, "pcsim/kernels/maps/gain.py": KERNEL}
    assert ran(tmp_path, files, LAYERED) == "two files\n"
