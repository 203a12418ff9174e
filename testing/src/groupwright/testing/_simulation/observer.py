"""Observer of simulated members: the calls with which members report what their applications see.

Members of any kind report to one observer, so its methods take names and plain values. Calls come at the
virtual time of the event, before the member's next action.
"""

from collections.abc import Sequence
from typing import Protocol

from groupwright.testing._simulation.messages import TopicPartition


class Observer(Protocol):
    """Receives the events of members.

    A member is named by its process. Its generation is that of its last completed rebalance.
    """

    def joined(self, member: str, generation: int) -> None:
        """A member has completed a rebalance; `revoked` and `assigned` follow, if anything changes."""

    def assigned(self, member: str, partitions: Sequence[TopicPartition], generation: int) -> None:
        """A member owns these partitions, besides those that it has kept, from this generation on."""

    def revoked(self, member: str, partitions: Sequence[TopicPartition], generation: int) -> None:
        """A member has revoked partitions; it owned them in this generation."""

    def lost(self, member: str, partitions: Sequence[TopicPartition], generation: int) -> None:
        """A member has lost partitions: others may own them already."""

    def delivered(self, member: str, topic_id: int, topic: str, partition: int, offset: int) -> None:
        """An application has received a message."""

    def committed(self, member: str, partition: TopicPartition, offset: int) -> None:
        """The coordinator has accepted a member's commit."""

    def closed(self, member: str) -> None:
        """A member's `close` has returned."""

    def failed(self, member: str, reason: str) -> None:
        """A member has ended with a fatal error."""
