"""A run in continuous time: what it learns, records and refuses, and that it can be interrupted."""

import itertools

import numpy as np
import pytest
import torch
import xarray

from pcsim import config, run, store
from pcsim.config import Config
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.runner import checkpoint
from pcsim.runner.chip_run import ChipRun
from pcsim.stability import StabilityWarning
from pcsim.verdict import verdict_from
from tests.criterion import stop_of


def setting(**sections: dict) -> Config:
    """Return a short run on digits, changed section by section."""
    base: dict[str, dict] = {
        "network": {"sizes": [64, 12, 10]},
        "schedule": {"T": 6, "gamma": 0.2},
        "learning": {"alpha": 2e-3, "batch": 20, "epochs": 2},
        "data": {"name": "digits", "limit": 100},
        "run": {"backend": "continuous", "dtype": "float64", "seeds": [1, 0]},
    }
    return config.changed(config.parse(base), sections)


def same(one: store.Result, other: store.Result) -> None:
    assert set(one.variables) == set(other.variables)
    for name in [*one.variables, *one.coords]:
        text = one[name].dtype.kind == "U"  # a file keeps text without spare room
        np.testing.assert_array_equal(one[name], other[name], err_msg=name, strict=not text)


CIRCUITS = {
    "algebraic": {},
    "error_units": {"circuit": {"kind": "error_units", "tau_err": 0.1}},
    "dendritic": {
        "circuit": {
            "kind": "dendritic",
            "conductances": {"g_lk": 0.1, "g_A": 0.8, "g_som": 0.5},
        }
    },
    "sacramento": {
        "network": {"bias": False},
        "circuit": {"kind": "sacramento", "conductances": {"g_som": 0.8}},
        "learning": {"alpha": 2e-2},
    },
    "equilibrium": {
        "circuit": {"kind": "equilibrium"},
        "stream": {"t_settle": 4.0, "t_pres": 4.0},
        "learning": {"alpha": 1e-3},
    },
}


@pytest.mark.parametrize("name", CIRCUITS)
@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")  # lags that ring a little
def test_every_circuit_learns_the_digits(name):
    """Chance is 10 %."""
    sections = CIRCUITS[name]
    learning = {"alpha": 3e-3, "batch": 10, "epochs": 6} | sections.get("learning", {})
    fields = sections | {"learning": learning, "data": {"limit": 600}, "run": {"dtype": "float32"}}
    done = run(setting(**fields))
    assert (done["accuracy"] > 0.6).all()
    assert done["test_accuracy"].shape == (2, 6)
    assert (done["accuracy"] == done["test_accuracy"][:, -1]).all()


def test_chips_of_a_grid_equal_lone_runs():
    grid = {"gamma": [0.1, 0.3], "alpha": [1e-3, 4e-3]}
    together = run(setting(grid=grid))
    assert together["parameters"].shape[:3] == (2, 2, 2)
    axes = together.variables["parameters"].dims[:2]
    for values in ((0.1, 4e-3), (0.3, 1e-3)):
        chosen = dict(zip(("gamma", "alpha"), values, strict=True))
        lone = run(
            setting(
                schedule={"gamma": chosen["gamma"]},
                learning={"alpha": chosen["alpha"]},
                run={"seeds": [0]},
            )
        )
        index = tuple(list(together.coords[axis]).index(chosen[axis]) for axis in axes)
        np.testing.assert_allclose(
            together["parameters"][(*index, 1)], lone["parameters"][0], rtol=0, atol=1e-12
        )


def test_a_chip_that_diverges_is_marked_and_disturbs_nobody():
    carry = {"init": "carry"}
    with pytest.warns(StabilityWarning, match="will blow up"):
        mixed = run(setting(grid={"gamma": [0.2, 6.0]}, schedule=carry))
    good = run(setting(schedule=carry))
    np.testing.assert_allclose(mixed["parameters"][0], good["parameters"], rtol=0, atol=1e-12)
    times = mixed["verdict.diverged_at"]
    assert np.isnan(times[0]).all()
    assert (times[1] > 0).all()
    assert (times[1] < mixed["time"][-1] + 1).all()
    assert (mixed["verdict.outcome"][1] == "diverged").all()
    assert (mixed["verdict.outcome"][0] != "diverged").all()


