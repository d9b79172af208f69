"""A run that goes on from a checkpoint is the run that was never interrupted, to the last bit.

Every case is run once with checkpoints after time steps at and inside presentations, each of which
is kept, as a kill right behind it would leave it. From those the run goes on, and everything in the
result is compared with the run without any checkpoint: weights, records, accuracies, predictions,
verdict, trajectories.
"""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from pcsim import config, run, store
from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.runner import checkpoint
from pcsim.runner.chip_run import ChipRun

STEPS = 3
PRESENTATIONS = 3
EPOCHS = 2


def setting(*sections: dict) -> Config:
    """Return a run of a few presentations of digits, changed section by section.

    None takes a field away that has no meaning in the run.
    """
    base: dict[str, dict] = {
        "network": {"sizes": [64, 5, 10]},
        "schedule": {"T": STEPS, "gamma": 0.2, "init": "carry"},
        "learning": {"alpha": 2e-2, "batch": 2, "epochs": EPOCHS},
        "data": {"name": "digits", "limit": 2 * PRESENTATIONS, "limit_test": 12},
        "record": {"every": 2},
        "run": {"backend": "continuous", "dtype": "float64", "seeds": [1]},
    }
    for changes in sections:
        for name, fields in changes.items():
            base[name] = base.get(name, {}) | fields
    if base["run"]["backend"] == "discrete":
        del base["record"]
    if "dt" in base.get("solver", {}):
        del base["schedule"]["gamma"]
    if "t_pres" in base.get("stream", {}):
        del base["schedule"]["T"]
    given = {
        section: {name: value for name, value in fields.items() if value is not None}
        for section, fields in base.items()
    }
    return config.parse(given)


def same(one: store.Result, other: store.Result, where: str) -> None:
    """Compare everything but the attributes, which name times and machines."""
    assert set(one.variables) == set(other.variables)
    for name in [*one.variables, *one.coords]:
        text = one[name].dtype.kind == "U"  # a file keeps text without spare room
        np.testing.assert_array_equal(
            one[name], other[name], err_msg=f"{name} {where}", strict=not text
        )


@pytest.fixture
def kept(monkeypatch):
    """Let time steps (all, or those given) write a checkpoint; return where all of them stay."""

    def keep(folder: Path, steps=None) -> None:
        folder.mkdir()

        def pause_and_keep(self):
            self.between_steps = True
            if steps is None or self.engine.steps in steps:
                self.save()
                shutil.copy(self._kept_at, folder / f"{self.engine.steps:03}")
                rows = self._kept_at.with_name("often.trajectories.h5.partial")
                if rows.exists():
                    shutil.copy(rows, folder / f"{self.engine.steps:03}.rows")

        monkeypatch.setattr(ChipRun, "pause", pause_and_keep)

    monkeypatch.setattr(ChipRun, "warn", lambda self: None)  # advice on step sizes takes long
    return keep


def without_a_checkpoint(self):
    self.between_steps = True


def resumed_everywhere(one: Config, tmp_path: Path, kept, monkeypatch, steps=None) -> None:
    """Kill and resume `one` behind the given steps, and compare."""
    whole = run(one, tmp_path / "whole.h5")
    assert np.isfinite(whole["parameters"]).all(), "control: numbers that can be compared"
    with monkeypatch.context():
        kept(tmp_path / "kept", steps)
        same(run(one, tmp_path / "often.h5"), whole, "with checkpoints on the way")
    monkeypatch.setattr(ChipRun, "pause", without_a_checkpoint)
    saved = sorted(p for p in (tmp_path / "kept").iterdir() if not p.suffix)
    assert len(saved) >= 2
    for path in saved:
        out = tmp_path / f"{path.name}" / "a.h5"
        out.parent.mkdir()
        shutil.copy(path, checkpoint.path_for(out))
        if (rows := path.with_suffix(".rows")).exists():
            shutil.copy(rows, out.parent / "a.trajectories.h5.partial")
        same(run(one, out), whole, f"after step {path.name}")
        if path == saved[0]:
            same(store.load(out), whole, f"after step {path.name}, stored")
        if one.record.trajectories:
            theirs = store.load(tmp_path / "whole.trajectories.h5")
            own = store.load(out.with_suffix(".trajectories.h5"))
            same(own, theirs, f"trajectories after step {path.name}")


