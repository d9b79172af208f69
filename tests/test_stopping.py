"""A chip that has stopped has left: nothing of it moves any more, and nobody misses it."""

import numpy as np
import pytest
import torch

from pcsim import config, run
from pcsim.backends.stopped import Stopped
from pcsim.errors import InterruptedRunError
from pcsim.runner import automatic, chip_run
from pcsim.runner.automatic import Automatic
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.convergence_window import ConvergenceWindow

ENDS = (12, 40, 25)


class Ends:
    """In place of the criterion: chip k has converged after ENDS[k] steps."""

    def __init__(self, criterion, chips):
        self.ends, self.steps = np.asarray(ENDS[:chips]), 0
        self.converged = self.ringing = np.zeros(chips, dtype=bool)

    def add(self, energy):
        self.steps += 1
        self.converged = self.steps >= self.ends

    def state(self):
        return {"steps": np.array(self.steps)}

    def restore(self, state):
        self.steps = int(state["steps"])
        self.converged = self.steps >= self.ends


class Never(Ends):
    """Nobody stops."""

    def add(self, energy):
        pass


def setting(backend="discrete", **sections):
    base = {
        "network": {"sizes": [64, 6, 10]},
        "schedule": {"gamma": 0.2, "init": "carry"},
        "learning": {"alpha": 0.05, "reduction": "mean", "batch": 0},
        "data": {"name": "digits", "limit": 20, "limit_test": 60},
        "run": {"automatic": True, "dtype": "float64", "backend": backend},
        "convergence": {"max_steps": max(ENDS)},
    }
    if backend != "discrete":
        base["record"] = {"every": 1}
    if "hardware" in sections or sections.pop("chips", False):
        sections["hardware"] = {"chips": 3, **sections.get("hardware", {})}
    else:
        sections.setdefault("run", {})["seeds"] = [0, 1, 2]
    for name, fields in sections.items():
        base[name] = base.get(name, {}) | fields
    return config.parse(base)


LEAKY = {
    "retention": {"kind": "retention", "lifetime": 30.0},
    "noise": {"kind": "read_noise", "where": "weight", "sigma": 0.02},
    "walk": {"kind": "coloured_noise", "where": "velocity", "sigma": 0.1, "tau_c": 2.0},
}


def everything(engine):
    """Return all that moves in an engine, read at its parts."""
    if hasattr(engine, "optimizer"):
        named = {f"x{i}": engine.field.x[i] for i in engine.field.free}
        named |= {"flat": engine.params.flat, "first": engine.optimizer.first}
        named |= {"second": engine.optimizer.second}
    elif hasattr(engine, "solver"):
        named = engine.flow.moving() | {f"w{k}": w for k, w in enumerate(engine.flow.weights)}
    else:
        return engine._own()  # copies of Brian2's arrays
    chips = engine.chips if hasattr(engine, "chips") else None
    named |= {f"chip.{n}": t for n, t in (chips.state() if chips else {}).items()}
    return {n: t for n, t in named.items() if t.ndim and t.numel()}


def watched(monkeypatch, module, owner):
    """Note everything that an engine owns when chips stop."""
    noted = {}
    original = owner.stop

    def stop(self, chips):
        original(self, chips)
        for chip in torch.as_tensor(chips).nonzero().flatten().tolist():
            own = {n: t[chip].clone() for n, t in everything(self).items()}
            noted.setdefault(chip, own)

    monkeypatch.setattr(owner, "stop", stop)
    monkeypatch.setattr(module, "ConvergenceWindow", Ends)
    return noted


def test_rows_are_kept_as_they_were_when_each_chip_stopped():
    stopped, x = Stopped(4), torch.arange(8.0).view(4, 2)
    assert not stopped
    first = torch.tensor([False, True, False, False])
    assert stopped.add(first, {"x": x, "time": torch.tensor(1.0)}).tolist() == [1]
    x += 10
    assert stopped.add(first | torch.tensor([True, False, False, False]), {"x": x}).tolist() == [0]
    assert stopped.add(first, {"x": x}).tolist() == [], "nobody stops twice"
    x += 100
    stopped.hold({"x": x})
    assert x.tolist() == [[10, 11], [2, 3], [114, 115], [116, 117]]
    assert stopped.chips.tolist() == [True, True, False, False]


