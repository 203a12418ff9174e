"""Running tally of all histories: partitions owned and messages consumed so far."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from groupwright.testing.groups import HistoryReader
from soak.events import (
    KINDS,
    Assigned,
    Consumed,
    Event,
    Interrupted,
    Key,
    Produced,
    Rebalanced,
    Revoked,
)

Position = tuple[Key, int]
"""A partition and an offset."""


class Tally:
    """Reads histories as they grow, and keeps them for the checker."""

    def __init__(self) -> None:
        """Create a tally without histories."""
        self.histories: dict[str, list[Event]] = {}
        self.produced: set[Position] = set()
        self.consumed: defaultdict[str, set[Position]] = defaultdict(set)
        """By group."""
        self.owned: defaultdict[str, set[Key]] = defaultdict(set)
        """By member."""
        self.rebalances: defaultdict[str, set[int]] = defaultdict(set)
        """The generations that any member has reported, by group."""
        self.joined: set[str] = set()
        """Members that have reported a generation."""
        self.interruptions: defaultdict[str, int] = defaultdict(int)
        """By group; each may have lost one message."""
        self._readers: dict[str, tuple[str, HistoryReader]] = {}

    def add(self, name: str, group: str, path: Path) -> None:
        """Add a history, of a member of the group or of a producer."""
        self.histories[name] = []
        self._readers[name] = (group, HistoryReader(path, KINDS))

    def read(self) -> None:
        """Read the events written since the last call."""
        for name, (group, reader) in self._readers.items():
            for event in reader.read():
                self.histories[name].append(event)
                self._record(name, group, event)

    def up(self, name: str) -> bool:
        """Return whether a process has written any event yet."""
        return bool(self.histories[name])

    def forget(self, topic: str) -> None:
        """Drop the messages produced to and consumed from a topic before its deletion."""
        self.produced = {each for each in self.produced if each[0][0] != topic}
        for group, consumed in self.consumed.items():
            self.consumed[group] = {each for each in consumed if each[0][0] != topic}

    def owns(self, member: str, topic: str) -> bool:
        """Return whether the member owns partitions of the topic, by its own record."""
        return any(key[0] == topic for key in self.owned[member])

    def unconsumed(self, group: str) -> int:
        """Return the number of messages that the group has yet to consume."""
        return len(self.produced - self.consumed[group])

    def unsettled(self, members: Iterable[str]) -> int:
        """Return the number of partitions without exactly one owner among these members."""
        owners: defaultdict[Key, int] = defaultdict(int)
        for member in members:
            for key in self.owned[member]:
                owners[key] += 1
        return sum(owners[key] != 1 for key in {key for key, _ in self.produced})

    def _record(self, name: str, group: str, event: Event) -> None:
        match event:
            case Produced(key=key, offset=offset):
                self.produced.add((key, offset))
            case Consumed(key=key, offset=offset):
                self.consumed[group].add((key, offset))
            case Interrupted():
                self.interruptions[group] += 1
            case Assigned(partitions=partitions):
                self.owned[name].update(partitions)
            case Revoked(partitions=partitions):
                self.owned[name].difference_update(partitions)
            case Rebalanced(generation=generation):
                self.rebalances[group].add(generation)
                self.joined.add(name)
            case _:
                pass
