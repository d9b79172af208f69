"""Readers for the publishers' file formats.

Each takes a path and gives arrays of the stored bytes, or raises a `DataError` that names the file.
None of them unpickles anything: a data file cannot run code.
"""

import gzip
import math
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.errors import DataError

Bytes = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.int64]

# The third byte of an idx file names the type of its numbers, which are big-endian.
_IDX_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_CIFAR_SHAPE = (3, 32, 32)
_CIFAR_RECORD = 1 + math.prod(_CIFAR_SHAPE)


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a damaged file raises into one sentence about it."""
    try:
        yield
    # EOFError and zlib.error: a gz that was cut off or altered. The rest: nonsense inside.
    except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError, IndexError) as error:
        detail = " ".join(str(error).split())[:160] or type(error).__name__
        raise DataError(
            f"the file '{path}' cannot be read as {what} ({detail}); delete it if it is damaged, "
            "and fetch it again with `pcsim data fetch NAME`."
        ) from error


def read_idx(path: Path) -> npt.NDArray[Any]:
    """Read a gzipped idx file (MNIST and its kin) into an array of the stored type and shape."""
    with reading(path, "gzipped idx"):
        with gzip.open(path, "rb") as stream:
            raw = stream.read()
        if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] not in _IDX_TYPES:
            raise ValueError("it does not begin like an idx file")
        kind, start = np.dtype(_IDX_TYPES[raw[2]]), 4 + 4 * raw[3]
        shape = tuple(int(n) for n in np.frombuffer(raw[4:start], dtype=">u4"))
        expected = start + kind.itemsize * math.prod(shape)
        if len(shape) != raw[3] or len(raw) != expected:
            raise ValueError(f"it holds {len(raw)} bytes where its header announces {expected}")
        values = np.frombuffer(raw, dtype=kind, offset=start).reshape(shape)
        return values.astype(kind.newbyteorder("="))


def read_cifar(path: Path) -> tuple[Bytes, Labels]:
    """Read one .bin of CIFAR-10's binary version: images (N, 3, 32, 32) and labels."""
    with reading(path, "a CIFAR-10 binary batch"):
        raw = np.fromfile(path, dtype=np.uint8)
        if raw.size == 0 or raw.size % _CIFAR_RECORD:
            raise ValueError(f"{raw.size} bytes are not whole records of {_CIFAR_RECORD}")
        records = raw.reshape(-1, _CIFAR_RECORD)
        return records[:, 1:].reshape(-1, *_CIFAR_SHAPE), records[:, 0].astype(np.int64)


def read_svhn(path: Path) -> tuple[Bytes, Labels]:
    """Read a cropped-digit .mat of SVHN: images (N, 3, 32, 32) and labels, the digit 0 being 0."""
    from scipy.io import loadmat  # slow to import, and only this format needs it
    from scipy.io.matlab import MatReadError

    with reading(path, "an SVHN .mat"):
        try:
            content = loadmat(path, variable_names=["X", "y"])
        except (MatReadError, NotImplementedError) as error:
            raise ValueError(str(error)) from error
        images, labels = np.asarray(content["X"]), np.asarray(content["y"]).astype(np.int64).ravel()
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
            raise ValueError(f"X is {images.dtype} {images.shape}, not uint8 (32, 32, 3, N)")
        # The authors give the digit 0 the label 10, as MATLAB counts from 1.
        return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), labels % 10


def read_digits(path: Path) -> tuple[Bytes, Labels]:
    """Read the gzipped csv of 8x8 digits: images (N, 1, 8, 8) with values 0..16, and labels."""
    with reading(path, "a gzipped csv of digits"):
        with gzip.open(path, "rt", encoding="ascii") as stream:
            table = np.loadtxt(stream, delimiter=",", dtype=np.int64, ndmin=2)
        if table.shape[1] != 65 or table[:, :64].min() < 0 or table[:, :64].max() > 16:
            raise ValueError("a row is not 64 pixels of 0..16 and a label")
        return table[:, :64].reshape(-1, 1, 8, 8).astype(np.uint8), table[:, 64]


def read_sentences(stream: Iterable[bytes], limit: int | None = None) -> list[str]:
    """Read UTF-8 text with one sentence a line; empty lines are left out."""
    sentences: list[str] = []
    for line in stream:
        if limit is not None and len(sentences) >= limit:
            break
        text = line.decode("utf-8").strip()
        if text:
            sentences.append(text)
    return sentences


def read_text(path: Path, limit: int | None = None) -> list[str]:
    """Read the sentences of a text file, plain or (name ending in .gz) gzipped."""
    with reading(path, "UTF-8 text"):
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as packed:
                return read_sentences(packed, limit)
        with path.open("rb") as plain:
            return read_sentences(plain, limit)
