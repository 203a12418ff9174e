"""Rules of a consumer group: one owner a partition, messages in order, commits that follow them. Pure.

The rules know no faults. They find breaches, and the caller, who knows the faults, excuses or reports them:
at once, or after the last event, when the ends of the windows are known.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from enum import StrEnum

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.member_history import Window
from groupwright.testing._groups.offsets import OffsetMap, Span


class Rule(StrEnum):
    """A rule, named by its breach."""

    TWO_OWNERS = "two owners"
    """A member was assigned a partition that another one owned."""
    ASSIGNED_TWICE = "assigned twice"
    """A member was assigned a partition that it owned."""
    NOT_ASSIGNED = "not assigned"
    """on_revoke or on_lost was called for a partition that the member did not own."""
    NOT_REVOKED = "not revoked"
    """A member left, and owned a partition."""
    NOT_OWNED = "not owned"
    """A member received messages, or the end, of a partition that it did not own."""
    STARTED_ELSEWHERE = "started elsewhere"
    """An owner's first offset was none at which it could start."""
    SKIPPED = "skipped"
    """An owner received an offset beyond the next one, or sought one that no message before had reached."""
    WENT_BACK = "went back"
    """An owner received offsets before the next one."""
    WRONG_END = "wrong end"
    """An owner reached the end of the partition at another offset than the next one."""
    CONSUMED_TWICE = "consumed twice"
    """Offsets were received again, by the same owner or another one."""
    COMMIT_WENT_BACK = "commit went back"
    """A commit was accepted with an offset before the last accepted one."""
    COMMIT_BEYOND = "commit beyond"
    """A commit was accepted of a message that no member had received."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A rule that was broken, unless a fault allows it.

    Attributes:
        rule: The rule.
        time: Time in seconds of the event that broke it.
        member: The member that reported the event.
        partition: The partition.
        window: The member's ownership window; None if it did not own the partition.
        other: The window of the other owner, or the one in which the offsets were received before.
        start: The first offset of the messages, or the offset of the end, the seek or the commit.
        stop: The offset after the last message; `start` if there is none.
        expected: The offset that was next; if there was none, and of a seek, the offset after the highest one
            that was received; of a commit, the offset that was the limit.
    """

    rule: Rule
    time: float
    member: str
    partition: TopicPartitionKey
    window: Window | None = None
    other: Window | None = None
    start: int = 0
    stop: int = 0
    expected: int = 0

    @property
    def span(self) -> Span:
        """The offsets of the messages."""
        return Span(*self.partition, self.start, self.stop)

    def __str__(self) -> str:
        """Return what the member did."""
        topic, number = self.partition
        place = f"{topic} [{number}]"
        return _WORDS[self.rule].format(
            self, place=place, what=self.span if self.stop > self.start else f"{place}, offset {self.start}"
        )


_NEXT = "{0.member} reached {what}, and {0.expected} was next"
_WORDS = {
    Rule.TWO_OWNERS: "{0.window}, while {0.other}",
    Rule.ASSIGNED_TWICE: "{0.member} was assigned {place}, and owned it",
    Rule.NOT_ASSIGNED: "{place} was revoked of {0.member}, which did not own it",
    Rule.NOT_REVOKED: "{0.member} left, and {place} was not revoked",
    Rule.NOT_OWNED: "{0.member} reached {what}, and did not own the partition",
    Rule.STARTED_ELSEWHERE: "{0.member} started at {what}; before, {0.expected} was next",
    Rule.SKIPPED: _NEXT,
    Rule.WENT_BACK: _NEXT,
    Rule.WRONG_END: _NEXT,
    Rule.CONSUMED_TWICE: "{0.member} received {what} again, after {0.other}",
    Rule.COMMIT_WENT_BACK: "{0.member} committed {0.start} of {place}, after {0.expected}",
    Rule.COMMIT_BEYOND: "{0.member} committed {0.start} of {place}, and {0.expected} was next",
}
"""A breach in words, with the partition's name and the offsets."""


class PartitionLog:
    """Deliveries and commits of a partition since its topic was created.

    Attributes:
        partition: The partition.
        consumed: The last window in which each offset was received.
        committed: The last accepted commit; 0 for none.
        committed_by: The member whose commit that was; empty for none.
        commits: Time and offset of each accepted commit.
        positions: The next offset of each window in which there was an offset before.
    """

    def __init__(self, partition: TopicPartitionKey) -> None:
        """Start without messages and commits."""
        self.partition = partition
        self.consumed: OffsetMap[Window] = OffsetMap()
        self.committed = 0
        self.committed_by = ""
        self.commits: list[tuple[float, int]] = []
        self.positions: dict[Window, int] = {}

    def consume(self, window: Window, span: Span, time: float, starts: "Starts") -> list[Breach]:
        """Check messages that an owner received."""
        found = self._check_next(window, span.start, span.stop, time, starts)
        self.positions[window] = span.stop
        for piece in self.consumed.put(span.start, span.stop, window):
            again = self._breach(
                Rule.CONSUMED_TWICE, window, time, piece.start, piece.stop, self.consumed.end
            )
            found.append(replace(again, other=piece.holder))
        return found

    def reach_end(self, window: Window, offset: int, time: float, starts: "Starts") -> list[Breach]:
        """Check the end of the partition, which an owner reached."""
        found = self._check_next(window, offset, offset, time, starts)
        self.positions[window] = offset
        return found

    def seek(self, window: Window, offset: int, time: float) -> list[Breach]:
        """Check the target of an owner's seek."""
        self.positions[window] = offset
        end = self.consumed.end
        return [self._breach(Rule.SKIPPED, window, time, offset, offset, end)] if offset > end else []

    def commit(self, member: str, window: Window | None, offset: int, time: float) -> list[Breach]:
        """Check a commit that the coordinator accepted."""
        found = []
        for rule, is_broken, limit in (
            (Rule.COMMIT_WENT_BACK, offset < self.committed, self.committed),
            (Rule.COMMIT_BEYOND, offset > self.consumed.complete, self.consumed.complete),
        ):
            if is_broken:
                found.append(Breach(rule, time, member, self.partition, window, None, offset, offset, limit))
        self.committed, self.committed_by = offset, member
        self.commits.append((time, offset))
        return found

    def _check_next(
        self, window: Window, start: int, stop: int, time: float, starts: "Starts"
    ) -> list[Breach]:
        expected = self.positions.get(window)
        if expected is None:
            if start in starts(window, self):
                return []
            return [self._breach(Rule.STARTED_ELSEWHERE, window, time, start, stop, self.consumed.end)]
        if start == expected:
            return []
        if stop == start:
            return [self._breach(Rule.WRONG_END, window, time, start, stop, expected)]
        if start > expected:
            return [self._breach(Rule.SKIPPED, window, time, start, stop, expected)]
        return [self._breach(Rule.WENT_BACK, window, time, start, min(stop, expected), expected)]

    def _breach(
        self, rule: Rule, window: Window, time: float, start: int, stop: int, expected: int
    ) -> Breach:
        return Breach(rule, time, window.member, self.partition, window, None, start, stop, expected)


Starts = Callable[[Window, PartitionLog], Container[int]]
"""Returns the offsets at which an owner may start."""


def up_to_the_next(_window: Window, log: PartitionLog) -> Container[int]:
    """Return all offsets that were received, and the next one."""
    return range(log.consumed.end + 1)
