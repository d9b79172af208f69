"""F(x, θ) of networks with images, sequences and transparent nodes, spelled out a second time.

Convolutions and pools are sums over shifted windows, attention is written with indices, so that no
operation is shared with pcsim's kernels (nor with its differentiable pass).
"""

import math

import torch
from energy_oracle import F64, FUNCTIONS, largest  # noqa: F401

from pcsim.energies import Categorical
from pcsim.kernels.parameters import Parameters
from pcsim.maps import (
    Convolution,
    Dense,
    Embedding,
    LayerNorm,
    Mix,
    Pool,
    Prior,
    Scores,
    Sum,
)
from pcsim.network import Network


def dense(spec, p, x):
    rates = FUNCTIONS[spec.f](x.reshape(*x.shape[:2], spec.positions, spec.n_in))
    drive = torch.einsum("rbti,roi->rbto", rates, p["w"])
    if spec.bias:
        drive = drive + p["b"][:, None, None]
    return FUNCTIONS[spec.g](drive).flatten(2)


def windows(x, image, size, stride, padding):
    """Return (replica, sample, channel, height, width, size, size)."""
    grid = x.reshape(*x.shape[:2], *image)
    grid = torch.nn.functional.pad(grid, (padding,) * 4)
    return grid.unfold(3, size, stride).unfold(4, size, stride)


def convolution(spec, p, x):
    seen = windows(FUNCTIONS[spec.f](x), spec.image, spec.kernel, spec.stride, spec.padding)
    drive = torch.einsum("rbchwij,rocij->rbohw", seen, p["w"])
    if spec.bias:
        drive = drive + p["b"][:, None, :, None, None]
    return FUNCTIONS[spec.g](drive).flatten(2)


def pool(spec, p, x):
    seen = windows(FUNCTIONS[spec.f](x), spec.image, spec.size, spec.size, 0).flatten(-2)
    return (seen.amax(-1) if spec.kind == "max" else seen.mean(-1)).flatten(2)


def embedding(spec, p, x):
    one_hot = torch.nn.functional.one_hot(x.long(), spec.vocabulary).to(F64)
    words = torch.einsum("rbtv,rvf->rbtf", one_hot.expand(len(p["w"]), -1, -1, -1), p["w"])
    return (words + p["w_position"][:, None]).flatten(2)


def layer_norm(spec, p, x):
    x = FUNCTIONS[spec.f](x.reshape(*x.shape[:2], spec.positions, spec.features))
    centred = x - x.mean(-1, keepdim=True)
    normal = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + spec.eps)
    return (normal * p["gain"][:, None, None] + p["b"][:, None, None]).flatten(2)


def allowed(spec):
    """Which (i, j) count."""
    full = torch.ones(spec.positions, spec.positions, dtype=F64)
    return full.tril() if spec.causal else full


