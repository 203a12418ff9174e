"""The leader's step: everybody's subscriptions in, everybody's assignments out."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from groupwright.assignors._algorithms.check import assign, unassigned
from groupwright.assignors._model.assignment import Assignment
from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.group import Group, JoinedMember, Member, Topic
from groupwright.assignors._model.partitions import PartitionsByTopic
from groupwright.assignors._wire.group_codec import decode_topics, encode_assignments, read_subscriptions

_log = logging.getLogger(__name__)


def subscribed_topics(joined: Iterable[JoinedMember]) -> frozenset[str]:
    """Return the topics that the leader must know the partitions of. Nothing else of a subscription is looked at.

    Raises:
        MalformedBytesError: A subscription's topics cannot be read; the message names the member.
    """
    return frozenset().union(*{id(topics): topics for topics in decode_topics(_metadata(joined))}.values())


def perform_assignment(
    assignor: Assignor, joined: Sequence[JoinedMember], topics: Mapping[str, int | Topic]
) -> dict[str, bytes]:
    """Do what the group's leader does between JoinGroup and SyncGroup.

    The assignor's result is checked before it leaves. A partition of a subscribed topic that it gives to
    nobody, and that no member says it owns, is not consumed by anyone from then on; that is allowed, since
    an assignor may mean it, and logged as a warning.

    Args:
        assignor: The assignor that the group agreed on.
        joined: The members.
        topics: The topics that exist, at least those of `subscribed_topics`, with their partition counts.

    Returns:
        By member id, for every member, its assignment in the bytes of ConsumerProtocol (version 3).

    Raises:
        AssignorError: The assignor is not usable, or its result is not an assignment of this group.
        InvalidInputError: Two members have one id, or a partition count cannot be.
        MalformedBytesError: A subscription cannot be read; the message names the member.
    """
    ids = [member.id for member in joined]
    said = read_subscriptions(ids, [member.metadata for member in joined])
    instance_ids = [member.instance_id for member in joined]
    members = map(
        Member.from_fields,
        ids,
        said.topics,
        said.owned,
        said.generations,
        instance_ids,
        said.racks,
        said.user_data,
    )
    group = Group(members, topics)
    assignment = assign(assignor, group)
    _warn_of_orphans(assignor, group, assignment)
    return encode_assignments(assignment)


def _metadata(joined: Iterable[JoinedMember]) -> Iterator[tuple[str, bytes]]:
    return ((member.id, member.metadata) for member in joined)


def _warn_of_orphans(assignor: Assignor, group: Group, assignment: Assignment) -> None:
    orphans = _orphans(group, assignment)
    if orphans:
        _log.warning(
            "Assignor %r gives %d partitions of subscribed topics to no member, so nobody consumes them: %r",
            assignor.name,
            orphans.count,
            orphans,
        )


def _orphans(group: Group, assignment: Assignment) -> PartitionsByTopic:
    """Return the partitions that nobody is given and nobody says it owns.

    A partition that somebody says it owns may be withheld until that member has given it up (KIP-429).
    """
    free = unassigned(group, assignment)
    if not free:
        return free
    claimed = PartitionColumns.of([member.owned for member in group.members]).keys(free.topics)
    orphaned = np.setdiff1d(PartitionColumns.of([free]).keys(free.topics), claimed)
    bounds = np.searchsorted(orphaned, np.arange(len(free) + 1) << 32)
    by_topic = np.split((orphaned & 0xFFFFFFFF).astype(np.int32), bounds[1:-1])
    return PartitionsByTopic(dict(zip(free.topics, by_topic, strict=True)))
