"""Data sets by name: verified bytes in, arrays (or sentences) out.

`load` gives images with features in [0, 1] and integer labels, `load_text` gives sentences. Both
tell in `origin` which files were read and whether each is the published one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.datasets import download, formats, own
from pcsim.datasets.locate import Located, find_file
from pcsim.datasets.registry import Entry, entry, names
from pcsim.datasets.tiny_imagenet import read_tiny_imagenet
from pcsim.errors import DataError

__all__ = ["Dataset", "load", "load_text", "names"]

# Every fifth sample of each class of the digits is a test sample.
_DIGITS_STRIDE = 5

_Locate = Callable[[str], list[Located]]
_Arrays = tuple[formats.Bytes, formats.Labels, formats.Bytes, formats.Labels]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images and labels, split into training and test set.

    `x_train` and `x_test` are float32 of shape (N, *shape) in [0, 1], `y_train` and `y_test` int64.
    Own data (`pcsim.datasets.own`) are float64, in whichever units they came; 0 classes: no labels.
    `origin` maps each file that was read to "published", "embedded", or what else it is.
    """

    name: str
    x_train: npt.NDArray[np.floating[Any]]
    y_train: npt.NDArray[np.int64]
    x_test: npt.NDArray[np.floating[Any]]
    y_test: npt.NDArray[np.int64]
    classes: int
    origin: Mapping[str, str]
    shape: tuple[int, ...]


def load(name: str, *, unverified: bool = False, sha256: str | None = None) -> Dataset:
    """Load the images of a data set, downloading them if they are not here.

    A name that ends in .npz or .csv is a file of one's own: see `pcsim.datasets.own`. With
    `sha256`, it must hold the values that have this checksum.

    The published split is kept. The digits have none: there, within each class and in the order of
    the file, every fifth sample is a test sample. Tiny ImageNet's test set is described in
    `pcsim.datasets.tiny_imagenet`. With `unverified`, local files that are not the published ones
    are used, and `origin` gives their checksums.
    """
    if own.is_own(name):
        return own.load(name, sha256)
    known = entry(name)
    if known.kind != "images":
        raise DataError(f"the data set '{name}' is text; it is read with `load_text`, not `load`.")
    origin: dict[str, str] = {}

    def files(role: str) -> list[Located]:
        located = [find_file(known, file, unverified=unverified) for file in known.with_role(role)]
        origin.update({one.name: one.origin for one in located})
        return located

    x_train, y_train, x_test, y_test = _READERS[known.format](files)
    for images, labels in ((x_train, y_train), (x_test, y_test)):
        _check(known, images, labels)
    # The largest stored value stands for 1; the digits go up to 16, bytes up to 255.
    top = 16 if known.format == "digits_csv" else 255
    return Dataset(
        name=name,
        x_train=_scaled(x_train, top),
        y_train=y_train,
        x_test=_scaled(x_test, top),
        y_test=y_test,
        classes=known.classes,
        origin=origin,
        shape=known.shape,
    )


def load_text(
    name: str, part: str, *, unverified: bool = False, limit: int | None = None
) -> tuple[list[str], Mapping[str, str]]:
    """Load the sentences of one part ("train", "valid" or "test") of a text data set.

    Returns the sentences, at most `limit` of them, and their origin. The whole training part of
    One Billion Word has 30 million sentences: give a limit unless there is memory for all.
    """
    known = entry(name)
    if known.kind != "text":
        raise DataError(f"the data set '{name}' is images; it is read with `load`.")
    whole = known.with_role(part) if part != "archive" else []
    if whole:
        located = [find_file(known, file, unverified=unverified) for file in whole]
        sentences = [line for one in located for line in formats.read_text(one.path, limit)]
        return sentences[:limit], {one.name: one.origin for one in located}
    if part not in known.parts:
        allowed = [*known.parts, *(f.role for f in known.files if f.role != "archive")]
        raise DataError(
            f"the data set '{name}' has no part '{part}'; the parts are {', '.join(allowed)}."
        )
    (archive,) = known.with_role("archive")
    source = find_file(known, archive, unverified=unverified, role=part)
    if source.name == archive.path:
        sentences = download.read_members(source.path, known.parts[part], limit)
    else:
        sentences = formats.read_text(source.path, limit)
    return sentences, {source.name: source.origin}


def _read_digits(files: _Locate) -> _Arrays:
    images, labels = formats.read_digits(files("all")[0].path)
    rank = np.zeros(labels.size, dtype=np.int64)
    for value in np.unique(labels):
        rank[labels == value] = np.arange(np.count_nonzero(labels == value))
    test = rank % _DIGITS_STRIDE == _DIGITS_STRIDE - 1
    return images[~test], labels[~test], images[test], labels[test]


def _read_idx(files: _Locate) -> _Arrays:
    def images(role: str) -> formats.Bytes:
        stored = formats.read_idx(files(role)[0].path)
        return stored[:, None] if stored.ndim == 3 else stored

    def labels(role: str) -> formats.Labels:
        return formats.read_idx(files(role)[0].path).astype(np.int64)

    return images("x_train"), labels("y_train"), images("x_test"), labels("y_test")


def _read_cifar(files: _Locate) -> _Arrays:
    return _read_batches(files, formats.read_cifar)


def _read_svhn(files: _Locate) -> _Arrays:
    return _read_batches(files, formats.read_svhn)


def _read_batches(
    files: _Locate, read: Callable[..., tuple[formats.Bytes, formats.Labels]]
) -> _Arrays:
    parts = [[read(one.path) for one in files(role)] for role in ("train", "test")]
    (x_train, y_train), (x_test, y_test) = (
        (np.concatenate([x for x, _ in part]), np.concatenate([y for _, y in part]))
        for part in parts
    )
    return x_train, y_train, x_test, y_test


def _read_tiny_imagenet(files: _Locate) -> _Arrays:
    return read_tiny_imagenet(files("all")[0].path)[:4]


_READERS: dict[str, Callable[[_Locate], _Arrays]] = {
    "digits_csv": _read_digits,
    "idx": _read_idx,
    "cifar_bin": _read_cifar,
    "svhn_mat": _read_svhn,
    "tiny_imagenet": _read_tiny_imagenet,
}


def _scaled(values: formats.Bytes, top: int) -> npt.NDArray[np.float32]:
    return np.divide(values, np.float32(top), dtype=np.float32)


def _check(found: Entry, images: formats.Bytes, labels: formats.Labels) -> None:
    """Refuse arrays that do not fit together, which only an unverified file can give."""
    fits = images.dtype == np.uint8 and images.shape == (labels.size, *found.shape)
    if not fits or labels.ndim != 1 or np.any((labels < 0) | (labels >= found.classes)):
        raise DataError(
            f"{found.name}: the files do not fit together: images are {images.dtype} "
            f"{images.shape} with {labels.size} labels, expected uint8 (N, "
            f"{', '.join(map(str, found.shape))}) with N labels below {found.classes}; run "
            f"`pcsim data verify {found.name}`."
        )
