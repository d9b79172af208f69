"""Where a file is, and whether it is the published one.

Looked for in this order: the folder named by the environment variable PCSIM_DATA, the user's cache,
and then the publisher's address (downloaded into the cache). The first copy with the published
checksum wins. A copy with another checksum is used only with `unverified`, and then its own
checksum goes into the origin, so that a result always tells which bytes it came from.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import pooch

from pcsim.datasets import checksum, download
from pcsim.datasets.registry import DataFile, Entry, StandIn, embedded_folder
from pcsim.errors import DataError

PUBLISHED = "published"
EMBEDDED = "embedded"


@dataclass(frozen=True)
class Located:
    """A file to read: where it is, its name below the data root, and what it is."""

    path: Path
    name: str
    origin: str


def data_root() -> Path | None:
    """Return the folder named by PCSIM_DATA, if that is set."""
    value = os.environ.get("PCSIM_DATA", "")
    if not value:
        return None
    root = Path(value).expanduser()
    if not root.is_dir():
        raise DataError(
            f"PCSIM_DATA is '{value}', which is not a folder; set it to the folder that holds the "
            "data sets, or unset it to use the cache."
        )
    return root


def cache_root() -> Path:
    """Return the user's cache for downloaded data sets."""
    return Path(pooch.os_cache("pcsim"))


def places() -> list[tuple[str, Path]]:
    """Return the folders that are searched, with the words for them."""
    root = data_root()
    cache = ("cache", cache_root())
    return [cache] if root is None else [("PCSIM_DATA", root), cache]


def copies(file: DataFile | StandIn) -> list[tuple[str, Path]]:
    """Return the local copies of a file, good or bad, best place first."""
    if isinstance(file, DataFile) and file.embedded:
        found = [(EMBEDDED, embedded_folder() / file.path)]
    else:
        found = [(label, root / file.path) for label, root in places()]
    return [(label, path) for label, path in found if path.exists()]


def is_published(path: Path, file: DataFile, *, thorough: bool = False) -> bool:
    """Tell whether `path` has the published checksum; `thorough` ignores earlier verifications."""
    if file.checksum is None:
        return False
    stamps = None if thorough else cache_root() / "verified"
    return checksum.matches(path, file.checksum, stamps=stamps)


def find_file(
    entry: Entry, file: DataFile, *, unverified: bool = False, role: str | None = None
) -> Located:
    """Return the copy of `file` to read, downloading it if there is none.

    `role` says which stand-ins may take its place, where that is not the role of the file itself
    (a part of a big archive).
    """
    copy = _good_copy(file)
    if copy is None:
        copy = _other_copy(entry, file, role or file.role, unverified=unverified)
    if copy is None:
        fetch_file(entry, file)
        copy = Located(cache_root() / file.path, file.path, PUBLISHED)
    return copy


def fetch_file(entry: Entry, file: DataFile, *, trust: bool = False) -> str:
    """Make sure a good copy is there; say where it was, or that it was downloaded.

    A good copy is never touched. A damaged one in PCSIM_DATA is left alone, too, since that folder
    is the user's; a damaged one in the cache is replaced once the download is complete.
    """
    for label, path in copies(file):
        if is_published(path, file):
            return f"already there ({label})"
        if file.checksum is None:
            return f"already there ({label}), no published checksum"
    if file.embedded:
        raise DataError(mismatch(entry, file, embedded_folder() / file.path))
    archive = entry.archive_of(file)
    if archive is None:
        download.download(entry, file, cache_root(), trust=trust)
        return "downloaded"
    fetch_file(entry, archive, trust=trust)
    source = next(path for _, path in copies(archive) if is_published(path, archive))
    siblings = [
        other
        for other in entry.files
        if other.archive == file.archive and _good_copy(other) is None
    ]
    download.extract(entry, source, siblings, cache_root())
    return f"taken out of {archive.path}"


def mismatch(entry: Entry, file: DataFile, path: Path) -> str:
    """Say that a file is not the published one, and what can be done about it."""
    if not path.exists():
        return f"{entry.name}: the file '{path}' is missing; install pcsim again."
    if file.checksum is None:
        what = f"there is no published checksum to compare '{path}' with"
    else:
        size = path.stat().st_size
        digest = checksum.digest(path, file.checksum.partition(":")[0])
        short = file.size is not None and path.is_file() and size < file.size
        length = f", {size} of {file.size} bytes" if short else f", {size} bytes"
        what = (
            f"the file '{path}' is not the published one: found {digest}{length}, expected "
            f"{file.checksum}"
        )
    if file.embedded:
        return f"{entry.name}: {what}; it came with pcsim, so install pcsim again."
    return (
        f"{entry.name}: {what}; if it is damaged, delete it and run `pcsim data fetch "
        f"{entry.name}` (or set PCSIM_DATA to a folder with a good copy), and if you want it as it "
        "is, say `unverified = true` or `--unverified`."
    )


def _good_copy(file: DataFile) -> Located | None:
    for label, path in copies(file):
        if is_published(path, file):
            origin = EMBEDDED if label == EMBEDDED else PUBLISHED
            return Located(path, file.path, origin)
    return None


def _other_copy(entry: Entry, file: DataFile, role: str, *, unverified: bool) -> Located | None:
    """Return a local copy that is not the published file, or refuse it."""
    others = [(file.path, path) for _, path in copies(file)]
    if others and not unverified:
        raise DataError(mismatch(entry, file, others[0][1]))
    if file.archive is None:
        for stand_in in entry.stand_ins:
            if stand_in.role == role:
                others += [(stand_in.path, path) for _, path in copies(stand_in)]
    if not others:
        return None
    name, path = others[0]
    if not unverified:
        raise DataError(
            f"{entry.name}: the published file '{file.path}' ({file.checksum}) is not here, only "
            f"'{path}', which takes its place if you say `unverified = true` or `--unverified`; "
            f"run `pcsim data fetch {entry.name}` for the published one."
        )
    kind = "no published checksum" if file.checksum is None else "not the published file"
    value = checksum.digest(path).partition(":")[2]
    return Located(path, name, f"{kind} (sha256 {value})")
