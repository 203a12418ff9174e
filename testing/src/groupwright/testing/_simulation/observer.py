"""Observer of simulated members: the calls with which members report what their applications see.

Members of any kind report to one observer, so its methods take names and plain values. Calls come at the
virtual time of the event, before the member's next action.
"""

from collections.abc import Sequence
from typing import Protocol

from groupwright.core import TopicPartitionKey


class Observer(Protocol):
    """Receives the events of members.

    A member is named by its process. Its generation is that of its last completed rebalance.
    """

    def joined(self, member: str, generation: int) -> None:
        """Handle the end of a member's rebalance; `revoked` and `assigned` follow, if anything changes."""

    def assigned(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        """Handle new partitions of a member, which owns them from this generation on."""

    def revoked(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        """Handle a revocation of partitions, which the member owned in this generation."""

    def lost(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        """Handle the loss of partitions, which others may own already."""

    def delivered(self, member: str, topic_id: int, topic: str, partition: int, offset: int) -> None:
        """Handle a message that an application has received."""

    def committed(self, member: str, partition: TopicPartitionKey, offset: int) -> None:
        """Handle a commit that the coordinator has accepted."""

    def closed(self, member: str) -> None:
        """Handle the return of a member's `close`."""

    def failed(self, member: str, reason: str) -> None:
        """Handle a fatal error, with which a member has ended."""