CASES = {
    "followed input": {},
    "plain products": {"schedule": {"fast": False}},
    "momentum and decay": {"learning": {"optimizer": "momentum", "weight_decay": 0.1}},
    "adamw": {"learning": {"optimizer": "adamw", "alpha": 1e-3, "weight_decay": 0.1}},
    "learned variances": {"network": {"output": {"learned": True}}},
    "leaking devices": {"hardware": {"pieces": LEAKY}},
    "a preset": {"hardware": {"preset": "cmos_capacitor"}},
    "another preset": {"hardware": {"preset": "pcm"}},
}


@pytest.mark.parametrize("case", CASES)
def test_discrete_chips_leave(monkeypatch, case):
    noted = watched(monkeypatch, automatic, automatic.Discrete)
    stopping = Automatic(setting(**CASES[case]))
    stopping.run()
    assert stopping.steps.tolist() == list(ENDS)
    own = everything(stopping.rule)
    for chip in (0, 2):
        for name, value in noted[chip].items():
            assert torch.equal(own[name][chip], value), (chip, name)
            assert torch.isfinite(value).all(), name
    assert len(noted[0]) >= 2, "control: states and weights at least"
    monkeypatch.setattr(automatic, "ConvergenceWindow", Never)
    going = Automatic(setting(**CASES[case]))
    going.run()
    flat = going.training.params.flat
    assert torch.equal(stopping.training.params.flat[1], flat[1]), "the one that went on"
    assert not torch.equal(stopping.training.params.flat[0], flat[0]), (
        "control: it would have moved"
    )
    for name, value in everything(going.rule).items():
        assert torch.equal(value[1], own[name][1]), name


def test_a_stopped_chip_is_the_chip_of_a_run_that_ended_there(monkeypatch):
    """Weights and accuracies are those of a run of as many steps, on devices that forget."""
    monkeypatch.setattr(automatic, "ConvergenceWindow", Ends)
    together = run(setting(hardware={"pieces": LEAKY}))
    assert together["steps"].ravel().tolist() == list(ENDS)
    for chip, steps in enumerate(ENDS):
        monkeypatch.setattr(automatic, "ConvergenceWindow", Never)
        short = run(setting(hardware={"pieces": LEAKY}, convergence={"max_steps": steps}))
        same = together["parameters"][0, chip], short["parameters"][0, chip]
        np.testing.assert_array_equal(*same)
        assert np.isfinite(same[0]).all()
        np.testing.assert_array_equal(
            together["energy"][0, chip, :steps], short["energy"][0, chip, :steps]
        )


FLOWS = {
    "algebraic": {},
    "mini followed": {"data": {"limit": 3}},
    "error units": {"circuit": {"kind": "error_units", "tau_err": 0.3}},
    "late errors": {"circuit": {"delay_err": 0.4}},
    "look-ahead": {"circuit": {"look_soma": 0.3}},
    "learnt feedback": {"circuit": {"transport": "kolen_pollack", "weight_decay": 1e-3}},
    "dendritic": {"circuit": {"kind": "dendritic"}},
    "sacramento": {
        "network": {"bias": False},
        "circuit": {"kind": "sacramento", "conductances": {"g_som": 0.8}},
    },
    "equilibrium": {"circuit": {"kind": "equilibrium"}, "learning": {"alpha": 0.005}},
    "leaking devices": {"hardware": {"pieces": LEAKY}},
    "a preset": {"hardware": {"preset": "cmos_capacitor"}},
}


@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
@pytest.mark.parametrize("case", FLOWS)
def test_continuous_chips_leave(monkeypatch, case):
    noted = watched(monkeypatch, chip_run, chip_run.engine_for.__globals__["Continuous"])
    stopping = ChipRun(setting("continuous", **FLOWS[case]))
    stopping.run()
    np.testing.assert_allclose(stopping.stopped_at, 0.2 * np.asarray(ENDS))
    theta, own = stopping.engine.flow.theta().flat.clone(), everything(stopping.engine)
    for chip in (0, 2):
        for name, value in noted[chip].items():
            assert torch.equal(own[name][chip], value), (chip, name)
    monkeypatch.setattr(chip_run, "ConvergenceWindow", Never)
    going = ChipRun(setting("continuous", **FLOWS[case]))
    going.run()
    there = going.engine.flow.theta().flat
    assert torch.equal(theta[1], there[1]), "the one that went on"
    assert not torch.equal(theta[0], there[0]), "control: it would have moved"
    energy, whole = (np.stack(r.recorder.rows["energy"], 1) for r in (stopping, going))
    for chip, steps in enumerate(ENDS):
        np.testing.assert_array_equal(energy[chip, :steps], whole[chip, :steps])
        assert (energy[chip, steps:] == energy[chip, steps - 1]).all(), "held, not made up"
    assert (whole[0, -1] != whole[0, ENDS[0] - 1]).any()
    assert np.isnan(stopping.engine.diverged_at.numpy()).all()


