"""What an assignor is."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from groupwright.assignors.errors import AssignorError

if TYPE_CHECKING:
    from groupwright.assignors._model.assignment import Assignment
    from groupwright.assignors._model.group import Group
    from groupwright.assignors._model.partitions import PartitionsByTopic

Plan = Mapping[str, Mapping[str, Iterable[int]]]
"""What an assignor may return: by member id and topic, the partitions in any order."""


class RebalanceProtocol(IntEnum):
    """What a member does with its partitions before it joins a rebalance (KIP-429)."""

    EAGER = 0
    """It gives all of them up, so that any may go to anyone."""

    COOPERATIVE = 1
    """It keeps them; one that moves is given up in one rebalance and handed over in the next."""


class Assignor(ABC):
    """Decides who gets which partitions. One's own is a subclass with a name and `assign`.

    A member of the group whose assignor this is calls `user_data` before it joins, and `on_assignment` when
    it has its share. The leader among them calls `assign` in between. This is the contract of Java's
    `ConsumerPartitionAssignor`, except that an assignment carries no user data.

    Attributes:
        name: What the members of a group agree on: all of them must know an assignor by this name, and the
            leader runs its own. Kafka's are `range`, `roundrobin`, `sticky` and `cooperative-sticky`.
        protocols: How members may rebalance under this assignor. One that supports COOPERATIVE must not
            give a partition to a member while another one still owns it.
    """

    name: str
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})

    @abstractmethod
    def assign(self, group: "Group") -> "Assignment | Plan":
        """Return who gets what. It should depend on the group alone, not on the order of its members.

        A member may be left out or get nothing, and a partition may be given to nobody; but each may be
        given once, and only to a member that subscribes to its topic.
        """

    def user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - for subclasses
        """Return bytes for the leader's `assign`, which finds them in `Member.user_data`.

        Args:
            topics: What this member subscribes to.
        """
        return None

    def on_assignment(  # noqa: B027 - most assignors need not know
        self, assignment: "PartitionsByTopic", generation: int
    ) -> None:
        """Take note of what this member got.

        Args:
            assignment: All partitions that it has now, not only those that are new.
            generation: The group's generation in which it got them.
        """


def check_assignor(assignor: Assignor) -> None:
    """Check that a group can agree on the assignor.

    Raises:
        AssignorError: The name is not a string, or is empty, or there is no protocol.
    """
    kind = type(assignor).__name__
    name = getattr(assignor, "name", None)
    if not (isinstance(name, str) and name):
        raise AssignorError(f"{kind}.name must be a string that is not empty, not {name!r}")
    protocols: Any = assignor.protocols
    are_protocols = isinstance(protocols, Collection) and all(
        isinstance(protocol, RebalanceProtocol) for protocol in protocols
    )
    if not are_protocols or not protocols:
        raise AssignorError(f"{kind}.protocols must hold EAGER, COOPERATIVE or both, not {protocols!r}")
