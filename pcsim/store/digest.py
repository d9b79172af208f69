"""The checksum of a result file: its last line, behind what HDF5 reads.

    <HDF5 file>\\npcsim-sha256 <64 hex digits>\\n        SHA-256 of all bytes before this line

HDF5 notices when its own structure is broken, but not when a stored number has changed, and some
damage makes its reader go in circles. So the checksum is compared before a file is opened. Readers
of HDF5 know from the first block where their part of a file ends, and do not see the line.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import IO

from pcsim.errors import StoreError
from pcsim.store import files

_MARK = b"\npcsim-sha256 "
SIZE = len(_MARK) + 64 + 1
"""Bytes of the line."""
_BLOCK = 1 << 20


def line(content: bytes | memoryview) -> bytes:
    """Return the last line that belongs to the bytes of an HDF5 file."""
    return _line(sha256(content).hexdigest())


def append(path: Path) -> None:
    """Add the line to a finished file on the disk."""
    with open(path, "r+b") as file:
        size = os.fstat(file.fileno()).st_size
        text = _line(_digest(file, size))
        file.seek(size)
        file.write(text)


def check(path: Path) -> bool:
    """Compare a file with its checksum; return False if it has none, refuse it if they differ."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size - SIZE
            if size < 0:
                return False
            file.seek(size)
            text = file.read(SIZE)
            if not (text.startswith(_MARK) and text.endswith(b"\n")):
                return False
            if text == _line(_digest(file, size)):
                return True
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({files.reason(error)})") from error
    raise StoreError(
        f"{path}: is damaged or cut short (its bytes are not those of its checksum); "
        "restore a copy or run again"
    )


def _digest(file: IO[bytes], size: int) -> str:
    """Return the SHA-256 of the first `size` bytes."""
    found = sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(size, _BLOCK))):
        found.update(block)
        size -= len(block)
    return found.hexdigest()


def _line(digest: str) -> bytes:
    return _MARK + digest.encode("ascii") + b"\n"
