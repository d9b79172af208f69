"""What is added to pcsim takes as many source files as docs/extending.md says, and then works.

Each kind of thing is added for real to a copy of the tree: by new files, and by edits of files.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pcsim
from pcsim import config
from pcsim.cli.experiment import names
from pcsim.errors import ConfigError

ROOT = Path(pcsim.__file__).parents[1]

# ---- a device

SAG = '''
"""Rates that sag under load."""

from __future__ import annotations

from typing import ClassVar, Literal

from hw_models.numbers import NotNegative
from hw_models.piece import Fields, Piece
from pcsim.substrate import Effect


class Sag(Piece):
    """Rates sag under load: s (1 − depth |s|)."""

    kind: Literal["sag"] = "sag"
    EXAMPLE: ClassVar[Fields] = {"depth": 0.1}
    depth: NotNegative
    """Fraction that is lost at a rate of one."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s (1 − depth |s|)."""
        becomes = "s*(1 - depth*abs(s))"
        return (Effect(name=name, site="rate", becomes=becomes, constants={"depth": self.depth}),)
'''
COMMON = """
import numpy as np
from pcsim import config, run

def weights(engine="torch", **sections):
    settings = config.parse({
        "network": {"sizes": [64, 6, 5, 10]} | sections.pop("network", {}),
        "schedule": {"init": "carry", "gamma": 0.2},
        "learning": {"batch": 1, "epochs": 1, "alpha": 0.01},
        "data": {"name": "digits", "limit": 6, "limit_test": 20},
        "run": {"backend": "continuous", "engine": engine, "dtype": "float64"},
        **sections,
    })
    return run(settings)["parameters"]

def same(a, b, within=1e-12):
    return np.allclose(a, b, rtol=0, atol=within)
"""
DEVICE_RUNS = """
def sagging(depth, engine="torch"):
    return weights(engine, hardware={"pieces": {"load": {"kind": "sag", "depth": depth}}})

import hw_models

assert same(sagging(0.0), weights())
assert not same(sagging(0.3), weights(), 1e-6)
assert same(sagging(0.3), sagging(0.3, "native"))
assert hw_models.Sag(depth=0.3).effects("load")
"""

# ---- a nonlinearity

SOFTSIGN = '    "softsign": Row("x/(1 + abs(x))"),\n'
NONLINEARITY_RUNS = """
for engine in ("torch", "native"):
    named = weights(engine, network={"f": "softsign"})
    assert same(named, weights(engine, network={"f": "x/(1 + abs(x))"}))
assert not same(named, weights(), 1e-6)
"""

# ---- a site

SITE = '    "apical": Row("the potential of a quasi-static apical dendrite as the soma sees it"),\n'
LINES = """
    if "apical" in layer.sites and not circuit.tau_apical:
        return [f"apical_line = {target} : 1", "v_apical : 1", *lines]
"""
PLACE = """
            if not circuit.tau_apical:
                signal = apical_target(layer)
                places.append(Place("apical", k, signal, "v_apical", order.READ_FB + 1))
"""
SITE_RUNS = """
def apical(site, engine="torch", kind="dendritic"):
    half = {"kind": "formula", "site": site, "becomes": "0.5*s"}
    return weights(engine, circuit={"kind": kind}, hardware={"pieces": {"half": half}})

from pcsim.errors import UnsupportedError

assert not same(apical("apical"), weights(circuit={"kind": "dendritic"}), 1e-6)
# Nothing lies between what feedback delivers and a quasi-static potential.
assert same(apical("apical"), apical("feedback"))
assert same(apical("apical"), apical("apical", "native"))
try:
    apical("apical", kind="algebraic")
except UnsupportedError as refusal:
    assert "has no site 'apical'" in str(refusal)
else:
    raise AssertionError("ignored by a circuit that does not have it")
"""

# ---- an engine

ENGINE = '''
"""Gradient flow by automatic differentiation of the energy."""

import torch

from pcsim.backends.continuous import Continuous
from pcsim.kernels.plain_functions import FUNCTIONS


class Autodiff(Continuous):
    """A chain of dense layers with unit variances, ideal."""

    def advance(self, steps, watch=None):
        """Do x ← x − dt/τ_x ∂F/∂x and θ ← θ − dt/τ_w ∂F/∂θ."""
        for _ in range(steps):
            self.flow.forces()  # for those who look: the energy of the state before the step
            field = self.flow.field
            with torch.enable_grad():
                x = [state.detach().requires_grad_() for state in field.x]
                flat = self.params.flat.detach().requires_grad_()
                energy = 0
                for k, views in enumerate(self.params.views(flat)[:-1]):
                    rates = FUNCTIONS[self.network.nodes[k].map.f](x[k + 1])
                    mu = rates @ views["w"].mT + views["b"].unsqueeze(1)
                    energy = energy + (x[k] - mu).square().sum() / 2
                *slopes, theta = torch.autograd.grad(energy, [*(x[k] for k in field.free), flat])
            for k, slope in zip(field.free, slopes, strict=True):
                field.x[k].sub_(slope, alpha=self.dt / self.circuit.tau_x)
            self.params.flat.sub_(theta, alpha=self.dt / self.circuit.tau_w)
            self.steps += 1

    def about(self):
        """Return who took the steps."""
        return {"engine": "autodiff"}


def build(order):
    """Return a population."""
    return Autodiff(*order.population, fast=False, **order.options)
'''
ENGINE_RUNS = """
import pcsim

assert same(weights("autodiff"), weights())
result = pcsim.simulate(
    pcsim.Network.mlp([64, 4, 10]), pcsim.Stream.of("digits", limit=2), engine="autodiff"
)
assert result.attrs["engine"] == "autodiff"
"""

# ---- an experiment

STUDY = '''
"""Accuracy over width."""

