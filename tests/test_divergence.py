"""Numbers that mean nothing any more are called diverged, in every kind of run."""

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from pcsim import config, store
from pcsim.cli import app
from pcsim.cli.exit_codes import OF_NO_USE
from pcsim.divergence import LIMIT, lost_energy, lost_weights
from pcsim.engine import beyond_limit
from pcsim.run import run
from pcsim.sweep.outcome import outcome_of

NETWORK = "network.sizes = [64, 6, 10]\nnetwork.f = 'identity'\ndata.limit = 20\n"
RUNS = {
    "ipc": "schedule.T = 4\nlearning = {batch = 10, epochs = 1, alpha = 0.05}\n",
    "pc": "schedule = {rule = 'pc', T = 4}\nlearning = {batch = 10, epochs = 2, alpha = 0.2}\n",
    "bp": "schedule.rule = 'bp'\nlearning = {batch = 10, epochs = 2, alpha = 0.2}\n",
    "automatic": "run.automatic = true\nlearning = {batch = 0, alpha = 0.2}\n"
    "convergence.max_steps = 6\n",
    "continuous": "run.backend = 'continuous'\nschedule.T = 4\n"
    "learning = {batch = 10, epochs = 1, alpha = 0.05}\n",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RUNS)
def test_a_finite_blow_up_is_called_diverged(name, tmp_path):
    file = tmp_path / "a.toml"
    text = NETWORK + RUNS[name]
    file.write_text(text + "run.dtype = 'float64'\n")
    done = CliRunner().invoke(
        app, ["run", str(file), "-o", str(tmp_path / "a.h5")], env={"COLUMNS": "200"}
    )
    assert done.exit_code == OF_NO_USE, done.output
    assert "1 of 1 replicas diverged" in done.output
    weights = store.load(tmp_path / "a.h5")["parameters"]
    assert np.isfinite(weights).all()
    assert np.abs(weights).max() > LIMIT


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("alpha", [0.002, 0.05])
def test_the_result_says_which_replicas(alpha):
    data = {
        "network": {"sizes": [64, 6, 10], "f": "identity"},
        "data": {"limit": 20},
        "schedule": {"T": 4},
        "learning": {"batch": 10, "epochs": 1},
        "grid": {"alpha": [0.001, alpha]},
        "run": {"dtype": "float64"},
    }
    result = run(config.parse(data))
    assert np.isfinite(result["parameters"]).all()
    lost = alpha > 0.01
    assert result["diverged"][:, 0].tolist() == [False, lost]
    assert outcome_of(result) == ("done", "1 of 2 replicas diverged" if lost else "")


def test_both_sides_of_the_limits():
    edge = LIMIT**2 / 2
    assert lost_energy(np.asarray([0.999 * edge, edge, -edge, np.nan, -np.inf, -3.0])).tolist() == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    weights = np.asarray([[0.0, 0.999e6], [0, 1e6], [-1e6, 0], [np.nan, 0], [0, -np.inf]])
    assert lost_weights(weights).tolist() == [False, True, True, True, True]
    marked = beyond_limit({"x0": torch.zeros(5, 1, 1)}, torch.as_tensor(weights))
    assert marked.tolist() == lost_weights(weights).tolist()


def test_a_stored_result_keeps_the_mark(tmp_path):
    data = {
        "network": {"sizes": [64, 10]},
        "data": {"limit": 4},
        "learning": {"batch": 4, "epochs": 1},
    }
    run(config.parse(data), tmp_path / "a.h5")
    kept = store.load(tmp_path / "a.h5")["diverged"]
    assert kept.dtype == bool
    assert not kept.any()
