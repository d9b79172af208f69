"""Row sums of an array that holds the filters of a convolution.

The array is (channel, channels_in·kernel²) and is read once per place of the image: forward, the
row sums at a place are those of a dense array for the patch v there. Backward, a pixel adds up the
reads of all places whose patch it is in, and so do the variances of their noise; losses along a
line (`load`, `current`, `tapered`) belong to one read and have no such sum.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from pcsim.errors import UnsupportedError
from pcsim.kernels.hooks import TERMS
from pcsim.maps import Convolution

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
    """Return one row sum (sample or 1, unit) for images v (sample, channel, …) and filters w."""
    signal, weight = TERMS[name]
    channels, height, width = spec.shape
    filters = weight(w.flatten(1))
    if signal is None:
        sums = filters.sum(1).view(1, -1, 1, 1)
    else:
        sums = functional.conv2d(
            signal(v), filters.view(-1, *w.shape[1:]), None, spec.stride, spec.padding
        )
    return sums.expand(-1, channels, height, width).flatten(1)


def backward_sum(name: str, delta: Tensor, w: Tensor, spec: Convolution) -> Tensor:
    """Return one row sum (sample, pixel) of the errors delta (sample, channel, …) at the places."""
    signal, weight = TERMS[name]
    assert signal is not None, "refused by `refuse_losses`"
    sent, filters = signal(delta), weight(w.flatten(1)).view(-1, *w.shape[1:])
    if len(filters) == 1:  # the same for all channels: add these up before, not behind
        sent, filters = sent.sum(1, keepdim=True), filters[:, :1]
    covered = [(n - 1) * spec.stride - 2 * spec.padding + spec.kernel for n in spec.shape[1:]]
    rest = [pixels - n for pixels, n in zip(spec.image[1:], covered, strict=True)]
    sums = functional.conv_transpose2d(
        sent, filters, None, spec.stride, spec.padding, output_padding=rest
    )
    return sums.expand(-1, *spec.image).flatten(1)
