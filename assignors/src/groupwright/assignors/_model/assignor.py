"""Assignor interface and the rebalance protocols."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from groupwright.assignors.errors import AssignorError

if TYPE_CHECKING:
    from groupwright.assignors._model.columns import Assignment
    from groupwright.assignors._model.group import Group
    from groupwright.assignors._model.partitions import PartitionsByTopic
    from groupwright.assignors._model.weight_source import WeightSource

Plan = Mapping[str, Mapping[str, Iterable[int]]]
"""Result of a custom assignor, as an alternative to `Assignment`: partitions by member id and topic."""


class RebalanceProtocol(IntEnum):
    """Treatment of a member's partitions before it joins a rebalance (KIP-429)."""

    EAGER = 0
    """The member revokes all of them, so that any can be assigned to any member."""

    COOPERATIVE = 1
    """The member keeps them. A partition that moves is revoked in one rebalance, and assigned in the next."""


class Assignor(ABC):
    """Assigns partitions to a group's members. A custom assignor is a subclass with a `name` and `assign`.

    Each member calls `user_data` before it joins the group, and `on_assignment` when it has its assignment.
    In between, the leader calls `assign`. This is the contract of Java's `ConsumerPartitionAssignor`, where
    `user_data` is `subscriptionUserData`, except that an assignment has no user data. Groupwright's consumer
    calls `user_data` and `on_assignment` on its network thread, and `assign` on another, so that heartbeats
    continue meanwhile.

    Attributes:
        name: The protocol name that the members agree on. All members must offer an assignor of this name;
            the leader runs its own. Kafka's are `range`, `roundrobin`, `sticky` and `cooperative-sticky`.
        protocols: The rebalance protocols that the assignor supports. An assignor that supports COOPERATIVE
            must not assign a partition to a member while another member owns it.
        weights: The source of the topics' weights, which the leader asks before it calls `assign`, or None.
        processing_times: Seconds per message of the member's partitions, by topic. The consumer sets it
            before it calls `user_data`, if `weights` needs it.
        rebalance_protocol: The protocol by which the member rebalances: the highest that all its assignors
            support. The consumer and `simulate` set it before they call `user_data`; None if it is unknown,
            or if the assignor's attributes cannot be set, as in a frozen dataclass.
    """

    name: str
    protocols: frozenset[RebalanceProtocol] = frozenset({RebalanceProtocol.EAGER})
    weights: WeightSource | None = None
    processing_times: Mapping[str, Mapping[int, float]] = MappingProxyType({})
    rebalance_protocol: RebalanceProtocol | None = None

    @abstractmethod
    def assign(self, group: Group) -> Assignment | Plan:
        """Assign the group's partitions.

        The result should depend on the group alone, not on the order of its members. A member may be left out
        or be assigned nothing, and a partition may stay unassigned. A partition may be assigned only once,
        and only to a member that subscribes to its topic.
        """

    def user_data(self, topics: frozenset[str]) -> bytes | None:  # noqa: ARG002 - for subclasses
        """Return bytes that the leader's `assign` finds in `Member.user_data`; None for none.

        Args:
            topics: The topics that this member subscribes to.
        """
        return None

    def check_user_data(self, user_data: bytes) -> None:  # noqa: B027 - optional
        """Raise an exception if `assign` cannot decode a member's user data. The leader calls it first.

        `Member.user_data` of that member is then None, and the leader logs the reason. Members of other
        versions may send anything, and if `assign` raises, no member of the group is assigned anything.
        """

    def on_assignment(  # noqa: B027 - optional
        self, assignment: PartitionsByTopic, generation: int
    ) -> None:
        """Handle this member's new assignment.

        Args:
            assignment: All partitions that the member has now, not only the new ones.
            generation: The group's generation that the assignment belongs to.
        """


def check_assignor(assignor: Assignor) -> None:
    """Check that an assignor has a name and a protocol.

    Raises:
        AssignorError: The name is not a string or is empty, or `protocols` holds no protocol.
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
