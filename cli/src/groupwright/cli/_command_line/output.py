"""Output of commands: tables for people, JSON and CSV for programs."""

import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._command_line.text import harmless

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 5
_MOST_NOTES = 20
_GAP = 2  # columns between those of a table
_WHOLE = 40
"""Longest name for which optional columns are left out, so that it is not cut."""
_SHORTEST = 12
"""Width below which no name is cut."""
_FOLDED = 20
"""Width that names leave to a column that is folded."""
_UNLIMITED = 100_000  # columns; a pipe has no width, and a cut line is of no use to the program that reads it


class OutputFormat(StrEnum):
    """Format of a command's output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Output = Annotated[OutputFormat, typer.Option("--output", "-o", help="Format of the output.")]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        key: Key of the value in a row, and the name of the column in CSV and JSON.
        header: Header in a table for people.
        is_number: Whether the column is aligned to the right.
        is_optional: Whether a table leaves the column out where it is too wide for the terminal.
        is_name: Whether a table cuts long values, with an ellipsis, where it is too wide; others are folded.
    """

    key: str
    header: str
    is_number: bool = False
    is_optional: bool = False
    is_name: bool = False


def console(*, stderr: bool = False) -> "Console":
    """Return a console: colours and the terminal's width on a terminal, neither in a pipe."""
    from groupwright.cli._command_line.console import HarmlessConsole

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _UNLIMITED
    return HarmlessConsole(file=stream, highlight=False, emoji=False, markup=False, width=width)


def is_live(console: "Console") -> bool:
    """Return whether a console can redraw what it shows: a capable terminal, outside CI."""
    return console.is_terminal and not console.is_dumb_terminal and "CI" not in os.environ


def print_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], output: OutputFormat) -> None:
    """Print rows in a format. In CSV and JSON, a value that is not known is empty, and null.

    Args:
        rows: Values by the keys of columns. A list of texts is printed as text with commas, but in JSON.
        columns: The columns, in their order.
        output: The format.
    """
    match output:
        case OutputFormat.JSON:
            print_json([{column.key: row.get(column.key) for column in columns} for row in rows])
        case OutputFormat.CSV:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            writer.writerow([column.key for column in columns])
            writer.writerows([_text(row.get(column.key), unknown="") for column in columns] for row in rows)
        case OutputFormat.TABLE:
            out = console()
            out.print(table(rows, columns, out.width), crop=False)


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], width: int) -> Any:
    """Return a table for a console. A value that is not known is a dash.

    Names are cut where the table is too wide. Print it with `crop=False`: no other value is cut.

    Args:
        rows: As in `print_rows`.
        columns: The columns, in their order.
        width: Width of the console, in characters.
    """
    from rich.table import Table

    shown = _that_fit(rows, columns, width)
    name_widths = _name_widths(rows, shown, width)
    least = sum(_GAP + (_width(rows, each) if each.is_number else len(each.header)) for each in shown) - _GAP
    made = Table(box=None, pad_edge=False, header_style="bold", width=least if least > width else None)
    for column in shown:
        if column.is_number:
            made.add_column(column.header, justify="right", no_wrap=True)
        else:
            made.add_column(column.header, overflow="fold", min_width=len(column.header))
    for row in rows:
        made.add_row(*(_cut(_cell(row.get(each.key)), name_widths.get(each.key)) for each in shown))
    return made


def _name_widths(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], width: int
) -> Mapping[str, int]:
    """Return the widths to which names are cut, by their columns, so that a table fits if it can."""
    widths = {each.key: _width(rows, each) for each in columns}
    others = sum(
        widths[each.key] if each.is_number else min(widths[each.key], max(_FOLDED, len(each.header)))
        for each in columns
        if not each.is_name
    )
    left = width - others - _GAP * (len(columns) - 1)
    names = {each.key: widths[each.key] for each in columns if each.is_name}
    while names and sum(names.values()) > left and max(names.values()) > _SHORTEST:
        names[max(names, key=names.__getitem__)] -= 1
    return names


def _cut(cell: Any, width: int | None) -> Any:
    if width is None or not isinstance(cell, str) or len(cell) <= width:
        return cell
    from rich.text import Text

    text = Text(cell)
    text.truncate(width, overflow="ellipsis")
    return text


def _that_fit(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns without the optional ones, the last first, that a table has no room for."""
    widths = {
        each.key: min(_width(rows, each), _WHOLE) if each.is_name else _width(rows, each) for each in columns
    }
    shown = list(columns)
    for column in reversed(columns):
        if column.is_optional and sum(widths[each.key] + _GAP for each in shown) - _GAP > width:
            shown.remove(column)
    return shown


def _width(rows: Sequence[Mapping[str, Any]], column: Column) -> int:
    """Return the width of a column whose values are not folded."""
    return max(map(len, [column.header, *(str(_cell(row.get(column.key))) for row in rows)]))


def print_notes(command: str, sentences: Iterable[str]) -> None:
    """Print sentences about a command's output to standard error, no more than 20."""
    found = list(sentences)
    shown = found[:_MOST_NOTES]
    if len(found) > len(shown):
        shown.append(f"and {len(found) - len(shown)} more")
    for sentence in shown:
        typer.echo(f"groupwright {command}: {harmless(sentence)}", err=True)


def few(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    shown = ", ".join(listed[:_SHOWN])
    return shown if len(listed) <= _SHOWN else f"{shown} and {len(listed) - _SHOWN} more"


def plural(count: int, noun: str) -> str:
    """Return a number with a noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def print_json(document: object) -> None:
    """Print a document as JSON."""
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def compact(partitions: Iterable[int]) -> str:
    """Format partition numbers as ranges, such as `0-3 8`; `-` for none."""
    runs = []
    for _, group in groupby(enumerate(sorted(partitions)), key=lambda pair: pair[1] - pair[0]):
        run = [partition for _, partition in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return " ".join(runs) or "-"


def ranges_by_topic(partitions: Mapping[str, Iterable[int]]) -> str:
    """Format partitions by topic, such as `orders 0-3 8, payments 1`; `-` for none."""
    return ", ".join(f"{topic} {compact(numbers)}" for topic, numbers in partitions.items()) or "-"


def _cell(value: Any) -> Any:
    from rich.text import Text

    return value if isinstance(value, Text) else harmless(_text(value, unknown="-"))


def _text(value: Any, *, unknown: str) -> str:
    match value:
        case None:
            return unknown
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ",".join(map(str, value))
        case float():
            return f"{value:.1f}"
    return str(value)
