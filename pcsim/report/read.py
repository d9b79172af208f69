"""From the paths a user gives to views: result files, sweep folders, folders of results."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pcsim import store
from pcsim.errors import StoreError
from pcsim.report.view import View
from pcsim.store import Result

SWEEP, MERGED = "sweep.json", "sweep.h5"
TRAJECTORIES = ".trajectories.h5"


def views(paths: Sequence[Path]) -> list[View]:
    """Return a view of every store; a folder that is no sweep gives all results inside."""
    views: list[View] = []
    for path in paths:
        if path.is_dir() and not (path / SWEEP).exists():
            inside = sorted(p for p in path.glob("*.h5") if not p.name.endswith(TRAJECTORIES))
            inside += sorted(p.parent for p in path.glob(f"*/{SWEEP}"))
            if not inside:
                raise StoreError(f"{path}: holds no results; give a result file or a sweep folder")
            views += [_view(one) for one in inside]
        else:
            views.append(_view(path))
    return _distinct(views)


def _view(path: Path) -> View:
    if path.is_dir():
        return View(path.stem, str(path), _sweep(path))
    name = path.parent.stem if path.name == MERGED else path.stem
    result = store.load(path)
    return View(name, str(path), result, _trajectories(path.with_suffix(TRAJECTORIES), result))


def _trajectories(path: Path, result: Result) -> Result | None:
    """Return the recording beside a result, if it is of the same run."""
    if not path.exists():
        return None
    recorded = store.load(path, partial=True)
    if recorded.attrs.get("config") == result.attrs.get("config"):
        return recorded
    warnings.warn(f"{path}: is left out, for it was recorded by another run", stacklevel=2)
    return None


def _sweep(folder: Path) -> Result:
    """Return a sweep, also one that is still running: what is finished is merged in memory."""
    # Loaded when asked for: a report of single runs needs no sweep engine.
    result: Result = import_module("pcsim.sweep").load(folder)
    return result


def _distinct(found: list[View]) -> list[View]:
    """Return the views with names that differ, so that figures have files of their own."""
    names: list[str] = []
    for view in found:
        name, number = view.name, 2
        while name in names:
            name, number = f"{view.name}-{number}", number + 1
        names.append(name)
    return [
        View(name, view.source, view.result, view.trajectories)
        for name, view in zip(names, found, strict=True)
    ]
