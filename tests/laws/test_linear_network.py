"""Laws 8, 9 and 11: closed forms of linear networks, and what an unclamped output does."""

import energy_oracle as oracle
import pytest
import torch

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.energies import Gaussian
from pcsim.kernels.field import Field
from pcsim.network import Network


def contracting(sizes, replicas=2, seed=0, **options):
    """A linear network whose maps have norm 0.9, so that H has no tiny eigenvalues."""
    network = Network.mlp(sizes, "identity", bias=False, **options)
    params = oracle.random_parameters(network, replicas, seed)
    for views in params.of[:-1]:
        views["w"].mul_(0.9 / torch.linalg.matrix_norm(views["w"], 2)[:, None, None])
    return network, params


def settled(network, params, clamps, steps, gamma=0.4, mode="supervised", init="ff"):
    """Inference only: PC with α = 0."""
    schedule = Schedule(rule="pc", T=steps, gamma=gamma, init=init, init_sd=1.0)
    runner = Discrete(network, params, schedule, oracle.optimizer(params, 0.0), mode=mode)
    runner.batch(clamps)
    return runner


def products(params):
    """P_l = θ⁰ θ¹ ⋯ θ^{l−1}, l = 0..L, as (replica, n_0, n_l)."""
    result = [torch.eye(params.of[0]["w"].shape[1], dtype=oracle.F64)]
    for views in params.of[:-1]:
        result.append(result[-1] @ views["w"])
    return result


def evidence(params, variances):
    """S = Σ_l P_l Σ^l P_lᵀ."""
    parts = zip(products(params)[:-1], variances, strict=True)
    return sum(v * P @ P.mT for P, v in parts)


def hessian(network, params, mode="supervised"):
    """H of the free nodes: with all data zero, the drift of unit vectors are the columns of −H."""
    field = Field(network, params, mode)
    free = list(field.free)
    sizes = [network.nodes[i].units for i in free]
    unit = torch.eye(sum(sizes), dtype=oracle.F64).split(sizes, 1)
    samples, replicas = sum(sizes), params.replicas
    states = [torch.zeros(replicas, samples, n.units, dtype=oracle.F64) for n in network.nodes]
    for index, block in zip(free, unit, strict=True):
        states[index] += block
    field.load(states)
    field.predict(field.predicted)
    field.errors(field.predicted)
    return -torch.cat([d for _, d in field.drift(free, field.predicted)], 2)


@pytest.mark.parametrize(("output", "hidden"), [(1.0, 1.0), (3.0, 0.5)])
@pytest.mark.parametrize("sizes", [[3, 4, 2], [2, 3, 5, 4], [4, 3, 2, 3, 2]])
def test_equilibrium(sizes, output, hidden):
    network, params = contracting(sizes, output=Gaussian(output), hidden=Gaussian(hidden))
    clamps = oracle.clamps_of(network, "supervised", 2, 5)
    P = products(params)
    r = clamps[0] - clamps[-1] @ P[-1].mT
    variances = [output] + [hidden] * (len(sizes) - 2)
    S = evidence(params, variances)
    xi = torch.linalg.solve(S, r.mT).mT  # rows are samples: ξ⁰ = S⁻¹ r
    logarithms = [
        0.5 * 5 * n.units * torch.tensor(v, dtype=oracle.F64).log()
        for n, v in zip(network.nodes[:-1], variances, strict=True)
    ]
    energy = 0.5 * (r * xi).sum((1, 2)) + sum(logarithms)

    def off(steps):
        runner = settled(network, params, clamps, steps, gamma=0.2)
        errors = [runner.field.energies[i].xi for i in runner.field.predicted]
        worst = [oracle.largest(e - xi @ P[i]) for i, e in enumerate(errors)]
        return max(worst), oracle.largest(runner.energy() - energy)

    assert max(off(1500)) <= 1e-9
    assert min(off(3)) > 1e-3, "control: three steps are not an equilibrium"


def test_energy_is_that_of_the_free_top():
    """Generative mode with a flat prior leaves the generalised least-squares residual."""
    network, params = contracting([2, 4, 5])
    clamps = oracle.clamps_of(network, "generative", 2, 3)
    P = products(params)
    S_inverse = torch.linalg.inv(evidence(params, [1.0, 1.0]))
    PtS = P[-1].mT @ S_inverse
    top = torch.linalg.solve(PtS @ P[-1], PtS @ clamps[0].mT)
    r = clamps[0].mT - P[-1] @ top
    energy = 0.5 * (r * (S_inverse @ r)).sum((1, 2))
    runner = settled(network, params, clamps, 6000, mode="generative")
    assert oracle.largest(runner.energy() - energy) <= 1e-9


