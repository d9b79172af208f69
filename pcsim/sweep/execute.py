"""One run of a sweep: a job as text in, sealed result files as bytes out.

Jobs and files travel between processes and machines as they are, so that a worker needs neither the
store nor the description of the sweep.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.errors import InterruptedRunError, PcsimError
from pcsim.interruption import stop_of
from pcsim.provenance import provenance
from pcsim.run import run as run_config
from pcsim.store import Attr, Result
from pcsim.store.sealed import to_bytes
from pcsim.sweep.fuse import TENSOR_FIELDS, Run, fused_config
from pcsim.sweep.points import Sweep

PACKED = "attributes"
"""The attribute of a run's file that holds all others, as JSON."""


@dataclass(frozen=True)
class Finished:
    """The file of a run that is over, well or not."""

    points: tuple[int, ...]
    content: bytes
    result: Result | None = None
    """What is in the file, if it was made in this process."""


def job(sweep: Sweep, run: Run, missing: Iterable[int]) -> str:
    """Describe a run completely, as text.

    A run of which only some points are missing had been taken apart because it failed as a whole:
    then these points are computed one by one, as before.
    """
    wanted = sorted(set(run.points) & set(missing))
    singles = {k: sweep.points[k].config for k in wanted}
    whole = len(wanted) == len(run.points)
    return json.dumps(
        {
            "points": run.points if whole else (),
            "cells": run.cells,
            "grid": list(run.grid),
            "config": fused_config(sweep, run).to_json() if whole else "",
            "singles": {str(k): config.to_json() for k, config in singles.items() if config},
            "leave_out": sweep.table.leave_out,
        }
    )


def execute(text: str) -> list[Finished]:
    """Run a job. A run of several points that fails is taken apart, to find the ones at fault."""
    task = json.loads(text)
    leave_out = set(task["leave_out"])
    if task["points"]:
        points = tuple(task["points"])
        about: dict[str, Attr] = {"cells": json.dumps(task["cells"])}
        hidden = {h for field in TENSOR_FIELDS if field.grid in task["grid"] for h in field.hides}
        config = configuration.from_json(task["config"])
        found = _attempt(config, points, about, hidden, leave_out)
        if isinstance(found, Finished):
            return [found]
        if len(points) == 1:
            return [failed(points[0], found)]
    return [_single(int(k), config, leave_out) for k, config in task["singles"].items()]


def execute_afar(text: str) -> list[Finished]:
    """Run a job in another process, which only sends the files."""
    return [Finished(finished.points, finished.content) for finished in execute(text)]


def _single(point: int, config: str, leave_out: set[str]) -> Finished:
    about: dict[str, Attr] = {"cells": "[{}]"}
    found = _attempt(configuration.from_json(config), (point,), about, set(), leave_out)
    return found if isinstance(found, Finished) else failed(point, found)


def _attempt(
    config: Config,
    points: tuple[int, ...],
    about: dict[str, Attr],
    hidden: set[str],
    leave_out: set[str],
) -> Finished | str:
    """Return the file of a run, or the reason why there is none."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = run_config(config)
        except InterruptedRunError as error:
            # What it says of stored epochs is not true of sweeps.
            raise stop_of(error) from None
        # Whatever goes wrong in one point must not stop the others of a long night.
        except Exception as error:
            kind = "" if isinstance(error, PcsimError) else f"{type(error).__name__}: "
            return f"{kind}{error}"
    kept = {n: v for n, v in result.variables.items() if n not in leave_out}
    dims = {dim for variable in kept.values() for dim in variable.dims}
    attrs = {n: v for n, v in result.attrs.items() if n not in hidden} | about
    attrs |= {
        "points": json.dumps(points),
        "warnings": "; ".join(dict.fromkeys(str(w.message) for w in caught)),
        "seconds": (time.perf_counter() - start) / len(points),
        "run_size": len(points),
    }
    if isinstance(together := attrs.get("train_seconds"), float):
        attrs["train_seconds"] = together / len(points)
    coords = {n: labels for n, labels in result.coords.items() if n in dims}
    about_coords = {n: a for n, a in result.coord_attrs.items() if n in dims}
    return _sealed(points, Result(kept, coords, attrs, about_coords))


def failed(point: int, reason: str) -> Finished:
    """Return the file of a point that came to nothing."""
    attrs: dict[str, Attr] = {
        **provenance(),
        "points": json.dumps([point]),
        "cells": "[{}]",
        "failure": " ".join(reason.split()) or "unknown",
        "run_size": 1,
    }
    return _sealed((point,), Result({}, {}, attrs))


def _sealed(points: tuple[int, ...], result: Result) -> Finished:
    # One attribute instead of thirty: HDF5 takes longer for each than for a small array.
    packed: dict[str, Attr] = {PACKED: json.dumps(dict(result.attrs))}
    stored = Result(result.variables, result.coords, packed, result.coord_attrs)
    return Finished(points, to_bytes(stored), result)


def unpacked(stored: Result) -> Result:
    """Return what was in the file of a run."""
    attrs = json.loads(str(stored.attrs[PACKED]))
    return Result(stored.variables, stored.coords, attrs, stored.coord_attrs)
