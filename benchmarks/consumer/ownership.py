"""Ownership of partitions by the members' callbacks, which tells when a group has settled."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """An assignment or revocation of partitions.

    Attributes:
        at: Time at which the callback began, in microseconds.
        member: The member's number.
        gained: Whether the partitions were assigned, not revoked.
        partitions: The partitions concerned.
    """

    at: int
    member: int
    gained: bool
    partitions: frozenset[int]


def read_change(line: str) -> Change | None:
    """Parse a line of a members program; return None if it reports no change."""
    match line.split():
        case ["gained" | "gave" as word, member, at, numbers]:
            partitions = frozenset(map(int, numbers.split(",")))
            return Change(int(at), int(member), word == "gained", partitions)
    return None


class Ownership:
    """The current owners of a topic's partitions."""

    def __init__(self, partitions: int) -> None:
        """Create the map, without owners."""
        self.changes: list[Change] = []
        """The changes so far, in order of arrival."""
        self._partitions = partitions
        self._owned: dict[int, frozenset[int]] = {}

    def apply(self, change: Change) -> None:
        """Apply a change."""
        owned = self._owned.get(change.member, frozenset())
        self._owned[change.member] = owned | change.partitions if change.gained else owned - change.partitions
        self.changes.append(change)

    def end(self, member: int) -> None:
        """Take all partitions from a member that leaves or is dead."""
        self._owned.pop(member, None)

    def owners(self) -> dict[int, int]:
        """Return the owning member of each partition."""
        return {partition: member for member, owned in self._owned.items() for partition in owned}

    def is_settled(self, members: int) -> bool:
        """Return whether each partition has one owner, and the members' loads differ by at most one.

        There are at least as many partitions as members.
        """
        loads = sorted(len(owned) for owned in self._owned.values() if owned)
        least, rest = divmod(self._partitions, members)
        balanced = [least] * (members - rest) + [least + 1] * rest
        return loads == balanced and len(self.owners()) == self._partitions
