"""Units that are clamped stay where they are; what is let go starts from where it was."""

import ct_oracle as ct
import energy_oracle as oracle
import pytest
import torch

from pcsim.errors import ConfigError
from pcsim.network import Network

SOLVERS = ("maruyama", "stochastic_heun")
MASK = torch.tensor([True, True, False, False])


def completing(solver="euler", **circuit):
    """A network that completes a datum of which the first half is clamped."""
    network = Network.mlp([3, 5, 4], "tanh")
    params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
    return ct.engine(network, params, 0.1, solver, mode="associative", **circuit)


def half_known(seed):
    values = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(seed), dtype=ct.F64)
    return [values, None, None], MASK.expand(2, 3, -1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_noise_moves_free_units_alone(solver):
    chips = completing(solver, sigma_x=0.5)
    clamps, mask = half_known(0)
    chips.load(clamps, mask)
    chips.advance(20)
    datum = chips.flow.moving()["x0"]
    assert torch.equal(datum[..., :2], clamps[0].expand(2, -1, -1)[..., :2])
    assert ((datum - clamps[0])[..., 2:].abs() > 1e-3).all(), "control: the others were moved"


def test_a_new_clamp_is_not_pulled_to_the_old_membrane_by_look_ahead():
    """The membrane of a clamped unit is its clamp: x̆ = x + τ̂ dx/dt is the clamp as well."""
    chips = completing(look_soma=0.4)
    for seed in (0, 1):
        clamps, mask = half_known(seed)
        chips.load(clamps, mask)
        chips.advance(20)
        found = chips.flow.states()
        for name in ("x0", "u0"):
            assert torch.equal(found[name][..., :2], clamps[0].expand(2, -1, -1)[..., :2])
    assert (found["x0"][..., 2:] != clamps[0][..., 2:]).all(), "control: free units move"


def test_free_membranes_outlive_a_new_clamp():
    """Only clamped units forget: the others flow on from where they were."""
    chips = completing(look_soma=0.4)
    for seed in (0, 1):
        clamps, mask = half_known(seed)
        before = chips.flow.moving()["u0"].clone() if seed else None
        chips.load(clamps, mask)
    assert before is not None
    assert torch.equal(chips.flow.moving()["u0"][..., 2:], before[..., 2:])
    assert not torch.equal(chips.flow.moving()["u0"][..., :2], before[..., :2])


@pytest.mark.parametrize("circuit", [{}, {"kind": "error_units", "tau_err": 0.2}])
def test_letting_go_of_everything_is_flowing_on_freely(circuit):
    """A generative network that dreams: its datum is let go, and falls to its prediction."""
    network = Network.mlp([3, 5, 4], "tanh")
    params = oracle.random_parameters(network, 1, seed=1, gain=0.8)
    chips = ct.engine(network, params, 0.05, mode="generative", tau_w=1e9, **circuit)
    with pytest.raises(ConfigError, match="no states to let go from"):
        chips.load([None, None, None])
    datum = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0), dtype=ct.F64)
    chips.load([datum, None, None])
    chips.advance(40)
    chips.load([None, None, None])
    assert torch.equal(chips.flow.moving()["x0"], datum)
    chips.advance(2000)
    energy = float(chips.flow.energy_by_node().sum())
    assert energy < 1e-6 * float(datum.square().sum())
    assert not torch.equal(chips.flow.moving()["x0"], datum)
