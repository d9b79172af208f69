"""Hardware at convolutions: a kernel as large as the image is a dense layer, on the same chips."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from pcsim import config
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.errors import UnsupportedError
from pcsim.kernels import place_sums
from pcsim.kernels.hooks import row_sums
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.maps import Convolution
from pcsim.network import Network
from pcsim.run import run
from pcsim.substrate import Chips, Effect, Seeded, Substrate
from pcsim.substrate.effect import AGGREGATES

PIECES = {
    "levels": {"kind": "quantized_weights", "bits": 5, "range": 0.5},
    "written": {"kind": "quantized_weights", "bits": 9, "rounding": "stochastic",
                "accumulator": False},
    "dac": {"kind": "converter", "where": "rate", "bits": 6, "gain_error": 0.05},
    "adc": {"kind": "converter", "where": "product", "bits": 7, "range": 3.0, "offset_error": 0.3},
    "errors": {"kind": "read_noise", "where": "error", "sigma": 0.02},
    "feedback": {"kind": "read_noise", "where": "feedback", "sigma": 0.02},
    "weights": {"kind": "read_noise", "where": "weight", "sigma": 0.01},
    "devices": {"kind": "array_read_noise", "sigma": 0.05},
    "shot": {"kind": "array_read_noise", "sigma": 0.05, "reference": "root_weight"},
    "range": {"kind": "array_read_noise", "sigma": 0.01, "reference": "range"},
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
    if not pieces:
        del data["hardware"]["seed"]  # nothing differs between ideal chips
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


@pytest.mark.slow
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


STRIDED = Convolution((3, 7, 6), 4, kernel=3, stride=2, padding=1)


def patches(images):
    """Return the patch of every place (sample, place, pre), as a loop would cut it out."""
    return functional.unfold(images, STRIDED.kernel, 1, STRIDED.padding, STRIDED.stride).mT


@pytest.mark.parametrize("name", AGGREGATES)
def test_row_sums_of_a_place_are_those_of_its_patch(name):
    v = torch.randn(2, 5, STRIDED.parent_units[0], dtype=torch.float64)
    w = torch.randn(2, 4, 3, 3, 3, dtype=torch.float64)
    found = place_sums.forward_sum(name, v, w, STRIDED).expand(2, 5, -1)
    places = STRIDED.units // STRIDED.channels
    for chip in range(2):
        images = v[chip].view(5, *STRIDED.image)
        dense = row_sums((name,), patches(images), w[chip].flatten(1)[None])[name]
        expected = torch.as_tensor(dense).expand(5, places, 4).mT.flatten(1)
        torch.testing.assert_close(found[chip], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", place_sums.ADDITIVE)
def test_row_sums_of_a_pixel_add_up_over_its_places(name):
    """Every place is read backwards by itself, and its row sums are put where its patch is."""
    delta = torch.randn(2, 5, STRIDED.units, dtype=torch.float64)
    w = torch.randn(2, 4, 3, 3, 3, dtype=torch.float64)
    v = torch.empty(2, 5, STRIDED.parent_units[0], dtype=torch.float64)
    found = place_sums.backward_sum(name, delta, v, w, STRIDED)
    size, kernel = STRIDED.image[1:], (STRIDED.kernel,) * 2
    for chip in range(2):
        sent = delta[chip].view(5, 4, -1).mT  # (sample, place, channel)
        sums = row_sums((name,), sent, w[chip].flatten(1).mT[None])[name]
        each = torch.as_tensor(sums).expand(5, -1, 27).mT
        expected = functional.fold(each, size, kernel, 1, STRIDED.padding, STRIDED.stride)
        torch.testing.assert_close(found[chip], expected.flatten(1), rtol=1e-12, atol=1e-12)
    pixels = found.view(2, 5, *STRIDED.image)
    assert (pixels[..., 0, 0] != pixels[..., 2, 2]).all(), "control: borders have fewer places"


@pytest.mark.parametrize("name", ["load", "current", "tapered"])
def test_losses_of_a_line_are_refused_backwards_alone(name):
    network = Network.cnn(image=(1, 4, 4), channels=(2,), dense=())
    population(network, "product", f"s - 0.1*{name}")
    with pytest.raises(UnsupportedError, match=f"hardware: '{name}' at the site 'feedback'"):
        population(network, "feedback", f"s - 0.1*{name}")
