"""Report of a run on the terminal."""

import math
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from groupwright.testing.groups import Consumed, Event
from integration_tests.soak.checker import Violation, summary
from integration_tests.soak.conductor import Result
from integration_tests.soak.member_history import MemberHistory

_SIGNALS = ("interrupt", "wakeup", "enforce rebalance")
_SHOWN = 10
_AROUND_SECONDS = 8.0
_MOST_EVENTS = 40


def show(result: Result, console: Console) -> None:
    """Print the counts of a run, and each violation with the relevant parts of the histories."""
    console.print(_table(result))
    violations = result.findings.violations
    if not result.drained:
        console.print(
            "[red]The groups did not come to rest:[/] not everything was consumed and owned once in time."
        )
    if not violations:
        console.print("[green]No guarantee was broken.[/]")
        return
    counts = ", ".join(f"{rule}: {count}" for rule, count in sorted(summary(violations).items()))
    console.print(f"[red]{len(violations)} violations[/] ({counts})")
    members = {member.name: member for member in result.findings.members}
    for violation in violations[:_SHOWN]:
        console.print(f"\n[red]{violation.rule}[/] {describe(violation)}", highlight=False)
        for name in violation.members:
            if name in members:
                _show_history(members[name], violation, console)
    if len(violations) > _SHOWN:
        console.print(f"\n… and {len(violations) - _SHOWN} more", highlight=False)
    console.print(f"\nThe seed was [bold]{result.plan.seed}[/].")


def describe(violation: Violation) -> str:
    """Return a violation as one line."""
    place = f" {violation.partition[0]} [{violation.partition[1]}]" if violation.partition else ""
    time = "" if math.isnan(violation.time) else f" at {violation.time:.3f}"
    who = f" {', '.join(violation.members)}" if violation.members else ""
    return f"({violation.group}{place}{time}{who}): {violation.text}"


def _table(result: Result) -> Table:
    findings, done = result.findings, result.faults
    table = Table(title=f"Seed {result.plan.seed}, {result.plan.seconds / 60:g} min", show_header=False)
    rows: dict[str, object] = {
        "groups (rebalances)": ", ".join(f"{name} ({count})" for name, count in result.rebalances.items()),
        "members started": done["start"],
        "left": done["leave"],
        "killed": done["kill"],
        "stalled": done["stop"],
        "busy": done["busy"],
        "broker restarts": done["restart broker"],
        "broker crashes": done["crash broker"],
        "broker pauses": done["pause broker"],
        "closed by another thread": done["close"],
        "signalled": ", ".join(f"{done[kind]} {kind}" for kind in _SIGNALS),
        "topics grown": done["grow"],
        "topics deleted and re-created": done["make topic"],
        "messages": findings.messages,
        "deliveries": findings.deliveries,
        "duplicates": findings.duplicates,
        "lost by interrupted polls": findings.excused,
        "commits": f"{findings.commits} accepted, {findings.refused} rejected or unanswered",
        "losses reported": findings.losses,
        "taken over while stalled": findings.overlaps,
        "drained": "yes" if result.drained else "NO",
        "violations": len(findings.violations),
    }
    for name, value in rows.items():
        table.add_row(name, str(value))
    return table


def _show_history(member: MemberHistory, violation: Violation, console: Console) -> None:
    commits = member.started.details["commits"]
    console.print(f"  {member.name} ({violation.group}, commits {commits}):", highlight=False)
    events = list(_around(member, violation))
    for event in events[-_MOST_EVENTS:]:
        console.print(f"    {event}", highlight=False, markup=False, soft_wrap=True)


def _concerns(event: Consumed, violation: Violation) -> bool:
    return violation.partition in {None, *((span.topic, span.partition) for span in event.spans)}


def _around(member: MemberHistory, violation: Violation) -> Iterator[Event]:
    """Return the member's events around the time; of a run of messages only the first and the last."""
    time = member.events[-1].time if math.isnan(violation.time) else violation.time
    near = [event for event in member.events if abs(event.time - time) < _AROUND_SECONDS]
    near = [e for e in near if not isinstance(e, Consumed) or _concerns(e, violation)]
    for before, event, after in zip([None, *near], near, [*near[1:], None], strict=False):
        inside = all(isinstance(other, Consumed) for other in (before, event, after))
        if not inside:
            yield event
