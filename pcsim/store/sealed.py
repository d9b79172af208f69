"""Sealed files: the name of a file holds the SHA-256 of its bytes, so that damage shows.

HDF5 notices when its own structure is broken, but not when a stored number has changed. A name is
given in one atomic step, so that there is never a file without its checksum.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from pcsim.errors import StoreError
from pcsim.store import files
from pcsim.store.hdf5 import image
from pcsim.store.model import Result

_SUFFIX = ".h5"


def to_bytes(result: Result) -> bytes:
    """Return the bytes of a result file."""
    return bytes(image(result))


def write(content: bytes, folder: Path, stem: str) -> Path:
    """Write `<folder>/<stem>-<sha256>.h5` in one step: whole and on the disk, or not at all."""
    path = folder / f"{stem}-{sha256(content).hexdigest()}{_SUFFIX}"
    with files.writing(path), files.temporary_for(path) as temporary:
        files.write_new(temporary, content)
        # The folder is not flushed as well: should the power fail in the next seconds, the
        # file is there under its other name, and is made again.
        os.replace(temporary, path)
    return path


def stem_of(path: Path) -> str:
    """Return the name that a sealed file was given, without its checksum."""
    return path.name.removesuffix(_SUFFIX).rpartition("-")[0]


def is_whole(path: Path) -> bool:
    """Whether the bytes of a sealed file are those that were written."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({files.reason(error)})") from error
    return path.name == f"{stem_of(path)}-{sha256(content).hexdigest()}{_SUFFIX}"
