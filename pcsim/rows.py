"""A table as plain text: one content for the terminal and for the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Rows:
    """Column names and cells; the first column is a name, the others are numbers unless said."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: bool = False
    """All columns hold text, which is read from the left."""
    folded: bool = False
    """A page shows the title only, until it is asked for the rest."""

    def rich(self) -> Table:
        """Return the table for a terminal."""
        # `Text`, because a name may look like markup.
        table = Table(title=Text(self.title, "table.title"))
        if self.caption:
            table.caption = Text(self.caption, "table.caption")
        for number, column in enumerate(self.columns):
            right = number and not self.words
            # A name is never cut; it goes on in the next line.
            table.add_column(Text(column), justify="right" if right else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def html(self) -> str:
        """Return the table for a page."""
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in self.columns)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        caption = caption_html(self.caption)
        shape = ' class="words"' if self.words else ' class="sortable"'
        title = self.title[:1].upper() + self.title[1:]
        header = f"<thead><tr>{head}</tr></thead>" if any(self.columns) else ""
        table = (
            f'<div class="table"><table{shape}>{caption}'
            f"{header}\n<tbody>\n{body}\n</tbody></table></div>"
        )
        if self.folded:
            return f"<details>\n<summary>{escape(title)}</summary>\n{table}\n</details>"
        return f"<h3>{escape(title)}</h3>\n{table}"

    def to_json(self) -> str:
        """Return the table as text, for an attribute of a result: a report shows it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rows:
        """Return a table from what `to_json` wrote, read back as plain data."""
        rows = tuple(tuple(str(cell) for cell in row) for row in data["rows"])
        columns = tuple(str(column) for column in data["columns"])
        flags = {name: bool(data.get(name, False)) for name in ("words", "folded")}
        return cls(str(data["title"]), columns, rows, str(data.get("caption", "")), **flags)


def caption_html(caption: str) -> str:
    """Return a caption that stays in view where its table is wider than the window."""
    return f"<caption><span>{escape(caption)}</span></caption>" if caption else ""
