"""Law 28: near an interpolating optimum, joint iPC steps are stable iff λ_max(γAAᵀ + αK) < 2."""

import energy_oracle as oracle
import pytest
import torch
from scipy.optimize import brentq

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.network import Network

SAMPLES, STEPS, GAMMA, SIZE = 3, 1500, 0.3, 1e-9


def optimum(f, bias, seed):
    """Return a network that interpolates its data: the target is its own output, so ε = 0."""
    network = Network.mlp([4, 5, 4, 2], f, bias=bias)
    params = oracle.random_parameters(network, 1, seed)
    for views in params.of[:-1]:  # keeps γ h_max well below 2, so that α decides
        views["w"].mul_(0.9 / torch.linalg.matrix_norm(views["w"], 2))
    states = oracle.random_states(network, "supervised", 1, SAMPLES, seed)
    for index in (2, 1, 0):
        states[index] = oracle.prediction(network.nodes[index], params.of[index], states)
    return network, params, states


def errors(network, of, x):
    parts = [x[i] - oracle.prediction(network.nodes[i], of[i], x) for i in range(3)]
    return torch.cat([part.flatten() for part in parts])


def matrices(network, params, states):
    """A = ∂ε/∂x over all samples; K = blockdiag(Gram_l ⊗ I); and K again as JJᵀ, J = ∂ε/∂θ."""

    def of_states(one, two):
        return errors(network, params.of, [states[0], one, two, states[3]])

    def of_weights(flat):
        return errors(network, params.views(flat), states)

    jacobian = torch.autograd.functional.jacobian
    A = torch.cat(
        [j.flatten(1) for j in jacobian(of_states, (states[1], states[2]))],
        1,
    )
    J = jacobian(of_weights, params.flat).flatten(1)
    blocks = []
    for node in network.nodes[:-1]:
        rates = oracle.FUNCTIONS[node.map.f](states[node.parents[0]][0])
        gram = rates @ rates.mT + float(node.map.bias)
        blocks.append(torch.kron(gram, torch.eye(node.units, dtype=oracle.F64)))
    return A, torch.block_diag(*blocks), J @ J.mT


def growth(network, params, states, alpha, *, fast):
    """F relative to its start, when iPC has gone on from a tiny disturbance for many steps.

    Stops once F has grown a millionfold: far away, learning may find a flatter place and recover.
    """
    params = oracle.copy(params)
    generator = torch.Generator().manual_seed(0)
    schedule = Schedule(rule="ipc", T=STEPS, gamma=GAMMA, init="carry", fast=fast)
    runner = Discrete(network, params, schedule, oracle.optimizer(params, alpha))
    runner.carried = {
        i: states[i] + SIZE * torch.randn(states[i].shape, generator=generator, dtype=oracle.F64)
        for i in (1, 2)
    }
    runner.start([states[0], None, None, states[3]])
    ratio, first = 1.0, None
    for _ in range(STEPS):
        runner.step()
        energy = float(runner.energy())
        first = first or energy
        ratio = energy / first
        if ratio > 1e6:
            break
    return ratio


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("f", ["identity", "tanh"])
def test_boundary(f, bias, seed, fast):
    network, params, states = optimum(f, bias, seed)
    A, K, JJ = matrices(network, params, states)
    assert oracle.largest(K - JJ) <= 1e-12

    def top(alpha):
        return float(torch.linalg.eigvalsh(GAMMA * A @ A.mT + alpha * K)[-1])

    critical = brentq(lambda alpha: top(alpha) - 2, 1e-6, 10, xtol=1e-12)
    assert growth(network, params, states, 0.97 * critical, fast=fast) < 1e-3
    assert growth(network, params, states, 1.03 * critical, fast=fast) > 1e3
    # control: leaving out either term misplaces the boundary by more than the test's resolution
    alone = 2 / float(torch.linalg.eigvalsh(K)[-1])
    assert critical < 0.97 * alone

    k_max, h_max = 2 / alone, float(torch.linalg.eigvalsh(A @ A.mT)[-1])
    sufficient = (2 - GAMMA * h_max) / k_max
    assert sufficient <= critical * (1 + 1e-9)
