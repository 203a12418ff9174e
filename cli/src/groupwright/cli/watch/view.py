"""Frame of a watched group on the terminal."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

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


def frame(view: GroupView, console: Console, *, now: float, height: int | None = None) -> RenderableType:
    """Return a frame for the width of a console.

    Args:
        view: The group.
        console: Where it will be shown.
        now: The time, in seconds since the epoch.
        height: Lines that it may have; None for all members and rebalances.
    """
    head = Group(*_head(view, now))
    members = sorted(view.members, key=lambda each: (not each.recent, -(each.lag or 0), each.name))
    if height is None:
        return Group(head, *_members(view, members, None), *_history(view, len(view.rebalances)))

    def lines(*parts: RenderableType) -> int:
        return len(console.render_lines(Group(*parts), pad=False))

    budget = _LINES * max(console.width - _OTHER_COLUMNS, 1)
    room = height - lines(head)
    reserved = min(lines(*_history(view, 2)), room // 2)
    shown = _most(
        min(len(members), 1),
        len(members),
        lambda count: lines(*_members(view, members[:count], budget)) <= room - reserved,
    )
    table = _members(view, members[:shown], budget)
    room -= lines(*table)
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
        view.state if view.exists else "the group does not exist any more",
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
    count = f"{plural(len(view.members), 'member')}, {plural(view.partitions, 'partition')}; "
    if view.exists:
        yield Text(f"{count}{sentences.lag(view.lag)}", overflow="fold")
    if view.state == "Empty":
        yield _warning("The group has no members: nothing is consumed.")
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


def _members(view: GroupView, members: Sequence[MemberView], budget: int | None) -> list[RenderableType]:
    """Return the table of members, and a line about those that are left out.

    Args:
        view: The group.
        members: The members to show.
        budget: Characters for the partitions of a member; None for all.
    """
    if not view.members:
        return []
    everyone = view.members
    has_instance = any(each.instance_id is not None for each in everyone)
    has_client = any(each.client_id != each.name for each in everyone)
    has_rack = any(each.rack is not None for each in everyone)
    has_epoch = any(each.epoch is not None for each in everyone)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("member", overflow="fold")
    if has_client:
        table.add_column("client id", overflow="fold")
    if has_instance:
        table.add_column("instance", overflow="fold")
    table.add_column("host", overflow="fold")
    if has_rack:
        table.add_column("rack", overflow="fold")
    if has_epoch:
        table.add_column("epoch", justify="right", overflow="fold")
    table.add_column("lag", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("partitions", overflow="fold")
    for each in sorted(members, key=lambda member: member.name):
        cells: list[RenderableType] = [Text(each.name, "bold")]
        cells += [each.client_id] if has_client else []
        cells += [each.instance_id or "-"] if has_instance else []
        cells.append(each.host)
        cells += [each.rack or "-"] if has_rack else []
        cells += [f"{each.epoch}{'…' if each.is_behind else ''}"] if has_epoch else []
        cells += ["-" if each.lag is None else f"{each.lag:,}", str(each.count), _partitions(each, budget)]
        table.add_row(*cells)
    parts: list[RenderableType] = [Text(), table]
    if len(members) < len(everyone):
        parts.append(Text(_left_out(everyone, members), "dim"))
    if any(each.recent for each in everyone):
        parts.append(Text(f"{_MARK} moved recently", "dim"))
    if any(each.is_behind for each in everyone):
        parts.append(Text("… has not reached the group's epoch and target assignment", "dim"))
    return parts


def _left_out(everyone: Sequence[MemberView], shown: Sequence[MemberView]) -> str:
    names = {each.id for each in shown}
    rest = [each for each in everyone if each.id not in names]
    count = plural(sum(each.count for each in rest), "partition")
    return f"and {plural(len(rest), 'more member')}: {count}, lag {sum(each.lag or 0 for each in rest):,}"


def _partitions(member: MemberView, budget: int | None) -> Text:
    """Return the partitions of a member, those that moved recently with a mark."""
    text, left = Text(overflow="fold"), member.count
    for topic, numbers in member.assigned.items():
        recent = set(member.recent.get(topic, ()))
        runs = _runs(numbers, recent)
        for index, (run, is_recent) in enumerate(runs):
            word = f"{compact(run).replace(' ', '')}{_MARK if is_recent else ''}"
            prefix = "" if index else f"{', ' if text else ''}{topic}"
            if budget is not None and text and len(text) + len(prefix) + len(word) + 1 > budget:
                return text.append(f" and {left} more", "dim")
            text.append(f"{prefix} ").append(word, "bold cyan" if is_recent else "")
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
