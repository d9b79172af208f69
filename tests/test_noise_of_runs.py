"""Noise of whole runs: of a chip, not of the population; the same for twins; read-out included."""

import numpy as np
import pytest

from hw_models import known_presets
from pcsim import config, datasets
from pcsim.run import run

SMALL = {
    "network": {"sizes": [64, 6, 10]},
    "schedule": {"T": 3, "gamma": 0.2},
    "learning": {"alpha": 0.02, "batch": 4, "epochs": 1},
    "data": {"name": "digits", "limit": 24, "limit_test": 40},
    "run": {"backend": "continuous", "dtype": "float64"},
}
NOISY = {
    "device": {"kind": "linear_device", "dw_min": 0.01, "cycle_noise": 0.3, "write_noise": 3.0},
    "read": {"kind": "read_noise", "sigma": 0.2, "where": "weight"},
    "slow": {"kind": "coloured_noise", "sigma": 0.2, "tau_c": 1.0, "where": "rate"},
}


def settings(**sections):
    merged = {name: {**SMALL.get(name, {}), **sections.get(name, {})} for name in SMALL | sections}
    return config.parse(merged)


def parameters(result):
    return result["parameters"].reshape(-1, result["parameters"].shape[-1])


@pytest.mark.parametrize("name", sorted(set(known_presets()) - {"ideal"}))
def test_a_chip_alone_is_the_chip_among_others(name):
    """For every preset, weights and answers: only the order of sums in products may differ."""
    among = run(settings(hardware={"preset": name, "chips": 3}, run={"seeds": [4, 9]}))
    alone = run(settings(hardware={"preset": name, "chips": 1}, run={"seeds": [9]}))
    np.testing.assert_allclose(parameters(alone)[0], parameters(among)[3], rtol=1e-9, atol=1e-12)
    assert np.array_equal(alone["predictions"].ravel(), among["predictions"][1, 0])
    assert not np.allclose(parameters(among)[0], parameters(among)[3]), "seeds differ"


@pytest.mark.parametrize("backend", ["continuous", "discrete"])
def test_a_source_that_is_nothing_changes_nothing(backend):
    hardware = {"chips": 2, "pieces": NOISY}
    tiny = {"tiny": {"kind": "read_noise", "sigma": 1e-30, "where": "error"}}
    plain = run(settings(hardware=hardware, run={"backend": backend}))
    more = run(settings(hardware={**hardware, "pieces": tiny | NOISY}, run={"backend": backend}))
    assert np.array_equal(plain["parameters"], more["parameters"])
    assert np.array_equal(plain["accuracy"], more["accuracy"])


def test_twins_see_the_same_noise():
    """Euler's rule is discrete iPC, with noise, number by number; other rules see it, too."""
    hardware = {"chips": 2, "pieces": NOISY}
    chip = run(settings(hardware=hardware, schedule={"fast": False}))
    twin = run(settings(hardware=hardware, schedule={"fast": False}, run={"backend": "discrete"}))
    np.testing.assert_allclose(parameters(chip), parameters(twin), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("backend", ["continuous", "discrete"])
def test_the_seed_of_the_noise_reaches_the_readout(backend):
    """Ideal writes, noisy reads of the answer: another noise seed gives other answers."""
    pieces = {"out": {"kind": "read_noise", "sigma": 2.0, "where": "output"}}
    seen = [
        run(
            settings(
                hardware={"pieces": pieces},
                solver={"noise_seed": seed},
                run={"backend": backend},
            )
        )
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(parameters(seen[0]), parameters(seen[2]))
    assert np.array_equal(seen[0]["predictions"], seen[1]["predictions"])
    assert not np.array_equal(seen[0]["predictions"], seen[2]["predictions"])


@pytest.mark.parametrize("backend", ["continuous", "discrete"])
def test_accuracy_is_that_of_the_predictions(backend):
    result = run(settings(hardware={"chips": 3, "pieces": NOISY}, run={"backend": backend}))
    right = result["predictions"] == datasets.load("digits").y_test[:40]
    np.testing.assert_allclose(right.mean(-1), result["accuracy"], rtol=1e-12)


def test_the_readout_sees_the_devices_as_they_are():
    """Seen write noise belongs to the device: between two writes, every read-out sees it alike."""
    from pcsim.runner.chip_run import ChipRun

    pieces = {"device": NOISY["device"] | {"write_noise": 50.0}}
    chip = ChipRun(settings(hardware={"chips": 2, "pieces": pieces}))
    chip.run()
    first = chip.readout.scores(chip.engine.flow, chip.task.test.x)
    assert chip.hardware is not None
    held = chip.hardware.state()
    again = chip.readout.scores(chip.engine.flow, chip.task.test.x, chunk=7)
    assert np.allclose(first, again, rtol=1e-12), "in parts or as a whole"
    chip.hardware.advance(5)
    later = chip.readout.scores(chip.engine.flow, chip.task.test.x)
    still = np.isclose(first, later, rtol=1e-9)
    assert not still.all(), "the last write touched some devices: their error is drawn at a read"
    for name, value in chip.hardware.state().items():
        assert name == "step" or np.array_equal(value, held[name]), "a look changes nothing"


def test_the_readout_of_noisy_somas_is_drawn_step_by_step():
    """Noise of the somas during a read-out: the same for one time, another at every step of it."""
    from pcsim.runner.chip_run import ChipRun

    noisy = {"circuit": {"sigma_x": 0.3}, "solver": {"name": "maruyama"}}
    chip = ChipRun(settings(**noisy))
    chip.run()
    first = chip.readout.scores(chip.engine.flow, chip.task.test.x)
    again = chip.readout.scores(chip.engine.flow, chip.task.test.x)
    assert np.array_equal(first, again)
    seen, draw = [], chip.readout._noise.draw

    def recorded(source, law, like, step, before=0):
        seen.append((source, step))
        return draw(source, law, like, step, before)

    chip.readout._noise.draw = recorded
    chip.readout.scores(chip.engine.flow, chip.task.test.x)
    assert len(seen) > 20
    assert len(set(seen)) == len(seen)
