"""The folder of a sweep: description, finished runs under names that seal them, and a lock."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcsim import store
from pcsim.errors import StoreError
from pcsim.store import Result, sealed
from pcsim.store.files import reason
from pcsim.sweep.execute import Finished, unpacked
from pcsim.sweep.fuse import parts
from pcsim.sweep.points import Sweep, make_sweep

MERGED = "sweep.h5"
_MANIFEST, _LOCK, _RUNS = "sweep.json", "lock", "runs"
FORMAT_VERSION = 2


@dataclass(frozen=True)
class Entry:
    """A finished run on the disk: its first point, and how many points it holds."""

    path: Path
    first: int
    size: int


class SweepFolder:
    """Where one sweep keeps its results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / _RUNS

    def exists(self) -> bool:
        """Whether a sweep was started here."""
        return (self.path / _MANIFEST).exists()

    @contextlib.contextmanager
    def held_for(self, sweep: Sweep) -> Iterator[None]:
        """Be the only one to work on this sweep here, from its first description on."""
        self._make_room()
        with self.lock():
            self.claim(sweep)
            yield

    def _make_room(self) -> None:
        if self.path.exists() and not self.exists():
            ours = {_LOCK, _RUNS, f"{_MANIFEST}.tmp"}
            if not self.path.is_dir() or any(e.name not in ours for e in self.path.iterdir()):
                raise StoreError(
                    f"{self.path}: is there already and holds no sweep; give another name"
                )
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.path}: could not be created ({reason(error)})") from error

    def claim(self, sweep: Sweep) -> None:
        """Start here, or go on: refuse a folder that holds another sweep, naming the difference."""
        self._make_room()
        if self.exists():
            check_same(self.description(), sweep, self.path)
            return
        manifest = {"pcsim_sweep": FORMAT_VERSION, "devices": sweep.devices, **describe(sweep)}
        try:
            temporary = self.path / f"{_MANIFEST}.tmp"
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps(manifest, indent=1))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path / _MANIFEST)
        except OSError as error:
            raise StoreError(f"{self.path}: could not be written ({reason(error)})") from error

    def description(self) -> Sweep:
        """Return the sweep that this folder belongs to."""
        path = self.path / _MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            version, devices = data.pop("pcsim_sweep"), data.pop("devices", {})
        except FileNotFoundError:
            raise StoreError(f"{self.path}: holds no sweep; check the path") from None
        except (OSError, ValueError, KeyError, AttributeError):
            raise StoreError(
                f"{path}: is damaged; put its copy back, or give another --out"
            ) from None
        if version > FORMAT_VERSION:
            raise StoreError(f"{path}: is of a later pcsim (format {version}); update pcsim")
        return make_sweep(data, str(path), devices)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one to work here; a process that is killed lets go by itself."""
        with open(self.path / _LOCK, "a+b") as file:
            if not _acquire(file):
                raise StoreError(
                    f"{self.path}: another process works on this sweep; watch it with --status"
                )
            yield

    def is_busy(self) -> bool:
        """Whether a process works on the sweep now."""
        if not (self.path / _LOCK).exists():
            return False
        with open(self.path / _LOCK, "a+b") as file:
            return not _acquire(file)

    def entries(self) -> list[Entry]:
        """Return the files of finished runs, as their names tell."""
        found = []
        for path in sorted(self.runs.glob("*.h5")):
            first, _, size = sealed.stem_of(path).partition("-")
            if first.isdecimal() and size.isdecimal():
                found.append(Entry(path, int(first), int(size)))
        return found

    def write(self, finished: Finished) -> None:
        """Store one finished run."""
        stem = f"{finished.points[0]:05d}-{len(finished.points)}"
        sealed.write(finished.content, self.runs, stem)

    def sweep_up(self) -> list[Entry]:
        """Remove damaged files and leftovers of killed processes; return the damaged ones."""
        for leftover in self.runs.glob(".pcsim-*.tmp"):
            leftover.unlink(missing_ok=True)
        damaged = [entry for entry in self.entries() if not sealed.is_whole(entry.path)]
        for entry in damaged:
            entry.path.unlink()
        return damaged

    def parts(self, entries: list[Entry]) -> Iterator[tuple[int, Result]]:
        """Go through the points of finished runs."""
        for entry in entries:
            yield from parts(unpacked(store.load(entry.path)))


def describe(sweep: Sweep) -> dict[str, Any]:
    """Return a description that `make_sweep` reads, with all ranges spelt out."""
    table = sweep.table.model_dump(mode="json", exclude={"axes"})
    columns = [dict(zip(a.fields, a.columns, strict=True)) for a in sweep.table.axes]
    table["axes"] = {f: v for c in columns if len(c) == 1 for f, v in c.items()}
    table["paired"] = [c for c in columns if len(c) > 1]
    return {**sweep.base, "sweep": table}


def check_same(old: Sweep, new: Sweep, where: Path) -> None:
    """Refuse to go on with another description, and say what differs."""
    told = "give another --out, or change it back"
    if old.table != new.table:
        before, now = (s.table.model_dump(mode="json") for s in (old, new))
        name, was, given = next(_differences(before, now, "sweep"))
        raise StoreError(f"{where}: was started with {name} = {was}, not {given}; {told}")
    for one, other in zip(old.points, new.points, strict=True):
        if one.config != other.config:
            before, now = ({} if c.config is None else c.config.model_dump() for c in (one, other))
            name, was, given = next(_differences(before, now))
            raise StoreError(f"{where}: was started with {name} = {was}, not {given}; {told}")


def _differences(old: Any, new: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            inside = f"{name}.{key}".strip(".")
            yield from _differences(old.get(key, "nothing"), new.get(key, "nothing"), inside)
    elif old != new:
        yield name, old, new


def _acquire(file: Any) -> bool:
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
