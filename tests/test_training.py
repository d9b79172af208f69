"""Training in epochs: that it learns, what it records, and that an interruption changes nothing."""

import json

import numpy as np
import pytest
import torch
import xarray

from pcsim import config, datasets, run, store
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.errors import ConfigError, InterruptedRunError, StoreError
from pcsim.runner import checkpoint
from pcsim.runner.training import Training
from pcsim.status import Status

RULES = ("bp", "pc", "zil", "ipc")


def setting(**sections: dict) -> Config:
    """Return a short exact training on digits, changed section by section."""
    base: dict[str, dict] = {
        "network": {"sizes": [64, 12, 8, 10]},
        "schedule": {"rule": "ipc", "T": 4, "gamma": 0.3},
        "learning": {"optimizer": "adam", "alpha": 2e-3, "batch": 50, "epochs": 4},
        "data": {"name": "digits", "limit": 200},
        "run": {"dtype": "float64", "seeds": [1, 0]},
    }
    return config.changed(config.parse(base), sections)


def forward(parameters: np.ndarray, sizes: list[int], x: np.ndarray) -> np.ndarray:
    """Return the outputs of a tanh network from its stored parameters, in plain NumPy."""
    layers, at = [], 0
    for n_out, n_in in zip(reversed(sizes[1:]), reversed(sizes[:-1]), strict=True):
        w = parameters[at : at + n_out * n_in].reshape(n_out, n_in)
        layers.append((w, parameters[at + w.size : at + w.size + n_out]))
        at += w.size + n_out
    assert at == len(parameters)
    for k, (w, b) in enumerate(reversed(layers)):
        x = (x if k == 0 else np.tanh(x)) @ w.T + b
    return x


def adam_config(rule, seeds, epochs):
    """Digits, 64-32-32-10, Adam; PC needs small steps, and Z-IL equals BP at γ = 1 only."""
    own = {"pc": {"T": 8, "gamma": 0.1}, "ipc": {"T": 8, "gamma": 0.5}}.get(rule, {})
    return config.parse(
        {
            "network": {"sizes": [64, 32, 32, 10]},
            "schedule": {"rule": rule, **own},
            "learning": {"optimizer": "adam", "alpha": 1e-3, "batch": 32, "epochs": epochs},
            "run": {"seeds": list(range(seeds))},
        }
    )


