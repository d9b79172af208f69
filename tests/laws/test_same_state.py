"""iPC and PC against a few lines of numpy: states and weights move from one and the same state."""

import energy_oracle as oracle
import numpy as np
import pytest

from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.network import Network

GAMMA, ALPHA = 0.4, 0.02


class Plain:
    """One replica of a tanh network, as in the text: μ^l = θ^l f(x^{l+1}) + b^l."""

    def __init__(self, params):
        self.w = [views["w"][0].numpy().copy() for views in params.of[:-1]]
        self.b = [views["b"][0].numpy().copy() for views in params.of[:-1]]
        self.L = len(self.w)

    def rate(self, k):
        """f(x^l): the input is fed as it is."""
        return self.x[k] if k == self.L else np.tanh(self.x[k])

    def mu(self, k):
        return self.rate(k + 1) @ self.w[k].T + self.b[k]

    def start(self, clamps):
        self.x = [c if c is None else c[0].numpy() for c in clamps]
        for k in reversed(range(1, self.L)):
            self.x[k] = self.mu(k)

    def errors(self):
        return [self.x[k] - self.mu(k) for k in range(self.L)]

    def move(self, eps):
        drift = [
            -eps[k] + (1 - np.tanh(self.x[k]) ** 2) * (eps[k - 1] @ self.w[k - 1])
            for k in range(1, self.L)
        ]
        for k, d in enumerate(drift, 1):
            self.x[k] = self.x[k] + GAMMA * d

    def gradients(self, eps):
        return [(e.T @ self.rate(k + 1), e.sum(0)) for k, e in enumerate(eps)]

    def learn(self, gradients):
        for k, (w, b) in enumerate(gradients):
            self.w[k] = self.w[k] + ALPHA * w
            self.b[k] = self.b[k] + ALPHA * b

    def ipc(self, clamps, T, *, jacobi=True):
        self.start(clamps)
        for _ in range(T):
            eps = self.errors()
            if jacobi:
                gradients = self.gradients(eps)
                self.move(eps)
            else:  # Gauss–Seidel: the weights see the states after their move
                self.move(eps)
                gradients = self.gradients(self.errors())
            self.learn(gradients)

    def pc(self, clamps, T, *, after):
        self.start(clamps)
        for t in range(T):
            eps = self.errors()
            if t == T - 1 and not after:
                gradients = self.gradients(eps)
            self.move(eps)
        if after:
            gradients = self.gradients(self.errors())
        self.learn(gradients)

    def flat(self):
        return np.concatenate(
            [p.ravel() for pair in zip(self.w, self.b, strict=True) for p in pair]
        )


def world(rule, fast, T, **options):
    network = Network.mlp([12, 5, 4, 3], "tanh")
    params = oracle.random_parameters(network, 1)
    plain = Plain(params)
    schedule = Schedule(rule=rule, T=T, gamma=GAMMA, fast=fast, **options)
    runner = Discrete(network, params, schedule, oracle.optimizer(params, ALPHA))
    batches = [oracle.clamps_of(network, "supervised", 1, 4, seed) for seed in range(3)]
    return runner, plain, batches


def difference(runner, plain):
    expected = plain.flat()
    return np.abs(runner.params.flat[0].numpy() - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize("fast", [False, True])
def test_ipc_takes_both_moves_from_one_state(fast):
    runner, plain, batches = world("ipc", fast, 25)
    _, other, _ = world("ipc", fast, 25)
    for clamps in batches:
        runner.batch(clamps)
        plain.ipc(clamps, 25)
        other.ipc(clamps, 25, jacobi=False)
    assert difference(runner, plain) <= 1e-12
    assert difference(runner, other) > 1e-3, "control: Gauss–Seidel is another map"


def test_ipc_states():
    """States too, step by step; with fast = False the last move is made as well."""
    runner, plain, batches = world("ipc", False, 60)
    runner.batch(batches[0])
    plain.ipc(batches[0], 60)
    for index in (1, 2):
        assert np.abs(runner.field.x[index][0].numpy() - plain.x[index]).max() <= 1e-12


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("at", ["last", "after"])
def test_pc_learns_at_the_stated_moment(at, fast):
    runner, plain, batches = world("pc", fast, 7, pc_update_at=at)
    _, other, _ = world("pc", fast, 7)
    for clamps in batches:
        runner.batch(clamps)
        plain.pc(clamps, 7, after=at == "after")
        other.pc(clamps, 7, after=at != "after")
    assert difference(runner, plain) <= 1e-12
    assert difference(runner, other) > 1e-4, "control: the other moment gives other weights"
