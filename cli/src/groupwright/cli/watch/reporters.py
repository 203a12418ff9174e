"""Outputs of `groupwright watch`: a live frame, lines, JSON lines."""

import csv
import json
from collections.abc import Callable, Sequence
from io import StringIO
from types import TracebackType
from typing import Protocol, Self

import typer
from rich.console import Console
from rich.live import Live

from groupwright.cli._command_line.text import harmless
from groupwright.cli.watch.document import document
from groupwright.cli.watch.events import Event
from groupwright.cli.watch.sentences import sentence, timestamp
from groupwright.cli.watch.view import frame
from groupwright.cli.watch.watched_group import GroupView


class Reporter(Protocol):
    """An output."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End, and leave the terminal as it was."""

    def report(self, events: Sequence[Event]) -> None:
        """Take events."""

    def show(self, view: GroupView, now: float) -> None:
        """Show the group."""


class Lines:
    """Prints a line for each event."""

    def __init__(self, text: Callable[[Event], str], header: str | None = None) -> None:
        """Create it.

        Args:
            text: Returns an event as a line.
            header: A line before the events.
        """
        self._text, self._header = text, header

    def __enter__(self) -> Self:
        """Print the header."""
        if self._header is not None:
            typer.echo(self._header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing."""

    def report(self, events: Sequence[Event]) -> None:
        """Print the events."""
        for event in events:
            typer.echo(self._text(event))

    def show(self, view: GroupView, now: float) -> None:
        """Do nothing: events have their lines."""


def line(event: Event) -> str:
    """Return an event as a line for people."""
    return harmless(f"{timestamp(event.time)}  {sentence(event)}")


def json_line(group: str) -> Callable[[Event], str]:
    """Return a function that returns events of a group as lines of JSON."""
    return lambda event: json.dumps(document(group, event), ensure_ascii=False)


CSV_HEADER = "time,event,group,text"


def csv_line(group: str) -> Callable[[Event], str]:
    """Return a function that returns events of a group as rows of CSV."""

    def row(event: Event) -> str:
        text = StringIO()
        csv.writer(text, lineterminator="").writerow(
            [timestamp(event.time), event.kind, group, sentence(event)]
        )
        return text.getvalue()

    return row


class Frame:
    """Prints the group once, whole."""

    def __init__(self, console: Console) -> None:
        """Print on a console."""
        self._console = console

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing."""

    def report(self, events: Sequence[Event]) -> None:
        """Do nothing: the view has them."""

    def show(self, view: GroupView, now: float) -> None:
        """Print the group."""
        self._console.print(frame(view, self._console, now=now))


class LiveFrame:
    """Draws the group in place, on the terminal's alternate screen; the last one stays on the terminal."""

    def __init__(self, console: Console) -> None:
        """Draw on a console."""
        self._console = console
        self._live = Live(console=console, screen=True, auto_refresh=False)
        self._last: tuple[GroupView, float] | None = None

    def __enter__(self) -> Self:
        """Switch to the alternate screen."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Switch back, and print the last view."""
        self._live.stop()
        if self._last is not None:
            view, now = self._last
            self._console.print(frame(view, self._console, now=now, height=self._console.height - 1))

    def report(self, events: Sequence[Event]) -> None:
        """Do nothing: the view has them."""

    def show(self, view: GroupView, now: float) -> None:
        """Draw the group."""
        self._last = (view, now)
        self._live.update(frame(view, self._console, now=now, height=self._console.height), refresh=True)
