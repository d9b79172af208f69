"""What every scaled study shares: its files, its progress, its stored result, its words.

A study is a module of this package with

    SCALES: dict[str, Setting]     "small" (minutes on 2 cores), "paper" (the published setting) and
                                   of some "decide" (hours on 2 cores, sets that decide a claim);
                                   a frozen model whose fields are everything that can vary
    main(out, scale)               measure, then `publish`
    SHOWN                          tables and figures: functions of the stored result alone
    figures(out)                   `redraw`

and `pcsim experiment NAME --scale small|decide|paper` runs it. In the folder `out` it leaves
`NAME_SCALE.h5`, `NAME_SCALE.png` and of some `NAME_SCALE.csv`; tables and claims go to the
terminal. `pcsim experiment NAME --figures` makes tables and figures again from results in `out`, or
else from those that are kept in the repository beside the study.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
Rows = Sequence[Mapping[str, str]]
"""Lines of a stored table."""


@dataclass(frozen=True)
class Shown:
    """What is made from a stored result of a study alone."""

    tables: Callable[[Result], Sequence[Table]]
    figures: Mapping[str, Draw]
    """By the end of their file names: "" for `NAME_SCALE.png`."""
    rows: Callable[[Result], Rows] | None = None
    """Lines of `NAME_SCALE.csv`, if the study has that table."""
    title: str = "the paper's claims"
    more: Mapping[str, Callable[[Result], Rows]] = field(default_factory=dict)
    """Lines of further tables, by the end of their file names."""


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

    def publish(
        self,
        variables: Mapping[str, Variable],
        coords: Mapping[str, npt.NDArray[Any]],
        found: Sequence[Claim],
        shown: Shown,
        **more: Attr,
    ) -> Result:
        """Store the result with its claims, then print and draw it from there."""
        attrs: dict[str, Attr] = {
            "study": self.name,
            "scale": self.scale,
            "setting": self.setting.model_dump_json(),
            **provenance(),
            **more,
        }
        result = Result({**variables, **claims.variables(found)}, coords, attrs)
        keeping.keep(result, self.path, self.name)
        self.console.print(f"result: {self.path}", soft_wrap=True)
        self.show(result, shown)
        return result

    def show(self, result: Result, shown: Shown) -> None:
        """Print tables and claims of a stored result, and draw its figures."""
        for table in shown.tables(result):
            self.console.print(table)
        self.console.print(claims.table(claims.stored(result), shown.title))
        if shown.rows is not None:
            keeping.write_table(self.table, self.command, shown.rows(result))
            self.console.print(f"table: {self.table}", soft_wrap=True)
        for end, rows in shown.more.items():
            path = self.table.with_stem(f"{self.table.stem}{end}")
            keeping.write_table(path, self.command, rows(result))
            self.console.print(f"table: {path}", soft_wrap=True)
        for end, draw in shown.figures.items():
            path = self.path.with_name(f"{self.path.stem}{end}.png")
            check_own(path)
            path.parent.mkdir(parents=True, exist_ok=True)
            self.console.print(f"figure: {draw(result, path)}", soft_wrap=True)


def redraw(
    module: str,
    shown: Shown | Callable[[Result], Shown],
    scales: Mapping[str, Frozen],
    out: Path,
) -> None:
    """Print and draw every stored result of a study again: those in `out`, else those kept.

    Main arguments:
        module: the file of the study; results are kept in its folder.
        shown: what is made from a result, or a function that says it for each.
        scales: those of the study.
        out: the folder for tables and figures.
    """
    beside = Path(module).parent
    name = beside.name
    folder = next((one for one in (out, beside) if any(one.glob(f"{name}_*.h5"))), None)
    if folder is None:
        raise StoreError(
            f"--figures: there is no result {name}_*.h5 in {out}, and none is kept beside the "
            f"study; pcsim experiment {name} makes one"
        )
    for path in sorted(folder.glob(f"{name}_*.h5")):
        keeping.claim(path, name)
        scale = str(store.attributes(path)["scale"])
        study = Study(name, scale, scales[scale], out, terminal())
        check_own(study.table, keeping.first_line(study.command))
        result = store.load(path)
        study.show(result, shown if isinstance(shown, Shown) else shown(result))


def begin(name: str, scales: Mapping[str, Frozen], scale: str, out: Path) -> Study:
    """Return the study of this name at this scale, and say what is going to happen."""
    study = Study(name, scale, scales[scale], out, terminal())
    keeping.claim(study.path, name)
    check_own(study.table, keeping.first_line(study.command))
    study.console.print(f"{name}, scale {scale}: {study.setting!r}", highlight=False, markup=False)
    return study
