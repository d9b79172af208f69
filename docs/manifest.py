"""Where the numbers of these pages come from, and whether they still say what the files say.

`manifest.toml` has an entry for each block of numbers: the page, the command that gives them, the
file that is kept, and for a table which column of the file stands in which column of the page. A
page without an entry may name its study (`pcsim experiment NAME`): then the tables of that study
are those whose columns have the names of the file's.

A number of a page is right if it is the file's, rounded to the digits that the page shows.
"""

from __future__ import annotations

import csv
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)
NOTHING = "–"
"""What a page shows where a file has no line."""
MEASURED = 8
"""Numbers in the cells of its tables from which a page must say where they come from."""


@dataclass(frozen=True)
class Table:
    """A table of a page: its head, and the cells of each row."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def column(self, name: str) -> list[str]:
        """Return the cells below a head."""
        k = self.head.index(name)
        return [row[k] for row in self.rows]


def load(path: Path = DOCS / "manifest.toml") -> dict[str, Any]:
    """Return the manifest: entries in `numbers`, pages without measurements in `plain`."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def tables(page: str) -> list[Table]:
    """Return the tables of a page."""
    found: list[Table] = []
    lines = page.splitlines()
    for k, line in enumerate(lines):
        if k == 0 or not re.fullmatch(r"\|[ :|-]+\|", line) or "-" not in line:
            continue
        body = []
        for row in lines[k + 1 :]:
            if not row.startswith("|"):
                break
            body.append(_cells(row))
        found.append(Table(_cells(lines[k - 1]), tuple(body)))
    return found


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").replace(r"\|", "¦").split("|"))


def numbers(text: str) -> list[Decimal]:
    """Return the numbers of a cell in their order, emphasis and links left out."""
    bare = re.sub(r"\]\([^)]*\)", "]", text).replace("*", "")
    # An interval "1.2–3.4" has no negative number in it.
    return [Decimal(one.replace("−", "-")) for one in NUMBER.findall(bare.replace("–", " "))]


def agree(shown: Decimal, stored: Decimal) -> bool:
    """Return whether a number is another one, rounded to the digits that are shown."""
    exponent = shown.as_tuple().exponent
    assert isinstance(exponent, int)  # no infinity matches NUMBER
    return abs(shown - stored) <= Decimal(5).scaleb(exponent - 1) * Decimal("1.0001")


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the lines of a stored table; lines that begin with # are remarks."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def differences(
    table: Table,
    stored: Sequence[Mapping[str, str]],
    key: Mapping[str, str],
    columns: Mapping[str, str | Sequence[str]],
) -> list[str]:
    """Return in words every cell of a page that its file does not bear out.

    Main arguments:
        table: the table of the page.
        stored: the lines of the file.
        key: columns of the page whose text names a line, with the columns of the file.
        columns: other columns of the page, with the one or several columns of the file whose
            numbers (or, without numbers, whose words) stand there in this order.
    """
    found = []
    lines = {tuple(line[k] for k in key.values()): line for line in stored}
    for row in table.rows:
        cells = dict(zip(table.head, row, strict=True))
        name = tuple(cells[k].replace("*", "").strip("`") for k in key)
        if name not in lines:
            if any(cells[head] != NOTHING for head in columns):
                found.append(f"{' '.join(name)}: no such line in the file")
            continue
        for head, source in columns.items():
            sources = [source] if isinstance(source, str) else source
            there = " ".join(lines[name][one] for one in sources)
            if not _same(cells[head], there):
                found.append(f"{' '.join(name)}, {head}: {cells[head]!r} is {there!r} in the file")
    return found


def _same(shown: str, stored: str) -> bool:
    left, right = numbers(shown), numbers(stored)
    if not left and not right:
        return shown.replace("*", "").strip() == (stored.strip() or "–")
    return len(left) == len(right) and all(map(agree, left, right))


def table_with(page: str, heads: Sequence[str]) -> Table:
    """Return the only table of a page that has all of these columns."""
    fitting = [one for one in tables(page) if set(heads) <= set(one.head)]
    if len(fitting) != 1:
        raise ValueError(f"{len(fitting)} tables have the columns {', '.join(heads)}, not one")
    return fitting[0]


def checked(entry: Mapping[str, Any], page: str, root: Path = ROOT) -> list[str]:
    """Return what a page says otherwise than the file of an entry with `columns`."""
    key, columns = entry["key"], entry["columns"]
    table = table_with(page, [*key, *columns])
    return differences(table, rows_of(root / entry["file"]), key, columns)


def by_rule(page: str, root: Path = ROOT) -> Iterator[tuple[Path, Table]]:
    """Yield the stored tables of the studies that a page names, with the tables that show them.

    A table shows a file if all its heads are columns of that file.
    """
    for study in studies(page):
        for path in sorted((root / "experiments" / study).rglob("*.csv")):
            stored = rows_of(path)
            for table in tables(page):
                if stored and set(table.head) <= set(stored[0]):
                    yield path, table


def unsupported(table: Table, stored: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the rows of a page that no line of a file with the same names bears out."""
    return [
        " | ".join(row)
        for row in table.rows
        if not any(all(map(_same, row, (line[h] for h in table.head))) for line in stored)
    ]


def studies(page: str) -> list[str]:
    """Return the studies whose commands stand on a page."""
    return sorted(set(re.findall(r"pcsim experiment (\w+)", page)))


def command_errors(command: str, verbs: set[str], root: Path = ROOT) -> list[str]:
    """Return what of a command is not there: its verb, its study, its configuration."""
    words = shlex.split(command)
    if words[0] == "make":
        makefile = (root / "Makefile").read_text(encoding="utf-8")
        there = re.search(rf"^{re.escape(words[1])}:", makefile, flags=re.MULTILINE)
        return [] if there else [f"make has no {words[1]}"]
    if words[0] != "pcsim" or words[1] not in verbs:
        return [f"there is no command {' '.join(words[:2])}"]
    found = []
    study = root / "experiments" / words[2] / "study.py" if words[1] == "experiment" else None
    if study is not None and not study.is_file():
        found.append(f"there is no study {words[2]}")
    elif study is not None and "--scale" in words:
        scale = words[words.index("--scale") + 1]
        if f'"{scale}"' not in study.read_text(encoding="utf-8"):
            found.append(f"{words[2]} has no scale {scale}")
    configurations = [word for word in words[2:] if word.startswith("experiments/")]
    found += [f"there is no {word}" for word in configurations if not (root / word).is_file()]
    return found


def is_measured(page: str) -> bool:
    """Return whether the tables of a page are full of numbers."""
    return sum(len(numbers(c)) for t in tables(page) for row in t.rows for c in row) >= MEASURED
