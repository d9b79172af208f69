"""A table as plain text: one content for the terminal and for the report."""

from __future__ import annotations

from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True)
class Rows:
    """Column names and cells; the first column is a name, the others are numbers unless said."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    words: bool = False
    """All columns hold text, which is read from the left."""

    def rich(self) -> Table:
        """Return the table for a terminal."""
        table = Table(title=self.title, caption=self.caption or None)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number and not self.words else "left")
        for row in self.rows:
            table.add_row(*row)
        return table
