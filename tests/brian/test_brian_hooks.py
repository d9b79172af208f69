"""What a user adds to a circuit in Brian2: lines, currents, noise, f and weights; and scripts."""

import re
import subprocess
import sys
from pathlib import Path

import brian2
import numpy as np
import pytest
from brian2 import ms, second

import pcsim.brian as pc
from pcsim.cli import main
from pcsim.errors import ConfigError, UnsupportedError

ROOT = Path(__file__).parents[2]
NETWORK = pc.Network.mlp([2, 3, 1])
TAU = {"tau_x": 0.01, "tau_w": 1.0}
CIRCUITS = [
    pc.Algebraic(**TAU),
    pc.ErrorUnits(**TAU, tau_err=0.005),
    pc.Dendritic(**TAU),
    pc.Dendritic(**TAU, tau_inter=0.002),
    pc.Algebraic(**TAU, look_soma=0.004),
]
RNG = np.random.default_rng(5)
WEIGHTS = [RNG.normal(size=(1, 3)), (RNG.normal(size=(3, 2)), RNG.normal(size=3))]
ADAPTATION = {
    "extra": {"hidden": "da/dt = (x - a)/tau_a : 1"},
    "current": "- beta*a",
    "constants": {"beta": 0.5, "tau_a": 50 * ms},
}


@pytest.fixture(autouse=True)
def interpreted():
    before = brian2.prefs.codegen.target
    brian2.prefs.codegen.target = "numpy"
    yield
    brian2.prefs.codegen.target = before


def run(circuit, steps=50, **hooks) -> pc.Parts:
    parts = pc.build(NETWORK, circuit, WEIGHTS, clock=brian2.Clock(1 * ms), **hooks)
    parts.layers[-1].x = [1.0, -1.0]
    parts.layers[0].x = [0.5]
    parts.network().run(steps * ms)
    return parts


@pytest.mark.parametrize("steps", [1, 40])
def test_an_adaptation_current_by_hand(steps):
    """The algebraic circuit with its adaptation, Euler step by Euler step, in NumPy."""
    parts = run(pc.Algebraic(**TAU), steps, **ADAPTATION)
    w0, (w1, b1) = WEIGHTS[0].copy(), (WEIGHTS[1][0].copy(), WEIGHTS[1][1].copy())
    b0, x, a = np.zeros(1), np.zeros(3), np.zeros(3)
    top, label, dt = np.array([1.0, -1.0]), np.array([0.5]), 1e-3
    for _ in range(steps):
        r = np.tanh(x)
        e1, e0 = x - w1 @ top - b1, label - w0 @ r - b0
        dx = ((1 - r**2) * (w0.T @ e0) - e1 - 0.5 * a) / 0.01
        da = (x - a) / 0.05
        w0, b0 = w0 + dt * np.outer(e0, r), b0 + dt * e0
        w1, b1 = w1 + dt * np.outer(e1, top), b1 + dt * e1
        x, a = x + dt * dx, a + dt * da
    np.testing.assert_allclose(parts.layers[1].x[:], x, atol=1e-13)
    np.testing.assert_allclose(parts.layers[1].a[:], a, atol=1e-13)
    np.testing.assert_allclose(parts.weights(0), w0, atol=1e-13)


@pytest.mark.parametrize("circuit", CIRCUITS, ids=lambda c: f"{c.kind}{c.look_soma or ''}")
def test_a_current_of_zero_changes_nothing_and_another_does(circuit):
    plain = run(circuit)
    none = run(circuit, **ADAPTATION | {"constants": {"beta": 0.0, "tau_a": 50 * ms}})
    some = run(circuit, **ADAPTATION)
    np.testing.assert_array_equal(plain.layers[1].x[:], none.layers[1].x[:])
    assert np.abs(plain.layers[1].x[:] - some.layers[1].x[:]).max() > 1e-3