@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
def test_nothing_but_diverged_chips():
    seen = []
    one = setting(network={"f": "relu"}, schedule={"gamma": 20.0, "T": 200})
    done = run(one, report=seen.append)
    assert (done["verdict.outcome"] == "diverged").all()
    assert "nan" in seen[-1].text


# -- interruption ----------------------------------------------------------------------------------

CASES = {
    "ff": {},
    "carry": {"schedule": {"init": "carry"}},
    "single samples": {"learning": {"batch": 1}, "data": {"limit": 12}},
    "settle": {"schedule": {"init": "carry"}, "stream": {"t_settle": 0.6}},
    "label": {"schedule": {"init": "carry"}, "stream": {"tau_label": 0.3}},
    "noise": {
        "schedule": {"init": "carry"},
        "circuit": {"sigma_x": 0.05},
        "solver": {"name": "maruyama", "noise_seed": 3},
    },
    "everything": {
        "schedule": {"init": "carry"},
        "circuit": {"sigma_x": 0.05, "kind": "error_units", "tau_err": 0.02},
        "solver": {"name": "stochastic_heun", "dt": 0.01},
        "stream": {"t_pres": 0.06, "t_settle": 0.03, "tau_label": 0.02},
    },
    "look-ahead": {
        "schedule": {"init": "carry"},
        "circuit": {"look_soma": 0.7},
        "stream": {"t_settle": 0.6},
    },
    "dendritic": {
        "schedule": {"init": "carry"},
        "circuit": {"kind": "dendritic", "tau_inter": 0.02, "tau_apical": 0.02},
        "stream": {"t_settle": 0.4},
        "solver": {"dt": 0.02},
    },
    "sacramento": {
        "network": {"bias": False},
        "schedule": {"init": "carry"},
        "circuit": {"kind": "sacramento", "conductances": {"g_som": 0.8}, "eta_apical": 0.5},
    },
    "equilibrium": {"circuit": {"kind": "equilibrium"}, "stream": {"t_settle": 0.6}},
    "kolen_pollack": {"circuit": {"transport": "kolen_pollack", "weight_decay": 0.1}},
    "generative": {
        "network": {"sizes": [6, 8, 64], "prior": 0.0},
        "data": {"mode": "generative"},
    },
}


@pytest.mark.parametrize(
    ("name", "when"),
    [*((name, 5) for name in CASES), ("carry", 1), ("carry", 8), ("everything", 1)],
)
def test_interrupted_and_resumed_is_uninterrupted(tmp_path, name, when):
    """The interruption itself writes the checkpoint: no timer has run out."""
    one = setting(**CASES[name])
    whole = run(one)
    out, seen = tmp_path / "a.h5", []

    def report(status):
        seen.append(status)
        if len(seen) == when:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"of simulated time; .* goes on from"):
        run(one, out, report=report)
    kept = checkpoint.path_for(out)
    assert kept.exists()
    assert not out.exists()
    seen.clear()
    resumed = run(one, out, report=seen.append)
    assert seen[0].done > whole["time"][0] + 1e-9, "it goes on, it does not begin anew"
    same(resumed, whole)
    same(store.load(out), whole)
    assert not kept.exists()


