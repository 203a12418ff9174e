"""A KIP-848 group's generations, reconstructed from its records. Pure: neither Spark nor a clock.

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

    def is_at(self, epoch: int) -> bool:
        away = self.epoch is not None and self.epoch < 0  # a static member that has left temporarily
        return away or (self.epoch == epoch and self.stable)


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
        _take(group, record)
        if group.epoch > group.stable_epoch and all(
            each.is_at(group.epoch) for each in group.members.values()
        ):
            yield _generation(group, record["log_time"])
            group.stable_epoch, group.started = group.epoch, None
            group.causes.clear()


def _take(group: _Group, record: Mapping[str, Any]) -> None:
    kind = record["record_kind"]
    value = record[kind] or {}
    gone = bool(record["tombstone"])
    match kind:
        case "consumer_group":
            _take_epoch(group, value, record["log_time"], gone=gone)
        case "consumer_member":
            _take_member(group, value, gone=gone)
        case "current_member":
            _take_current(group, value, gone=gone)
        case "consumer_partition_metadata" if not gone:
            topics = frozenset((each["topic"], each["partitions"]) for each in value.get("topics") or ())
            if group.topics not in {None, topics}:
                group.causes.add("metadata")
            group.topics = topics
        case "regular_expression":
            group.patterns[value.get("regex") or ""] = () if gone else tuple(value.get("topics") or ())
        case _:
            pass  # target assignments; the rebalance ends with the current assignments


def _take_epoch(group: _Group, value: Mapping[str, Any], time: datetime, *, gone: bool) -> None:
    if gone:
        group.epoch = group.stable_epoch = -1  # the group was deleted; a new group may have the same name
        group.members.clear()
        return
    hash_ = value.get("metadata_hash")
    if group.metadata_hash not in {None, 0, hash_}:
        group.causes.add("metadata")
    group.metadata_hash = hash_
    if value["epoch"] > group.epoch:
        group.epoch = value["epoch"]
        group.started = group.started or time


def _take_member(group: _Group, value: Mapping[str, Any], *, gone: bool) -> None:
    id_ = value["member_id"]
    if gone:
        if group.members.pop(id_, None):
            group.causes.add("leave")
        return
    subscription = (tuple(value.get("topics") or ()), value.get("regex") or None)
    known = group.members.get(id_)
    if known is None:
        group.causes.add("join")
        group.members[id_] = _Member(value.get("client_id"), subscription, value.get("server_assignor"))
        return
    if known.subscription != subscription:
        group.causes.add("subscription")
    known.client_id, known.subscription = value.get("client_id"), subscription
    known.assignor = value.get("server_assignor")


def _take_current(group: _Group, value: Mapping[str, Any], *, gone: bool) -> None:
    member = group.members.get(value["member_id"])
    if member is None or gone:
        return  # the member's own tombstone accompanies this one
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
