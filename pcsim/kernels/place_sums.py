"""Row sums of an array that holds the filters of a convolution.

The array is (channel, channels_in·kernel²) and is read once per place of the image: forward, the
row sums at a place are those of a dense array for the patch v there. Backward, a pixel adds up the
reads of all places whose patch it is in, and so do the variances of their noise; losses along a
line (`load`, `current`, `tapered`) and the largest input (`peak`) belong to one read: no such sum.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from pcsim.errors import UnsupportedError
from pcsim.kernels.hooks import TERMS
from pcsim.kernels.replica_convolution import convolve, pull_back
from pcsim.maps import Convolution
from pcsim.substrate.effect import LARGEST

ADDITIVE = ("power", "weighted_power", "squared_power")
"""Row sums that may be added up over several reads: variances."""


def refuse_losses(names: tuple[str, ...]) -> None:
    """Refuse sums that the backward direction of a convolution does not have."""
    for name in names:
        if name not in ADDITIVE:
            raise UnsupportedError(
                f"hardware: {name!r} at the site 'feedback' is a sum over a line of one read, but "
                f"a pixel of a convolution adds up the reads of several places; it is modelled for "
                f"dense layers"
            )


def forward_sum(name: str, v: Tensor, w: Tensor, spec: Convolution) -> Tensor:
    """Return one row sum for images v (replica or 1, sample, pixel) and filters w of each replica.

    It broadcasts to (replica, sample, unit).
    """
    signal, weight = TERMS[name]
    channels, *places = spec.shape
    if signal is None:
        loads = weight(w.flatten(2)).sum(2)  # (replica, channel), at any place
        return loads[..., None, None].expand(-1, -1, *places).flatten(1).unsqueeze(1)
    if name == LARGEST:
        over = signal(v).reshape(-1, *spec.image).amax(1, keepdim=True)
        inside = functional.pad(over, (spec.padding,) * 4)  # what is outside sends nothing
        sums = functional.max_pool2d(inside, spec.kernel, spec.stride)
        return sums.expand(-1, channels, *places).reshape(*v.shape[:2], -1)
    if name == "power":
        sums = functional.conv2d(
            _over_channels(signal(v), spec.image), _ones(v, spec), None, spec.stride, spec.padding
        )
        return sums.expand(-1, channels, *places).reshape(*v.shape[:2], -1)
    return convolve(signal(v), weight(w.flatten(2)).view(w.shape), None, spec)


def backward_sum(name: str, delta: Tensor, v: Tensor, w: Tensor, spec: Convolution) -> Tensor:
    """Return one row sum (replica, sample, pixel) of the errors delta at all places."""
    signal, weight = TERMS[name]
    assert signal is not None, "refused by `refuse_losses`"
    if name != "power":
        return pull_back(signal(delta), v, weight(w.flatten(2)).view(w.shape), spec)
    covered = [(n - 1) * spec.stride - 2 * spec.padding + spec.kernel for n in spec.shape[1:]]
    rest = [pixels - n for pixels, n in zip(spec.image[1:], covered, strict=True)]
    sums = functional.conv_transpose2d(
        _over_channels(signal(delta), spec.shape),
        _ones(delta, spec),
        None,
        spec.stride,
        spec.padding,
        output_padding=rest,
    )
    return sums.expand(-1, *spec.image).reshape(*delta.shape[:2], -1)


def _over_channels(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the sum over channels, replicas and samples in one row (…, 1, height, width)."""
    return values.reshape(-1, *shape).sum(1, keepdim=True)


def _ones(like: Tensor, spec: Convolution) -> Tensor:
    return like.new_ones(1, 1, spec.kernel, spec.kernel)
