"""Reasons of `range` and `roundrobin`, which depend on the members' order, not on owned partitions. Pure."""

from collections.abc import Iterator, Sequence

from groupwright.assignors import Group, Member, RangeAssignor
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import GroupMember
from groupwright.cli._study.model import StudiedGroup, counted
from groupwright.cli.explain.situation import Before, Situation
from groupwright.cli.explain.words import joined, of_topic, ordinal
from groupwright.core import TopicPartitionKey

RANGE = "range"
ASSIGNORS = (RANGE, "roundrobin")

_ORDER = "static members first, by group.instance.id, then the others by member id"


def summary(situation: Situation, assignor: str) -> Iterator[str]:
    """Return how the assignor assigns, and what is uneven by it."""
    if assignor == RANGE:
        yield (
            f"range sorts the members of each topic ({_ORDER}) and gives each one range of the topic's "
            "partitions; the first members get one more where a topic cannot be divided evenly."
        )
        if _racks_apply(situation):
            yield (
                "Racks apply: each member gets as many partitions as its range has, those with a replica in "
                "its rack first (KIP-881), so they are no longer ranges."
            )
    else:
        yield (
            f"roundrobin sorts the members ({_ORDER}) and deals all partitions in turn, topic by topic, each "
            "to the next member that subscribes to the topic; the next topic continues where the last one "
            "ended."
        )
    quality = situation.quality
    if quality is not None and quality.imbalance > max(1, quality.min_imbalance):
        yield _uneven(situation, assignor, quality.min_imbalance)


def _uneven(situation: Situation, assignor: str, least: int) -> str:
    counts = {situation.names[each.id]: situation.partition_count(each) for each in situation.study.members}
    most, fewest = max(counts, key=lambda name: counts[name]), min(counts, key=lambda name: counts[name])
    why = (
        "each topic is divided by itself, and the first members get the larger ranges of every topic"
        if assignor == RANGE
        else "members subscribe to different topics, which the deal does not even out"
    )
    return (
        f"{most} has {counts[most]} and {fewest} has {counts[fewest]}: {why}. A sticky assignor would reach "
        f"a difference of {least}."
    )


def member_sentences(situation: Situation, member: GroupMember, assignor: str) -> list[str]:
    """Return a sentence for each topic that a member subscribes to."""
    topics = [topic for topic in situation.subscribers if topic in member.topics]
    return [topic_sentence(situation, member, topic, assignor) for topic in topics]


def topic_sentence(situation: Situation, member: GroupMember, topic: str, assignor: str) -> str:
    """Return why a member has its partitions of a topic to which it subscribes."""
    name, subscribers = situation.names[member.id], len(situation.subscribers[topic])
    partitions = situation.study.topics[topic].partitions
    has = member.assigned.get(topic, ())
    should = situation.expected(assignor)[member.id].as_tuples().get(topic, ())
    if has != should:
        return (
            f"{name} has {of_topic(topic, has)}, but for these members and topics {assignor} gives it "
            f"{of_topic(topic, should)}: the group's leader saw other members, topics or racks."
        )
    place = f"{name} is {_place(situation, topic, member)} for {topic}"
    if not has:
        return f"{place}, which has only {counted(partitions, 'partition')}, so it gets none."
    if assignor == RANGE:
        return f"{place}, so it gets {_range(situation, member, topic)}."
    turn = f"partition {has[0]}"
    if len(has) > 1:
        turn += f" and every {ordinal(subscribers)} after it" if subscribers > 1 else " and all after it"
    return f"{place}, and its turn comes at {turn}, so it gets {of_topic(topic, has)}."


def _range(situation: Situation, member: GroupMember, topic: str) -> str:
    partitions, subscribers = situation.study.topics[topic].partitions, len(situation.subscribers[topic])
    has, share = member.assigned[topic], _share(partitions, subscribers)
    if has == _plain_range(partitions, subscribers, situation.place(topic, member)):
        return f"{of_topic(topic, has)}: {share}"
    racks = situation.study.topics[topic].racks
    if not racks or not member.rack:
        why = "which the members with racks have left to it"
    else:
        matches = sum(member.rack in racks[number] for number in has)
        why = f"of which {matches} of {len(has)} have a replica in its rack {member.rack}"
    return f"{counted(len(has), 'partition')} ({share}): {of_topic(topic, has)}, {why}"


