"""Reasons of sticky assignors, which balance by the number of partitions or by load. Pure."""

from collections.abc import Callable, Iterable, Iterator

from groupwright.assignors import LoadReport, evaluate_load
from groupwright.cli._cluster.model import GroupMember, GroupType
from groupwright.cli._study.model import counted, flat
from groupwright.cli.explain.situation import Before, Situation
from groupwright.cli.explain.words import listed
from groupwright.core import TopicPartitionKey, assignor_traits

_BUNDLED, BY_LOAD = "co-partitioned-sticky", "load-aware"

_STICKY = (
    "{} evens out the members' numbers of partitions first, then prefers partitions with a replica in the "
    "member's rack, then keeps what members have."
)
PRIORITIES = {
    "sticky": _STICKY,
    "cooperative-sticky": _STICKY,
    _BUNDLED: (
        "{} gives the partitions of one number in joined topics to one member, evens out these bundles, then "
        "prefers racks, then keeps what members have."
    ),
    BY_LOAD: (
        "{} evens out the members' loads (the weights of their partitions over their capacities), and moves "
        "as few partitions as that takes; within its tolerance, 10 % unless it is configured, nothing moves."
    ),
}
"""By the names of these assignors: what they do, in the order of its importance."""


def summary(situation: Situation, assignor: str) -> Iterator[str]:
    """Return how the assignor assigns, and how near the assignment is to the best."""
    yield PRIORITIES[assignor].format(assignor)
    yield from _load_summary(situation) if assignor == BY_LOAD else _bounds(situation)
    quality = situation.quality
    if situation.before is None:
        yield (
            "What members had before is not known, so how many partitions each has can be explained, but not "
            "which. Save the group with --save, and pass the file as --before after a change."
        )
    elif received := _unclaimed(situation):
        yield (
            f"No member claimed {listed(received)} in the last round of this cooperative rebalance: "
            f"{counted(len(received), 'partition')} moved in two rounds, or had no member before. Who had "
            "what is not known: pass --before FILE, which --save wrote before the rebalance."
        )
    elif quality is not None:
        moved = counted(quality.moves, "partition")
        yield (
            f"{moved} moved between members that could have kept {'it' if quality.moves == 1 else 'them'}; "
            f"the best balance takes {quality.min_moves}."
        )


def _unclaimed(situation: Situation) -> list[TopicPartitionKey]:
    """Return the partitions that members received in the last round of a cooperative rebalance.

    Members claim what they own when they join that round; a partition that moved was revoked in the first.
    """
    before, assignor = situation.before, situation.study.client_assignor
    if before is None or before.study is not None or situation.is_computed:
        return []
    if assignor is None or not assignor_traits.is_cooperative(assignor):
        return []
    return sorted(situation.owners.keys() - before.owners.keys())


def _bounds(situation: Situation) -> Iterator[str]:
    members, partitions, quality = len(situation.study.members), situation.partitions, situation.quality
    if situation.has_equal_subscriptions:
        each, more = divmod(partitions, members)
        share = f"{each} or {each + 1} each: {_members_have(more)} one more" if more else f"{each} each"
        yield f"{counted(partitions, 'partition')} over {counted(members, 'member')} are {share}."
    elif quality is not None:
        yield (
            "Members subscribe to different topics, which may keep their numbers apart; a difference of "
            f"{quality.min_imbalance} is the least possible."
        )
    if quality is not None and quality.imbalance > max(1, quality.min_imbalance):
        yield (
            f"The numbers differ by {quality.imbalance}, more than the least possible of "
            f"{quality.min_imbalance}: another program assigned, the group has changed since, or the balance "
            "is counted in bundles."
        )


def _members_have(number: int) -> str:
    return "1 member has" if number == 1 else f"{number} members have"


def member_sentences(situation: Situation, member: GroupMember, assignor: str) -> Iterator[str]:
    """Return the reasons for a member's partitions."""
    yield from kept_and_received(situation, member)
    if assignor == BY_LOAD:
        yield from _load_of(situation, member)
    elif assignor != _BUNDLED:
        yield from _number_of(situation, member)
    yield from _racks_of(situation, member)


