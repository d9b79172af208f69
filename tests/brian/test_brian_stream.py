"""`run.backend = "brian"`: the same configuration gives the same run as the continuous backend."""

import itertools

import numpy as np
import pytest

from pcsim import config, run, store
from pcsim.errors import ConfigError, InterruptedRunError, UnsupportedError
from pcsim.runner import checkpoint
from pcsim.runner.chip_run import ChipRun

LIMIT = 1e-12


def setting(backend="brian", **sections):
    """Return a few presentations of digits to two small chips, changed section by section."""
    base = {
        "network": {"sizes": [64, 4, 10]},
        "schedule": {"T": 4, "gamma": 0.2},
        "learning": {"alpha": 2e-2, "batch": 1, "epochs": 2},
        "data": {"name": "digits", "limit": 5},
        "run": {"backend": backend, "dtype": "float64", "seeds": [1, 0]},
    }
    return config.changed(config.parse(base), sections)


def compared(**sections):
    """Run both; return the largest difference of every number, by name."""
    ours = run(setting(**sections))
    sections.pop("brian", None)
    theirs = run(setting("continuous", **sections))
    assert ours.variables.keys() == theirs.variables.keys()
    found = {}
    for name in [*theirs.variables, *theirs.coords]:
        if theirs[name].dtype.kind != "f":
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        elif theirs[name].size:
            np.testing.assert_array_equal(np.isnan(ours[name]), np.isnan(theirs[name]), name)
            gap = np.abs(ours[name] - theirs[name])
            found[name] = float(np.max(gap, initial=0, where=~np.isnan(gap)))
    assert found["parameters"] < LIMIT, found
    assert max(found.values()) < 1e-9, found  # derived figures divide by small energies
    assert float(np.abs(theirs["weight_change"]).max()) > 1e-3, "control: weights have moved"
    assert len(theirs.coords["time"]) > 3, "control: something was recorded"
    return ours


@pytest.mark.parametrize(
    ("init", "settle", "tau_label"),
    list(itertools.product(["carry", "ff", "zero"], [0.0, 0.4], [0.0, 0.3])),
)
def test_streams(init, settle, tau_label):
    """Every way to switch samples: what states start from, and what the label does."""
    compared(schedule={"init": init}, stream={"t_settle": settle, "tau_label": tau_label})


@pytest.mark.parametrize("products", [True, False])
@pytest.mark.parametrize(
    "circuit",
    [
        {"kind": "error_units", "tau_err": 0.3, "transport": "random"},
        {
            "kind": "dendritic",
            "conductances": {"g_lk": 0.1, "g_A": 0.8, "g_som": 0.3},
            "tau_inter": 0.3,
            "tau_apical": 0.4,
            "transport": "kolen_pollack",
            "weight_decay": 0.01,
        },
    ],
    ids=["error_units", "dendritic"],
)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_circuits_and_mismatch(circuit, products):
    """Chips of unequal τ_x (a grid over gamma), lags, and feedback weights of their own."""
    compared(
        circuit=circuit,
        grid={"gamma": [0.15, 0.2]},
        stream={"t_settle": 0.4},
        solver={"dt": 0.2},
        record={"every": 3},
        brian={"products": products},
    )


def test_batches_share_weights():
    compared(learning={"batch": 5, "reduction": "mean"}, data={"limit": 20})
    with pytest.raises(UnsupportedError, match=r"learning.batch 5.*one sample at a time"):
        run(setting(learning={"batch": 5}, data={"limit": 20}, brian={"products": False}))


def test_a_grid_of_learning_rates():
    """Chips with time constants of their own per weight: by synapses, as products cannot."""
    compared(grid={"alpha": [1e-2, 2e-2]}, run={"seeds": [0]})


@pytest.mark.parametrize(
    "circuit", [{"delay_fb": 0.2}, {"look_soma": 0.3}, {"transport": "sign"}], ids=str
)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_circuits_by_synapses(circuit):
    compared(circuit=circuit, stream={"t_settle": 0.4}, schedule={"init": "carry"})


@pytest.mark.parametrize(("settle", "tau_label"), [(0.0, 0.0), (0.0, 0.3), (0.4, 0.3)])
def test_categorical_labels(settle, tau_label):
    """A label on its way to its target is no distribution: Σp is that of the moment."""
    stream = {"t_settle": settle, "tau_label": tau_label}
    compared(network={"output": {"kind": "categorical"}}, stream=stream)


def test_categorical_hidden_layers():
    """Rates are probabilities, in the feed-forward pass of a program in C++ too."""
    compared(network={"hidden": {"kind": "categorical"}}, schedule={"init": "ff"})


