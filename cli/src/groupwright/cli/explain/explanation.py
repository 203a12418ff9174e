"""Explanation of a group's assignment, in sentences. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from groupwright.cli._cluster.model import GroupMember, GroupType
from groupwright.cli._command_line.assignors import ASSIGNOR_NAMES
from groupwright.cli._command_line.output import few
from groupwright.cli._study.model import counted, does
from groupwright.cli.explain import by_balance, by_broker, by_order
from groupwright.cli.explain.situation import Before, Situation
from groupwright.core import TopicPartitionKey


@dataclass(frozen=True, slots=True)
class MemberExplanation:
    """Reasons for a member's partitions."""

    member: GroupMember
    name: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionExplanation:
    """Reason for a partition's owner, or for its move.

    Attributes:
        previous_owner: Name of the member that had it; None if none had, or that is not known.
        owner: Name of the member that has it; None if none has.
        has_moved: Whether the owners differ.
    """

    key: TopicPartitionKey
    previous_owner: str | None
    owner: str | None
    has_moved: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of a group."""

    situation: Situation
    summary: tuple[str, ...]
    members: tuple[MemberExplanation, ...]
    partitions: tuple[PartitionExplanation, ...]


def explain(
    situation: Situation,
    members: Collection[str] | None = None,
    partitions: Collection[TopicPartitionKey] | None = None,
) -> Explanation:
    """Explain an assignment.

    Args:
        situation: The group.
        members: Ids of the members to explain; None for all.
        partitions: The partitions to explain; None for all that moved.
    """
    chosen = [each for each in situation.study.members if members is None or each.id in members]
    keys = situation.moved() if partitions is None else sorted(partitions)
    return Explanation(
        situation,
        tuple(_summary(situation)),
        tuple(
            MemberExplanation(each, situation.names[each.id], tuple(_member(situation, each)))
            for each in sorted(chosen, key=lambda each: (situation.names[each.id], each.id))
        ),
        tuple(_partition(situation, key) for key in keys),
    )


def _summary(situation: Situation) -> Iterator[str]:
    study, quality = situation.study, situation.quality
    if not study.members:
        state = f"The group is {study.state}: it" if study.state else "The group"
        yield f"{state} has no members, so nothing is assigned."
        return
    if situation.is_computed:
        yield f"The file has no assignment: this is what {study.assignor} assigns, from what members own."
    if study.type is GroupType.CONSUMER:
        yield from by_broker.summary(situation)
    elif study.assignor in by_order.ASSIGNORS:
        yield from by_order.summary(situation, study.assignor)
    elif study.assignor in ASSIGNOR_NAMES:
        yield from by_balance.summary(situation, study.assignor)
    else:
        yield from _unknown(situation)
    if study.missing:
        yield (
            f"Members subscribe to {few(study.missing)}, which {does(len(study.missing))} not exist or may "
            "not be seen: nothing of that can be explained."
        )
    if quality is None:
        yield (
            "Members have partitions of topics that they do not subscribe to, or that do not exist or may "
            "not be seen, or several have the same one, so the balance cannot be computed."
        )
    elif quality.unassigned and study.has_assignment:
        yield (
            f"{counted(quality.unassigned, 'partition')} of subscribed topics have no member: a cooperative "
            "rebalance is not complete, the topic has grown, or the assignor left them out."
        )


def _unknown(situation: Situation) -> Iterator[str]:
    study, quality = situation.study, situation.quality
    if study.assignor is None:
        yield "The group's assignor is not known, so its reasons are not either."
    else:
        yield (
            f"The assignor {study.assignor!r} is not one that this program knows, so its reasons are not "
            "known; this describes the balance alone. `groupwright simulate --assignor module:Class` "
            "compares it with others."
        )
    if study.has_assignment and quality is not None:
        yield (
            f"The members' numbers of partitions differ by {quality.imbalance}; the least possible is "
            f"{quality.min_imbalance}."
        )


def _member(situation: Situation, member: GroupMember) -> Iterator[str]:
    study, name = situation.study, situation.names[member.id]
    if member.undecodable is not None:
        yield f"{name} has nothing, since what was sent cannot be decoded: {member.undecodable}."
    elif not study.has_assignment:
        yield f"{name}'s assignment is not known."
    elif not any(topic in study.topics for topic in member.topics):
        subscription = few(member.topics) or "no topic"
        yield f"{name} subscribes to {subscription}; none exists or may be seen, so nothing can be explained."
    elif study.type is GroupType.CONSUMER:
        yield from by_broker.member_sentences(situation, member)
    elif study.assignor in by_order.ASSIGNORS:
        yield from by_order.member_sentences(situation, member, study.assignor)
    elif study.assignor in ASSIGNOR_NAMES:
        yield from by_balance.member_sentences(situation, member, study.assignor)
    else:
        yield f"{name} has {counted(situation.partition_count(member), 'partition')}."
        yield from by_balance.kept_and_received(situation, member)


def _partition(situation: Situation, key: TopicPartitionKey) -> PartitionExplanation:
    before, owner = situation.before, situation.owners.get(key)
    previous_owner = None if before is None else before.owners.get(key)
    return PartitionExplanation(
        key,
        None if before is None or previous_owner is None else before.names[previous_owner],
        None if owner is None else situation.names[owner.id],
        before is not None and previous_owner != (None if owner is None else owner.identity),
        _reason(situation, key, owner),
    )


def _reason(situation: Situation, key: TopicPartitionKey, owner: GroupMember | None) -> str:
    shown, before = f"{key[0]}-{key[1]}", situation.before
    if owner is None:
        return f"No member has {shown}: {_why_unassigned(situation, key)}."
    name, assignor = situation.names[owner.id], situation.study.client_assignor
    if before is None:
        if assignor in by_order.ASSIGNORS and key[0] in owner.topics and key[0] in situation.subscribers:
            return f"{name} has {shown}: {by_order.topic_sentence(situation, owner, key[0], assignor)}"
        return f"{name} has {shown}. What was before is not known: pass --before FILE, which --save wrote."
    previous_owner = before.owners.get(key)
    if previous_owner == owner.identity:
        return f"{name} has {shown}, and had it before."
    source = None if previous_owner is None else situation.by_identity.get(previous_owner)
    if source is None or key[0] not in source.topics:
        origin = by_balance.origin(situation, before, key)
        return f"{name} received {shown}{origin}.{_restarted(situation, before, previous_owner)}"
    if key[0] not in situation.subscribers:
        why = f"Why is not known, as {key[0]} does not exist, or may not be seen."
    elif key[0] not in owner.topics:
        why = f"Why is not known, as {name} does not subscribe to {key[0]}."
    elif assignor in by_order.ASSIGNORS:
        why = by_order.move_reason(situation, before, key, source, owner)
    elif assignor in ASSIGNOR_NAMES or situation.study.type is GroupType.CONSUMER:
        why = by_balance.move_reason(situation, before, key, source, owner)
    else:
        why = f"Why is not known, as the assignor {situation.study.assignor!r} is not."
    return f"{shown} moved from {situation.names[source.id]} to {name}. {why}"


def _why_unassigned(situation: Situation, key: TopicPartitionKey) -> str:
    topic, number = key
    known = situation.study.topics.get(topic)
    if known is None or number >= known.partitions:
        return "it does not exist, or may not be seen"
    if topic not in situation.subscribers:
        return "no member subscribes to the topic"
    if not situation.study.has_assignment:
        return "the assignment is not known"
    return "a cooperative rebalance is not complete, the topic has grown, or the assignor left it out"


def _restarted(situation: Situation, before: Before, previous_owner: str | None) -> str:
    """Return a hint if a member that left may be one that joined under a new id."""
    gone = None if previous_owner is None else before.member(previous_owner)
    if gone is None or previous_owner in situation.by_identity or gone.instance_id is not None:
        return ""
    same = [
        each
        for each in situation.study.members
        if each.client_id == gone.client_id and before.member(each.identity) is None
    ]
    if not same:
        return ""
    return (
        f" {situation.names[same[0].id]} is new and has the same client id: if it is the same process, it "
        "would have kept its partitions with a group.instance.id."
    )