@pytest.mark.parametrize("sizes", [[3, 4, 2], [2, 3, 5, 4], [4, 3, 2, 3, 2], [1, 1, 1, 1]])
def test_determinants_agree(sizes):
    network, params = contracting(sizes, seed=3)
    H, S = hessian(network, params), evidence(params, [1.0] * (len(sizes) - 1))
    assert oracle.largest(torch.linalg.det(H) / torch.linalg.det(S) - 1) <= 1e-12
    assert oracle.largest(H - H.mT) == 0
    wrong = evidence(params, [1.0] * (len(sizes) - 2) + [0.0])
    assert oracle.largest(torch.linalg.det(H) / torch.linalg.det(wrong) - 1) > 1e-2, "control"


def test_hessian_is_that_of_autograd():
    network, params = contracting([2, 3, 2], replicas=1)

    def energy(x):
        zero = torch.zeros(1, 1, 2, dtype=oracle.F64)
        return oracle.energy(network, params.of, "supervised", [zero, x.view(1, 1, 3), zero]).sum()

    expected = torch.autograd.functional.hessian(energy, torch.zeros(3, dtype=oracle.F64))
    assert oracle.largest(hessian(network, params)[0] - expected) <= 1e-14


def chain(L, w):
    network = Network.mlp([1] * (L + 1), "identity", bias=False)
    params = oracle.random_parameters(network, 1)
    params.flat.fill_(w)
    return network, params


def spectrum(L, w):
    k = torch.arange(1, L, dtype=oracle.F64)
    return 1 + w**2 - 2 * w * torch.cos(k * torch.pi / L)


@pytest.mark.parametrize("L", [2, 3, 5, 10])
@pytest.mark.parametrize("w", [0.5, 1.0, 2.0])
def test_spectrum_of_a_chain(L, w):
    H = hessian(*chain(L, w))[0]
    assert oracle.largest(torch.linalg.eigvalsh(H) - spectrum(L, w)) <= 1e-12
    assert oracle.largest(torch.linalg.eigvalsh(H) - spectrum(L, 1.01 * w)) > 1e-3, "control"


@pytest.mark.parametrize("L", [2, 4, 7])
@pytest.mark.parametrize("w", [0.6, 1.0, 1.5])
def test_modes_of_a_chain_decay_at_their_rates(L, w):
    """Sample k starts in mode k; every Euler step multiplies it by 1 − γ h_k."""
    network, params = chain(L, w)
    steps, gamma = 40, 0.3
    number = torch.arange(1, L, dtype=oracle.F64)
    modes = torch.sin(number[:, None] * number[None] * torch.pi / L)  # (sample k, node l)
    schedule = Schedule(rule="pc", T=steps, gamma=gamma, init="carry")
    runner = Discrete(network, params, schedule, oracle.optimizer(params, 0.0))
    runner.carried = {i: modes[None, :, i - 1 : i].clone() for i in range(1, L)}
    zero = torch.zeros(1, L - 1, 1, dtype=oracle.F64)
    runner.start([zero, *[None] * (L - 1), zero])
    for _ in range(steps):
        runner.step()
    decayed = (1 - gamma * spectrum(L, w)) ** steps
    for i in range(1, L):
        assert oracle.largest(runner.field.x[i][0, :, 0] - decayed * modes[:, i - 1]) <= 1e-10
    other = (1 - gamma * spectrum(L, 1.05 * w)) ** steps
    assert oracle.largest(other / decayed - 1) > 0.1, "control: a wrong spectrum would show"


@pytest.mark.parametrize("f", ["identity", "tanh", "gelu"])
def test_unclamped_output_relaxes_to_the_feedforward_pass(f):
    network = Network.mlp([4, 5, 4, 3], f)
    params = oracle.random_parameters(network, 2, gain=0.8)
    clamps = oracle.clamps_of(network, "free", 2, 5)
    runner = settled(network, params, clamps, 3000, mode="free", init="normal")
    states = [None] * 3 + [clamps[-1]]
    for index in (2, 1, 0):
        states[index] = oracle.prediction(network.nodes[index], params.of[index], states)
        assert oracle.largest(runner.field.x[index] - states[index]) <= 1e-10
    assert oracle.largest(runner.energy()) <= 1e-10
    change = torch.zeros_like(params.flat)
    runner.field.learn(runner.field.predicted, params.views(change), 1.0, 0.0)
    assert oracle.largest(change) <= 1e-10

    short = settled(network, params, clamps, 2, mode="free", init="normal")
    assert oracle.largest(short.energy()) > 1e-2, "control: it does start elsewhere"


def test_unclamped_output_teaches_nothing():
    network = Network.mlp([4, 5, 4, 3], "tanh")
    params = oracle.random_parameters(network, 2)
    start = params.flat.clone()
    for mode, least, most in (("free", 0.0, 1e-10), ("supervised", 1e-2, 1e3)):
        params.flat.copy_(start)
        runner = Discrete(
            network,
            params,
            Schedule(rule="ipc", T=30, fast=False),
            oracle.optimizer(params, 0.05),
            mode=mode,
        )
        runner.batch(oracle.clamps_of(network, mode, 2, 5))
        assert least <= oracle.largest(params.flat - start) <= most
