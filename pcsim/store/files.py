"""Files that are either whole or untouched: final names, reserved space, errors in one sentence."""

import contextlib
import errno
import os
import platform
import secrets
import shutil
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pcsim.errors import StoreError

PARTIAL_SUFFIX = ".partial"
TEMPORARY_SUFFIX = ".tmp"
MADE_BY_PCSIM = "made by pcsim"
"""What figures say of themselves: only a file with these words is replaced by a later one."""


def partial_path(path: Path) -> Path:
    """Return where a recording lives until it is finished."""
    return path.with_name(path.name + PARTIAL_SUFFIX)


def check_target(path: Path, overwrite: bool) -> None:
    """Refuse a path which cannot take the file, before any work is done."""
    if path.is_dir():
        raise StoreError(f"{path}: is a folder; give the path of a file")
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: is a device or pipe, and no file; give the path of a file")
    if path.exists() and not overwrite:
        raise StoreError(f"{path}: exists already; choose another path or allow overwriting")


def check_suffix(path: Path, *suffixes: str) -> None:
    """Refuse a file name whose ending says that something else is in the file."""
    if path.suffix not in suffixes:
        raise StoreError(f"{path}: must end in {' or '.join(suffixes)}; give another name")


def check_own(path: Path, mark: str = MADE_BY_PCSIM) -> None:
    """Refuse to replace a file that does not bear the mark of those that pcsim makes."""
    check_target(path, overwrite=True)
    if path.exists() and mark.encode() not in path.read_bytes():
        raise StoreError(
            f"{path}: is there already and was not made by pcsim; move it away, "
            "or give another name"
        )


def write_own(path: Path, content: bytes, mark: str = MADE_BY_PCSIM) -> None:
    """Write a file that bears the mark, in one step; an earlier one of ours is replaced."""
    assert mark.encode() in content
    check_own(path, mark)
    final = path.resolve()
    remove_leftovers(final)
    with writing(path), temporary_for(final) as temporary:
        write_new(temporary, content)
        os.replace(temporary, final)


@contextlib.contextmanager
def temporary_for(path: Path) -> Iterator[Path]:
    """Give a name beside `path` for what is to become that file; nothing is left under it."""
    name = f"{_temporary_stem(path)}{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(name)
    try:
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove temporary files for `path` whose processes, of this machine, are dead."""
    stem = _temporary_stem(path)
    for leftover in path.parent.glob(f"{stem}*{TEMPORARY_SUFFIX}"):
        process = leftover.name.removeprefix(stem).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            with contextlib.suppress(OSError):
                leftover.unlink(missing_ok=True)


def _temporary_stem(path: Path) -> str:
    """Return how the names of temporary files begin: with the final name and the machine."""
    texts = (path.name, platform.node())
    file, machine = (sha256(text.encode(errors="surrogateescape")).hexdigest() for text in texts)
    return f".pcsim-{file[:12]}-{machine[:8]}-"


def _is_alive(process: int) -> bool:
    if sys.platform == "win32":  # there, to ask is to kill
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the errors of HDF5 and of the system into one sentence."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, TypeError) as error:
        raise StoreError(
            f"{path}: could not be written ({reason(error)}); check disk space and permissions"
        ) from error


def write_new(path: Path, image: bytes | memoryview) -> None:
    """Write a file that must not exist yet, down to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as file:
        file.write(image)
        file.flush()
        os.fsync(file.fileno())


def publish(temporary: Path, path: Path, overwrite: bool) -> None:
    """Give a closed file its final name, once its bytes are on the disk."""
    with open(temporary, "r+b") as file:
        os.fsync(file.fileno())
    check_target(path, overwrite)
    os.replace(temporary, path)
    # The new name is safe only when the folder is on the disk too; not every system allows this.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def reserve(path: Path, size: int, extra: int) -> None:
    """Make sure that a file of `size` bytes can grow by `extra`, or raise and leave it as it is.

    HDF5 does not survive a disk that fills up while it writes: the file is lost, and the process
    may crash later on. So it only writes into space that is known to be there.
    """
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            try:
                os.posix_fallocate(file.fileno(), size, extra)
            except OSError as error:
                os.ftruncate(file.fileno(), size)
                # Some file systems cannot reserve; there the free space has to do.
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
                _check_free(path, extra)
    else:
        _check_free(path, extra)


def release(path: Path, size: int) -> None:
    """Give back reserved space that was not needed, beyond the first `size` bytes."""
    if hasattr(os, "posix_fallocate"):
        os.truncate(path, size)


def _check_free(path: Path, extra: int) -> None:
    if shutil.disk_usage(path.parent).free < extra:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def reason(error: BaseException) -> str:
    """Return a short reason without the inner workings of HDF5."""
    number = getattr(error, "errno", None)
    text = os.strerror(number) if number else next(iter(str(error).splitlines()), "")
    return text or type(error).__name__
