"""How far a sweep is: from the description and the notes in its folder, which is only read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

from pcsim.errors import ConfigError
from pcsim.hardware import Device
from pcsim.store import Result
from pcsim.sweep.folder import Entry, Outline, SweepFolder, check_same, outline_of
from pcsim.sweep.outcome import DIVERGED, DONE, FAILED, outcome_of
from pcsim.sweep.points import read_description, read_sweep


@dataclass(frozen=True)
class Survey:
    """How far a sweep is."""

    done: int
    """Points with numbers, diverged ones included."""
    failed: int
    diverged: int
    total: int
    reasons: tuple[str, ...]
    """Why points failed or diverged, the most frequent first."""
    seconds_left: float | None
    """From the pace of the last runs; None if there is none yet, or nothing left to do."""
    busy: bool
    """Whether a process works on it now."""


PACE_RUNS = 50
"""The remaining time is judged from so many of the last runs."""


def survey(outline: Outline, folder: SweepFolder) -> Survey:
    """Look at a folder without touching it, also while another process fills it."""
    entries = folder.entries()
    found = {index: (FAILED, problem) for index, problem in outline.invalid.items()}
    found |= _outcomes(entries, folder)
    waiting = sum(1 for points in outline.runs if not found.keys() >= set(points))
    times = sorted(entry.path.stat().st_mtime for entry in entries)[-PACE_RUNS:]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The median forgives the pause between two sessions.
    left = median(gaps) * waiting if gaps and waiting else None
    states, reasons = [s for s, _ in found.values()], [r for _, r in found.values()]
    return _survey(states, reasons, outline.total, left, folder.is_busy())


def _outcomes(entries: list[Entry], folder: SweepFolder) -> dict[int, tuple[str, str]]:
    """Return what became of every point, from the notes, or from the files without a note."""
    notes = folder.notes()
    outcomes: dict[int, tuple[str, str]] = {}
    for entry in entries:
        if entry.path.name in notes:
            outcomes |= notes[entry.path.name]
        else:
            outcomes |= {index: outcome_of(part) for index, part in folder.parts([entry])}
    return outcomes


def survey_of(merged: Result) -> Survey:
    """Return how far the sweep of a merged result is."""
    states, reasons = merged["status"].ravel().tolist(), merged["reason"].ravel().tolist()
    return _survey(states, reasons, len(states), None, busy=False)


def _survey(
    states: list[str], reasons: list[str], total: int, left: float | None, busy: bool
) -> Survey:
    return Survey(
        done=states.count(DONE) + states.count(DIVERGED),
        failed=states.count(FAILED),
        diverged=states.count(DIVERGED),
        total=total,
        reasons=tuple(reason for reason, _ in Counter(filter(None, reasons)).most_common()),
        seconds_left=left,
        busy=busy,
    )


def survey_of_file(description: Path, overrides: Mapping[str, str], folder: SweepFolder) -> Survey:
    """Return how far the sweep of a TOML file is in a folder that belongs to it.

    Points are not validated again if the folder was started with the very same description.
    """
    kept = folder.outline() if folder.exists() else None
    if kept and _unchanged(description, overrides, folder):
        return survey(kept, folder)
    described = read_sweep(description, overrides)
    if folder.exists():
        check_same(folder.description(), described, folder.path)
    return survey(outline_of(described), folder)


def _unchanged(description: Path, overrides: Mapping[str, str], folder: SweepFolder) -> bool:
    """Whether a description, and the device files it names, are those of a folder."""
    given, (kept, devices) = read_description(description, overrides), folder.as_given()
    if given != kept:
        return False
    if isinstance(hardware := given.get("hardware"), dict) and "device" in hardware:
        return True  # the contents are in the description
    try:
        now = {preset: Device.of(preset).model_dump(mode="json") for preset in devices}
    except ConfigError:
        return False
    return now == devices
