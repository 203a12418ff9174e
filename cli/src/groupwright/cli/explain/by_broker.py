"""Reasons in groups of KIP-848, where the broker assigns. Pure."""

from collections.abc import Iterator

from groupwright.cli._cluster.model import GroupMember
from groupwright.cli._study.model import counted, flat
from groupwright.cli.explain import by_balance
from groupwright.cli.explain.situation import Situation
from groupwright.cli.explain.words import listed
from groupwright.core import TopicPartitionKey


def summary(situation: Situation) -> Iterator[str]:
    """Return which assignor of the broker assigns, and how far the members are."""
    study = situation.study
    epoch = "" if study.epoch is None else f" The group is in epoch {study.epoch}."
    yield (
        f"The broker assigns (KIP-848), with its assignor {study.assignor!r}: no member takes part in it, "
        f"and the broker does not return its reasons.{epoch}"
    )
    members = len(study.members)
    behind = sum(map(_is_behind, study.members))
    yield (
        f"{behind} of {counted(members, 'member')} {'has' if behind == 1 else 'have'} not reached the target "
        "assignment yet."
        if behind
        else "All members have reached the target assignment."
    )
    if study.assignor == "uniform" and situation.has_equal_subscriptions:
        each, more = divmod(situation.partitions, members)
        yield (
            "uniform evens out the numbers and keeps what members have: "
            f"{counted(situation.partitions, 'partition')} over {counted(members, 'member')} are "
            f"{f'{each} or {each + 1}' if more else each} each."
        )
    elif study.assignor == "range":
        yield "The broker's range divides each topic by itself among its subscribers."


def member_sentences(situation: Situation, member: GroupMember) -> Iterator[str]:
    """Return what a member has of its target assignment, and what it waits for."""
    name = situation.names[member.id]
    has = set(flat(member.assigned))
    if member.target is None:
        yield f"{name} has {counted(len(has), 'partition')}; its target is not known."
    else:
        target = set(flat(member.target))
        if target == has:
            yield f"{name} has its target assignment, {counted(len(has), 'partition')}."
        if surplus := has - target:
            yield f"{name} has yet to revoke {listed(surplus)}, which its target is without."
        yield from _awaited(situation, name, target - has)
    if member.is_classic:
        yield f"{name} speaks the classic protocol; the broker assigns to it all the same."
    yield from by_balance.kept_and_received(situation, member)


def _awaited(situation: Situation, name: str, missing: set[TopicPartitionKey]) -> Iterator[str]:
    by_owner: dict[str | None, list[TopicPartitionKey]] = {}
    for key in sorted(missing):
        owner = situation.owners.get(key)
        by_owner.setdefault(None if owner is None else situation.names[owner.id], []).append(key)
    for owner_name, keys in by_owner.items():
        who = "the broker has yet to hand out" if owner_name is None else f"{owner_name} has yet to revoke"
        yield f"{name} waits for {listed(keys)}, which {who}."


def _is_behind(member: GroupMember) -> bool:
    return member.target is not None and set(flat(member.target)) != set(flat(member.assigned))