def scores(spec, p, q, k):
    q, k = (x.reshape(*x.shape[:2], spec.positions, spec.heads, -1) for x in (q, k))
    each = torch.einsum("rbihd,rbjhd->rbhij", q, k) / math.sqrt(spec.features // spec.heads)
    return (each * allowed(spec)).flatten(2)


def mix(spec, p, s, v):
    s = s.reshape(*s.shape[:2], spec.heads, spec.positions, spec.positions)
    weights = torch.exp(s) * allowed(spec)
    weights = weights / weights.sum(-1, keepdim=True)
    v = v.reshape(*v.shape[:2], spec.positions, spec.heads, -1)
    return torch.einsum("rbhij,rbjhd->rbihd", weights, v).flatten(2)


RULES = {
    Dense: dense,
    Convolution: convolution,
    Pool: pool,
    Embedding: embedding,
    LayerNorm: layer_norm,
    Scores: scores,
    Mix: mix,
    Sum: lambda spec, p, *x: sum(x),
}


def cost(node, p, hold, x, mu):
    """E(x, μ) per replica, summed over samples and units."""
    if isinstance(node.energy, Categorical):
        rows = node.shape[-2:] if node.energy.causal else (1, node.shape[-1])
        ones = torch.ones(rows, dtype=F64)
        part = ones.tril() if node.energy.causal else ones
        x, mu = (v.reshape(*v.shape[:2], -1, *rows) for v in (x, mu))
        log_q = mu - torch.log((torch.exp(mu) * part).sum(-1, keepdim=True))
        if hold == "clamped":
            each = torch.special.xlogy(x, x) - x * log_q
        else:
            log_p = x - torch.log((torch.exp(x) * part).sum(-1, keepdim=True))
            each = torch.exp(log_p) * (log_p - log_q)
        return (each * part).flatten(1).sum(1)
    s = torch.tensor(node.energy.variance, dtype=F64).log()
    if node.energy.learned:
        s = p["log_var"][:, None]
    return (0.5 * ((x - mu) ** 2 / torch.exp(s) + s)).sum((1, 2))


def energy(network, of, mode, states):
    """F (replica,); states of transparent nodes are not looked at, but computed."""
    holds, values, total = network.holds(mode), list(states), 0.0
    for index in reversed(range(len(network.nodes))):
        node = network.nodes[index]
        if node.map is None or isinstance(node.map, Prior):
            continue
        mu = RULES[type(node.map)](node.map, of[index], *(values[k] for k in node.parents))
        if node.transparent:
            values[index] = mu
        else:
            total = total + cost(node, of[index], holds[index], values[index], mu)
    return total


def random_parameters(network, replicas, seed=0):
    generator = torch.Generator().manual_seed(seed)
    draw = torch.randn(replicas, network.parameter_count, generator=generator, dtype=F64)
    params = Parameters(network, 0.3 * draw)
    for views in params.of:
        if "w" in views:
            views["w"].div_(0.3 * math.sqrt(math.prod(views["w"].shape[2:])))
        if "gain" in views:
            views["gain"].add_(1)
    return params


def random_states(network, mode, replicas, samples, seed=0, shared=False):
    """One state per value node, None for transparent ones; token numbers where they are read."""
    generator = torch.Generator().manual_seed(seed)
    reads = {n.parents[0]: n.map.vocabulary for n in network.nodes if isinstance(n.map, Embedding)}
    states = []
    for index, (node, hold) in enumerate(zip(network.nodes, network.holds(mode), strict=True)):
        rows = 1 if shared and hold == "clamped" else replicas
        x = torch.randn(rows, samples, node.units, generator=generator, dtype=F64)
        if index in reads:
            x = torch.randint(reads[index], x.shape, generator=generator).to(F64)
        if isinstance(node.energy, Categorical) and hold == "clamped":
            x = torch.softmax(x.view(rows, samples, -1, node.shape[-1]), -1).flatten(2)
        states.append(None if node.transparent else x)
    return states


def clamps_of(network, replicas, samples, seed=0, shared=False):
    """Return data for a supervised `batch`."""
    states = random_states(network, "supervised", replicas, samples, seed, shared)
    holds = network.holds("supervised")
    return [x if hold == "clamped" else None for x, hold in zip(states, holds, strict=True)]


GAUSSIAN, CATEGORICAL = {"kind": "gaussian"}, {"kind": "categorical"}
IMAGE = {"image": (2, 6, 5), "classes": 3}
WORDS = {"vocabulary": 7, "positions": 4, "features": 6, "intermediate": 5, "blocks": 2}


def cnn(**options):
    return Network.cnn(**{**IMAGE, "channels": (3, 2), "dense": (4,), "f": "tanh"} | options)


def alexnet(**options):
    small = {"channels": (2, 3, 2, 3, 2), "dense": (4, 3), "image": (2, 32, 32), "f": "tanh"}
    return Network.alexnet(**small | {"classes": 3} | options)


def transformer(**options):
    return Network.transformer(**WORDS | options)


NETWORKS = {
    "strided": lambda: cnn(),
    "max pool": lambda: cnn(stride=1, pool="max"),
    "average pool, gelu": lambda: cnn(stride=1, pool="average", f="gelu"),
    "post-act": lambda: cnn(stride=1, pool="max", place="post_act"),
    "post-pool": lambda: cnn(stride=1, pool="average", place="post_pool"),
    "5×5, no bias, no padding": lambda: cnn(
        image=(2, 11, 9), kernel=5, stride=1, padding=0, bias=False
    ),
    "relu, labels": lambda: cnn(f="relu", output=CATEGORICAL),
    "variances": lambda: cnn(hidden={"variance": 0.6}, output={"variance": 2.0}),
    "learned variances": lambda: cnn(hidden={"learned": True}),
    "AlexNet": lambda: alexnet(),
    "AlexNet, post-pool": lambda: alexnet(place="post_pool"),
    "full attention": lambda: transformer(),
    "causal attention": lambda: transformer(causal=True),
    "two heads, causal": lambda: transformer(heads=2, causal=True, layer_norm=True),
    "Gaussian scores": lambda: transformer(scores=GAUSSIAN, place="post_act"),
    "layer norm": lambda: transformer(layer_norm=True, heads=3),
    "every operation a node": lambda: transformer(nodes="all", layer_norm=True, causal=True),
    "relays": lambda: transformer(levelled=True, layer_norm=True),
}
