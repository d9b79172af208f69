"""Downloading into the user's cache, and taking members out of archives.

A file appears in the cache only when it is whole and its checksum is right: pooch downloads beside
the target and moves it at the end, and archive members go through a temporary folder.
"""

import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

import pooch

from pcsim.datasets import checksum
from pcsim.datasets.formats import read_sentences
from pcsim.datasets.registry import DataFile, Entry
from pcsim.errors import DataError


def download(entry: Entry, file: DataFile, cache: Path, *, trust: bool = False) -> Path:
    """Fetch `file` into the cache from the first address that gives the published bytes."""
    if file.checksum is None and not trust:
        raise DataError(
            f"{entry.name}: no published checksum is known for '{file.path}', so it is not "
            f"downloaded; run `pcsim data fetch {entry.name} --trust` if you trust "
            f"{', '.join(file.urls) or 'its source'}."
        )
    target = cache / file.path
    failures = []
    for url in file.urls:
        try:
            pooch.retrieve(
                url,
                known_hash=file.checksum,
                fname=target.name,
                path=target.parent,
                downloader=pooch.HTTPDownloader(chunk_size=2**20),
            )
        # requests' errors are OSErrors; pooch reports a wrong checksum as ValueError.
        except (OSError, ValueError) as error:
            failures.append(f"{url}: {_reason(error)}")
        else:
            return target
    raise DataError(
        f"{entry.name}: the file '{file.path}' ({file.checksum or 'no known checksum'}) is not "
        f"here and could not be downloaded ({'; '.join(failures) or 'no address is known'}); set "
        f"PCSIM_DATA to a folder that holds it, or run `pcsim data fetch {entry.name}` when there "
        "is a network."
    )


def extract(entry: Entry, archive: Path, wanted: list[DataFile], cache: Path) -> None:
    """Take exactly the `wanted` members out of a tar archive into the cache, each one verified."""
    missing = {file.path: file for file in wanted}
    cache.mkdir(parents=True, exist_ok=True)
    with reading(archive), tempfile.TemporaryDirectory(dir=cache, suffix=".partial") as scratch:
        done: list[tuple[Path, Path]] = []
        for name, stream in members(archive):
            file = missing.pop(name, None)
            if file is None:
                continue
            part = Path(scratch) / str(len(done))
            with part.open("wb") as out:
                shutil.copyfileobj(stream, out)
            if file.checksum is not None and not checksum.matches(part, file.checksum):
                digest = checksum.digest(part, file.checksum.partition(":")[0])
                raise DataError(
                    f"{entry.name}: the member '{name}' of '{archive}' is damaged: found {digest}, "
                    f"expected {file.checksum}; delete the archive and run "
                    f"`pcsim data fetch {entry.name}`."
                )
            done.append((part, cache / file.path))
        if missing:
            raise DataError(
                f"{entry.name}: the archive '{archive}' does not hold {', '.join(missing)}; "
                f"delete it and run `pcsim data fetch {entry.name}`."
            )
        # Moved only after the whole archive was read, so that a bad one leaves nothing behind.
        for part, target in done:
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)


def read_members(archive: Path, pattern: str, limit: int | None) -> list[str]:
    """Read the sentences of all members whose name fits `pattern`, in the order of the archive."""
    sentences: list[str] = []
    with reading(archive):
        for name, stream in members(archive):
            if fnmatchcase(name, pattern):
                rest = None if limit is None else limit - len(sentences)
                sentences += read_sentences(stream, rest)
                if limit is not None and len(sentences) >= limit:
                    break
    if not sentences and limit != 0:
        raise DataError(f"the archive '{archive}' has no text in members called '{pattern}'.")
    return sentences


def members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Go through the regular files of a tar archive, refusing one with a path that escapes.

    Use it inside `reading(archive)`: a damaged archive may fail while a member is being read.
    """
    with tarfile.open(archive, mode="r|*") as tar:
        for member in tar:
            _refuse_escape(archive, member.name)
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is not None:
                yield str(PurePosixPath(member.name)), stream


@contextmanager
def reading(archive: Path) -> Iterator[None]:
    """Turn whatever a damaged archive raises into one sentence."""
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(
            f"the archive '{archive}' cannot be used ({_reason(error)}); delete it if it is "
            "damaged and fetch the data set again with `pcsim data fetch NAME`."
        ) from error


def _refuse_escape(archive: Path, name: str) -> None:
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    unsafe = posix.is_absolute() or windows.is_absolute() or windows.drive
    if unsafe or ".." in posix.parts or ".." in windows.parts:
        raise DataError(
            f"the archive '{archive}' has a member '{name}' that points outside its folder, so "
            "nothing was taken out of it; delete the archive and get it from the publisher."
        )


def _reason(error: Exception) -> str:
    """Return the kind of an error and its first line, for use inside a sentence."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__
