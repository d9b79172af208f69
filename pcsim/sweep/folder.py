"""The folder of a sweep: description, finished runs under names that seal them, and a lock."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pcsim import store
from pcsim.errors import StoreError
from pcsim.store import Result, sealed
from pcsim.store.files import TEMPORARY_SUFFIX, reason
from pcsim.store.lock import acquire, holder, sign
from pcsim.sweep.execute import Finished, unpacked
from pcsim.sweep.fuse import parts, plan
from pcsim.sweep.points import Sweep, described, make_sweep

MERGED = "sweep.h5"
_MANIFEST, _LOCK, _RUNS, _NOTES = "sweep.json", "lock", "runs", "outcomes.jsonl"
LOCK_SECONDS = 0.5
FORMAT_VERSION = 2


@dataclass(frozen=True)
class Entry:
    """A finished run on the disk: its first point, and how many points it holds."""

    path: Path
    first: int
    size: int


@dataclass(frozen=True)
class Outline:
    """How many points a sweep has, which of them make no sense, and which share a run."""

    total: int
    invalid: Mapping[int, str]
    runs: tuple[tuple[int, ...], ...]


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
        manifest = {
            "pcsim_sweep": FORMAT_VERSION,
            "devices": sweep.devices,
            "outline": asdict(outline_of(sweep)),
            **describe(sweep),
        }
        try:
            temporary = self.path / f"{_MANIFEST}.tmp"
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps(manifest))
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path / _MANIFEST)
        except OSError as error:
            raise StoreError(f"{self.path}: could not be written ({reason(error)})") from error

    def description(self) -> Sweep:
        """Return the sweep that this folder belongs to."""
        given, devices = self.as_given()
        return make_sweep(given, str(self.path / _MANIFEST), devices)

    def as_given(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the description as it was given, ranges spelt out, and what its presets held."""
        data = self._manifest()
        data.pop("outline", None)
        return data, data.pop("devices", {})

    def outline(self) -> Outline | None:
        """Return how the points are divided into runs; None if an earlier pcsim began here."""
        kept = self._manifest().get("outline")
        if kept is None:
            return None
        invalid = {int(index): str(problem) for index, problem in kept["invalid"].items()}
        return Outline(kept["total"], invalid, tuple(map(tuple, kept["runs"])))

    def _manifest(self) -> dict[str, Any]:
        path = self.path / _MANIFEST
        try:
            data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            version = data.pop("pcsim_sweep")
        except FileNotFoundError:
            raise StoreError(f"{self.path}: holds no sweep; check the path") from None
        except (OSError, ValueError, KeyError, AttributeError):
            raise StoreError(
                f"{path}: is damaged; put its copy back, or give another --out"
            ) from None
        if version > FORMAT_VERSION:
            raise StoreError(f"{path}: is of a later pcsim (format {version}); update pcsim")
        return data

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Be the only one to work here; a process that is killed lets go by itself."""
        with open(self.path / _LOCK, "a+b") as file:
            give_up = time.monotonic() + LOCK_SECONDS
            while not acquire(file):
                if time.monotonic() > give_up:
                    raise StoreError(
                        f"{self.path}: {holder(file)} works on this sweep; watch it with --status"
                    )
                time.sleep(0.05)  # somebody may just have asked whether it is busy
            sign(file)
            yield

    def is_busy(self) -> bool:
        """Whether a process works on the sweep now; asking needs no right to write."""
        try:
            with open(self.path / _LOCK, "rb") as file:
                return not acquire(file, shared=True)
        except FileNotFoundError:
            return False

    def entries(self) -> list[Entry]:
        """Return the files of finished runs, as their names tell."""
        entries = []
        for path in sorted(self.runs.glob("*.h5")):
            first, _, size = sealed.stem_of(path).partition("-")
            if first.isdecimal() and size.isdecimal():
                entries.append(Entry(path, int(first), int(size)))
        return entries

    def write(self, finished: Finished) -> Entry:
        """Store one finished run."""
        first, size = finished.points[0], len(finished.points)
        return Entry(sealed.write(finished.content, self.runs, f"{first:05d}-{size}"), first, size)

    def note(self, entry: Entry, outcomes: Mapping[int, tuple[str, str]]) -> None:
        """Keep in one place what became of points: a copy, to be read quickly."""
        line = json.dumps({"file": entry.path.name, "points": outcomes})
        with contextlib.suppress(OSError), open(self.path / _NOTES, "a", encoding="utf-8") as file:
            file.write(f"\n{line}\n")  # the line before it may be cut short

    def notes(self) -> dict[str, dict[int, tuple[str, str]]]:
        """Return the noted outcomes of points by the name of their file, which has a checksum."""
        notes: dict[str, dict[int, tuple[str, str]]] = {}
        try:
            text = (self.path / _NOTES).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return notes
        for line in filter(None, text.splitlines()):
            with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
                note = json.loads(line)
                notes[note["file"]] = {
                    int(index): (str(state), str(reason))
                    for index, (state, reason) in note["points"].items()
                }
        return notes

    def sweep_up(self) -> list[Entry]:
        """Remove damaged files and leftovers of killed processes; return the damaged ones."""
        for leftover in self.runs.glob(f".pcsim-*{TEMPORARY_SUFFIX}"):
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
    return described(sweep.base, sweep.table)


def outline_of(sweep: Sweep) -> Outline:
    """Return how the points of a sweep are divided into runs."""
    invalid = {point.index: point.problem for point in sweep.points if point.config is None}
    return Outline(len(sweep.points), invalid, tuple(run.points for run in plan(sweep)))


def check_same(old: Sweep, new: Sweep, where: Path) -> None:
    """Refuse to go on with another description, and say what differs."""
    advice = "give another --out, or change it back"
    if old.table != new.table:
        before, now = (s.table.model_dump(mode="json") for s in (old, new))
        name, was, given = next(_differences(before, now, "sweep"))
        raise StoreError(f"{where}: was started with {name} = {was}, not {given}; {advice}")
    for one, other in zip(old.points, new.points, strict=True):
        if one.config != other.config:
            before, now = ({} if c.config is None else c.config.model_dump() for c in (one, other))
            name, was, given = next(_differences(before, now))
            raise StoreError(f"{where}: was started with {name} = {was}, not {given}; {advice}")


def _differences(old: Any, new: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(k for k in new if k not in old)]:
            inside = f"{name}.{key}".strip(".")
            yield from _differences(old.get(key, "nothing"), new.get(key, "nothing"), inside)
    elif old != new:
        yield name, old, new