from pcsim import run, store
from pcsim.config import parse


def main(out):
    """Measure, store."""
    settings = {"network": {"sizes": [64, 4, 10]}, "data": {"name": "digits", "limit": 8},
                "learning": {"batch": 4, "epochs": 1}}
    store.save(run(parse(settings)), out / "mine.h5")
'''
EXPERIMENT_RUNS = """
import tempfile
from pathlib import Path
from typer.testing import CliRunner
from pcsim import store
from pcsim.cli import app

with tempfile.TemporaryDirectory() as folder:
    done = CliRunner().invoke(app, ["experiment", "mine", "--out", folder])
    assert done.exit_code == 0, done.output
    assert "test_accuracy" in store.load(Path(folder) / "mine.h5").variables
"""

# ---- a circuit

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
CIRCUIT_RUNS = """
import numpy as np
from pcsim import config, run

def weights(engine, **circuit):
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

ideal = weights("torch", kind="algebraic")
assert np.allclose(ideal, weights("torch", kind="leaky"), atol=1e-13)
leaky = weights("torch", kind="leaky", leak=0.5)
assert not np.allclose(ideal, leaky, atol=1e-6)
assert np.allclose(leaky, weights("native", kind="leaky", leak=0.5), atol=1e-12)
"""


# ---- a layer

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
LAYER_RUNS = """
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
"""


# ---- all of them

NEW, BEFORE, AFTER = "new", "before", "after"
ADDITIONS = {
    "a device": {"hw_models/sag.py": [(NEW, "", SAG)]},
    "a nonlinearity": {
        "pcsim/maps/nonlinearities.py": [(BEFORE, '    "softmax": Row("", "")', SOFTSIGN)],
    },
    "a layer": {
        "pcsim/maps/gain.py": [(NEW, "", MAP)],
        "pcsim/kernels/maps/gain.py": [(NEW, "", KERNEL)],
    },
    "a circuit": {"pcsim/circuits/leaky.py": [(NEW, "", PAGE)]},
    "a site, and a circuit that has it": {
        "pcsim/substrate/effect.py": [(BEFORE, '    "velocity": Row(', SITE)],
        "pcsim/circuits/dendritic.py": [
            (BEFORE, "    if not circuit.tau_apical:\n        return", LINES.lstrip("\n")),
            (BEFORE, "        places.append(speed_place(layer, k))", PLACE.lstrip("\n")),
            (AFTER, "sites=frozenset({", '"apical", '),
        ],
    },
    "an engine": {"pcsim/engines/autodiff/__init__.py": [(NEW, "", ENGINE)]},
    "an experiment": {"experiments/mine/study.py": [(NEW, "", STUDY)]},
}
"""Every addition: source files by path, and what is new in each, where."""
PROGRAMS = {
    "a device": DEVICE_RUNS,
    "a nonlinearity": NONLINEARITY_RUNS,
    "a layer": LAYER_RUNS,
    "a circuit": CIRCUIT_RUNS,
    "a site, and a circuit that has it": SITE_RUNS,
    "an engine": ENGINE_RUNS,
    "an experiment": EXPERIMENT_RUNS,
}
ALL = f"""
for name, program in {PROGRAMS!r}.items():
    exec({COMMON!r} + program, {{}})
    print(name)
"""


def add(path, edits):
    """Write a new file, or edit one that is there."""
    for where, at, text in edits:
        if where == NEW:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.lstrip())
            continue
        old = path.read_text()
        assert old.count(at) == 1, f"{path}: {at!r}"
        path.write_text(old.replace(at, text + at if where == BEFORE else at + text))


@pytest.mark.slow
def test_additions_work(tmp_path):
    """Every kind at once: what one of them breaks, the program of another shows."""
    ignored = shutil.ignore_patterns("__pycache__", "*.h5")
    for package in ("pcsim", "hw_models", "data"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=ignored)
    (tmp_path / "experiments").mkdir()
    shutil.copy(ROOT / "experiments" / "__init__.py", tmp_path / "experiments")
    for files in ADDITIONS.values():
        for name, edits in files.items():
            add(tmp_path / name, edits)
    done = subprocess.run(
        [sys.executable, "-c", ALL], cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == list(PROGRAMS)


def test_the_table_counts_their_files():
    """The page says how many source files each addition takes."""
    page = (ROOT / "docs" / "extending.md").read_text()
    table = {kind: int(n) for kind, n in re.findall(r"^\| (an? [^|]+?) \| (\d+) \|", page, re.M)}
    assert table == {kind: len(files) for kind, files in ADDITIONS.items()}


SECTIONS = {
    "a device": {"hardware": {"pieces": {"load": {"kind": "sag", "depth": 0.1}}}},
    "a nonlinearity": {"network": {"sizes": [64, 6, 10], "f": "softsign"}},
    "a layer": {"network": {"kind": "graph", "nodes": [{"shape": [1], "map": {"type": "gain"}}]}},
    "a circuit": {"circuit": {"kind": "leaky"}},
    "a site, and a circuit that has it": {
        "hardware": {"pieces": {"half": {"kind": "formula", "site": "apical", "becomes": "s"}}}
    },
    "an engine": {"run": {"backend": "continuous", "engine": "autodiff"}},
}


@pytest.mark.parametrize("kind", SECTIONS)
def test_without_its_files_it_is_unknown(kind):
    """Control: the programs could not have run on the tree as it is."""
    sections = {"network": {"sizes": [64, 6, 10]}} | SECTIONS[kind]
    with pytest.raises(ConfigError):
        config.parse(sections).network.build().parameter_count  # noqa: B018


def test_without_its_folder_there_is_no_experiment():
    assert "mine" not in names()
    assert "streaming" in names()
