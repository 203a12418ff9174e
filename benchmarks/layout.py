"""Tables, as a terminal and as a page show them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rich.table import Table as RichTable


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: What it shows.
        columns: The heads of its columns; the first one's cells are to the left, the others' to the right.
        rows: The cells.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]


def printed(table: Table, texts: Collection[str] = ()) -> RichTable:
    """Return the table for a terminal; `texts` are columns that are to the left too."""
    shown = RichTable(title=table.title)
    for number, column in enumerate(table.columns):
        is_text = number == 0 or column in texts
        shown.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=number == 0)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def markdown(table: Table) -> Iterator[str]:
    """Return the table for a page, line by line."""
    yield f"| {' | '.join(table.columns)} |"
    yield f"|---|{'---:|' * (len(table.columns) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in table.rows)
