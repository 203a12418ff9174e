"""Tables, as a terminal and as a page show them, and the files in which results are kept."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table as RichTable

Results = TypeVar("Results", bound=Any)
"""A dataclass of one benchmark's results."""

MARKS = {True: "✓", False: "✗", None: "?"}
"""For reached, missed and unknown targets."""

_TEXTS = frozenset({"reached", "what"})
"""Columns of text, which are aligned to the left, as the first one is."""


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


@dataclass(frozen=True)
class Finding:
    """A target of a benchmark.

    Attributes:
        text: The target, and the measured number.
        reached: Whether it is reached; None if that is unknown.
    """

    text: str
    reached: bool | None

    def __str__(self) -> str:
        """Return the text with a mark."""
        return f"{MARKS[self.reached]} {self.text}"


def show(console: Console, tables: Iterable[Table], summary: Iterable[str]) -> None:
    """Print tables and the lines of a summary."""
    for table in tables:
        console.print(printed(table))
    for line in summary:
        console.print(line, highlight=False)


def printed(table: Table) -> RichTable:
    """Return the table for a terminal."""
    shown = RichTable(title=table.title)
    for number, column in enumerate(table.columns):
        is_text = number == 0 or column in _TEXTS
        shown.add_column(column, justify="left" if is_text else "right", overflow="fold", no_wrap=number == 0)
    for row in table.rows:
        shown.add_row(*row)
    return shown


def markdown(table: Table) -> Iterator[str]:
    """Return the table for a page, line by line."""
    yield f"| {' | '.join(table.columns)} |"
    yield f"|---|{'---:|' * (len(table.columns) - 1)}"
    yield from (f"| {' | '.join(row)} |" for row in table.rows)


@dataclass(frozen=True)
class Report(Generic[Results]):
    """What is shown and kept of a benchmark's results.

    Attributes:
        name: Name of the files.
        results: Class of the results.
        tables: Returns the tables.
        summary: Returns the lines of the summary.
        page: Yields the page line by line; its second argument is the plot's file, None if there is none.
        draw: Draws the plot into an SVG file, and returns False if there is nothing to draw; None without a
            plot.
    """

    name: str
    results: type[Results]
    tables: Callable[[Results], list[Table]]
    summary: Callable[[Results], Iterable[object]]
    page: Callable[[Results, str | None], Iterator[str]]
    draw: Callable[[Path, Results], bool] | None = None

    def keep(self, folder: Path, results: Results) -> list[Path]:
        """Write the page, the numbers, and the plot if matplotlib is installed; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        text, numbers, plot = (folder / f"{self.name}.{kind}" for kind in ("md", "json", "svg"))
        numbers.write_text(json.dumps(asdict(results), separators=(",", ":")) + "\n")
        try:
            is_drawn = self.draw is not None and self.draw(plot, results)
        except ImportError:
            is_drawn = False
        text.write_text("\n".join(self.page(results, plot.name if is_drawn else None)))
        return [text, numbers, plot] if is_drawn else [text, numbers]

    def kept(self, folder: Path) -> Results:
        """Return the results whose numbers were kept in a folder."""
        text = (folder / f"{self.name}.json").read_text(encoding="utf-8")
        return TypeAdapter(self.results).validate_json(text)
