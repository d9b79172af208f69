"""One writer per output: a lock beside it, which the system takes back from a dead process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from pcsim.errors import StoreError
from pcsim.store import files

_MARK = b"pcsim process "


def lock_path(path: Path) -> Path:
    """Return the lock file of an output."""
    return path.with_name(f".{path.name}.lock")


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Be the only process that writes `path` until the block ends, or until this process dies.

    The lock file is removed at the end; one that a killed process has left behind is taken over.
    """
    lock = lock_path(path.resolve())
    with files.writing(path):
        lock.parent.mkdir(parents=True, exist_ok=True)
        file, locked = _opened(lock)
    with file:
        if not locked:
            raise StoreError(
                f"{path}: {holder(file)} is writing it; wait for its end, or give another name"
            )
        sign(file)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.unlink()


def _opened(lock: Path) -> tuple[IO[bytes], bool]:
    """Open a lock file, and say whether it could be locked."""
    while True:
        file = open(lock, "a+b")  # noqa: SIM115 (the caller closes it)
        file.seek(0)
        if file.read(len(_MARK)) not in (b"", _MARK):
            file.close()
            raise StoreError(f"{lock}: is in the way and no lock of pcsim; move it away")
        # Its last holder may have removed it after it was opened here.
        locked = acquire(file)
        if not locked or _is_at(file, lock):
            return file, locked
        file.close()


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def acquire(file: IO[bytes], *, shared: bool = False) -> bool:
    """Lock an open file, unless another process holds it; `shared` needs no right to write."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
            fcntl.flock(file, kind | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def sign(file: IO[bytes]) -> None:
    """Write into a lock file who holds it."""
    file.truncate(0)
    file.write(_MARK + str(os.getpid()).encode())
    file.flush()


def holder(file: IO[bytes]) -> str:
    """Return who has signed a lock file, in words."""
    file.seek(0)
    number = file.read(64).removeprefix(_MARK)
    return f"process {number.decode()}" if number.isdigit() else "another process"