def test_all_rules_learn_the_digits():
    """Chance is 10 %; a linear classifier on these pixels reaches about 95 %."""
    results = {}
    for rule in RULES:
        done = run(adam_config(rule, seeds=2, epochs=15))
        energy = done["train_energy"]
        assert (done["accuracy"] > 0.93).all(), rule
        assert (energy[:, -1] < 0.5 * energy[:, 0]).all(), rule
        assert (np.diff(energy[:, ::5]) < 0).all(), rule
        results[rule] = done
    # Z-IL is BP by other means; PC and iPC are not.
    np.testing.assert_allclose(
        results["zil"]["test_accuracy"], results["bp"]["test_accuracy"], atol=0.02
    )


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_zil_and_bp_coincide_at_gamma_one_only(optimizer):
    def train(**schedule):
        return run(
            setting(
                schedule=schedule,
                learning={"optimizer": optimizer, "alpha": 5e-3, "weight_decay": 1e-3},
            )
        )

    bp = train(rule="bp")
    zil, half = train(rule="zil", gamma=1.0), train(rule="zil", gamma=0.5)
    np.testing.assert_allclose(zil["parameters"], bp["parameters"], rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(zil["test_accuracy"], bp["test_accuracy"])
    assert np.abs(half["parameters"] - bp["parameters"]).max() > 1e-6


@pytest.mark.parametrize("T", [1, 2, 6])
def test_energy_counts_nodes_that_no_error_has_reached(T):
    """With few steps the fast plan never visits the upper nodes; their energy is still zero."""
    quick, full = (
        run(setting(schedule={"T": T, "fast": fast}, learning={"optimizer": "sgd"}))
        for fast in (True, False)
    )
    np.testing.assert_allclose(quick["train_energy"], full["train_energy"], rtol=1e-10)


def test_records_agree_with_the_stored_weights():
    chosen = {"limit": 300, "validation": 60, "limit_test": 90, "centre": True}
    one = setting(data=chosen, learning={"epochs": 3})
    done = run(one)
    data = datasets.load("digits")
    train = data.x_train.reshape(len(data.x_train), -1).astype(np.float64)
    test = data.x_test.reshape(len(data.x_test), -1).astype(np.float64)
    shift, spread = train.mean(), train.std(ddof=1)
    sizes = list(one.network.sizes)
    for k in range(2):
        for x, y, name in (
            (train[240:300], data.y_train[240:300], "validation_accuracy"),
            (test[:90], data.y_test[:90], "test_accuracy"),
        ):
            scores = forward(done["parameters"][k], sizes, (x - shift) / spread)
            assert done[name][k, -1] == pytest.approx(np.mean(scores.argmax(-1) == y), abs=1e-12)
        best = done["validation_accuracy"][k].argmax()
        assert done["accuracy"][k] == done["test_accuracy"][k, best]


def test_held_out_and_left_out_samples_do_not_teach():
    """Training on 140 of 200 samples with 60 held out is training on the first 140."""
    held = run(setting(data={"limit": 200, "validation": 60}, learning={"batch": 20}))
    short = run(setting(data={"limit": 140}, learning={"batch": 20}))
    np.testing.assert_array_equal(held["parameters"], short["parameters"])
    np.testing.assert_array_equal(short["accuracy"], short["test_accuracy"][:, -1])
    longer = run(setting(data={"limit": 200}, learning={"batch": 20}))
    assert (longer["parameters"] != short["parameters"]).any()


def test_patience_counts_epochs_without_improvement():
    """A step too small to change any decision: the first epoch is the best, then patience runs."""
    still = setting(
        learning={"optimizer": "sgd", "alpha": 1e-14, "patience": 2, "epochs": 9},
        data={"validation": 50},
    )
    assert len(run(still)["epoch"]) == 3
    # one replica that still improves keeps the others going
    mixed = still.model_copy(update={"grid": config.Grid(alpha=(1e-14, 5e-3))})
    assert len(run(mixed)["epoch"]) > 3


def test_cosine_annealing_ends_where_the_cosine_says():
    """BP, plain SGD, full batch: the change of the last epoch is α_last times a gradient."""
    fields = {"optimizer": "sgd", "alpha": 1e-8, "batch": 0}
    plain = run(setting(schedule={"rule": "bp"}, learning=fields | {"epochs": 1}))
    start = Training(setting()).params.flat.numpy()
    annealed = run(
        setting(schedule={"rule": "bp"}, learning=fields | {"epochs": 4, "anneal": "cosine"})
    )
    # the weights hardly move, so that every epoch has the same gradient
    factor = sum(0.5 * (1 + np.cos(np.pi * k / 4)) for k in range(4))
    expected = factor * (plain["parameters"] - start)
    np.testing.assert_allclose(annealed["parameters"] - start, expected, rtol=1e-3, atol=1e-11)


# -- interruption -----------------------------------------------------------------------------


def same(one: store.Result, other: store.Result) -> None:
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name, strict=True)


CASES = [
    setting(),
    setting(schedule={"init": "carry"}),
    setting(schedule={"init": "normal"}),
    setting(schedule={"init": "carry"}, learning={"optimizer": "sgd", "batch": 10}),
    setting(schedule={"rule": "pc"}, learning={"optimizer": "momentum", "anneal": "cosine"}),
    setting(schedule={"rule": "bp"}, grid={"alpha": [1e-3, 1e-2]}, data={"validation": 20}),
    setting(
        network={"sizes": [12, 8, 64]},
        schedule={"init": "carry"},
        data={"mode": "generative"},
    ),
]
NAMES = ["ff", "carry", "normal", "carry-sgd", "pc", "bp-grid", "generative"]


@pytest.mark.parametrize("one", CASES, ids=NAMES)
@pytest.mark.parametrize("when", ["after epoch 1", "after epoch 2", "within epoch 3"])
def test_interrupted_and_resumed_is_uninterrupted(tmp_path, monkeypatch, one, when):
    whole = run(one)
    out = tmp_path / "a.h5"
    finished = int(when[-1]) - ("within" in when)

    def report(status: Status) -> None:
        if status.done == int(when[-1]):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if "within" in when:
            kind = Backprop if one.schedule.rule == "bp" else Discrete
            original, calls = kind.batch, []

            def batch(self, clamps):
                original(self, clamps)  # the weights have moved on since the epoch began
                calls.append(1)
                if len(calls) == 2 * (200 - one.data.validation) // one.learning.batch + 2:
                    raise KeyboardInterrupt

            patch.setattr(kind, "batch", batch)
        with pytest.raises(InterruptedRunError) as caught:
            run(one, out, report=report)
    kept = checkpoint.path_for(out)
    text = f"after {finished} of 4 epochs; the same command goes on from {kept}"
    assert str(caught.value) == text
    assert kept.exists()
    assert not out.exists()

    epochs: list[int] = []
    resumed = run(one, out, report=lambda s: epochs.append(s.done))
    assert epochs == list(range(finished + 1, 5))  # it did go on, not begin anew
    same(resumed, whole)
    same(store.load(out), whole)
    assert not kept.exists()


