"""The automatic run: full batch, nothing switched, and it ends by itself, each replica alone."""

import numpy as np
import pytest

from pcsim import config, datasets, run, store
from pcsim.config import Config
from pcsim.divergence import LIMIT
from pcsim.errors import ConfigError, InterruptedRunError
from pcsim.runner.automatic import Automatic
from pcsim.runner.training import Training
from pcsim.status import Status
from pcsim.store import Result
from tests.criterion import stop_of

WINDOW, RTOL = 50, 2e-2


def setting(**sections: dict) -> Config:
    """Return a small exact automatic run that takes about 800 steps."""
    base: dict[str, dict] = {
        "network": {"sizes": [64, 8, 10]},
        "schedule": {"rule": "ipc", "gamma": 0.2},
        "learning": {"alpha": 0.05, "reduction": "mean", "batch": 0},
        "data": {"name": "digits", "limit": 30},
        "run": {"automatic": True, "dtype": "float64"},
        "convergence": {"window": WINDOW, "rtol": RTOL, "max_steps": 3000},
    }
    return config.changed(config.parse(base), sections)


def energies(result: Result, *cell: int) -> np.ndarray:
    """Return the energies of one replica, up to its own end."""
    curve, steps = result["energy"][cell], int(result["steps"][cell])
    assert not np.isnan(curve[: steps - 1]).any()
    assert np.isnan(curve[steps:]).all()  # nothing is made up after the end
    return curve[:steps]


@pytest.fixture(scope="module")
def plain() -> Result:
    return run(setting())


def test_steps_are_those_of_the_equations(plain):
    """The same run in NumPy: states and weights move together, from one and the same state."""
    data = datasets.load("digits")
    x2, y = data.x_train[:30].reshape(30, -1).astype(float), np.eye(10)[data.y_train[:30]]
    flat = Training(setting()).params.flat[0].numpy()
    w0, b0, w1, b1 = (part.copy() for part in np.split(flat, np.cumsum([80, 10, 512])))
    w0, w1 = w0.reshape(10, 8), w1.reshape(8, 64)
    x1, gamma, alpha = x2 @ w1.T + b1, 0.2, 0.05 / 30
    expected = []
    for _ in range(100):
        r = np.tanh(x1)
        e0, e1 = y - (r @ w0.T + b0), x1 - (x2 @ w1.T + b1)
        expected.append(((e0**2).sum() + (e1**2).sum()) / 2 / 30)
        x1 = x1 + gamma * ((1 - r**2) * (e0 @ w0) - e1)
        w0, b0 = w0 + alpha * e0.T @ r, b0 + alpha * e0.sum(0)
        w1, b1 = w1 + alpha * e1.T @ x2, b1 + alpha * e1.sum(0)
    np.testing.assert_allclose(energies(plain, 0)[:100], expected, rtol=1e-10)


def test_energy_never_rises_and_the_run_ends_by_itself(plain):
    curve = energies(plain, 0)
    assert (np.diff(curve) <= 0).all()
    assert plain["verdict.outcome"].tolist() == ["converged"]
    assert WINDOW < len(curve) < 3000
    # the criterion holds at the end and at no step before
    assert stop_of(curve, WINDOW, RTOL) == len(curve)
    assert curve[-1] < 0.15 * curve[0]


def test_a_sharper_criterion_goes_on_along_the_same_curve(plain):
    longer = energies(run(setting(convergence={"rtol": RTOL / 2})), 0)
    curve = energies(plain, 0)
    assert len(longer) > len(curve)
    np.testing.assert_array_equal(longer[: len(curve)], curve)
    assert stop_of(longer, WINDOW, RTOL / 2) == len(longer)


def test_a_tolerance_of_the_initial_energy_ends_the_run_earlier(plain):
    early = run(setting(convergence={"atol": 0.05}))
    curve = energies(early, 0)
    assert early["verdict.outcome"].tolist() == ["converged"]
    assert len(curve) < len(energies(plain, 0))
    assert stop_of(curve, WINDOW, RTOL, atol=0.05) == len(curve)


@pytest.mark.parametrize(
    ("axis", "values"), [("gamma", [0.05, 0.2]), ("alpha", [0.1, 0.03]), ("weight_decay", [0, 0.1])]
)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_replicas_stop_on_their_own(axis, values, optimizer):
    # Adam takes steps of α whatever the gradient; so it needs smaller ones
    factor = 0.02 if optimizer == "adam" else 1.0
    shown = [factor * v for v in values] if axis == "alpha" else values
    learning = {"optimizer": optimizer}
    learning |= {} if axis == "alpha" else {"alpha": factor * 0.05}
    seeds = {"seeds": [3, 8]}
    together = run(setting(grid={axis: shown}, learning=learning, run=seeds))
    assert together["steps"].shape == (2, 2)
    assert len(np.unique(together["steps"])) == 4
    for k, value in enumerate(shown):
        for s, seed in enumerate(seeds["seeds"]):
            section = "schedule" if axis == "gamma" else "learning"
            changes = {"learning": dict(learning), "run": {"seeds": [seed]}}
            changes.setdefault(section, {})[axis] = value
            alone = run(setting(**changes))
            assert together["steps"][k, s] == alone["steps"][0]
            assert together["verdict.outcome"][k, s] == alone["verdict.outcome"][0] == "converged"
            np.testing.assert_allclose(
                energies(together, k, s), energies(alone, 0), rtol=1e-9, err_msg=f"{k} {s}"
            )
            for name in ("train_accuracy", "test_accuracy"):
                assert together[name][k, s] == alone[name][0]


