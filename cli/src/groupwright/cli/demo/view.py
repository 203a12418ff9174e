"""What the demo shows: a live table on a terminal, plain lines elsewhere."""

import os
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view_model import GONE, ActState, MemberRow, Progress, Status, ViewModel, compact

_WIDE = 100
"""Columns of a terminal that holds the table's full headings."""

_STYLES = {
    Status.STARTING: "dim",
    Status.JOINING: "yellow",
    Status.CONSUMING: "green",
    Status.REBALANCING: "yellow",
    Status.LEAVING: "cyan",
    Status.LEFT: "dim",
    Status.KILLED: "red",
}


class View(Protocol):
    """Shows the demo."""

    def __enter__(self) -> Self:
        """Take the terminal."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give it back."""

    def prepare(self, step: str, detail: str = "") -> None:
        """Show what is done before the story begins, or after it has ended."""

    def tell(self, text: str, *, good: bool = False) -> None:
        """Say what happens in the story; `good` is a check that passed."""

    def note(self, text: str) -> None:
        """Say what a member reports."""

    def warn(self, text: str) -> None:
        """Say what the user has to know, story or not."""

    def show(self, model: ViewModel) -> None:
        """Show the state of things."""

    def conclude(self, summary: Summary) -> None:
        """Show the result; the terminal has been given back."""


def view_for(console: Console) -> View:
    """Return a live table where there is a terminal that can show one, and plain lines elsewhere."""
    live = console.is_terminal and not console.is_dumb_terminal and "CI" not in os.environ
    return LiveView(console) if live else PlainView(console)


class PlainView:
    """Prints lines: the seconds since the start, and what happens."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print to the console."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._step = ""

    def __enter__(self) -> Self:
        """Return the view itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing: lines are complete as they are printed."""

    def prepare(self, step: str, detail: str = "") -> None:  # noqa: ARG002 - a View's; details are for a terminal
        """Print the step, once."""
        if step != self._step:
            self._step = step
            self._line(step)

    def tell(self, text: str, *, good: bool = False) -> None:
        """Print what happens."""
        self._line(f"{_mark(self._console)} {text}" if good else text)

    def note(self, text: str) -> None:
        """Print what a member reports, indented."""
        self._line(f"  {text}")

    def warn(self, text: str) -> None:
        """Print it."""
        self._line(text)

    def show(self, model: ViewModel) -> None:
        """Show nothing: every change has its line."""

    def conclude(self, summary: Summary) -> None:
        """Print the summary."""
        _print_summary(self._console, summary)

    def _line(self, text: str) -> None:
        seconds = self._clock() - self._started
        self._console.print(f"{seconds:6.1f} s  {text}", markup=False, highlight=False, soft_wrap=True)


class LiveView:
    """Keeps a table up to date in place."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on the console."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._live = Live(console=console, refresh_per_second=8)
        self._spinner = Spinner("dots", style="cyan")
        self._model: ViewModel | None = None
        self._step: Text | None = None

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the last table standing."""
        self._step = None
        self._draw()
        self._live.stop()

    def prepare(self, step: str, detail: str = "") -> None:
        """Show a spinner beside the step."""
        self._step = Text.assemble(step, (f"  {detail}" if detail else "", "dim"))
        self._draw()
        self._live.refresh()

    def tell(self, text: str, *, good: bool = False) -> None:
        """Show nothing: the table has it."""

    def note(self, text: str) -> None:
        """Show nothing: the table has it."""

    def warn(self, text: str) -> None:
        """Print it above the table."""
        self._console.print(Text(text, "yellow"))

    def show(self, model: ViewModel) -> None:
        """Draw the model."""
        self._model = model
        self._step = None
        self._draw()

    def conclude(self, summary: Summary) -> None:
        """Print the summary below the table."""
        _print_summary(self._console, summary)

    def _draw(self) -> None:
        parts: list[RenderableType] = []
        if self._model is not None:
            parts += self._of(self._model)
        if self._step is not None:
            parts.append(self._with_spinner(self._step))
        self._live.update(Padding(Group(*parts), (1, 1, 0, 1)))

    def _of(self, model: ViewModel) -> list[RenderableType]:
        minutes, seconds = divmod(int(self._clock() - self._started), 60)
        title = Text.assemble((model.title, "bold"), (f"   {minutes}:{seconds:02d}", "dim"))
        wide = self._console.width >= _WIDE
        members = _table(model.rows, wide=wide)
        return [title, "", self._story(model.acts), "", members, "", *_footer(model)]

    def _story(self, acts: Sequence[ActState]) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column()
        for act in acts:
            match act.progress:
                case Progress.TO_COME:
                    table.add_row(Text("·", "dim"), Text(act.title, "dim"), "")
                case Progress.NOW:
                    table.add_row(self._spinner, Text(act.title, "bold"), Text(act.note, "cyan"))
                case Progress.DONE:
                    table.add_row(Text(_mark(self._console), "green"), act.title, Text(act.note, "green"))
        return table

    def _with_spinner(self, text: Text) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_row(self._spinner, text)
        return table


def _table(members: Sequence[MemberRow], *, wide: bool) -> RenderableType:
    table = Table(box=None, padding=(0, 2 if wide else 1, 0, 0), header_style="dim")
    table.add_column("member", no_wrap=True)
    table.add_column("state", no_wrap=True, min_width=len(Status.REBALANCING))
    table.add_column("partitions" if wide else "owns", min_width=len("0-3 8-11"))
    for heading in ("consumed", "generation" if wide else "gen.", "rebalance", "revoked"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("metrics", no_wrap=True)
    for member in members:
        gone = member.status in GONE
        table.add_row(
            Text(member.name, "" if gone else "bold"),
            Text(member.status, _STYLES[member.status]),
            Text(compact(member.owned)),
            f"{member.consumed:,}",
            str(member.generations[-1]) if member.generations else "",
            f"{member.seconds[-1]:.3f} s" if member.seconds else "",
            str(member.last_revoked) if member.seconds else "",
            Text("" if gone else _host(member.metrics), "dim"),
            style="dim" if gone else "",
        )
    return table


def _host(address: str) -> str:
    return address.removeprefix("http://").removesuffix("/metrics")


def _footer(model: ViewModel) -> list[RenderableType]:
    counts = f"{model.produced:,} produced, {model.consumed:,} consumed, {model.waiting:,} waiting"
    twice = f", {model.redelivered:,} consumed twice" if model.redelivered else ""
    lines: list[RenderableType] = [Text(counts + twice), Text(f"Kafka: {model.kafka}")]
    first = model.rows[0] if model.rows else None
    if first is not None and first.metrics and first.status not in GONE:
        lines.append(Text.assemble("metrics of ", first.name, ": ", (first.metrics, "bold underline cyan")))
    return lines


def _print_summary(console: Console, summary: Summary) -> None:
    console.print()
    console.print(Text("Summary", "bold"))
    soft_wrap = not console.is_terminal
    for heading, text in summary.lines():
        line = Text.assemble((f"  {heading:<12}", "dim"), text)
        console.print(line, soft_wrap=soft_wrap)
    console.print()
    console.print(
        Text(summary.verdict(), "bold green" if summary.passed else "bold red"), soft_wrap=soft_wrap
    )


def _mark(console: Console) -> str:
    return "ok" if console.options.ascii_only else "✓"
