"""Checksums of files, with a stamp so that a file is not hashed again at every load.

A stamp says: the file with this path, size and times had this checksum. Stamps lie in the user's
cache, one small file each, because the data folder may be read-only and several processes may load
at once. Losing a stamp costs one more hashing, nothing else.
"""

import contextlib
import hashlib
import json
import os
from pathlib import Path


def digest(path: Path, algorithm: str = "sha256") -> str:
    """Return 'algorithm:hex' of a file, or of a folder (over names and contents, sorted)."""
    if path.is_dir():
        lines = [
            f"{digest(item)} {item.relative_to(path).as_posix()}\n"
            for item in sorted(path.rglob("*"))
            if item.is_file()
        ]
        total = hashlib.new(algorithm, "".join(lines).encode(), usedforsecurity=False)
        return f"{algorithm}:{total.hexdigest()}"
    with path.open("rb") as stream:
        # md5 and sha1 are what the publishers give: they show damage, they are no signature.
        found = hashlib.file_digest(stream, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return f"{algorithm}:{found.hexdigest()}"


def matches(path: Path, checksum: str, *, stamps: Path | None = None) -> bool:
    """Tell whether the file has this checksum; with a `stamps` folder, remember that it had."""
    if not path.is_file():
        return False
    if stamps is None:
        return digest(path, checksum.partition(":")[0]) == checksum
    # Taken before hashing: a file changed meanwhile then fails to match its own stamp.
    state = _state(path, checksum)
    stamp = stamps / f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()}.json"
    if _read(stamp) == state:
        return True
    if digest(path, checksum.partition(":")[0]) != checksum:
        return False
    with contextlib.suppress(OSError):  # a read-only cache only makes the next load slower
        stamps.mkdir(parents=True, exist_ok=True)
        fresh = stamp.with_suffix(f".{os.getpid()}.partial")
        fresh.write_text(json.dumps(state), encoding="utf-8")
        fresh.replace(stamp)
    return True


def _state(path: Path, checksum: str) -> dict[str, object]:
    info = path.stat()
    return {
        "path": str(path.resolve()),
        "size": info.st_size,
        "modified": info.st_mtime_ns,
        "changed": info.st_ctime_ns,  # catches an edit that puts the old mtime back
        "checksum": checksum,
    }


def _read(stamp: Path) -> object:
    try:
        return json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