def kept_and_received(situation: Situation, member: GroupMember) -> Iterator[str]:
    """Return the partitions that a member keeps, received and no longer has, with their other owners."""
    before, name = situation.before, situation.names[member.id]
    if before is None:
        return
    had, has = set(flat(situation.had(member))), set(flat(member.assigned))
    if kept := had & has:
        some = "what" if kept == had else f"{len(kept)} of {counted(len(had), 'partition')} that"
        yield f"{name} keeps {some} it had: {listed(kept)}."
    elif not had:
        yield f"{name} had no partition before."
    origins = _grouped(has - had, lambda key: origin(situation, before, key))
    for words, keys in origins.items():
        yield f"It received {listed(keys)}{words}."
    for words, keys in _grouped(had - has, lambda key: _receiver(situation, key)).items():
        yield f"It no longer has {listed(keys)}, {words}."


def _grouped(
    keys: Iterable[TopicPartitionKey], words: Callable[[TopicPartitionKey], str]
) -> dict[str, list[TopicPartitionKey]]:
    found: dict[str, list[TopicPartitionKey]] = {}
    for key in sorted(keys):
        found.setdefault(words(key), []).append(key)
    return found


def origin(situation: Situation, before: Before, key: TopicPartitionKey) -> str:
    """Return where a partition comes from, in words that follow its name."""
    owner = before.owners.get(key)
    if owner is None:
        if before.study is None:
            return ", which no member claimed when the group last rebalanced"
        topic = before.study.topics.get(key[0])
        is_new = topic is None or key[1] >= topic.partitions
        return ", which did not exist before" if is_new else ", which no member had"
    name = before.names[owner]
    if owner not in situation.by_identity:
        return f" from {name}, which has left"
    if key[0] not in situation.by_identity[owner].topics:
        return f" from {name}, which no longer subscribes to {key[0]}"
    return f" from {name}"


def _receiver(situation: Situation, key: TopicPartitionKey) -> str:
    owner = situation.owners.get(key)
    return "which no member has now" if owner is None else f"which {situation.names[owner.id]} has now"


def _number_of(situation: Situation, member: GroupMember) -> Iterator[str]:
    has, name = situation.partition_count(member), situation.names[member.id]
    if not situation.has_equal_subscriptions:
        yield _restricted(situation, member)
        return
    each, more = divmod(situation.partitions, len(situation.study.members))
    if not more or has not in (each, each + 1):
        yield f"{name} has {has}; an even share is {f'{each} or {each + 1}' if more else each}."
    elif has == each:
        yield f"{name} has {has}, the smaller share."
    elif situation.before is None:
        yield f"{name} has {has}, the larger share; why it is one of those with one more is not known."
    else:
        yield _larger_share(situation, situation.before, member, more)


def _larger_share(situation: Situation, before: Before, member: GroupMember, more: int) -> str:
    """Return why a member is one of those with one partition more."""
    name = situation.names[member.id]
    has, had = situation.partition_count(member), before.partition_count(member.identity)
    if had >= has:
        return f"{name} has {has}, the larger share: it had {had}, so it need not revoke the last one."
    as_many = sum(before.partition_count(each.identity) >= has for each in situation.study.members)
    sentence = f"{name} has {has}, the larger share, and had {had}."
    if as_many < more:
        return f"{sentence} {_members_have(more)} one more, and only {as_many} had as many before."
    return f"{sentence} Why it is one of those with one more cannot be known from these two states."


def _restricted(situation: Situation, member: GroupMember) -> str:
    """Return how subscriptions restrict a member's number of partitions, to fewer or to more than others."""
    has, name = situation.partition_count(member), situation.names[member.id]
    topics = [topic for topic in situation.subscribers if topic in member.topics]
    available = sum(situation.study.topics[topic].partitions for topic in topics)
    if available == has:
        return f"{name} has all {counted(has, 'partition')} of the topics that it subscribes to."
    others = situation.study.members
    busier = [each for each in others if situation.partition_count(each) >= has + 2]
    if busier and not any(set(each.assigned) & set(member.topics) for each in busier):
        names = ", ".join(situation.names[each.id] for each in busier[:3])
        return (
            f"{name} has {has}. Members with two more or above, such as {names}, have no partition of a "
            f"topic that {name} subscribes to."
        )
    idler = [each for each in others if situation.partition_count(each) <= has - 2]
    if idler and not any(set(each.topics) & set(member.assigned) for each in idler):
        names = ", ".join(situation.names[each.id] for each in idler[:3])
        return (
            f"{name} has {has}. Members with two fewer or below, such as {names}, subscribe to none of the "
            "topics of its partitions."
        )
    return f"{name} has {has} of the {counted(available, 'partition')} of its topics."


