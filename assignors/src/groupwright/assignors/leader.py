"""The leader's step: everybody's subscriptions in, everybody's assignments out."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from groupwright.assignors.assignment import Assignment
from groupwright.assignors.assignor import Assignor
from groupwright.assignors.check import assign, unassigned
from groupwright.assignors.errors import MalformedBytesError
from groupwright.assignors.model import Group, Member, Topic
from groupwright.assignors.partitions import PartitionArray, TopicPartitions
from groupwright.assignors.wire import Subscription, SubscriptionDecoder, encode_assignments

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member as the leader finds it in JoinGroup's response.

    Attributes:
        id: The coordinator's name for it.
        instance_id: `group.instance.id` of a static member, None of a dynamic one.
        metadata: Its subscription, in the bytes of ConsumerProtocol.
    """

    id: str
    instance_id: str | None
    metadata: bytes


def subscribed_topics(joined: Iterable[JoinedMember]) -> frozenset[str]:
    """Return the topics that the leader must know the partitions of.

    Raises:
        MalformedBytesError: A subscription cannot be read; the message names the member.
    """
    lists = {subscription.topics for _, subscription in _subscriptions(joined)}
    return frozenset().union(*lists)


def lead(
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
    group = Group([_member(member, read) for member, read in _subscriptions(joined)], topics)
    assignment = assign(assignor, group)
    _warn_of_orphans(assignor, group, assignment)
    return encode_assignments(assignment)


def _subscriptions(joined: Iterable[JoinedMember]) -> Iterable[tuple[JoinedMember, Subscription]]:
    decoder = SubscriptionDecoder()
    for member in joined:
        try:
            yield member, decoder.decode(member.metadata)
        except MalformedBytesError as error:
            whose = f"{error.what} of member {member.id!r}"
            raise MalformedBytesError(whose, error.offset, error.expected, error.found) from error


def _member(joined: JoinedMember, subscription: Subscription) -> Member:
    return Member(
        id=joined.id,
        topics=subscription.topics,
        owned=subscription.owned,
        generation=subscription.generation,
        instance_id=joined.instance_id,
        rack=subscription.rack,
        user_data=subscription.user_data,
    )


def _warn_of_orphans(assignor: Assignor, group: Group, assignment: Assignment) -> None:
    orphans = _orphans(group, assignment)
    if orphans:
        _log.warning(
            "Assignor %r gives %d partitions of subscribed topics to no member, so nobody consumes them: %r",
            assignor.name,
            orphans.count,
            orphans,
        )


def _orphans(group: Group, assignment: Assignment) -> TopicPartitions:
    """Return the partitions that nobody is given and nobody says it owns.

    A partition that somebody says it owns may be withheld until that member has given it up (KIP-429).
    """
    owners = [member.owned for member in group.members if member.owned]

    def without_owner(topic: str, partitions: PartitionArray) -> PartitionArray:
        claimed = [owned[topic] for owned in owners if topic in owned]
        return np.setdiff1d(partitions, np.concatenate(claimed)) if claimed else partitions

    return TopicPartitions(
        {topic: without_owner(topic, free) for topic, free in unassigned(group, assignment).items()}
    )
