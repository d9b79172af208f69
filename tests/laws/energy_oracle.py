"""F(x, θ) written out a second time, in plain differentiable torch, and builders for the tests.

Nothing here uses pcsim's kernels except to hold parameters, so that agreement means something.
"""

import math

import torch

from pcsim.energies import Categorical
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Prior

F64 = torch.float64
FUNCTIONS = {
    "identity": lambda x: x,
    "tanh": lambda x: 1 - 2 / (1 + torch.exp(2 * x)),
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "relu": lambda x: torch.where(x > 0, x, 0.0),
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
    "softmax": lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True),
}


def prediction(node, params, x):
    """μ = g(W f(x_parent) + b), or the mean of a prior."""
    if isinstance(node.map, Prior):
        return torch.tensor(node.map.mean, dtype=F64)
    rates = FUNCTIONS[node.map.f](x[node.parents[0]])
    drive = torch.einsum("rbi,roi->rbo", rates, params["w"])
    if node.map.bias:
        drive = drive + params["b"][:, None]
    return FUNCTIONS[node.map.g](drive)


def node_energy(node, params, hold, x, mu):
    """E(x, μ) per replica, summed over samples and units."""
    if isinstance(node.energy, Categorical):
        log_q = mu - torch.logsumexp(mu, -1, keepdim=True)
        if hold == "clamped":
            each = torch.special.xlogy(x, x) - x * log_q
        else:
            log_p = x - torch.logsumexp(x, -1, keepdim=True)
            each = torch.exp(log_p) * (log_p - log_q)
    else:
        if node.energy.learned:
            s = params["log_var"][:, None]
        else:
            s = torch.tensor(node.energy.variance, dtype=F64).log()
        each = 0.5 * ((x - mu) ** 2 / torch.exp(s) + s)
    return each.sum((1, 2))


def energy(network, of, mode, x):
    """F (replica,): the sum over nodes that have a prediction."""
    holds = network.holds(mode)
    parts = [
        node_energy(node, of[i], holds[i], x[i], prediction(node, of[i], x))
        for i, node in enumerate(network.nodes)
        if node.map
    ]
    return sum(parts)


def random_parameters(network, replicas, seed=0, gain=1.0):
    """Weights of a size at which nonlinearities are neither linear nor saturated."""
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(replicas, network.parameter_count, generator=generator, dtype=F64)
    params = Parameters(network, 0.3 * draw)
    for node, views in zip(network.nodes, params.of, strict=True):
        if "w" in views:
            views["w"].mul_(gain / 0.3 / math.sqrt(node.map.n_in))
    return params


def random_states(network, mode, replicas, samples, seed=0, shared=False):
    """One state per node; clamped nodes have one replica axis for all if `shared`."""
    generator = torch.Generator().manual_seed(seed)
    states = []
    for node, hold in zip(network.nodes, network.holds(mode), strict=True):
        rows = 1 if shared and hold == "clamped" else replicas
        x = torch.randn(rows, samples, node.units, generator=generator, dtype=F64)
        if isinstance(node.energy, Categorical) and hold == "clamped":
            x = torch.softmax(x, -1)
        states.append(x)
    return states


def clamps_of(network, mode, replicas, samples, seed=0, shared=False):
    """Return data for `batch`: a tensor per clamped or masked node, None for the others."""
    states = random_states(network, mode, replicas, samples, seed, shared)
    holds = network.holds(mode)
    return [x if hold != "free" else None for x, hold in zip(states, holds, strict=True)]


def optimizer(params, alpha, rule="sgd", decay=0.0, *, in_place=True, **constants):
    return Optimizer(OptimizerSpec(rule, **constants), params, alpha, decay, in_place=in_place)


def copy(params):
    """Return the same numbers in other memory."""
    return Parameters(params.network, params.flat.clone())


def largest(difference):
    return float(difference.detach().abs().max())
