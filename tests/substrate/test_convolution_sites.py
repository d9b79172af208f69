"""Hardware at convolutions: a kernel as large as the image is a dense layer, on the same chips."""

import numpy as np
import pytest
import torch

from pcsim import config
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.errors import UnsupportedError
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.run import run
from pcsim.substrate import Chips, Effect, Seeded, Substrate

PIECES = {
    "levels": {"kind": "quantized_weights", "bits": 5, "range": 0.5},
    "written": {"kind": "quantized_weights", "bits": 9, "rounding": "stochastic",
                "accumulator": False},
    "dac": {"kind": "converter", "where": "rate", "bits": 6, "gain_error": 0.05},
    "adc": {"kind": "converter", "where": "product", "bits": 7, "range": 3.0, "offset_error": 0.3},
    "errors": {"kind": "read_noise", "where": "error", "sigma": 0.02},
    "feedback": {"kind": "read_noise", "where": "feedback", "sigma": 0.02},
    "weights": {"kind": "read_noise", "where": "weight", "sigma": 0.01},
    "thermal": {"kind": "white_noise", "sigma": 0.01},
    "leak": {"kind": "mismatch", "of": "tau_x", "sigma": 0.1},
}  # fmt: skip
MLP = {"sizes": [64, 6, 10], "f": "tanh"}
CNN = {"kind": "cnn", "image": [1, 8, 8], "channels": [6], "kernel": 8, "stride": 1, "padding": 0,
       "dense": [], "f": "tanh"}  # fmt: skip


def trained(network, pieces, **sections):
    data = {
        "network": network,
        "schedule": {"T": 5, "gamma": 0.2},
        "learning": {"alpha": 2e-3, "batch": 25, "epochs": 1},
        "data": {"name": "digits", "limit": 100},
        "hardware": {"pieces": pieces, "chips": 2, "seed": 3},
        "run": {"dtype": "float64"},
    }
    for name, fields in sections.items():
        data[name] = data[name] | fields
    result = run(config.parse(data))
    return np.asarray(result.variables["parameters"].values), result.variables["accuracy"].values


@pytest.mark.parametrize("backend", ["discrete", "continuous"])
@pytest.mark.parametrize("name", PIECES)
def test_every_site_is_that_of_the_dense_layer(name, backend):
    pieces = {name: PIECES[name]}
    dense, accuracy = trained(MLP, pieces, run={"backend": backend})
    convolved, same = trained(CNN, pieces, run={"backend": backend})
    ideal, _ = trained(CNN, {}, hardware={"chips": 1}, run={"backend": backend})
    assert np.abs(dense - convolved).max() <= 1e-9
    assert np.array_equal(accuracy, same)
    assert np.abs(convolved - ideal).max() > 1e-6


def test_backpropagation_through_arrays():
    pieces = {name: PIECES[name] for name in ("levels", "dac", "adc", "feedback")}
    results = [trained(network, pieces, schedule={"rule": "bp"})[0] for network in (MLP, CNN)]
    assert np.abs(results[0] - results[1]).max() <= 1e-9


def test_noise_and_quantization_on_a_pooled_cnn_learn():
    """Value nodes are read before the pools; a chip with 5-bit weights still learns."""
    network = {"kind": "cnn", "image": [1, 8, 8], "channels": [6], "stride": 1, "pool": "max",
               "dense": [16], "f": "tanh"}  # fmt: skip
    pieces = {name: PIECES[name] for name in ("levels", "errors", "dac", "thermal")}
    options = {
        "data": {"limit": 800},
        "learning": {"alpha": 5e-4, "epochs": 5},
        "schedule": {"gamma": 0.3, "T": 6},
    }
    for backend in ("discrete", "continuous"):
        _, accuracy = trained(network, pieces, run={"backend": backend}, **options)
        assert accuracy.min() > 0.5  # chance is 0.1, the ideal chip reaches 0.66


def population(network, site, becomes="1.1*s"):
    effect = Effect(name="effect", site=site, becomes=becomes)
    chips = Chips(
        Substrate(effects=(effect,)), (0,), seed=0, dt=0.1, noise=Seeded(0), dtype=torch.float64
    )
    params = initial_parameters(network, [0], torch.float64)
    optimizer = Optimizer(OptimizerSpec(), params, 1e-3)
    return Discrete(network, params, Schedule(T=2), optimizer, chips=chips)


@pytest.mark.parametrize("site", ["weight", "rate", "membrane", "product", "feedback"])
def test_sequences_refuse_arrays_by_name(site):
    network = Network.transformer(vocabulary=5, positions=3, features=4, intermediate=2)
    with pytest.raises(UnsupportedError, match=r"hardware: .* not modelled for"):
        population(network, site)
    for other in ("error", "velocity"):
        population(network, other)


def test_convolutions_refuse_row_sums_by_name():
    network = Network.cnn(image=(1, 4, 4), channels=(2,), dense=())
    with pytest.raises(UnsupportedError, match=r"hardware: 'current' is a sum over a row"):
        population(network, "product", "s - 0.1*current")
