"""The story: what happens to the group, in order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


class Director(Protocol):
    """What the story needs: each call makes a change to the group's members, and returns when it is made."""

    def join(self, *names: str) -> None:
        """Start members."""

    def kill(self, name: str) -> None:
        """Kill a member's process."""

    def leave(self, name: str) -> None:
        """Have a member leave in good order."""


@dataclass(frozen=True, slots=True)
class Act:
    """One change of the group's membership, after which every partition must again have one owner."""

    title: str
    what: str
    """What happens, while it does."""
    perform: Callable[[Director], None]


def acts(session_seconds: float) -> tuple[Act, ...]:
    """Return the story. The first member lives through all of it."""
    return (
        Act(
            "member-1, member-2 and member-3 join",
            "three consumers start, each in a process of its own",
            lambda group: group.join("member-1", "member-2", "member-3"),
        ),
        Act(
            "member-4 joins",
            "a fourth consumer starts, and partitions move to it",
            lambda group: group.join("member-4"),
        ),
        Act(
            "member-2 is killed",
            f"SIGKILL: Kafka notices when its session ends, within {session_seconds:g} s",
            lambda group: group.kill("member-2"),
        ),
        Act(
            "member-3 leaves",
            "it commits, gives its partitions up, and tells the coordinator",
            lambda group: group.leave("member-3"),
        ),
    )
