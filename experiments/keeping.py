"""A study replaces its own earlier result and figure, and nothing else."""

from __future__ import annotations

from pathlib import Path

from pcsim import store
from pcsim.errors import StoreError
from pcsim.store import Result
from pcsim.store.files import check_own, check_target

STUDY = "study"
"""Attribute of a result: the study that made it."""


def claim(path: Path, study: str, *figures: Path) -> None:
    """Refuse, before any work, a result or figure that this study did not make."""
    check_target(path, overwrite=True)
    if path.exists() and not (store.is_result(path) and store.attributes(path).get(STUDY) == study):
        raise StoreError(
            f"{path}: is there already and was not made by the study {study}; move it away, "
            "or give another --out"
        )
    for figure in figures or (path.with_suffix(".png"),):
        check_own(figure)


def keep(result: Result, path: Path, study: str) -> None:
    """Store the result of a study."""
    claim(path, study)
    attrs = {**result.attrs, STUDY: study}
    marked = Result(result.variables, result.coords, attrs, result.coord_attrs)
    store.save(marked, path, overwrite=True)