def test_a_continuous_chip_reports_its_state_at_its_own_stop(monkeypatch):
    monkeypatch.setattr(chip_run, "ConvergenceWindow", Ends)
    together = run(setting("continuous", hardware={"pieces": LEAKY}))
    monkeypatch.setattr(chip_run, "ConvergenceWindow", Never)
    for chip, steps in enumerate(ENDS):
        limit = {"max_steps": steps}
        short = run(setting("continuous", hardware={"pieces": LEAKY}, convergence=limit))
        for name in ("parameters", "verdict.floor", "verdict.start", "verdict.margin"):
            np.testing.assert_array_equal(together[name][0, chip], short[name][0, chip], name)
    assert len(set(together["verdict.floor"].ravel().tolist())) == 3


@pytest.mark.parametrize("hardware", [{}, {"hardware": {"pieces": LEAKY}}], ids=["ideal", "leaky"])
def test_brian_chips_leave_too(monkeypatch, hardware):
    hardware = hardware | {"data": {"limit": 1}}  # a synapse sees one sample
    pytest.importorskip("brian2")
    from pcsim.backends.brian import BrianBackend

    noted = watched(monkeypatch, chip_run, BrianBackend)
    ours = ChipRun(setting("brian", **hardware))
    ours.run()
    for chip in (0, 2):
        for name, value in noted[chip].items():
            assert torch.equal(ours.engine._own()[name][chip], value), (chip, name)
    if "hardware" in hardware:
        return  # noise of two engines is compared elsewhere
    theirs = ChipRun(setting("continuous", **hardware))
    theirs.run()
    gap = (ours.engine.flow.theta().flat - theirs.engine.flow.theta().flat).abs().max(1).values
    assert gap.max() < 1e-10, "torch and Brian2 stop at the same weights"


@pytest.mark.parametrize("backend", ["continuous", "brian"])
@pytest.mark.parametrize("hardware", [{}, {"hardware": {"pieces": LEAKY}}], ids=["ideal", "leaky"])
def test_stopped_chips_stay_stopped_behind_a_checkpoint(monkeypatch, tmp_path, hardware, backend):
    """Interrupted when one chip of three has stopped, and gone on: not a bit differs."""
    if backend == "brian":
        pytest.importorskip("brian2")
    hardware = hardware | {
        "data": {"limit": 1 if backend == "brian" else 3},
        "record": {"every": 7},
    }
    one = setting(backend, **hardware)
    monkeypatch.setattr(chip_run, "ConvergenceWindow", Ends)
    whole = run(one, tmp_path / "whole.h5")
    judge = ChipRun._judge

    def interrupted(self):
        judge(self)
        if self.engine.steps == 20 and tmp_path.joinpath("fresh").exists():
            tmp_path.joinpath("fresh").unlink()
            self._stop.requested = 2

    (tmp_path / "fresh").touch()
    monkeypatch.setattr(ChipRun, "_judge", interrupted)
    with pytest.raises(InterruptedRunError):
        run(one, tmp_path / "parts.h5")
    resumed = run(one, tmp_path / "parts.h5")
    for name in whole.variables:
        np.testing.assert_array_equal(resumed[name], whole[name], err_msg=name)


def test_the_criterion_goes_on_from_a_checkpoint():
    """Saved and taken up again after every seventh step, it sees what it would have seen."""
    rng = np.random.default_rng(9)
    series = 1 + 4 * np.exp(-np.arange(900) / 60) + 0.02 * rng.standard_normal((3, 900))
    criterion = config.Convergence(window=12, rtol=0.003)
    whole, parts = ConvergenceWindow(criterion, 3), ConvergenceWindow(criterion, 3)
    seen = []
    for step, energy in enumerate(series.T):
        whole.add(energy)
        parts.add(energy)
        if step % 7 == 0:
            state = {name: value.copy() for name, value in parts.state().items()}
            parts = ConvergenceWindow(criterion, 3)
            parts.restore(state)
        np.testing.assert_array_equal(whole.converged, parts.converged)
        seen.append(int(whole.converged.sum()))
    assert {0, 3} <= set(seen)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)
