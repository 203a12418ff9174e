"""Who owns which partitions, as the members' callbacks tell it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A member gained partitions, or gave them up.

    Attributes:
        at: When its callback began, in microseconds.
        member: Its number.
        gained: Whether it gained them.
        partitions: Which.
    """

    at: int
    member: int
    gained: bool
    partitions: frozenset[int]


def read_change(line: str) -> Change | None:
    """Read what a program of members says; None if it tells of no change."""
    match line.split():
        case ["gained" | "gave" as word, member, at, numbers]:
            partitions = frozenset(map(int, numbers.split(",")))
            return Change(int(at), int(member), word == "gained", partitions)
    return None


class Ownership:
    """The partitions of a topic, and their owners at present."""

    def __init__(self, partitions: int) -> None:
        """Begin with no owners."""
        self.changes: list[Change] = []
        """What has changed so far, in the order in which it was heard."""
        self._partitions = partitions
        self._owned: dict[int, frozenset[int]] = {}

    def apply(self, change: Change) -> None:
        """Take a change into account."""
        owned = self._owned.get(change.member, frozenset())
        self._owned[change.member] = owned | change.partitions if change.gained else owned - change.partitions
        self.changes.append(change)

    def owners(self) -> dict[int, int]:
        """Return the member that owns each partition, by partition."""
        return {partition: member for member, owned in self._owned.items() for partition in owned}

    def is_settled(self, members: int) -> bool:
        """Tell whether each partition has one owner, and the loads of this many members differ by one at most."""
        loads = sorted(len(owned) for owned in self._owned.values())
        least, rest = divmod(self._partitions, members)
        balanced = [least] * (members - rest) + [least + 1] * rest
        return loads == balanced and len(self.owners()) == self._partitions
