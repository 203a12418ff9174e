"""Output of the demo: on a terminal the steps and the view of `groupwright watch`, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from types import TracebackType
from typing import Any, Protocol, Self

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.lag import GroupLag
from groupwright.cli._cluster.model import DescribedGroup, GroupType
from groupwright.cli._command_line.exit import CommandError
from groupwright.cli._command_line.output import is_live
from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view_model import GONE, MemberRow, Progress, Status, StepState, ViewModel
from groupwright.cli.watch.run import GroupReader, Snapshots, advance, now
from groupwright.cli.watch.view import Extra, frame
from groupwright.cli.watch.watched_group import WatchedGroup
from groupwright.consumer.cluster import Broker

_WIDE = 100
"""Minimum width of a terminal for full headings, in columns."""
_SNAPSHOT_SECONDS = 0.5
_DRAW_SECONDS = 0.25

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

    def watching(self, connection: Mapping[str, Any], group: str) -> AbstractContextManager[None]:
        """Show a group as its brokers describe it, inside the context."""

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
        """Leave the lines as they are."""

    def watching(self, connection: Mapping[str, Any], group: str) -> AbstractContextManager[None]:  # noqa: ARG002 - View's
        """Ask no broker: the members tell what lines need."""
        return nullcontext()

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
    """Updates the view in place: the steps, and the group as `groupwright watch` shows it.

    The table of members has more columns: what the members themselves measure.

    Attributes:
        group: The group, as its brokers describe it.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on the console."""
        self._console = console
        self._clock = clock
        self._started = clock()
        self._live = Live(console=console, refresh_per_second=8)
        self._spinner = Spinner("dots", style="cyan")
        self._model: ViewModel | None = None
        self._activity: Text | None = None
        self._snapshots: Snapshots | None = None
        self._next_draw = 0.0
        self.group = WatchedGroup(interval=_SNAPSHOT_SECONDS)

    def __enter__(self) -> Self:
        """Start drawing."""
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the last view on the terminal."""
        self._activity = None
        self._draw()
        self._live.stop()

    @contextmanager
    def watching(self, connection: Mapping[str, Any], group: str) -> Iterator[None]:
        """Ask the group's brokers, in the background, and once more at the end."""
        self.group.update(_not_there_yet(group), now())
        with Cluster(connection) as cluster:
            take = GroupReader(cluster, group).take
            with Snapshots(take, _SNAPSHOT_SECONDS) as self._snapshots:
                yield
            self._snapshots = None
            with suppress(CommandError):
                self.group.update(take(), now())

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
        """Draw the model, and the group's newest snapshot."""
        self._model = model
        self._activity = None
        self._advance()
        if self._clock() >= self._next_draw:
            self._next_draw = self._clock() + _DRAW_SECONDS
            self._draw()

    def conclude(self, summary: Summary) -> None:
        """Print the summary below the table."""
        _print_summary(self._console, summary)

    def _advance(self) -> None:
        if self._snapshots is None:
            return
        try:
            advance(self._snapshots, self.group, interval=_SNAPSHOT_SECONDS, timeout=0)
        except CommandError as error:
            self.group.miss(str(error), now())  # the demo goes on, and has its members' own events

    def _draw(self) -> None:
        activity = [] if self._activity is None else [self._with_spinner(self._activity)]
        model = [] if self._model is None else self._of(self._model, len(activity))
        self._live.update(Group("", *model, *activity))

    def _of(self, model: ViewModel, lines_below: int) -> list[RenderableType]:
        minutes, seconds = divmod(int(self._clock() - self._started), 60)
        title = Text.assemble((model.title, "bold"), (f"   {minutes}:{seconds:02d}", "dim"))
        head: list[RenderableType] = [title, "", self._steps_table(model.steps), ""]
        footer = ["", *_footer(model)]
        if self.group.time is None:
            return [*head, *footer]
        taken = len(self._console.render_lines(Group("", *head, *footer), pad=False)) + lines_below
        watched = frame(
            self.group.view(now()),
            self._console,
            now=now(),
            height=max(self._console.height - taken, 1),
            extra=_measured(model.rows, wide=self._console.width >= _WIDE),
        )
        return [*head, watched, *footer]

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


def _not_there_yet(group: str) -> GroupLag:
    """Return a group that does not exist, as brokers describe it; the first answer may take seconds."""
    unknown = Broker(-1, "", 0)
    return GroupLag(DescribedGroup(group, GroupType.CLASSIC, "Dead", "", "", (), unknown), ())


def _measured(members: Sequence[MemberRow], *, wide: bool) -> Extra:
    """Return the columns that come from the members themselves."""
    headings: dict[str, JustifyMethod] = {"state": "left", "consumed": "right"}
    for heading in ("generation" if wide else "gen.", "rebalance", "revoked", "kept", "meanwhile"):
        headings[heading] = "right"
    if wide:
        headings["metrics"] = "left"
    return Extra(headings, {each.name: _cells(each, wide=wide) for each in members}, gap=2 if wide else 1)


def _cells(member: MemberRow, *, wide: bool) -> list[RenderableType]:
    last = (member.last_revoked, member.last_kept, member.last_meanwhile)
    return [
        Text(member.status.ljust(len(Status.REBALANCING)), _STYLES[member.status]),
        f"{member.consumed:,}",
        str(member.generations[-1]) if member.generations else "",
        f"{member.seconds[-1]:.3f} s" if member.seconds else "",
        *(str(number) if member.seconds else "" for number in last),
        *([Text("" if member.status in GONE else _host(member.metrics), "dim")] if wide else []),
    ]


def _host(address: str) -> str:
    return address.removeprefix("http://").removesuffix("/metrics")


def _footer(model: ViewModel) -> list[RenderableType]:
    counts = f"{model.produced:,} produced, {model.consumed:,} consumed, {model.waiting:,} waiting"
    twice = f", {model.redelivered:,} consumed twice" if model.redelivered else ""
    addresses = Text(f"Kafka: {model.kafka}")
    first = model.rows[0] if model.rows else None
    if first is not None and first.metrics and first.status not in GONE:
        addresses.append(f"  metrics of {first.name}: ").append(first.metrics, "bold underline cyan")
    return [Text(counts + twice), addresses]


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
