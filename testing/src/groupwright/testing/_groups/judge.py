"""Judge of a group: applies the rules to its events, one by one, as they happen or from histories. Pure."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.events import (
    Assigned,
    Committed,
    Consumed,
    Died,
    EndReached,
    Event,
    Killed,
    Left,
    Revoked,
    Sought,
)
from groupwright.testing._groups.member_history import MemberHistory, Window
from groupwright.testing._groups.offsets import Span
from groupwright.testing._groups.rules import Breach, PartitionLog, Rule, Starts, up_to_the_next


def in_order(histories: Mapping[str, Iterable[Event]]) -> Iterator[tuple[str, Event]]:
    """Merge histories into the order of time; simultaneous events of a member stay in their order."""
    events = [(name, event) for name, history in histories.items() for event in history]
    yield from sorted(events, key=lambda each: each[1].time)


def new_history(member: str) -> MemberHistory:
    """Return a member's history without events."""
    return MemberHistory(member, ())


class Judge:
    """Applies the rules to the events of a group, which come in the order of time.

    Attributes:
        members: The history of each member, by its name.
        owners: The open windows of each partition, by member.
    """

    def __init__(
        self, starts: Starts = up_to_the_next, history: Callable[[str], MemberHistory] = new_history
    ) -> None:
        """Begin without members.

        Args:
            starts: Returns the offsets at which an owner may start.
            history: Returns a new history of a member, to which no event was applied.
        """
        self.members: dict[str, MemberHistory] = {}
        self.owners: defaultdict[TopicPartitionKey, dict[str, Window]] = defaultdict(dict)
        self._starts = starts
        self._history = history
        self._creations: Counter[str] = Counter()
        self._logs: dict[tuple[TopicPartitionKey, int], PartitionLog] = {}
        self._log_of: dict[Window, PartitionLog] = {}

    # --- Events

    def apply(self, member: str, event: Event) -> list[Breach]:
        """Apply a member's event, and return the breaches that it shows.

        A commit counts as accepted by the coordinator at the event's time.
        """
        history = self.members.get(member)
        if history is None:
            history = self.members[member] = self._history(member)
        match event:
            case Assigned():
                return self._assign(history, event)
            case Revoked(partitions=partitions):
                found = [
                    Breach(Rule.NOT_ASSIGNED, event.time, member, partition)
                    for partition in partitions
                    if partition not in history.owned
                ]
                self._release(history, partitions)
            case Left():
                found = [
                    Breach(Rule.NOT_REVOKED, event.time, member, partition, window)
                    for partition, window in history.owned.items()
                ]
                self._release(history, tuple(history.owned))
            case Killed() | Died():
                found = []
                self._release(history, tuple(history.owned))
            case Consumed(spans=spans, polled=polled):
                found = [
                    breach for span in spans for breach in self._consume(history, span, polled, event.time)
                ]
            case EndReached():
                found = self._reach_end(history, event)
            case Sought(partition=partition, offset=offset):
                window = history.owned.get(partition)
                found = [] if window is None else self._log_of[window].seek(window, offset, event.time)
            case Committed(offsets=offsets, error=None):
                found = [
                    breach
                    for partition, offset in offsets.items()
                    for breach in self.log(partition).commit(
                        member, history.owned.get(partition), offset, event.time
                    )
                ]
            case _:
                found = []
        history.apply(event)
        return found

    def create_again(self, topic: str) -> None:
        """Record that a topic was deleted and is created again: its offsets begin anew."""
        self._creations[topic] += 1

    # --- State

    def log(self, partition: TopicPartitionKey) -> PartitionLog:
        """Return a partition's log since its topic was created last."""
        key = partition, self._creations[partition[0]]
        found = self._logs.get(key)
        if found is None:
            found = self._logs[key] = PartitionLog(partition)
        return found

    def log_of(self, window: Window) -> PartitionLog:
        """Return the log of the topic that existed when a window began."""
        return self._log_of[window]

    def windows(self) -> Iterator[Window]:
        """Iterate over all windows so far, by member."""
        for member in self.members.values():
            yield from member.windows

    # --- The rules

    def _assign(self, history: MemberHistory, event: Assigned) -> list[Breach]:
        found = [
            Breach(Rule.ASSIGNED_TWICE, event.time, history.name, partition, history.owned[partition])
            for partition in event.partitions
            if partition in history.owned
        ]
        self._release(history, event.partitions)
        history.apply(event)
        for partition in event.partitions:
            window = history.owned[partition]
            found += (
                Breach(Rule.TWO_OWNERS, event.time, history.name, partition, window, other)
                for other in self.owners[partition].values()
            )
            self.owners[partition][history.name] = window
            self._log_of[window] = self.log(partition)
        return found

    def _release(self, history: MemberHistory, partitions: Iterable[TopicPartitionKey]) -> None:
        for partition in partitions:
            self.owners[partition].pop(history.name, None)

    def _consume(self, history: MemberHistory, span: Span, polled: float, time: float) -> list[Breach]:
        partition = span.topic, span.partition
        window = history.window_of(partition, polled)
        if window is None:
            return [Breach(Rule.NOT_OWNED, time, history.name, partition, None, None, span.start, span.stop)]
        return self._log_of[window].consume(window, span, time, self._starts)

    def _reach_end(self, history: MemberHistory, event: EndReached) -> list[Breach]:
        partition, offset = event.partition, event.offset
        window = history.window_of(partition, event.polled)
        if window is None:
            return [Breach(Rule.NOT_OWNED, event.time, history.name, partition, None, None, offset, offset)]
        return self._log_of[window].reach_end(window, offset, event.time, self._starts)
