"""Events of a watched group in words: a line for each. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from groupwright.cli._command_line.output import plural, ranges_by_topic
from groupwright.cli.watch.events import (
    BrokersAvailable,
    BrokersUnavailable,
    Event,
    GroupSeen,
    LagReported,
    MemberJoined,
    MemberLeft,
    MemberRestarted,
    Rebalanced,
    StateChanged,
)
from groupwright.cli.watch.progress import LagRate, Stalled, Trend

_MOST_STALLED = 3
_NO_STATE = {"Dead": ": the group does not exist any more", "Empty": ": the group has no members"}


def timestamp(time: float) -> str:
    """Return a time as ISO 8601 in UTC, with milliseconds."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sentence(event: Event) -> str:  # noqa: PLR0911 - one for each kind
    """Return an event in words."""
    match event:
        case GroupSeen():
            epoch = "" if event.epoch is None else f", epoch {event.epoch}"
            return (
                f"{event.state} ({event.type}{epoch}): {plural(len(event.members), 'member')}, "
                f"{partitions(event.partitions)}, {lag(event.lag)}{stalled(event.stalled)}"
            )
        case StateChanged():
            return f"{event.before} -> {event.after}{_NO_STATE.get(event.after, '')}"
        case MemberJoined():
            return f"{event.member} joined{' again' if event.again else ''} from {event.host}"
        case MemberLeft():
            return f"{event.member} left{_cause(event.stalled, named=False)}"
        case MemberRestarted():
            moved = "" if event.host == event.host_before else f", before on {event.host_before}"
            return f"{event.member} has a new member id, on {event.host}{moved}"
        case Rebalanced():
            return f"rebalance: {rebalance(event)}"
        case LagReported():
            return f"{lag(event.lag)}{stalled(event.stalled)}"
        case BrokersUnavailable():
            return f"no answer: {event.reason}"
        case BrokersAvailable():
            return f"brokers answer again, after {event.seconds:.1f} s"
        case _:
            raise NotImplementedError(event)


def partitions(number: int | None) -> str:
    """Return the number of assigned partitions."""
    return "partitions not known" if number is None else plural(number, "partition")


def rebalance(event: Rebalanced) -> str:
    """Return a rebalance in words, on one line."""
    return "; ".join([f"{duration(event)}, {' -> '.join(event.states)}{_epochs(event)}", *changes(event)])


def duration(event: Rebalanced) -> str:
    """Return the duration of a rebalance as it was observed."""
    return "between two snapshots" if event.seconds is None else f"{event.seconds:.1f} s"


def _epochs(event: Rebalanced) -> str:
    return (
        ""
        if event.epoch is None or event.epoch_before is None
        else f", epoch {event.epoch_before} -> {event.epoch}"
    )


def changes(event: Rebalanced) -> list[str]:
    """Return what a rebalance changed: members, then partitions."""
    found = []
    if event.left:
        found.append(f"{_names(event.left)} left{_cause(event.stalled, named=len(event.left) > 1)}")
    if event.joined:
        found.append(f"{_names(event.joined)} joined")
    match event.moved:
        case None:
            found.append("what moved is not known, as it began before the first snapshot")
        case 0:
            found.append("no partition moved")
        case moved:
            found.append(f"{plural(moved, 'partition')} moved")
    found += [f"{name} lost {ranges_by_topic(some)}" for name, some in event.lost.items()]
    found += [f"{name} gained {ranges_by_topic(some)}" for name, some in event.gained.items()]
    return found


def _names(names: Sequence[str]) -> str:
    """Return names with the number of times that each occurs: a member may leave and join several times."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in counts.items())


def lag(rate: LagRate) -> str:
    """Return the lag with its rates."""
    if rate.lag is None:
        return "lag not known"
    unknown = f" ({plural(rate.unknown, 'partition')} not known)" if rate.unknown else ""
    rates = (
        ""
        if rate.produced is None
        else f", {rate.produced:,.1f}/s produced, {rate.consumed or 0:,.1f}/s consumed"
    )
    text = trend(rate)
    return f"lag {rate.lag:,}{unknown}{rates}{f', {text}' if text else ''}"


def trend(rate: LagRate) -> str:
    """Return the direction of the lag; empty if there is none, or it is not known."""
    match rate.trend:
        case Trend.GROWING:
            return f"growing by {rate.growth:,.1f}/s"
        case Trend.STEADY:
            return "steady"
        case Trend.DRAINING:
            return f"drained in {span(rate.drain_seconds or 0.0)}"
        case _:
            return ""


def stalled(some: Sequence[Stalled]) -> str:
    """Return the partitions without progress, or nothing."""
    return f"; no progress of {_places(some, named=True)}" if some else ""


def _cause(some: Sequence[Stalled], *, named: bool) -> str:
    """Return what explains that a member left, or nothing."""
    if not some:
        return ""
    return f" after no progress of {_places(some, named=named)}: it died, or exceeded max.poll.interval.ms"


def _places(some: Sequence[Stalled], *, named: bool) -> str:
    shown = ", ".join(
        f"{each.topic}-{each.partition} {_at(each.committed)} for {span(each.seconds)}"
        f"{f' ({each.member})' if named and each.member is not None else ''}"
        for each in some[:_MOST_STALLED]
    )
    more = f" and {len(some) - _MOST_STALLED} more" if len(some) > _MOST_STALLED else ""
    return f"{shown}{more}"


def _at(committed: int | None) -> str:
    return "without a committed offset" if committed is None else f"at {committed}"


def span(seconds: float) -> str:
    """Return a span of time, such as `12 s`, `3 min 20 s`, `2 h 05 min` or `3 d 4 h`."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