@pytest.mark.parametrize(
    ("axis", "wild"),
    [
        ("alpha", 1e10),  # overflows at once
        ("alpha", 50.0),  # overflows within the window
        ("gamma", 1.6),  # grows slowly: the energy rises for many steps
    ],
)
def test_divergence_is_marked_and_the_others_go_on(plain, axis, wild):
    tame = {"alpha": 0.05, "gamma": 0.2}[axis]
    both = run(setting(grid={axis: [wild, tame]}))
    assert both["verdict.outcome"][:, 0].tolist() == ["diverged", "converged"]
    steps = both["steps"][:, 0]
    assert steps[1] == plain["steps"][0]
    np.testing.assert_allclose(energies(both, 1, 0), energies(plain, 0), rtol=1e-10)
    # the step is the first at which a weight or the energy is beyond the limit
    curve = energies(both, 0, 0)
    assert (curve[:-1] < LIMIT**2 / 2).all()
    assert curve[-1] > LIMIT**2 / 2 or np.abs(both["parameters"][0, 0]).max() > LIMIT
    if axis == "gamma":
        assert steps[0] > WINDOW + 1  # so that a one-sided criterion would have called it converged


def test_a_rising_energy_is_not_convergence():
    rising = run(setting(schedule={"gamma": 1.55}, convergence={"max_steps": 80}))
    assert rising["verdict.outcome"].tolist() == ["rising"]
    assert energies(rising, 0)[-1] > 1e3 * energies(rising, 0)[0]


def test_negative_energies_converge_by_their_rate_too():
    """With learned variances F has no lower bound at zero; crossing zero is not convergence."""
    learned = {"learned": True, "floor": 0.25}
    result = run(setting(network={"output": learned}))
    curve = energies(result, 0)
    assert curve[0] > 0
    assert curve[-1] < 0
    assert result["verdict.outcome"].tolist() == ["converged"]
    assert stop_of(curve, WINDOW, RTOL) == len(curve)


def test_out_of_steps_is_still_on_its_way_down(plain):
    short = run(setting(convergence={"max_steps": 30}))
    assert short["verdict.outcome"].tolist() == ["descending"]
    assert short["steps"].tolist() == [30]
    np.testing.assert_array_equal(short["energy"][0], plain["energy"][0, :30])


@pytest.mark.filterwarnings("ignore::pcsim.stability.StabilityWarning")
@pytest.mark.parametrize(
    ("gamma", "alpha", "outcome"),
    [(0.2, 0.05, "converged"), (1.6, 0.05, "diverged"), (0.2, 0.002, "descending")],
)
def test_the_verdict_is_that_of_the_same_run_in_continuous_time(gamma, alpha, outcome):
    """Euler's steps of size dt = γ τ_x, with τ_w = dt/α, are these steps."""
    changes = {"schedule": {"gamma": gamma}, "learning": {"alpha": alpha}}
    changes |= {"convergence": {"max_steps": 3000 if outcome == "converged" else 300}}
    discrete = run(setting(**changes))
    in_time = {"run": {"backend": "continuous", "engine": "torch"}, "record": {"every": 1}}
    chips = run(setting(**changes, **in_time))
    one, other = discrete.verdict(), chips.verdict()
    assert one.outcome.tolist() == other.outcome.tolist() == [outcome]
    # A chip is lost by its states, too, which grow before the energy does.
    np.testing.assert_allclose(one.diverged_at, other.diverged_at, rtol=0.05)
    for name in ("start", "floor", "spread", "settled_at", "rises", "accuracy"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-9, err_msg=name
        )
    for name in ("samples", "updates", "simulated_time"):
        both = min(len(discrete[name]), len(chips[name]))
        assert both > 50
        np.testing.assert_allclose(discrete[name][:both], chips[name][:both], rtol=1e-12)
    assert (discrete.attrs["kind"], chips.attrs["kind"]) == ("automatic", "chips")


def test_result_is_stored_with_names(tmp_path):
    one = setting(grid={"gamma": [0.1, 0.3]}, convergence={"max_steps": 40})
    done = run(one, tmp_path / "a.h5")
    back = store.load(tmp_path / "a.h5")
    assert back.variables["energy"].dims == ("gamma", "seed", "step")
    assert back.variables["verdict.outcome"].dims == ("gamma", "seed")
    assert back.variables["simulated_time"].dims == ("gamma", "step")
    np.testing.assert_allclose(back["simulated_time"][:, -1], [40 * 0.1, 40 * 0.3])
    np.testing.assert_array_equal(back["gamma"], [0.1, 0.3])
    np.testing.assert_array_equal(back["energy"], done["energy"])
    assert config.from_json(str(back.attrs["config"])) == one


def test_report_sees_the_energy_of_replica_0(plain):
    seen: dict[int, str] = {}
    run(setting(), report=lambda status: seen.update({status.done: status.text}))
    assert seen == {k: f"energy {plain['energy'][0, k]:.4g} per sample" for k in seen}
    assert len(seen) > 5


def test_interruption_keeps_what_was_done_if_there_is_a_file_for_it(tmp_path):
    def stop(status: Status) -> None:
        if status.done >= 100:
            raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match=r"^after 101 steps; nothing was stored$"):
        run(setting(), report=stop)
    with pytest.raises(InterruptedRunError, match=r"^after 101 steps; .* goes on from .*a\.h5"):
        run(setting(), tmp_path / "a.h5", report=stop)
    assert [p.name for p in tmp_path.iterdir()] == ["a.h5.checkpoint"]


def test_only_for_automatic_configurations():
    with pytest.raises(ConfigError, match=r"run\.automatic: must be true"):
        Automatic(setting(run={"automatic": False}))