def test_generative():
    """A free top is drawn at every presentation, from the same numbers."""
    compared(
        network={"sizes": [3, 5, 64], "prior": 0.0},
        data={"mode": "generative"},
        schedule={"init": "ff"},
    )


def test_automatic():
    """Until converged: the program stops Brian2 at the very same step."""
    fields = {"window": 5, "rtol": 0.05, "max_steps": 200}
    done = compared(
        learning={"batch": 0, "alpha": 1e-2},
        run={"automatic": True, "seeds": [0]},
        data={"limit": 12},
        convergence=fields,
        record={"every": 2},
    )
    assert done.attrs["simulated_seconds"] < 199 * 0.2, "control: it stopped by itself"


def test_single_precision():
    fields = {"dtype": "float32", "seeds": [0]}
    ours, theirs = run(setting(run=fields)), run(setting("continuous", run=fields))
    assert ours["parameters"].dtype == np.float32
    gap = np.abs(ours["parameters"] - theirs["parameters"]).max()
    assert 0 < gap < 2e-6


def test_trajectories(tmp_path):
    rows = {"every": 1, "trajectories": True}
    for backend in ("brian", "continuous"):
        run(setting(backend, record=rows), tmp_path / f"{backend}.h5")
    ours, theirs = (store.load(tmp_path / f"{b}.trajectories.h5") for b in ("brian", "continuous"))
    assert ours.variables.keys() == theirs.variables.keys()
    for name in theirs.variables:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=LIMIT, err_msg=name)


@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_interrupted_and_resumed(tmp_path, monkeypatch):
    """A checkpoint after each presentation; stopped in the second epoch; the same in the end."""
    one = setting(circuit={"kind": "error_units", "tau_err": 0.3}, schedule={"init": "carry"})
    whole = run(one)
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    shown = ChipRun.present

    def fails(self, clamps):
        yield from shown(self, clamps)
        if self.engine.steps >= 7 * 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(ChipRun, "present", fails)
    out = tmp_path / "a.h5"
    with pytest.raises(InterruptedRunError, match="the same command goes on"):
        run(one, out)
    assert checkpoint.path_for(out).exists()
    monkeypatch.setattr(ChipRun, "present", shown)
    resumed = run(one, out)
    for name in ("parameters", "energy", "test_accuracy"):
        np.testing.assert_allclose(resumed[name], whole[name], rtol=0, atol=LIMIT, err_msg=name)


@pytest.mark.parametrize(
    ("sections", "reason"),
    [
        ({"solver": {"name": "rk4"}}, r"solver.name 'rk4'.*only 'euler'"),
        ({"circuit": {"sigma_x": 0.1}}, r"solver.name 'euler'.*use 'maruyama'"),
        (
            {"grid": {"alpha": [1e-3, 2e-3]}, "brian": {"products": True}},
            "time constants per weight are no products",
        ),
        (
            {"circuit": {"delay_fb": 0.2}, "brian": {"target": "standalone"}},
            r"circuit.delay_fb with target 'standalone'",
        ),
        (
            {
                "run": {"automatic": True},
                "learning": {"batch": 0},
                "brian": {"target": "standalone"},
            },
            r"run.automatic with brian.target 'standalone'.*after every step",
        ),
        (
            {"learning": {"batch": 5}, "brian": {"target": "standalone"}},
            r"learning.batch 5.*one sample at a time; targets 'numpy' and 'cython'",
        ),
    ],
    ids=["solver", "noise", "alpha", "delay", "automatic", "batch"],
)
def test_refusals(sections, reason):
    with pytest.raises(UnsupportedError, match=reason) as error:
        ChipRun(setting(**sections))
    assert str(error.value).startswith("backend brian: ")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"target": "standalone", "products": True}, r"brian.products.*without a word"),
        ({"target": "cython", "fused": True}, r"brian.fused.*target 'standalone'"),
        ({"folder": "here"}, r"brian.folder: only target 'standalone'"),
        ({"target": "cuda"}, r"brian.target.*'numpy', 'cython' or 'standalone'"),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other(fields, reason):
    with pytest.raises(ConfigError, match=reason):
        setting(brian=fields)


def test_without_brian2(monkeypatch):
    import sys

    for name in [n for n in sys.modules if n.startswith("pcsim.backends.brian")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "brian2", None)
    with pytest.raises(UnsupportedError, match=r"backend brian: Brian2 cannot be imported.*pip"):
        ChipRun(setting())