def test_another_f_is_that_of_the_network():
    text = "log(1 + exp(x))"
    ours = run(pc.Dendritic(**TAU), f=text)
    network = pc.Network.mlp([2, 3, 1], text)
    theirs = pc.build(network, pc.Dendritic(**TAU), WEIGHTS, clock=brian2.Clock(1 * ms))
    theirs.layers[-1].x, theirs.layers[0].x = [1.0, -1.0], [0.5]
    theirs.network().run(50 * ms)
    np.testing.assert_array_equal(ours.layers[1].x[:], theirs.layers[1].x[:])
    assert np.abs(run(pc.Dendritic(**TAU)).layers[1].x[:] - ours.layers[1].x[:]).max() > 1e-3


def test_softplus_as_people_write_it_has_its_values_and_slope_and_does_not_overflow():
    from pcsim.maps.nonlinearities import row

    x = np.array([-900.0, -30.0, -1.0, 0.0, 2.0, 40.0, 900.0])
    names = {name: getattr(np, name) for name in ("exp", "log", "abs")} | {"x": x}
    names |= {"int": lambda flag: flag.astype(float)}
    with np.errstate(over="ignore"):
        f, slope = (eval(t, names) for t in (row("log(1+exp(x))").f, row("log(1+exp(x))").slope))
    np.testing.assert_allclose(f, np.logaddexp(0, x), rtol=1e-14, atol=2e-16)
    np.testing.assert_allclose(slope, np.exp(x - np.logaddexp(0, x)), rtol=1e-12)


def test_noise_of_ones_own_on_weights_has_its_variance():
    """Weights that learn nothing diffuse: Var = σ² t, within five standard errors."""
    brian2.seed(3)
    network, circuit = pc.Network.mlp([30, 60, 1]), pc.Algebraic(tau_x=0.01, tau_w=1e9)
    start = [np.zeros((1, 60)), np.zeros((60, 30))]
    noise = {"current": {"map1": "sigma_w*xi"}, "constants": {"sigma_w": 0.2 * second**-0.5}}
    parts = pc.build(network, circuit, start, clock=brian2.Clock(1 * ms), **noise)
    parts.network().run(100 * ms)
    w = parts.weights(1)
    wanted = 0.2**2 * 0.1
    assert abs(w.var() - wanted) < 5 * wanted * np.sqrt(2 / w.size)
    assert np.abs(parts.weights(0)).max() < 1e-6


def test_weights_go_in_and_come_out_as_arrays():
    parts = pc.build(NETWORK, pc.Dendritic(**TAU), WEIGHTS, clock=brian2.Clock(1 * ms))
    a_b = 0.5  # of a hidden layer: the array holds W/a_B
    np.testing.assert_allclose(parts.weights(0), WEIGHTS[0])
    np.testing.assert_allclose(parts.weights(1), WEIGHTS[1][0] / a_b)
    both = [np.stack([WEIGHTS[0], 2 * WEIGHTS[0]]), WEIGHTS[1]]
    two = pc.build(NETWORK, pc.Algebraic(**TAU), both, clock=brian2.Clock(1 * ms))
    np.testing.assert_allclose(two.weights(0), both[0])
    np.testing.assert_allclose(two.weights(1)[1], WEIGHTS[1][0])


@pytest.mark.parametrize(
    ("hooks", "words"),
    [
        ({"extra": {"middle": "da/dt = -a/ms : 1"}}, "no place 'middle'; there are hidden, output"),
        ({"extra": "da/dt = -a"}, "is no equation of Brian2"),
        ({"extra": "x : 1"}, "has a variable 'x' already"),
        ({"current": {"input": "1"}}, "has no x that moves"),
        ({"current": "beta", "constants": {"beta": 1, "gamma": 2}}, "speaks of gamma"),
        ({"current": "tau_w/second", "constants": {"tau_w": 1}}, "a constant of the circuit"),
        ({"f": "x*y"}, "y"),
        ({"params": [np.zeros((1, 3))]}, "1 arrays of weights for 2 maps"),
        ({"params": [np.zeros((3, 1)), np.zeros((3, 2))]}, r"needed \(post, pre\) = \(1, 3\)"),
        ({"params": [np.full((1, 3), np.nan), np.zeros((3, 2))]}, "must be finite"),
    ],
    ids=str,
)
def test_what_cannot_be_added_is_refused_in_a_sentence(hooks, words):
    with pytest.raises(ConfigError, match=words):
        pc.build(NETWORK, pc.Algebraic(**TAU), **{"params": WEIGHTS} | hooks)