def _racks_of(situation: Situation, member: GroupMember) -> Iterator[str]:
    topics = situation.study.topics
    known = [key for key in flat(member.assigned) if key[0] in topics and topics[key[0]].racks]
    if member.rack and known:
        matches = sum(_in_rack(situation, key, member.rack) for key in known)
        yield f"Partitions with a replica in its rack {member.rack}: {matches} of {len(known)}."


def _in_rack(situation: Situation, key: TopicPartitionKey, rack: str | None) -> bool:
    topic = situation.study.topics.get(key[0])
    if topic is None or topic.racks is None or rack is None or key[1] >= topic.partitions:
        return True
    return rack in topic.racks[key[1]]


# --- Load -------------------------------------------------------------------------------------------


def _load_report(situation: Situation) -> LoadReport | None:
    if not situation.study.has_weights or situation.quality is None:
        return None
    group = situation.study.as_group(
        {member.id: situation.had(member) for member in situation.study.members}, with_capacities=True
    )
    return evaluate_load(group, {member.id: member.assigned for member in situation.study.members})


def _load_summary(situation: Situation) -> Iterator[str]:
    report = _load_report(situation)
    if report is None:
        yield "The weights of partitions are not known, so the loads cannot be compared."
        return
    yield (
        f"The busiest member has {report.peak_over_average:.2f} times the average load; no assignment can be "
        f"below {report.bound_over_average:.2f}. The weights are those of now; the leader's, when it "
        "assigned, may have been others."
    )


def _load_of(situation: Situation, member: GroupMember) -> Iterator[str]:
    report = _load_report(situation)
    if report is None:
        return
    load, capacity = report.loads[member.id], report.capacities[member.id]
    relative = load / capacity / report.average if report.average else 1.0
    of_capacity = "" if capacity == 1 else f" for a capacity of {capacity:g}"
    yield (
        f"{situation.names[member.id]} has a load of {load:.4g}{of_capacity}, {relative:.2f} times the "
        f"average, in {counted(situation.partition_count(member), 'partition')}."
    )


# --- Moves ------------------------------------------------------------------------------------------


def move_reason(
    situation: Situation,
    before: Before,
    key: TopicPartitionKey,
    previous_owner: GroupMember,
    owner: GroupMember,
) -> str:
    """Return why a partition moved between two members of the group.

    Args:
        situation: The group.
        before: The group before.
        key: The partition.
        previous_owner: The member that had it.
        owner: The member that has it.
    """
    study = situation.study
    name, to = situation.names[previous_owner.id], situation.names[owner.id]
    if study.client_assignor == BY_LOAD and (report := _load_report(situation)) is not None:
        return (
            f"By load: {name} has a load of {report.loads[previous_owner.id]:.4g} without it, {to} of "
            f"{report.loads[owner.id]:.4g} with it. Which other moves the leader compared is not known."
        )
    had, had_to = before.partition_count(previous_owner.identity), before.partition_count(owner.identity)
    has, has_to = situation.partition_count(previous_owner), situation.partition_count(owner)
    numbers = f"{name} had {had} and has {has}, {to} had {had_to} and has {has_to}"
    if had > has and had_to < has_to:
        return f"Balance: {numbers}."
    if not _in_rack(situation, key, previous_owner.rack) and _in_rack(situation, key, owner.rack):
        return (
            f"Racks: it has a replica in {to}'s rack {owner.rack}, and none in {name}'s rack "
            f"{previous_owner.rack}."
        )
    who = "The broker" if study.type is GroupType.CONSUMER else study.assignor
    return (
        f"The reason cannot be known from these two states: {numbers}, so balance alone did not need it. "
        f"{who} may have moved it in a rebalance between them."
    )