TOTAL = STEPS * PRESENTATIONS * EPOCHS
BOUNDARIES = {STEPS, TOTAL // EPOCHS, TOTAL}
"""Ends of the first presentation, of the first epoch, of the run."""
WITHIN = {1, 11}

DENDRITIC = {
    "circuit": {"kind": "dendritic", "tau_inter": 0.02, "tau_apical": 0.02},
    "solver": {"dt": 0.01},
    "stream": {"t_pres": 0.03},
}
SACRAMENTO = {
    "network": {"bias": False},
    "circuit": {"kind": "sacramento", "conductances": {"g_som": 0.8}, "eta_apical": 0.5},
}
UNITS = {"circuit": {"kind": "error_units", "tau_err": 0.3}}
SPIKING = {"circuit": {"kind": "spiking", "tau_err": 0.3, "tau_s": 0.4}}
SETTLE = {"stream": {"t_settle": 0.4}, "schedule": {"T": 1}}
LABEL = {"stream": {"tau_label": 0.3}}
FF = {"schedule": {"init": "ff"}}
FULL = {"learning": {"batch": 0, "epochs": 6}, "data": {"limit": 6, "limit_test": 12}}
CASES = {
    "algebraic": [],
    "algebraic ff": [FF],
    "algebraic full batch": [FULL],
    "full batch ff": [FULL, FF],
    "wide": [{"network": {"sizes": [64, 40, 10]}, "schedule": {"T": 3}}],
    "error units": [UNITS],
    "look-ahead errors": [{"circuit": UNITS["circuit"] | {"look_err": 0.1}}],
    "dendritic": [DENDRITIC],
    "dendritic, no lag": [{"circuit": {"kind": "dendritic"}}, SETTLE],
    "sacramento": [SACRAMENTO],
    "sacramento, label": [SACRAMENTO, LABEL],
    "spiking": [SPIKING],
    "spiking, settle": [SPIKING, SETTLE, LABEL, {"record": {"trajectories": True, "every": 1}}],
    "spiking zero": [SPIKING, {"schedule": {"init": "zero"}}],
    "late errors": [{"circuit": {"delay_err": 0.4}}],
    "late error units": [{"circuit": UNITS["circuit"] | {"delay_err": 0.4, "delay_fb": 0.2}}],
    "late feedback": [{"circuit": {"delay_fb": 0.8}}, SETTLE],
    "look-ahead somas": [{"circuit": {"look_soma": 0.7}}, SETTLE],
    "settle": [SETTLE, LABEL],
    "label": [LABEL],
    "kolen-pollack": [{"circuit": {"transport": "kolen_pollack", "weight_decay": 0.1}}],
    "rk4": [{"solver": {"name": "rk4"}}],
    "generative": [
        {
            "network": {"sizes": [6, 5, 64], "prior": 0.0},
            "data": {"mode": "generative", "limit_test": None},
        }
    ],
    "trajectories": [{"record": {"trajectories": True, "every": 1}}, UNITS, LABEL],
    "trajectories, settle": [
        {"record": {"trajectories": True, "every": 2}, "circuit": {"look_soma": 0.7}},
        SETTLE,
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_every_circuit(tmp_path, kept, monkeypatch, name):
    one = setting(*CASES[name])
    resumed_everywhere(one, tmp_path, kept, monkeypatch, BOUNDARIES | WITHIN)


NOISE = {"circuit": {"sigma_x": 0.05}, "solver": {"name": "maruyama", "noise_seed": 3}}
PIECES = {
    "coloured noise": {"kind": "coloured_noise", "where": "error", "sigma": 0.1, "tau_c": 0.5},
    "telegraph noise": {"kind": "telegraph_noise", "amplitude": 0.1, "tau_on": 0.7, "tau_off": 1.1},
    "sigma-delta": {"kind": "sigma_delta", "where": "rate", "step": 0.1},
    "dithered input": {"kind": "converter", "where": "input", "bits": 3, "dither": True},
    "sigma-delta input": {"kind": "sigma_delta", "where": "input", "step": 0.3},
    "write noise": {"kind": "write_noise", "sigma": 0.01, "mode": "seen"},
    "accumulator": {"kind": "update_accumulator", "threshold": 0.01},
    "drift": {"kind": "conductance_drift", "nu": 0.05},
}


PIECES["pair"] = {
    "kind": "device_pair",
    "device": {"kind": "constant_device", "dw_min": 0.01, "w_min": 0.0},
}


def on_chips(*names: str) -> dict:
    """Return two chips with these pieces, read out for few samples."""
    pieces = {f"p{k}": PIECES[name] for k, name in enumerate(names)}
    return {"hardware": {"chips": 2, "pieces": pieces}, "data": {"limit_test": 5}}


REMEMBERING = {name: [on_chips(name)] for name in PIECES} | {
    "dendritic chips": [
        {"circuit": {"kind": "dendritic"}},
        on_chips("coloured noise", "sigma-delta", "dithered input", "write noise"),
    ],
    "chips with error units": [
        UNITS,
        on_chips("drift", "telegraph noise", "sigma-delta input", "accumulator"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REMEMBERING)
def test_noise_and_hardware_with_memory(tmp_path, kept, monkeypatch, name):
    """Chips whose noise and devices remember what was, and read-outs through them."""
    one = setting(*REMEMBERING[name])
    resumed_everywhere(one, tmp_path, kept, monkeypatch, {4, 9})


NATIVE = {name: CASES[name] for name in CASES if name != "rk4"}
NATIVE |= {name: REMEMBERING[name] for name in ("sigma-delta input", "chips with error units")}
NATIVE |= {"soma noise": [NOISE, {"data": {"limit_test": 5}}]}


@pytest.mark.slow
@pytest.mark.parametrize("name", NATIVE)
def test_compiled_steps(tmp_path, kept, monkeypatch, name):
    one = setting({"run": {"engine": "native"}}, *NATIVE[name])
    resumed_everywhere(one, tmp_path, kept, monkeypatch, {1, 9, 11})


@pytest.mark.parametrize("solver", ["maruyama", "stochastic_heun"])
def test_noise_of_somas(tmp_path, kept, monkeypatch, solver):
    one = setting(NOISE, {"solver": {"name": solver}, "data": {"limit_test": 5}})
    resumed_everywhere(one, tmp_path, kept, monkeypatch, {4, 9, 12})


AUTOMATIC = {
    "schedule": {"T": None},
    "learning": {"batch": 0, "epochs": None},
    "run": {"automatic": True, "seeds": [1, 2]},
    "convergence": {"max_steps": 14, "window": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "circuit", [{}, UNITS, {"circuit": {"delay_err": 0.4}}, SACRAMENTO, SPIKING], ids=str
)
def test_automatic(tmp_path, kept, monkeypatch, circuit):
    one = setting(AUTOMATIC, circuit, {"record": {"trajectories": True}})
    resumed_everywhere(one, tmp_path, kept, monkeypatch, {1, 7, 13, 14})


MOMENTUM = {"learning": {"optimizer": "momentum"}}
ADAM = {"learning": {"optimizer": "adam"}}
DISCRETE = {
    "ipc": [],
    "ipc ff": [FF],
    "ipc momentum": [MOMENTUM],
    "pc adam": [{"schedule": {"rule": "pc"}}, ADAM],
    "zil": [{"schedule": {"rule": "zil", "init": "ff", "T": None}}],
    "bp adam": [
        {"schedule": {"rule": "bp", "T": None, "gamma": None, "init": None}},
        ADAM,
    ],
    "ipc on chips": [on_chips("write noise", "coloured noise", "sigma-delta input")],
    "pc on chips": [{"schedule": {"rule": "pc"}}, on_chips("dithered input", "accumulator")],
    "bp on chips": [{"schedule": {"rule": "bp", "init": None}}, on_chips("sigma-delta", "pair")],
}


def interrupted_everywhere(one: Config, tmp_path, monkeypatch, kinds, method, moments) -> None:
    """Stop a discrete run by a signal in these calls, let it go on, and compare."""
    whole = run(one)
    for at in moments:
        out, calls = tmp_path / f"{at}.h5", []

        def signalled(original, at=at, calls=calls):
            def calling(self, *arguments, **options):
                calls.append(1)
                if len(calls) == at:
                    os.kill(os.getpid(), signal.SIGTERM)
                return original(self, *arguments, **options)

            return calling

        with monkeypatch.context() as patch:
            for kind in kinds:
                patch.setattr(kind, method, signalled(getattr(kind, method)))
            with pytest.raises(InterruptedRunError, match="goes on from"):
                run(one, out)
            taken = len(calls)
            same(run(one, out), whole, f"after {method} {at}")
            assert taken == at, "control: it stopped behind this call"
    same(store.load(out), whole, "stored")


@pytest.mark.slow
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_rules(tmp_path, monkeypatch, name):
    one = setting({"run": {"backend": "discrete"}}, *DISCRETE[name])
    rules = (Discrete, Backprop, ArrayBackprop)
    interrupted_everywhere(one, tmp_path, monkeypatch, rules, "batch", (2, 3, 6))


@pytest.mark.slow
@pytest.mark.parametrize(
    "sections",
    [
        [],
        [ADAM],
        [
            MOMENTUM,
            {"grid": {"alpha": [1e-3, 50.0]}, "learning": {"optimizer": "momentum", "alpha": None}},
        ],
        [on_chips("coloured noise", "pair")],
    ],
    ids=["ipc", "adam", "stopped replicas", "chips"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_automatic_discrete(tmp_path, monkeypatch, sections):
    """Also with replicas that have left before the interruption."""
    wide = {"network": {"sizes": [64, 12, 10]}}
    one = setting(AUTOMATIC, {"run": {"backend": "discrete"}}, *sections, wide)
    interrupted_everywhere(one, tmp_path, monkeypatch, (Discrete,), "step", (1, 2, 9, 13))


BRIAN = {
    "learning": {"batch": 1},
    "data": {"limit": PRESENTATIONS},
    "run": {"backend": "brian", "seeds": [1]},
    "schedule": {"T": STEPS, "gamma": 0.2, "init": "carry"},
}
ON_BRIAN = {
    "late errors, label": [{"circuit": UNITS["circuit"] | {"delay_err": 0.4}}, LABEL],
    "late feedback, settle": [{"circuit": {"delay_fb": 0.4}, "stream": {"t_settle": 0.2}}],
    "dendritic": [DENDRITIC],
    "sacramento": [SACRAMENTO],
    "spiking, settle": [SPIKING, {"stream": {"t_settle": 0.2}}],
    "hardware": [on_chips("drift", "telegraph noise", "sigma-delta", "dithered input")],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_BRIAN)
def test_on_brian(tmp_path, kept, monkeypatch, name):
    pytest.importorskip("brian2")
    one = setting(BRIAN, *ON_BRIAN[name])
    resumed_everywhere(one, tmp_path, kept, monkeypatch, {4, 9})


def test_a_kill_between_trajectories_and_result_loses_nothing(tmp_path, kept, monkeypatch):
    """The recording has its final name, the result has not been written, the checkpoint is old."""
    one = setting(*CASES["trajectories"])
    kept(tmp_path / "kept")
    whole = run(one, tmp_path / "often.h5")
    monkeypatch.setattr(ChipRun, "pause", without_a_checkpoint)
    recorded = store.load(tmp_path / "often.trajectories.h5")
    for step in (4, TOTAL):
        (tmp_path / "often.h5").unlink()
        shutil.copy(tmp_path / "kept" / f"{step:03}", checkpoint.path_for(tmp_path / "often.h5"))
        same(run(one, tmp_path / "often.h5"), whole, f"after step {step}")
        same(store.load(tmp_path / "often.trajectories.h5"), recorded, f"after step {step}")


def test_a_recording_that_is_gone_or_foreign_is_named(tmp_path, kept, monkeypatch):
    one = setting(*CASES["trajectories"])
    kept(tmp_path / "kept")
    run(one, tmp_path / "often.h5")
    out = tmp_path / "b.h5"
    shutil.copy(tmp_path / "kept" / "004", checkpoint.path_for(out))
    with pytest.raises(StoreError, match=r"4 rows .* not there; put the .*delete .*checkpoint"):
        run(one, out)
    rows = tmp_path / "b.trajectories.h5.partial"
    rows.write_bytes((tmp_path / "kept" / "003.rows").read_bytes())
    with pytest.raises(StoreError, match=r"cannot go on from row 4: .* has shape \(3,"):
        run(one, out)
    rows.write_bytes((tmp_path / "kept" / "004.rows").read_bytes()[:-500])
    with pytest.raises(StoreError, match="cannot go on from row 4"):
        run(one, out)
    other = setting(*CASES["trajectories"], {"learning": {"alpha": 1e-3}})
    run(other, tmp_path / "often2.h5")
    shutil.copy(tmp_path / "often2.trajectories.h5", rows)
    with pytest.raises(StoreError, match="recording of another run"):
        run(one, out)


@pytest.mark.parametrize("circuit", [{}, UNITS, {"circuit": {"kind": "dendritic"}}], ids=str)
def test_nothing_is_seen_before_it_was_computed(circuit):
    """Neither at the start nor after a resume: memory that was never written has no meaning."""
    one = setting(circuit, FULL)
    first = ChipRun(one)
    clamps = next(first.task.batches(first.chips, 0, 0))
    first.engine.load(clamps)
    states = ("x", "err") if "circuit" in circuit and circuit is UNITS else ("x",)
    assert {name.rstrip("0123456789") for name in first.engine.flow.states()} == set(states)
    first.engine.advance(2)
    assert "err0" in first.engine.flow.states()
    second = ChipRun(one)
    second.engine.restore({n: t.clone() for n, t in first.engine.state().items()})
    assert {name.rstrip("0123456789") for name in second.engine.flow.states()} == set(states)
    assert not second.engine.mark_diverged().any()