def test_interrupted_twice_also_within_the_first_epoch_after_a_resume(tmp_path, monkeypatch):
    one, out = setting(), tmp_path / "a.h5"
    whole = run(one)

    def stop(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="after 1 of 4"):
        run(one, out, report=stop)
    with monkeypatch.context() as patch:
        # the epoch's training is done, but its record is not: it does not count
        patch.setattr(Training, "accuracy", lambda self, split: stop(split))
        with pytest.raises(InterruptedRunError, match="after 1 of 4"):
            run(one, out)
    same(run(one, out), whole)


def test_interruption_with_nothing_to_keep_says_so(tmp_path, monkeypatch):
    def stop(*args: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError, match="nothing was stored"):
        run(setting(), report=stop)
    monkeypatch.setattr(Discrete, "batch", stop)
    with pytest.raises(InterruptedRunError, match="after 0 of 4 epochs; nothing was stored"):
        run(setting(), tmp_path / "a.h5")
    assert not list(tmp_path.iterdir())


def test_checkpoint_of_another_configuration_is_refused(tmp_path):
    out = tmp_path / "a.h5"

    def stop(progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(InterruptedRunError):
        run(setting(), out, report=stop)
    before = checkpoint.path_for(out).read_bytes()
    with pytest.raises(StoreError, match="belongs to another configuration"):
        run(setting(learning={"alpha": 3e-3}), out)
    assert checkpoint.path_for(out).read_bytes() == before


# -- results and refusals ---------------------------------------------------------------------


def test_result_opens_in_xarray_with_labels_and_origin(tmp_path):
    one, out = setting(grid={"alpha": [1e-3, 2e-3]}, learning={"epochs": 2}), tmp_path / "a.h5"
    done = run(one, out)
    with xarray.open_dataset(out, engine="h5netcdf") as data:
        assert data["test_accuracy"].dims == ("alpha", "seed", "epoch")
        assert data["test_accuracy"].attrs["units"] == "1"
        chosen = data["train_energy"].sel(alpha=2e-3, seed=0, epoch=2)
        assert float(chosen) == done["train_energy"][1, 1, 1]
        assert config.from_json(data.attrs["config"]) == one
        assert json.loads(data.attrs["seeds"]) == [1, 0]
        assert data.attrs["version_torch"] == torch.__version__
        assert data.attrs["version_numpy"] == np.__version__
        assert {"commit", "command_line", "version_pcsim"} <= set(data.attrs)
        assert list(json.loads(data.attrs["data_origin"]).values()) == ["embedded"]


def test_existing_result_is_kept_unless_told(tmp_path):
    out = tmp_path / "a.h5"
    out.write_bytes(b"precious")
    with pytest.raises(StoreError, match="there is a result already"):
        run(setting(), out)
    assert out.read_bytes() == b"precious"
    done = run(setting(learning={"epochs": 1}), out, overwrite=True)
    same(store.load(out), done)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"network": {"sizes": [63, 10]}}, r"network\.sizes: the data has 64 inputs and 10"),
        ({"network": {"sizes": [64, 9]}}, r"network\.sizes: .* from 64 to 9 units"),
        ({"data": {"mode": "generative"}}, r"network\.sizes: the data has 64 values"),
        ({"run": {"device": "cuda:7"}}, r"run\.device: 'cuda:7' cannot be used here"),
        ({"run": {"device": "abacus"}}, r"run\.device: 'abacus' cannot be used here"),
        ({"data": {"limit": 10**6}}, r"data\.limit, data\.validation: digits has \d+ training"),
        ({"data": {"limit_test": 10**6}}, r"data\.limit_test: digits has \d+ test samples"),
        ({"data": {"validation": 200}}, r"cannot use 200 of them and hold out 200"),
        ({"learning": {"batch": 201}}, r"learning\.batch: 201 is more than the 200 training"),
    ],
)
def test_what_does_not_fit_is_a_configuration_error(sections, words):
    with pytest.raises(ConfigError, match=words) as caught:
        run(setting(**sections))
    assert "\n" not in str(caught.value)
