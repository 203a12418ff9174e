"""Frame of a watched group on the terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from groupwright.cli._cluster.findings import no_members
from groupwright.cli._command_line.output import compact, plural
from groupwright.cli.watch import sentences
from groupwright.cli.watch.events import MemberView, Rebalanced
from groupwright.cli.watch.sentences import span
from groupwright.cli.watch.watched_group import GroupView

_MARK = "*"
"""Mark of partitions that moved recently, which shows without colours too."""
_OTHER_COLUMNS = 45
"""Columns of a row beside the partitions, about."""
_LINES = 2
"""Lines of one member's partitions, if the height is limited, about."""
_UNLIMITED = 100_000  # columns
_OPTIONAL = ("host", "n", "lag")
"""Columns that a table with columns of the caller leaves out, in this order, where it is too wide."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Columns that the caller adds to the table of members, whose only topic is then not named.

    Attributes:
        headings: Their headings, and how their cells are aligned.
        cells: Their cells, by the names of members. Names of others than the group's members have rows, too.
        gap: Columns of the terminal between two columns of the table.
    """

    headings: Mapping[str, JustifyMethod]
    cells: Mapping[str, Sequence[RenderableType]]
    gap: int = 2


_NO_EXTRA = Extra({}, {})


def frame(
    view: GroupView, console: Console, *, now: float, height: int | None = None, extra: Extra = _NO_EXTRA
) -> RenderableType:
    """Return a frame for the width of a console.

    Args:
        view: The group.
        console: Where it will be shown.
        now: The time, in seconds since the epoch.
        height: Lines that it may have; None for all members and rebalances.
        extra: Columns of the caller. Rebalances are then left out if there is no room for them.
    """
    head = Group(*_head(view, now))
    members = sorted(view.members, key=lambda each: (not each.recent, -(each.lag or 0), each.name))
    if height is None:
        table = _members(view, members, None, console, extra)
        return Group(head, *table, *_history(view, len(view.rebalances)))

    def lines(*parts: RenderableType) -> int:
        return len(console.render_lines(Group(*parts), pad=False))

    budget = _LINES * max(console.width - _OTHER_COLUMNS, 1)
    room = height - lines(head)
    reserved = 0 if extra.headings else min(lines(*_history(view, 2)), room // 2)
    shown = _most(
        min(len(members), 1),
        len(members),
        lambda count: lines(*_members(view, members[:count], budget, console, extra)) <= room - reserved,
    )
    table = _members(view, members[:shown], budget, console, extra)
    room -= lines(*table)
    if extra.headings and lines(*_history(view, 0)) > room:
        return Group(head, *table)
    past = _most(0, len(view.rebalances), lambda count: lines(*_history(view, count)) <= room)
    return Group(head, *table, *_history(view, past))


def _most(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number that fits, which is `least` in any case."""
    low, high = least, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


# --- The head ---------------------------------------------------------------------------------------


def _head(view: GroupView, now: float) -> Iterator[Text]:
    epoch = "" if view.epoch is None else f"epoch {view.epoch}"
    state = (
        view.state if view.exists else "the group does not exist",
        "bold green" if view.state == "Stable" else "bold yellow",
    )
    yield Text.assemble(
        (view.group, "bold"),
        "  ",
        state,
        _lasted(view.state_seconds, view),
        (f"  {', '.join(filter(None, [view.type, view.assignor, epoch]))}", "dim"),
        (f"  {clock(now)}", "dim"),
        overflow="fold",
    )
    count = f"{plural(len(view.members), 'member')}, {sentences.partitions(view.partitions)}; "
    if view.exists:
        yield Text(f"{count}{sentences.lag(view.lag)}", overflow="fold")
    if view.state == "Empty":
        yield _warning(no_members(view.protocol_type))
    if view.stalled:
        yield _warning(sentences.stalled(view.stalled).removeprefix("; ").capitalize())
    if view.rebalancing_seconds is not None:
        before = ", partitions are those before it" if view.is_before_rebalance and view.partitions else ""
        yield _warning(f"Rebalancing{_lasted(view.rebalancing_seconds, view)}{before}")
    if view.unavailable_since is not None:
        lasted = span(max(now - view.unavailable_since, 0))
        text = f"! No answer since {clock(view.unavailable_since)} ({lasted}): {view.unavailable_reason}"
        yield Text(text, "bold red", overflow="fold")


def _lasted(seconds: float, view: GroupView) -> str:
    """Return a duration, with `seen` if it began before the first snapshot; nothing after that one alone."""
    if seconds < view.watched_seconds:
        return f" for {span(seconds)}"
    return f", seen for {span(seconds)}" if seconds else ""


def _warning(text: str) -> Text:
    return Text(f"! {text}", "yellow", overflow="fold")


def clock(time: float) -> str:
    """Return a time of day, local."""
    return datetime.fromtimestamp(time).astimezone().strftime("%H:%M:%S")


# --- Members ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Column:
    heading: str
    cell: Callable[[MemberView], RenderableType]
    justify: JustifyMethod = "left"
    no_wrap: bool = False


def _columns(view: GroupView, budget: int | None, *, names_topics: bool) -> list[_Column]:
    """Return the columns of the table of members, with those alone that a member has a value for."""
    everyone = view.members
    columns = [_Column("member", lambda each: Text(each.name, "bold"))]
    if any(each.client_id != each.name for each in everyone):
        columns.append(_Column("client id", lambda each: each.client_id))
    if any(each.instance_id is not None for each in everyone):
        columns.append(_Column("instance", lambda each: each.instance_id or "-"))
    columns.append(_Column("host", lambda each: each.host))
    if any(each.rack is not None for each in everyone):
        columns.append(_Column("rack", lambda each: each.rack or "-"))
    if any(each.epoch is not None for each in everyone):
        columns.append(_Column("epoch", lambda each: f"{each.epoch}{'…' if each.is_behind else ''}", "right"))
    columns += [
        _Column("lag", lambda each: "-" if each.lag is None else f"{each.lag:,}", "right", no_wrap=True),
        _Column("n", lambda each: "-" if view.partitions is None else str(each.count), "right", no_wrap=True),
        _Column("partitions", lambda each: _partitions(each, budget, names_topics=names_topics)),
    ]
    return columns


def _members(
    view: GroupView,
    members: Sequence[MemberView],
    budget: int | None,
    console: Console,
    extra: Extra,
) -> list[RenderableType]:
    """Return the table of members, and a line about those that are left out.

    Args:
        view: The group.
        members: The members to show.
        budget: Characters for the partitions of a member; None for all.
        console: Where it will be shown.
        extra: Columns of the caller.
    """
    everyone = view.members
    if not everyone and not extra.cells:
        return []
    topics = {topic for each in everyone for topic in each.assigned}
    columns = _columns(view, budget, names_topics=not extra.headings or len(topics) > 1)
    absent = extra.cells.keys() - {each.name for each in everyone}
    table = _table(members, absent, columns, extra)
    for left_out in _OPTIONAL if extra.headings else ():
        if _width(table, console) <= console.width:
            break
        columns = [each for each in columns if each.heading != left_out]
        table = _table(members, absent, columns, extra)
    parts: list[RenderableType] = [Text(), table]
    if len(members) < len(everyone):
        parts.append(Text(_left_out(everyone, members), "dim"))
    if any(each.recent for each in everyone):
        parts.append(Text(f"{_MARK} moved recently", "dim"))
    if any(each.is_behind for each in everyone):
        parts.append(Text("… has not reached the group's epoch and target assignment", "dim"))
    return parts


def _width(table: Table, console: Console) -> int:
    """Return the width of a table of which no cell is folded."""
    return Measurement.get(console, console.options.update(max_width=_UNLIMITED), table).maximum


def _table(
    members: Sequence[MemberView], absent: Iterable[str], columns: Sequence[_Column], extra: Extra
) -> Table:
    table = Table(box=None, padding=(0, extra.gap, 0, 0), pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.heading, justify=column.justify, no_wrap=column.no_wrap, overflow="fold")
    for heading, justify in extra.headings.items():
        table.add_column(heading, justify=justify, no_wrap=True)
    rows = {each.name: [column.cell(each) for column in columns] for each in members}
    for name in sorted({*rows, *absent}):
        own = rows.get(name, [name, *[""] * (len(columns) - 2), "-"])
        table.add_row(*own, *extra.cells.get(name, ()), style="" if name in rows else "dim")
    return table


def _left_out(everyone: Sequence[MemberView], shown: Sequence[MemberView]) -> str:
    names = {each.id for each in shown}
    rest = [each for each in everyone if each.id not in names]
    count = plural(sum(each.count for each in rest), "partition")
    return f"and {plural(len(rest), 'more member')}: {count}, lag {sum(each.lag or 0 for each in rest):,}"


def _partitions(member: MemberView, budget: int | None, *, names_topics: bool) -> Text:
    """Return the partitions of a member, those that moved recently with a mark."""
    text, left = Text(overflow="fold"), member.count
    for topic, numbers in member.assigned.items():
        recent = set(member.recent.get(topic, ()))
        runs = _runs(numbers, recent)
        for index, (run, is_recent) in enumerate(runs):
            word = f"{compact(run).replace(' ', '')}{_MARK if is_recent else ''}"
            prefix = "" if index or not names_topics else f"{', ' if text else ''}{topic}"
            if budget is not None and text and len(text) + len(prefix) + len(word) + 1 > budget:
                return text.append(f" and {left} more", "dim")
            text.append(f"{prefix} " if prefix or text else "").append(word, "bold cyan" if is_recent else "")
            left -= len(run)
    return text or Text("-")


def _runs(numbers: Sequence[int], recent: set[int]) -> list[tuple[list[int], bool]]:
    """Return runs of numbers that follow each other, all or none of them recent."""
    runs: list[tuple[list[int], bool]] = []
    for number in numbers:
        is_recent = number in recent
        if runs and runs[-1][0][-1] == number - 1 and runs[-1][1] is is_recent:
            runs[-1][0].append(number)
        else:
            runs.append(([number], is_recent))
    return runs


# --- Rebalances -------------------------------------------------------------------------------------


def _history(view: GroupView, count: int) -> list[RenderableType]:
    """Return the last rebalances, the newest first."""
    total = len(view.rebalances)
    heading = "No rebalance seen" if not total else f"{plural(total, 'rebalance')} seen"
    minute = f", {view.rebalances_a_minute} in the last minute" if total else ""
    parts: list[RenderableType] = [Text(), Text(f"{heading}{minute}", "bold")]
    for each in view.rebalances[:count]:
        parts += _rebalance(each)
    if 0 < count < total:
        parts.append(Text(f"and {total - count} earlier", "dim"))
    return parts


def _rebalance(rebalance: Rebalanced) -> list[RenderableType]:
    title, *rest = sentences.rebalance(rebalance).split("; ")
    return [
        Text.assemble(clock(rebalance.began), "  ", title, overflow="fold"),
        Padding(Text("; ".join(rest), overflow="fold"), (0, 0, 0, len("00:00:00  "))),
    ]
