"""The leading replica axis: training together is training alone, many times."""

from itertools import combinations, product

import numpy as np
import pytest

from pcsim import config
from pcsim.config import Config
from pcsim.runner.replicas import Replicas
from pcsim.runner.results import training_result
from pcsim.runner.training import Training
from pcsim.store import Result

SEEDS = (5, 2)
ALPHAS = (2e-3, 7e-3)
DECAYS = (0.0, 0.05)
GAMMAS = (0.3, 0.1)


def setting(**sections: dict) -> Config:
    """Return a small exact training on digits, changed section by section."""
    base: dict[str, dict] = {
        "network": {"sizes": [64, 8, 6, 10]},
        "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
        "learning": {"alpha": 2e-3, "batch": 50, "epochs": 2},
        "data": {"name": "digits", "limit": 150},
        "run": {"dtype": "float64"},
    }
    return config.changed(config.parse(base), sections)


def trained(one: Config) -> Result:
    training = Training(one)
    training.run()
    return training_result(training)


def lone(rule: str, optimizer: str, alpha: float, decay: float, gamma: float, seed: int) -> Result:
    return trained(
        setting(
            schedule={"rule": rule} | ({} if rule == "bp" else {"gamma": gamma}),
            learning={"optimizer": optimizer, "alpha": alpha, "weight_decay": decay},
            run={"seeds": [seed]},
        )
    )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("rule", ["bp", "pc", "zil", "ipc"])
def test_together_equals_alone(rule, optimizer):
    gammas = () if rule == "bp" else GAMMAS  # γ means nothing to BP
    together = trained(
        setting(
            schedule={"rule": rule},
            learning={"optimizer": optimizer},
            grid={"alpha": ALPHAS, "weight_decay": DECAYS, "gamma": gammas},
            run={"seeds": SEEDS},
        )
    )
    if rule == "bp":  # no axis was asked for: give the result one, so that cells read alike
        compared = ("parameters", "train_energy", "test_accuracy")
        together = {n: together[n][:, :, None] for n in compared}
        assert together["parameters"].shape[:4] == (2, 2, 1, 2)
    else:
        assert together["parameters"].shape[:4] == (2, 2, 2, 2)
    # Half of the cells, such that each value of each axis meets each value of every other axis.
    cells = [cell for cell in product((0, 1), repeat=4) if sum(cell) % 2 == 0]
    cells = [cell for cell in cells if rule != "bp" or cell[2] == 0]
    alone = {}
    for cell in cells:
        a, d, g, s = cell
        alone[cell] = lone(rule, optimizer, ALPHAS[a], DECAYS[d], GAMMAS[g], SEEDS[s])
        for name in ("parameters", "train_energy", "test_accuracy"):
            expected = alone[cell][name][0]
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                together[name][cell], expected, rtol=1e-10, atol=1e-12 * scale, err_msg=f"{cell}"
            )
    # The control: no two cells are the same training.
    for one, other in combinations(cells, 2):
        gap = np.abs(alone[one]["parameters"] - alone[other]["parameters"]).max()
        assert gap > 1e-5, (one, other)


def test_updates_in_place_and_through_a_buffer_agree():
    """Plain SGD writes weights in place when alone, through a gradient buffer when rates differ."""
    together = trained(setting(grid={"alpha": ALPHAS}, learning={"batch": 10, "epochs": 1}))
    for k, alpha in enumerate(ALPHAS):
        alone = trained(setting(learning={"alpha": alpha, "batch": 10, "epochs": 1}))
        np.testing.assert_allclose(
            together["parameters"][k], alone["parameters"], rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("rule", ["bp", "pc", "ipc"])
def test_a_diverging_replica_leaves_the_others_alone(rule, optimizer):
    def population(alphas: tuple[float, ...]) -> Result:
        with np.errstate(all="raise"):
            return trained(
                setting(
                    schedule={"rule": rule},
                    learning={"optimizer": optimizer},
                    grid={"alpha": alphas},
                    run={"seeds": SEEDS},
                )
            )

    calm = population((1e-3, 2e-3, 5e-3))
    wild = population((1e-3, 1e30, 5e-3))
    assert wild["diverged"][1].all()
    assert not wild["diverged"][[0, 2]].any()
    assert not calm["diverged"].any()
    for name in ("parameters", "train_energy", "test_accuracy"):
        for k in (0, 2):
            np.testing.assert_allclose(wild[name][k], calm[name][k], rtol=1e-12, atol=0)


def test_axes_of_the_result_are_labelled_in_order():
    """The known quantity: with one tiny step, the weight change is α·(a vector of the seed)."""
    seeds, alphas, decays = [7, 3, 11], (4e-6, 1e-6), (0.0, 0.5)
    common = {"batch": 0, "epochs": 1}
    result = trained(
        setting(
            schedule={"rule": "bp"},
            learning=common,
            grid={"weight_decay": decays, "alpha": alphas},  # the order of the file does not count
            run={"seeds": seeds},
        )
    )
    dims = result.variables["parameters"].dims
    assert dims == ("alpha", "weight_decay", "seed", "parameter")
    assert result.variables["test_accuracy"].dims == ("alpha", "weight_decay", "seed", "epoch")
    np.testing.assert_array_equal(result["alpha"], alphas)
    np.testing.assert_array_equal(result["weight_decay"], decays)
    np.testing.assert_array_equal(result["seed"], seeds)
    np.testing.assert_array_equal(result["epoch"], [1])

    start = Training(setting(run={"seeds": seeds})).params.flat.numpy()
    change = result["parameters"] - start  # broadcast over (alpha, weight_decay)
    np.testing.assert_allclose(change[0], 4 * change[1], rtol=1e-5, atol=1e-15)
    # decay pulls each weight by α λ θ, and no bias; node 0 comes first, with its weights in front
    pulled = change[:, 0] - change[:, 1]
    expected = np.multiply.outer(alphas, 0.5 * start)
    np.testing.assert_allclose(pulled[..., :60], expected[..., :60], rtol=1e-5, atol=1e-15)
    np.testing.assert_allclose(pulled[..., 60:70], 0, atol=1e-15)


def test_replica_index_runs_through_the_axes_with_seeds_fastest():
    replicas = Replicas.of(setting(grid={"gamma": [0.2, 0.4], "alpha": [3, 1]}, run={"seeds": [9]}))
    assert replicas.alpha == (3, 3, 1, 1)
    assert replicas.gamma == (0.2, 0.4, 0.2, 0.4)
    assert replicas.weight_decay == (0, 0, 0, 0)
    assert replicas.each_seed == [9] * 4
    replicas = Replicas.of(setting(grid={"alpha": [3, 1]}, run={"seeds": [9, 4]}))
    assert replicas.alpha == (3, 3, 1, 1)
    assert replicas.each_seed == [9, 4, 9, 4]
    assert replicas.dims == ("alpha", "seed")
    folded = replicas.unfold(np.array([replicas.alpha, replicas.each_seed]).T)
    np.testing.assert_array_equal(folded, [[[3, 9], [3, 4]], [[1, 9], [1, 4]]])


def test_same_seed_same_start_whoever_trains_along():
    many = Training(setting(run={"seeds": [4, 8, 1]})).params.flat
    for row, seed in zip(many, [4, 8, 1], strict=True):
        assert (Training(setting(run={"seeds": [seed]})).params.flat[0] == row).all()
    assert not (many[0] == many[1]).any()