def move_reason(
    situation: Situation,
    before: Before,
    key: TopicPartitionKey,
    previous_owner: GroupMember,
    owner: GroupMember,
) -> str:
    """Return why a partition moved between two members of the group.

    Args:
        situation: The group, whose assignor is `range` or `roundrobin`.
        before: The group before.
        key: The partition.
        previous_owner: The member that had it.
        owner: The member that has it.
    """
    topic, assignor = key[0], situation.study.assignor
    verb = "divided" if assignor == RANGE else "dealt"
    start = f"{assignor} does not look at what members have: it {verb} {topic} anew"
    if before.study is None:
        return f"{start}. What changed is not known; compare with --before."
    changes = _changes(situation, before.study, topic)
    because = f", since {joined(changes)}" if changes else ""
    earlier = _earlier_subscribers(before.study, topic)
    places = [_place_then_and_now(situation, earlier, topic, each) for each in (previous_owner, owner)]
    return f"{start}{because}. {'; '.join(places)}."


def _place_then_and_now(situation: Situation, earlier: Sequence[str], topic: str, member: GroupMember) -> str:
    name, now = situation.names[member.id], _place(situation, topic, member)
    if member.identity not in earlier:
        return f"{name} is new and is {now}"
    was = f"{ordinal(earlier.index(member.identity) + 1)} of {len(earlier)}"
    return f"{name} is {now} as before" if was == now else f"{name} was {was} and is {now}"


def _place(situation: Situation, topic: str, member: GroupMember) -> str:
    return f"{ordinal(situation.place(topic, member) + 1)} of {len(situation.subscribers[topic])}"


def _earlier_subscribers(before: StudiedGroup, topic: str) -> list[str]:
    """Return the identities of a topic's subscribers before, in their order then."""
    identities = {member.id: member.identity for member in before.members}
    return [identities[member.id] for member in before.as_group({}).subscribers().get(topic, [])]


def _changes(situation: Situation, before: StudiedGroup, topic: str) -> list[str]:
    """Return what changed for a topic, in words."""
    names_before = member_names(before.members)
    then = {each.identity: names_before[each.id] for each in before.members if topic in each.topics}
    now = {
        each.identity: situation.names[each.id] for each in situation.study.members if topic in each.topics
    }
    changes = []
    if new := sorted(now[identity] for identity in now.keys() - then.keys()):
        changes.append(f"{joined(new)} joined")
    if gone := sorted(then[identity] for identity in then.keys() - now.keys()):
        changes.append(f"{joined(gone)} left")
    earlier, partitions = before.topics.get(topic), situation.study.topics[topic].partitions
    if earlier is not None and earlier.partitions != partitions:
        changes.append(f"it has {partitions} partitions instead of {earlier.partitions}")
    return changes


def _racks_apply(situation: Situation) -> bool:
    group = situation.group
    if not situation.study.has_racks:
        return False
    without = Group(
        [Member(each.id, each.topics, instance_id=each.instance_id) for each in group.members], group.topics
    )
    return situation.expected(RANGE) != RangeAssignor().assign(without)


def _plain_range(partitions: int, subscribers: int, place: int) -> tuple[int, ...]:
    each, more = divmod(partitions, subscribers)
    start = place * each + min(place, more)
    return tuple(range(start, start + each + (place < more)))


def _share(partitions: int, subscribers: int) -> str:
    each, more = divmod(partitions, subscribers)
    if not more:
        return f"{counted(partitions, 'partition')} are {each} for each"
    first = "the first" if more == 1 else f"the first {more}"
    if not each:
        return f"{counted(partitions, 'partition')} {'is' if partitions == 1 else 'are'} 1 for {first}"
    return f"{counted(partitions, 'partition')} are {each} for each, and one more for {first}"
