"""The leader's step between JoinGroup and SyncGroup: subscriptions in, assignments out, both in bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupwright.assignors._algorithms.check import assign_members
from groupwright.assignors._model.assignor import Assignor, check_assignor
from groupwright.assignors._model.group import JoinedMember, Topic
from groupwright.assignors._wire.group_codec import decode_members, encode_assignments


def perform_assignment(
    assignor: Assignor, joined: Sequence[JoinedMember], topics: Mapping[str, int | Topic]
) -> dict[str, bytes]:
    """Assign a group's partitions, as its leader does between JoinGroup and SyncGroup.

    The same as Java's `ConsumerCoordinator.onLeaderElected`. A leader that has to look the topics up first
    calls `decode_members`, `subscribed_topics`, `assign_members` and `encode_assignments` one by one.

    Args:
        assignor: The assignor that the coordinator chose.
        joined: The members in JoinGroup's response.
        topics: The existing topics, at least those in `subscribed_topics`, or their numbers of partitions.

    Returns:
        The assignment of every member by member id, in ConsumerProtocol version 3. A member whose
        subscription cannot be decoded is assigned nothing; see `decode_members`.

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of this group.
        InvalidInputError: Two members have the same id, or a number of partitions is out of range.
    """
    check_assignor(assignor)
    decoded = decode_members(joined, assignor)
    _, assignment = assign_members(assignor, decoded.members, topics)
    return encode_assignments(assignment, others=decoded.undecodable)
