"""The scenario: what happens to the group, in order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

SESSION_SECONDS = 6
"""How long the coordinator waits for a killed member; brokers allow no less by default."""


class Director(Protocol):
    """What the scenario needs: each call changes the group's members, and returns when that is done."""

    def join(self, *names: str) -> None:
        """Start members."""

    def kill(self, name: str) -> None:
        """Kill a member's process."""

    def leave(self, name: str) -> None:
        """Have a member leave."""


@dataclass(frozen=True, slots=True)
class Act:
    """One change of the group's membership, after which every partition must again have one owner.

    Attributes:
        title: Its name.
        what: What happens, while it does.
        perform: Makes the change.
    """

    title: str
    what: str
    perform: Callable[[Director], None]


ACTS = (
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
        f"SIGKILL: Kafka notices when its session ends, within {SESSION_SECONDS} s",
        lambda group: group.kill("member-2"),
    ),
    Act(
        "member-3 leaves",
        "it commits, revokes its partitions, and leaves the group",
        lambda group: group.leave("member-3"),
    ),
)
"""The first member lives through all of it."""
