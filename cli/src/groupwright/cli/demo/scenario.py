"""Scenario of the demo: changes of the group's members, in order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

SESSION_SECONDS = 6
"""`session.timeout.ms` in seconds: the default minimum of brokers (`group.min.session.timeout.ms`)."""


class GroupControl(Protocol):
    """Interface for changes of the group's members. Calls return when the change is made."""

    def join(self, *names: str) -> None:
        """Start members."""

    def kill(self, name: str) -> None:
        """Kill a member's process."""

    def leave(self, name: str) -> None:
        """Make a member leave."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the group's membership, after which every partition must again have one owner.

    Attributes:
        title: The change, in a few words.
        what: An explanation, shown during the change.
        perform: Makes the change.
    """

    title: str
    what: str
    perform: Callable[[GroupControl], None]


STEPS = (
    Step(
        "member-1, member-2 and member-3 join",
        "three consumers start, each in a process of its own",
        lambda group: group.join("member-1", "member-2", "member-3"),
    ),
    Step(
        "member-4 joins",
        "a fourth consumer starts, and partitions move to it",
        lambda group: group.join("member-4"),
    ),
    Step(
        "member-2 is killed",
        f"SIGKILL: Kafka notices when its session ends, within {SESSION_SECONDS} s",
        lambda group: group.kill("member-2"),
    ),
    Step(
        "member-3 leaves",
        "it commits, revokes its partitions, and leaves the group",
        lambda group: group.leave("member-3"),
    ),
)
"""The steps; member-1 runs from the first to the last."""
