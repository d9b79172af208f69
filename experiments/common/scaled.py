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

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from pcsim.errors import StoreError
from pcsim.frozen import Frozen
from pcsim.provenance import provenance
from pcsim.store import Attr, Result, Variable
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

    def check_table(self) -> None:
        """Refuse a table that this study did not make."""
        if self.table.exists():
            text = self.table.read_text(encoding="utf-8", errors="replace")
            if not text.startswith(self._command):
                raise StoreError(
                    f"{self.table}: is there already and was not made by the study {self.name}; "
                    "move it away, or give another --out"
                )

    @property
    def _command(self) -> str:
        return f"# pcsim experiment {self.name} --scale {self.scale}\n"

    def write(self, rows: Sequence[Mapping[str, str]]) -> Path:
        """Write a table beside the result; its first line is the command."""
        text = io.StringIO()
        text.write(self._command)
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.table.write_text(text.getvalue(), encoding="utf-8")
        self.console.print(f"table: {self.table}", soft_wrap=True)
        return self.table

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


def begin(name: str, scales: Mapping[str, Frozen], scale: str, out: Path) -> Study:
    """Return the study of this name at this scale, and say what is going to happen."""
    study = Study(name, scale, scales[scale], out, terminal())
    keeping.claim(study.path, name)
    study.check_table()
    study.console.print(f"{name}, scale {scale}: {study.setting!r}", highlight=False, markup=False)
    return study
