"""Generations of a KIP-848 group, reconstructed from its records. Pure: no Spark, no clock.

The broker records every step of a rebalance: the new group epoch (key 3), the target assignment (keys 6, 7),
and each member's current assignment (key 8), until all members are stable at that epoch. Epochs that are
superseded before the group is stable belong to the same rebalance.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from groupwright.pipeline._transforms.generations import Generation, GroupMember

_STABLE = "stable"
_CAUSES = ("leave", "join", "subscription", "metadata")
"""Causes in order of precedence: the first that applies is the trigger."""


@dataclass(slots=True)
class _Member:
    client_id: str | None
    subscription: tuple[tuple[str, ...], str | None]
    assignor: str | None
    epoch: int | None = None
    stable: bool = False
    assigned: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def has_reached(self, epoch: int) -> bool:
        # The group does not wait for a static member that left temporarily: its epoch is negative (KIP-848).
        is_away = self.epoch is not None and self.epoch < 0
        return is_away or (self.epoch == epoch and self.stable)


@dataclass(slots=True)
class _Group:
    names: Mapping[str, str]
    members: dict[str, _Member] = field(default_factory=dict)
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topics: frozenset[tuple[str, int]] | None = None
    metadata_hash: int | None = None
    epoch: int = -1
    stable_epoch: int = -1
    started: datetime | None = None
    causes: set[str] = field(default_factory=set)


def consumer_generations(
    records: Iterable[Mapping[str, Any]], names: Mapping[str, str]
) -> Iterator[Generation]:
    """Yield the epochs in which a group was stable.

    Args:
        records: The group's rows of `consumer_group_records` with their `log_time`, in log order.
        names: Topic names by id; the id replaces a missing name.
    """
    group = _Group(names)
    for record in records:
        _apply(group, record)
        if group.epoch > group.stable_epoch and all(
            each.has_reached(group.epoch) for each in group.members.values()
        ):
            yield _generation(group, record["log_time"])
            group.stable_epoch, group.started = group.epoch, None
            group.causes.clear()


def _apply(group: _Group, record: Mapping[str, Any]) -> None:
    kind = record["record_kind"]
    value = record[kind] or {}
    is_tombstone = bool(record["tombstone"])
    match kind:
        case "consumer_group":
            _apply_epoch(group, value, record["log_time"], is_tombstone=is_tombstone)
        case "consumer_member":
            _apply_member(group, value, is_tombstone=is_tombstone)
        case "current_member":
            _apply_current(group, value, is_tombstone=is_tombstone)
        case "consumer_partition_metadata" if not is_tombstone:
            topics = frozenset((each["topic"], each["partitions"]) for each in value.get("topics") or ())
            if group.topics not in {None, topics}:
                group.causes.add("metadata")
            group.topics = topics
        case "regular_expression":
            topics_of = () if is_tombstone else tuple(value.get("topics") or ())
            group.patterns[value.get("regex") or ""] = topics_of
        case _:
            pass  # target assignments: the rebalance ends when the current assignments have reached them


def _apply_epoch(group: _Group, value: Mapping[str, Any], time: datetime, *, is_tombstone: bool) -> None:
    if is_tombstone:
        group.epoch = group.stable_epoch = -1  # the group was deleted; a new group may have the same name
        group.members.clear()
        return
    metadata_hash = value.get("metadata_hash")
    if group.metadata_hash not in {None, 0, metadata_hash}:
        group.causes.add("metadata")
    group.metadata_hash = metadata_hash
    if value["epoch"] > group.epoch:
        group.epoch = value["epoch"]
        group.started = group.started or time


def _apply_member(group: _Group, value: Mapping[str, Any], *, is_tombstone: bool) -> None:
    id_ = value["member_id"]
    if is_tombstone:
        if group.members.pop(id_, None):
            group.causes.add("leave")
        return
    subscription = (tuple(value.get("topics") or ()), value.get("regex") or None)
    member = group.members.get(id_)
    if member is None:
        group.causes.add("join")
        group.members[id_] = _Member(value.get("client_id"), subscription, value.get("server_assignor"))
        return
    if member.subscription != subscription:
        group.causes.add("subscription")
    member.client_id, member.subscription = value.get("client_id"), subscription
    member.assignor = value.get("server_assignor")


def _apply_current(group: _Group, value: Mapping[str, Any], *, is_tombstone: bool) -> None:
    member = group.members.get(value["member_id"])
    if member is None or is_tombstone:
        return  # the tombstone of `consumer_member` removes the member
    member.epoch = value["epoch"]
    member.stable = value["state"] == _STABLE
    member.assigned = {
        group.names.get(each["topic_id"], each["topic_id"]): tuple(each["partitions"])
        for each in value.get("assigned") or ()
    }


def _generation(group: _Group, time: datetime) -> Generation:
    trigger = next((cause for cause in _CAUSES if cause in group.causes), "epoch")
    return Generation(
        number=group.epoch,
        completed=time,
        members={
            id_: GroupMember(id_, member.client_id, _subscribed(group, member), member.assigned)
            for id_, member in group.members.items()
        },
        protocol=next((each.assignor for each in group.members.values() if each.assignor), None),
        started=group.started,
        trigger="first" if group.stable_epoch < 0 and trigger == "join" else trigger,
    )


def _subscribed(group: _Group, member: _Member) -> tuple[str, ...]:
    topics, pattern = member.subscription
    return tuple(sorted({*topics, *group.patterns.get(pattern or "", ()), *member.assigned}))
