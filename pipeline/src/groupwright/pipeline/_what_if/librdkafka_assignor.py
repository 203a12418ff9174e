"""The cooperative-sticky assignor of librdkafka, called in a process with librdkafka."""

from collections.abc import Callable

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    PartitionsByTopic,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from groupwright.pipeline._what_if.librdkafka_leader import GroupMember, LibrdkafkaLeader

LIBRDKAFKA_PREFIX = "librdkafka:"
LIBRDKAFKA_ASSIGNOR = LIBRDKAFKA_PREFIX + CooperativeStickyAssignor.name
"""The name of librdkafka's assignor. Its `range` and `roundrobin` are Kafka's; it has no other sticky one."""


class LibrdkafkaCooperativeSticky(CooperativeStickyAssignor):
    """librdkafka's cooperative-sticky assignor. Racks are not passed on."""

    def __init__(self, leader: LibrdkafkaLeader) -> None:
        """Create an instance that calls librdkafka through this leader of `cooperative-sticky`."""
        super().__init__()
        self._leader = leader

    def assign(self, group: Group) -> Assignment:
        """Return the assignment of librdkafka."""
        members = [
            GroupMember(
                member.id,
                member.instance_id,
                # Owned partitions are in the subscription: librdkafka does not need its user data.
                encode_subscription(Subscription(tuple(member.topics), b"", member.owned, member.generation)),
            )
            for member in group.members
        ]
        sizes = {topic: metadata.partitions for topic, metadata in group.topics.items()}
        assigned = self._leader.assign(members, sizes)
        return Assignment(
            {
                member.id: decode_assignment(assigned[member.id]).partitions
                if member.id in assigned
                else PartitionsByTopic({})
                for member in group.members
            }
        )


def librdkafka_assignor(name: str, leader: LibrdkafkaLeader) -> Callable[[], Assignor]:
    """Return a function that returns a new instance of librdkafka's assignor.

    Args:
        name: `LIBRDKAFKA_ASSIGNOR`.
        leader: The leader to call, of `cooperative-sticky`.

    Raises:
        AssignorError: There is no such assignor.
    """
    if name != LIBRDKAFKA_ASSIGNOR:
        raise AssignorError(f"no assignor is named {name!r}; librdkafka's assignor: {LIBRDKAFKA_ASSIGNOR}")
    return lambda: LibrdkafkaCooperativeSticky(leader)
