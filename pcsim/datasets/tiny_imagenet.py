"""Reader for Tiny ImageNet: the published zip, a subset of it, or a folder of its images.

Labels are positions in the order of `wnids.txt` (in a folder: of `labels.tsv`). The published
`val` images are the test set, since the published `test` images have no labels. Where there is no
`val`, the last image of every class with two or more is the test set.
"""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from pcsim.datasets.formats import Bytes, Labels, reading

_SIDE = 64
_MAX_MEMBER = 2**20  # a 64x64 JPEG has a few kB; a bigger member is not one
_TRAIN = re.compile(r"tiny-imagenet-200/train/(n\d+)/images/n\d+_(\d+)\.JPEG")


class Split(NamedTuple):
    """Images (N, 3, 64, 64) and labels of the training and the test set, and the class ids."""

    x_train: Bytes
    y_train: Labels
    x_test: Bytes
    y_test: Labels
    wnids: list[str]


class _Item(NamedTuple):
    name: str
    label: int
    number: int


def read_tiny_imagenet(path: Path) -> Split:
    """Read the zip of JPEGs, or a folder with `labels.tsv` and PNGs."""
    with reading(path, "Tiny ImageNet"):
        try:
            return _read_folder(path) if path.is_dir() else _read_zip(path)
        except (zipfile.BadZipFile, UnidentifiedImageError, RuntimeError) as error:
            raise ValueError(str(error)) from error


def _read_zip(path: Path) -> Split:
    with zipfile.ZipFile(path) as archive:

        def fetch(name: str) -> bytes:
            if archive.getinfo(name).file_size > _MAX_MEMBER:
                raise ValueError(f"the member {name} is too big for a 64x64 image")
            return archive.read(name)

        wnids = archive.read("tiny-imagenet-200/wnids.txt").decode("ascii").split()
        labels = {wnid: index for index, wnid in enumerate(wnids)}
        members = [_TRAIN.fullmatch(name) for name in archive.namelist()]
        train = [_Item(m[0], labels[m[1]], int(m[2])) for m in members if m]
        notes = "tiny-imagenet-200/val/val_annotations.txt"
        if notes in archive.namelist():
            rows = [line.split("\t") for line in archive.read(notes).decode("ascii").splitlines()]
            test = [
                _Item(f"tiny-imagenet-200/val/images/{row[0]}", labels[row[1]], number)
                for number, row in enumerate(rows)
            ]
        else:
            train, test = _last_of_each(train)
        return _split(train, test, wnids, fetch)


def _read_folder(path: Path) -> Split:
    with (path / "labels.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    wnids = list(dict.fromkeys(row["wnid"] for row in rows))
    if any(Path(row["file"]).name != row["file"] for row in rows):
        raise ValueError("labels.tsv names a file outside the folder")
    items = [_Item(row["file"], wnids.index(row["wnid"]), n) for n, row in enumerate(rows)]
    train, test = _last_of_each(items)
    return _split(train, test, wnids, lambda name: (path / name).read_bytes())


def _last_of_each(items: list[_Item]) -> tuple[list[_Item], list[_Item]]:
    last: dict[int, _Item] = {}
    count: dict[int, int] = {}
    for item in sorted(items, key=lambda item: item.number):
        last[item.label] = item
        count[item.label] = count.get(item.label, 0) + 1
    test = [item for label, item in sorted(last.items()) if count[label] > 1]
    held_out = set(test)
    return [item for item in items if item not in held_out], test


def _split(
    train: list[_Item], test: list[_Item], wnids: list[str], fetch: Callable[[str], bytes]
) -> Split:
    if not train:
        raise ValueError("it holds no training images")
    return Split(_images(train, fetch), _labels(train), _images(test, fetch), _labels(test), wnids)


def _labels(items: Iterable[_Item]) -> Labels:
    return np.array([item.label for item in items], dtype=np.int64)


def _images(items: list[_Item], fetch: Callable[[str], bytes]) -> Bytes:
    images: npt.NDArray[np.uint8] = np.empty((len(items), 3, _SIDE, _SIDE), dtype=np.uint8)
    for target, item in zip(images, items, strict=True):
        with Image.open(io.BytesIO(fetch(item.name))) as picture:
            if picture.size != (_SIDE, _SIDE):
                raise ValueError(f"{item.name} is {picture.size[0]}x{picture.size[1]}, not 64x64")
            # Some of the pictures are grey; as RGB they have three equal channels.
            target[:] = np.asarray(picture.convert("RGB")).transpose(2, 0, 1)
    return images