def test_trajectories_of_a_resumed_run_are_those_of_a_whole_one(tmp_path, monkeypatch):
    """Also with records behind the last checkpoint, which are made again."""
    record = {"every": 3, "trajectories": True, "units": 5, "chips": 2}
    one = setting(**CASES["carry"], record=record)
    run(one, tmp_path / "whole.h5")
    whole = store.load(tmp_path / "whole.trajectories.h5")
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    saves, left = ChipRun.save, itertools.count()

    def save_twice(self):
        if next(left) < 2:
            saves(self)

    monkeypatch.setattr(ChipRun, "save", save_twice)
    seen = []

    def report(status):
        seen.append(status)
        if len(seen) == 15:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="goes on from"):
        run(one, tmp_path / "a.h5", report=report)
    part = store.load(tmp_path / "a.trajectories.h5", partial=True)
    seen.clear()
    run(one, tmp_path / "a.h5", report=lambda status: None)
    same(store.load(tmp_path / "a.trajectories.h5"), whole)
    assert 0 < len(part["time"]) < len(whole["time"]), "control: it was cut in the middle"


def test_checkpoint_of_another_configuration_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    calls = []

    def stop(status):
        calls.append(status)
        if len(calls) == 3:
            raise KeyboardInterrupt

    out = tmp_path / "a.h5"
    with pytest.raises(InterruptedRunError):
        run(setting(), out, report=stop)
    with pytest.raises(StoreError, match="belongs to another configuration"):
        run(setting(learning={"alpha": 1e-3}), out)


# -- records ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "circuit",
    [
        {},
        {"delay_err": 0.2},
        {"delay_fb": 0.4},
        {"kind": "dendritic"},
        {"kind": "dendritic", "tau_inter": 0.01, "tau_apical": 0.01},
        {"look_soma": 0.5},
    ],
    ids=str,
)
def test_trajectories_are_labelled_and_change_nothing(tmp_path, circuit):
    sections = {"circuit": circuit, "stream": {"t_settle": 0.4}, "schedule": {"init": "carry"}}
    if circuit.get("tau_inter"):
        sections["solver"] = {"dt": 0.01}
    plain = run(setting(record={"every": 1}, **sections))
    out = tmp_path / "a.h5"
    record = {"every": 1, "trajectories": True, "units": 3, "chips": 1}
    same(run(setting(record=record, **sections), out), plain)
    with xarray.open_dataset(tmp_path / "a.trajectories.h5", engine="h5netcdf") as data:
        assert data["x1"].dims == ("time", "chip", "unit_x1")
        assert data["x1"].shape == (len(plain["time"]), 1, 3)
        assert data["time"].attrs["units"] == "s"
        np.testing.assert_array_equal(data["time"], plain["time"])
        assert np.isfinite(data["x1"]).all()
        assert np.ptp(data["x1"].values) > 0


def test_trajectories_are_those_of_the_run(tmp_path):
    """Each row is of one instant: x and its error belong together, x − μ(x) = err."""
    one = setting(record={"every": 1, "trajectories": True, "units": 5, "chips": 2})
    run(one, tmp_path / "a.h5")
    by_hand = ChipRun(one)
    path = []
    by_hand.recorder.before_step = lambda: path.append(by_hand.engine.flow.states()["x1"].clone())
    by_hand._epochs()
    expected = torch.stack(path)[:, :, 0, :5].numpy()
    found = store.load(tmp_path / "a.trajectories.h5")
    np.testing.assert_allclose(found["x1"], expected, rtol=0, atol=1e-12)
    # The label is clamped, so its prediction is x0 − err0; after a feed-forward start, err1 = 0.
    starts = np.arange(0, len(found["time"]), 6)
    np.testing.assert_allclose(found["err1"][starts], 0, atol=1e-12)
    assert np.abs(found["err1"][starts + 1]).max() > 1e-4


def test_result_has_units_and_a_verdict(tmp_path):
    out = tmp_path / "a.h5"
    one = setting(learning={"epochs": 4}, grid={"alpha": [1e-3, 2e-3]})
    done = run(one, out)
    assert set(verdict_from(done).columns()) >= {"outcome", "floor", "settled_at"}
    with xarray.open_dataset(out, engine="h5netcdf") as data:
        assert data["energy"].dims == ("alpha", "seed", "time", "node")
        assert data["energy"].attrs["units"] == "1"
        assert data["time"].attrs["units"] == "s"
        assert data["accuracy_time"].attrs["units"] == "s"
        assert data["verdict.outcome"].dims == ("alpha", "seed")
        assert data.attrs["time_step"] == pytest.approx(0.2)
        assert data.attrs["simulated_seconds"] == pytest.approx(4 * 5 * 6 * 0.2)
        assert (np.diff(data["time"]) > 0).all()
        assert config.from_json(data.attrs["config"]) == one


