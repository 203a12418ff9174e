"""Output of the demo: a live table on a terminal, plain lines elsewhere."""

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

from groupwright.cli._command_line.output import compact, is_live
from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view_model import GONE, MemberRow, Progress, Status, StepState, ViewModel

_WIDE = 100
"""Minimum width of a terminal for full headings, in columns."""

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
    """Output of the demo."""

    def __enter__(self) -> Self:
        """Start the output."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the output; only `conclude` may follow."""

    def show_activity(self, text: str, detail: str = "") -> None:
        """Show what is done before the first step or after the last."""

    def announce(self, text: str, *, passed: bool = False) -> None:
        """Announce a step; `passed` marks a check that passed."""

    def report(self, text: str) -> None:
        """Show an event of a member."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def show(self, model: ViewModel) -> None:
        """Show the state of the demo."""

    def conclude(self, summary: Summary) -> None:
        """Show the result, after the context has ended."""


def view_for(console: Console) -> View:
    """Return a live table if the console is a capable terminal outside CI, else plain lines."""
    return LiveView(console) if is_live(console) else PlainView(console)


class PlainView:
    """Prints lines, each with the seconds since the start."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Print to the console."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._activity = ""

    def __enter__(self) -> Self:
        """Return the view itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do nothing: lines need no cleanup."""

    def show_activity(self, text: str, detail: str = "") -> None:  # noqa: ARG002 - View's; plain lines omit it
        """Print the activity, once."""
        if text != self._activity:
            self._activity = text
            self._line(text)

    def announce(self, text: str, *, passed: bool = False) -> None:
        """Print the step."""
        self._line(f"{_mark(self._console)} {text}" if passed else text)

    def report(self, text: str) -> None:
        """Print the event, indented."""
        self._line(f"  {text}")

    def warn(self, text: str) -> None:
        """Print the warning."""
        self._line(text)

    def show(self, model: ViewModel) -> None:
        """Do nothing: every change has its own line."""

    def conclude(self, summary: Summary) -> None:
        """Print the summary."""
        _print_summary(self._console, summary)

    def _line(self, text: str) -> None:
        seconds = self._clock() - self._started
        self._console.print(f"{seconds:6.1f} s  {text}", markup=False, highlight=False, soft_wrap=True)


class LiveView:
    """Updates a table in place."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on the console."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._live = Live(console=console, refresh_per_second=8)
        self._spinner = Spinner("dots", style="cyan")
        self._model: ViewModel | None = None
        self._activity: Text | None = None

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the last table on the terminal."""
        self._activity = None
        self._draw()
        self._live.stop()

    def show_activity(self, text: str, detail: str = "") -> None:
        """Show a spinner beside the activity."""
        self._activity = Text.assemble(text, (f"  {detail}" if detail else "", "dim"))
        self._draw()
        self._live.refresh()

    def announce(self, text: str, *, passed: bool = False) -> None:
        """Show nothing: the table has it."""

    def report(self, text: str) -> None:
        """Show nothing: the table has it."""

    def warn(self, text: str) -> None:
        """Print the warning above the table."""
        self._console.print(Text(text, "yellow"))

    def show(self, model: ViewModel) -> None:
        """Draw the model."""
        self._model = model
        self._activity = None
        self._draw()

    def conclude(self, summary: Summary) -> None:
        """Print the summary below the table."""
        _print_summary(self._console, summary)

    def _draw(self) -> None:
        parts: list[RenderableType] = []
        if self._model is not None:
            parts += self._of(self._model)
        if self._activity is not None:
            parts.append(self._with_spinner(self._activity))
        self._live.update(Padding(Group(*parts), (1, 1, 0, 1)))

    def _of(self, model: ViewModel) -> list[RenderableType]:
        minutes, seconds = divmod(int(self._clock() - self._started), 60)
        title = Text.assemble((model.title, "bold"), (f"   {minutes}:{seconds:02d}", "dim"))
        wide = self._console.width >= _WIDE
        members = _table(model.rows, wide=wide)
        return [title, "", self._steps_table(model.steps), "", members, "", *_footer(model)]

    def _steps_table(self, steps: Sequence[StepState]) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=1)
        table.add_column(no_wrap=True)
        table.add_column()
        for step in steps:
            match step.progress:
                case Progress.TO_COME:
                    table.add_row(Text("·", "dim"), Text(step.title, "dim"), "")
                case Progress.NOW:
                    table.add_row(self._spinner, Text(step.title, "bold"), Text(step.note, "cyan"))
                case Progress.DONE:
                    table.add_row(Text(_mark(self._console), "green"), step.title, Text(step.note, "green"))
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
    for heading in (
        "consumed",
        "generation" if wide else "gen.",
        "rebalance",
        "revoked",
        "kept",
        "meanwhile",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    if wide:
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
            *(
                str(number) if member.seconds else ""
                for number in (member.last_revoked, member.last_kept, member.last_meanwhile)
            ),
            *([Text("" if gone else _host(member.metrics), "dim")] if wide else []),
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
        Text(summary.conclusion(), "bold green" if summary.passed else "bold red"), soft_wrap=soft_wrap
    )


def _mark(console: Console) -> str:
    return "ok" if console.options.ascii_only else "✓"
