"""Replicas convolved at once: the numbers of one replica after another, and of a plain loop."""

import pytest
import torch
from torch.nn import functional

from pcsim.kernels import replica_convolution as joined
from pcsim.maps import Convolution

SPECS = {
    "strided": Convolution((3, 7, 6), 4, kernel=3, stride=2, padding=1),
    "plain": Convolution((2, 5, 5), 3, kernel=2, stride=1, padding=0),
}
REPLICAS, SAMPLES = 5, 4


def random(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def images(spec, kind):
    """Own images, or one for all: as a single replica, or expanded."""
    count = REPLICAS if kind == "own" else 1
    v = random(count, SAMPLES, spec.parent_units[0], seed=1)
    return v.expand(REPLICAS, -1, -1) if kind == "expanded" else v


@pytest.fixture
def calls(monkeypatch):
    """Count convolutions."""
    made = []
    plain = functional.conv2d

    def counted(*arguments, **options):
        made.append(1)
        return plain(*arguments, **options)

    monkeypatch.setattr(functional, "conv2d", counted)
    return made


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", ["own", "shared", "expanded"])
@pytest.mark.parametrize("name", SPECS)
def test_joined_replicas_are_replicas_in_turn(name, kind, bias, monkeypatch, calls):
    spec, v = SPECS[name], images(SPECS[name], kind)
    channels, kernel = spec.channels, spec.kernel
    w = random(REPLICAS, channels, spec.image[0], kernel, kernel, seed=2)
    b = random(REPLICAS, channels, seed=3) if bias else None
    delta = random(REPLICAS, SAMPLES, spec.units, seed=4)

    def all_three():
        calls.clear()
        drive = joined.convolve(v, w, b, spec)
        number = len(calls)
        gradient, sums = joined.filter_gradient(delta, v, w, spec, bias)
        return number, [drive, joined.pull_back(delta, v, w, spec), gradient, *[sums] * bias]

    number, together = all_three()
    monkeypatch.setattr(joined, "SMALL", 0)
    again, in_turn = all_three()
    assert (number, again) == (1, REPLICAS)
    for one, other in zip(together, in_turn, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    # An independent derivative of the last replica.
    x = v[-1].view(-1, *spec.image).clone().requires_grad_()
    filters = w[-1].clone().requires_grad_()
    drive = functional.conv2d(x, filters, None if b is None else b[-1], spec.stride, spec.padding)
    torch.testing.assert_close(together[0][-1], drive.flatten(1).detach(), rtol=1e-12, atol=1e-12)
    pulled, gradient = torch.autograd.grad(drive, (x, filters), delta[-1].view(drive.shape))
    torch.testing.assert_close(together[1][-1], pulled.flatten(1), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(together[2][-1], gradient, rtol=1e-12, atol=1e-12)


def test_large_images_are_not_joined(calls):
    spec = Convolution((3, 32, 32), 8)
    v = torch.zeros(3, 16, spec.parent_units[0])
    joined.convolve(v, torch.zeros(3, 8, 3, 3, 3), None, spec)
    assert len(calls) == 3