# -- scripts ---------------------------------------------------------------------------------------
CONFIG = """
network = {{ sizes = [64, 6, 10], f = "tanh" }}
data = {{ name = "digits", limit = 200 }}
circuit = {{ kind = "{kind}", tau_x = 0.01, tau_w = 1.0{more} }}
run = {{ backend = "brian", dtype = "float64" }}
"""
ALONE = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pcsim", "torch", "hw_models"):
            raise ImportError(name)
sys.meta_path.insert(0, Without())
import runpy
made = runpy.run_path(sys.argv[1])
import numpy as np
arrays = [s.w[:] for s in made["maps"]] + [g.x[:] for g in made["layers"]]
np.save(sys.argv[2], np.concatenate(arrays))
"""


@pytest.mark.parametrize(
    ("kind", "more"),
    [("dendritic", ""), ("spiking", ", tau_err = 0.005, tau_s = 0.005, q = 0.1, qe = 0.1")],
)
def test_a_script_runs_without_pcsim_and_gives_the_same_numbers(kind, more, tmp_path):
    file, script = tmp_path / "c.toml", tmp_path / "circuit.py"
    file.write_text(CONFIG.format(kind=kind, more=more))
    assert _main(["equations", str(file), "--script", str(script), "--steps", "30"]) == 0
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(script), str(tmp_path / "w.npy")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pc_map0 mean |w|" in done.stdout
    assert script.with_suffix(".png").stat().st_size > 1000
    from pcsim import config as configuration
    from pcsim.runner.timing import Timing

    timing = Timing.of(configuration.load(file))
    start = np.load(script.with_suffix(".npz"))
    clock = brian2.Clock(timing.dt * second)
    network = pc.Network.mlp([64, 6, 10], "tanh")
    parts = pc.build(network, timing.circuit, seeds=[0], clock=clock)
    parts.layers[0].x = start["pc_layer0.x"]
    parts.layers[-1].x = start["pc_layer2.x"]
    parts.network().run(30 * timing.dt * second)
    ours = [s.w[:] for s in parts.maps] + [g.x[:] for g in parts.layers]
    assert np.abs(np.load(tmp_path / "w.npy") - np.concatenate(ours)).max() <= 1e-13


def test_a_script_refuses_what_needs_pcsim(tmp_path, capsys):
    file, script = tmp_path / "c.toml", tmp_path / "circuit.py"
    hardware = '[hardware]\npreset = "ecram_li"\n'
    file.write_text(CONFIG.format(kind="algebraic", more="") + hardware)
    assert _main(["equations", str(file), "--script", str(script)]) == 2
    assert "remove [hardware]" in capsys.readouterr().err.replace("\n", " ")
    script.write_text("mine")
    file.write_text(CONFIG.format(kind="algebraic", more=""))
    assert _main(["equations", str(file), "--script", str(script)]) == 2
    assert script.read_text() == "mine"
    delayed = pc.Algebraic(**TAU, delay_fb=0.002)
    with pytest.raises(UnsupportedError, match="delays need pcsim"):
        pc.script(tmp_path / "d.py", NETWORK, delayed, [None] * 3, dt=1e-3)


def _main(arguments: list[str]) -> int:
    sys.argv, before = ["pcsim", *arguments], sys.argv
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
    return 0


def test_the_examples_of_the_page(tmp_path):
    page = (ROOT / "docs/brian.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[1:]
    assert len(blocks) == 3
    assert all(len(block.strip().splitlines()) <= 15 for block in blocks)
    for block in blocks:
        names: dict[str, object] = {}
        exec(compile(block, "docs/brian.md", "exec"), names)
        assert np.isfinite(names["parts"].layers[1].x[:]).all()