def test_memory_is_bounded():
    """Statistics of a long run are kept a few hundred times, however many steps it has."""
    one = ChipRun(setting(learning={"batch": 1, "epochs": 60}, run={"seeds": [0]}))
    assert one.total_steps == 60 * 100 * 6
    assert 300 <= one.total_steps / one.recorder.every <= 500
    assert one.recorder.every % 6 == 0, "always at the same phase of a presentation"


def test_rare_records_still_give_a_verdict():
    done = run(setting(record={"every": 10**6}))
    assert len(done["time"]) == 1
    assert done["verdict.outcome"].shape == (2,)


# -- automatic -------------------------------------------------------------------------------------


def test_automatic_stops_by_itself():
    one = setting(
        learning={"batch": 0, "alpha": 1e-3},
        run={"automatic": True},
        data={"limit": 30},
        convergence={"window": 40, "rtol": 0.1, "max_steps": 4000},
        record={"every": 1},
    )
    done = run(one)
    energy = done["energy"].sum(-1)
    steps = energy.shape[1]
    assert 160 <= steps < 4000
    stops = [stop_of(row, 40, 0.1) for row in energy]
    assert stops[0] != stops[1], "each chip on its own"
    np.testing.assert_allclose(done["stopped_at"], np.multiply(stops, 0.2))
    assert steps == max(stops), "and the run ends with the last one"
    assert (done["verdict.outcome"] == "converged").all()
    np.testing.assert_array_equal(done["verdict.start"], energy[:, 0])
    assert (done["verdict.rises"] == 0).all(), "a gradient flow"
    assert len(np.unique(done["time"])) == steps


def test_automatic_stops_at_the_limit_of_steps():
    full = {"batch": 0, "alpha": 1e-3}
    done = run(setting(learning=full, run={"automatic": True}, convergence={"max_steps": 60}))
    assert done.attrs["simulated_seconds"] == pytest.approx(60 * 0.2)


def test_a_smoothed_label_follows_its_target_exponentially():
    """label ← label + (1 − e^{−dt/τ})(target − label) in every step, from sample to sample."""
    one = ChipRun(
        setting(learning={"batch": 1, "epochs": 1}, stream={"tau_label": 0.7}, data={"limit": 3})
    )
    one.run()
    expected = 0.0
    for clamps in one.task.batches(one.chips, 0, 1):
        kept = np.exp(-one.timing.present * one.timing.dt / 0.7)
        expected = kept * expected + (1 - kept) * clamps[0].numpy()
    np.testing.assert_allclose(one.label.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert 0.1 < expected.max() < 0.99, "control: on its way"


def test_a_full_batch_with_resets_does_not_ring():
    """Reset to the feed-forward pass at every presentation, F swings; at one phase it falls."""
    full = {"batch": 0, "alpha": 1e-3, "epochs": 120}
    fields = {"learning": full, "data": {"limit": 30}, "schedule": {"init": "ff"}}
    one = ChipRun(setting(**fields))
    one.run()
    assert one.recorder.every % one.timing.present == 0, "ends of presentations"
    verdict = one.verdict()
    assert set(verdict.outcome) <= {"converged", "descending"}
    assert np.isnan(verdict.rises).all(), "between resets F may grow"
    swinging = ChipRun(setting(**fields, record={"every": 1}))
    swinging.run()
    energy = np.stack(swinging.recorder.rows["energy"], 1).sum(2)
    assert (np.diff(energy, axis=1) > 0).mean() > 0.1, "control: in between it goes up and down"
    assert "ringing" not in swinging.verdict().outcome
