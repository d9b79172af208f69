"""What every scaled study shares: its files, its progress, its stored result, its words.

A study is a module of this package with

    SCALES: dict[str, Setting]     "small" (minutes on 2 cores), "paper" (the published setting) and
                                   of some "decide" (hours on 2 cores, sets that decide a claim);
                                   a frozen model whose fields are everything that can vary
    main(out, scale)               measure, then `publish`

and `pcsim experiment NAME --scale small|decide|paper` runs it. In the folder `out` it leaves
`NAME_SCALE.h5`, `NAME_SCALE.png` and of some `NAME_SCALE.csv`; tables and claims go to the
terminal. Tables and figure are functions of the stored result alone, so that they can be made again
without measuring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from pcsim import store
from pcsim.errors import StoreError
from pcsim.frozen import Frozen
from pcsim.provenance import provenance
from pcsim.store import Attr, Result, Variable
from pcsim.store.files import check_own
from pcsim.sweep.processes import Job
from pcsim.terminal import terminal

from . import claims, keeping
from .claims import Claim

Draw = Callable[[Result, Path], Path]
"""Draws a stored result into a file and returns its path."""


@dataclass(frozen=True)
class Study:
    """One study at one scale, with the folder for what it leaves behind."""

    name: str
    scale: str
    setting: Frozen
    out: Path
    console: Console

    @property
    def path(self) -> Path:
        """The stored result."""
        return self.out / f"{self.name}_{self.scale}.h5"

    def cell(self, name: str) -> Path:
        """Return the file of a cell, while the study is under way."""
        return keeping.cells_of(self.path).path(name, self.setting.model_dump_json())

    def collect(self, cells: Mapping[str, Job[Result]], processes: int = 1) -> dict[str, Result]:
        """Measure every cell that is not there yet; see `keeping.collect`."""
        setting = self.setting.model_dump_json()
        return keeping.collect(cells, self.path, setting, self.console, processes)

    @property
    def table(self) -> Path:
        """The stored table, if the study has one."""
        return self.path.with_suffix(".csv")

    @property
    def command(self) -> str:
        """The command that measures this."""
        return f"pcsim experiment {self.name} --scale {self.scale}"

    def write(self, rows: Sequence[Mapping[str, str]]) -> None:
        """Write a table beside the result."""
        keeping.write_table(self.table, self.command, rows)
        self.console.print(f"table: {self.table}", soft_wrap=True)

    def publish(
        self,
        variables: Mapping[str, Variable],
        coords: Mapping[str, npt.NDArray[Any]],
        found: Sequence[Claim],
        tables: Callable[[Result], Sequence[Table]],
        figures: Mapping[str, Draw],
        claims_title: str = "the paper's claims",
        **more: Attr,
    ) -> Result:
        """Store the result with its claims, then print and draw it from there.

        `figures` maps the end of a file name ("" for `NAME_SCALE.png`) to what draws that figure.
        """
        attrs: dict[str, Attr] = {
            "study": self.name,
            "scale": self.scale,
            "setting": self.setting.model_dump_json(),
            **provenance(),
            **more,
        }
        result = Result({**variables, **claims.variables(found)}, coords, attrs)
        keeping.keep(result, self.path, self.name)
        for table in tables(result):
            self.console.print(table)
        self.console.print(claims.table(claims.stored(result), claims_title))
        self.console.print(f"result: {self.path}", soft_wrap=True)
        for end, draw in figures.items():
            path = self.path.with_name(f"{self.path.stem}{end}.png")
            self.console.print(f"figure: {draw(result, path)}", soft_wrap=True)
        return result


def redraw(name: str, beside: Path, figures: Mapping[str, Draw], out: Path) -> None:
    """Draw every stored result of a study again: those in `out`, else those beside the study."""
    folder = next((one for one in (out, beside) if any(one.glob(f"{name}_*.h5"))), None)
    if folder is None:
        raise StoreError(
            f"--figures: there is no result {name}_*.h5 in {out}; run the study, or name the "
            "folder that has it by --out"
        )
    for path in sorted(folder.glob(f"{name}_*.h5")):
        keeping.claim(path, name)
        for end, draw in figures.items():
            target = out / f"{path.stem}{end}.png"
            check_own(target)
            out.mkdir(parents=True, exist_ok=True)
            terminal().print(f"figure: {draw(store.load(path), target)}", soft_wrap=True)


def begin(name: str, scales: Mapping[str, Frozen], scale: str, out: Path) -> Study:
    """Return the study of this name at this scale, and say what is going to happen."""
    study = Study(name, scale, scales[scale], out, terminal())
    keeping.claim(study.path, name)
    check_own(study.table, keeping.first_line(study.command))
    study.console.print(f"{name}, scale {scale}: {study.setting!r}", highlight=False, markup=False)
    return study
