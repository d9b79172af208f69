"""Random numbers as a function of (key, step, element): Philox 4×32-10, compiled or in torch.

`pcsim/native/counter.c` states the law. On a CPU with a compiler that code runs; elsewhere the same
operations run in torch, one by one, and give the same bits.
"""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from importlib.resources import files
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim.native import Library, library
from pcsim.substrate.expression import root

Law = Literal["normal", "uniform"]
Keys = npt.NDArray[np.uint64]
"""One 64-bit key per row."""

_LOW = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)
_FILLS = {torch.float32: "fill_float", torch.float64: "fill_double"}


def fill(
    shape: torch.Size, keys: Keys, step: int, law: Law, like: Tensor, first: int = 0
) -> Tensor:
    """Return numbers of a shape (row, …), the elements `first`, `first` + 1, … of each row's key.

    Type and device are those of `like`.
    """
    code = compiled().code if like.device.type == "cpu" and like.dtype in _FILLS else None
    if code is None:
        rows, count = shape[0], int(np.prod(shape[1:]))
        drawn = by_torch(keys, step, law, count, first, like.dtype, like.device)
        return drawn.view(rows, *shape[1:])
    out = torch.empty(shape, dtype=like.dtype)
    keys = np.ascontiguousarray(keys)
    getattr(code, _FILLS[like.dtype])(
        ctypes.c_void_p(out.data_ptr()),
        keys.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(shape[0]),
        ctypes.c_int64(out.numel() // max(1, shape[0])),
        ctypes.c_uint64(step),
        ctypes.c_uint64(first),
        ctypes.c_int(law == "normal"),
    )
    return out


@cache
def compiled() -> Library:
    """Return the compiled generator, or the reason why torch takes its place."""
    return library((files("pcsim.native") / "counter.c").read_text(encoding="utf-8"))


def words(key: Tensor, step: int, block: Tensor) -> list[Tensor]:
    """Return the four 32-bit words of blocks under 64-bit keys, all as int64 that broadcast."""
    low, high = block & _LOW, (block >> 32) & _LOW
    counter = [low, high, torch.full_like(block, step & _LOW), torch.full_like(block, step >> 32)]
    keys = [key & _LOW, (key >> 32) & _LOW]
    for turn in range(10):
        a, b, c, d = counter
        p, q = _MULTIPLIERS[0] * a, _MULTIPLIERS[1] * c
        now = [(k + turn * w) & _LOW for k, w in zip(keys, _INCREMENTS, strict=True)]
        counter = [
            ((q >> 32) & _LOW) ^ b ^ now[0],
            q & _LOW,
            ((p >> 32) & _LOW) ^ d ^ now[1],
            p & _LOW,
        ]
    return counter


def by_torch(
    keys: Keys,
    step: int,
    law: Law,
    count: int,
    first: int,
    dtype: torch.dtype,
    device: torch.device | str = "cpu",
) -> Tensor:
    """Return the same numbers (key, count) by torch's operations."""
    start, stop = first // 4, -(-(first + count) // 4)
    block = torch.arange(start, stop, device=device)[None]
    key = _on_device(keys.tobytes(), str(device))
    lanes = [lane + torch.zeros_like(key * block) for lane in words(key, step, block)]
    if law == "uniform":
        drawn = torch.stack([_uniform(lane, dtype) for lane in lanes], -1)
    else:
        pairs = [_normal_pair(lanes[k], lanes[k + 1], dtype) for k in (0, 2)]
        drawn = torch.stack([number for pair in pairs for number in pair], -1)
    skip = first - 4 * start
    return drawn.flatten(1)[:, skip : skip + count].contiguous()


@lru_cache(maxsize=4096)
def _on_device(keys: bytes, device: str) -> Tensor:
    """Return keys (key, 1) on a device; they are sent there once, and not in every time step."""
    return torch.as_tensor(np.frombuffer(keys, np.int64).copy(), device=device)[:, None]


def _uniform(word: Tensor, dtype: torch.dtype) -> Tensor:
    if dtype == torch.float64:
        return (word.to(dtype) + 0.5) * 2.0**-32
    return ((word >> 8).to(dtype) + 0.5) * 2.0**-24


def _normal_pair(radius: Tensor, angle: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    size = root(-2 * _logarithm(radius, dtype))
    cosine, sine = _turn(angle, dtype)
    return size * cosine, size * sine


def _constant(value: float, dtype: torch.dtype) -> float:
    """Return a constant as a compiler rounds it to this type."""
    return float(np.float32(value)) if dtype == torch.float32 else value


def _polynomial(z: Tensor, coefficients: list[float]) -> Tensor:
    """Return Σ c_k z^k by Horner's rule, every product and sum rounded; highest power first."""
    value = torch.full_like(z, _constant(coefficients[0], z.dtype))
    for coefficient in coefficients[1:]:
        value = value * z
        value = value + _constant(coefficient, z.dtype)
    return value


def _logarithm(word: Tensor, dtype: torch.dtype) -> Tensor:
    """Return ln((word + 1/2)/2³²) = (k − 32) ln 2 + 2 artanh((m − 1)/(m + 1)), v = m 2^k."""
    whole = dtype == torch.float64
    v = word.to(dtype) + 0.5
    bits = v.view(torch.int64) if whole else v.view(torch.int32).to(torch.int64)
    digits, root_half = (52, 0x3FE6A09E667F3BCD) if whole else (23, 0x3F3504F3)
    k = (bits - root_half) >> digits
    bits = bits - (k << digits)
    m = bits.view(torch.float64) if whole else bits.to(torch.int32).view(torch.float32)
    s = (m - 1) / (m + 1)
    series = _polynomial(s * s, [1 / n for n in range(21 if whole else 9, 0, -2)])
    power = (k - 32).to(dtype) * _constant(0.6931471805599453, dtype)
    return power + 2 * s * series


def _turn(word: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of word/2³² turns: whole quarters are exact."""
    whole = dtype == torch.float64
    quarter = ((word + 0x20000000) & _LOW) >> 30
    rest = (word - (quarter << 30)) & _LOW
    rest = torch.where(rest >= 1 << 31, rest - (1 << 32), rest)
    f = rest.to(dtype) * _constant(2 * np.pi / 2**32, dtype)
    z = f * f
    sine = _polynomial(z, _taylor(15 if whole else 9)) * f
    cosine = _polynomial(z, _taylor(16 if whole else 10))
    odd = (quarter & 1).bool()
    first, second = torch.where(odd, sine, cosine), torch.where(odd, cosine, sine)
    flips_first, flips_second = ((quarter + 1) & 2).bool(), (quarter & 2).bool()
    return torch.where(flips_first, -first, first), torch.where(flips_second, -second, second)


def _taylor(highest: int) -> list[float]:
    """Return ±1/n! for n = highest, highest − 2, … ≥ 0: the series of sine or cosine."""
    factorial = np.cumprod([1.0, *range(1, highest + 1)])
    return [(-1) ** (n // 2) / float(factorial[n]) for n in range(highest, -1, -2)]
