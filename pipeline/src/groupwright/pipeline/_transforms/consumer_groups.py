"""Generations of a KIP-848 group, reconstructed from its records. Pure: no Spark, no clock.

The broker records every step of a rebalance: the new group epoch (key 3), the target assignment (keys 6, 7),
and each member's current assignment (key 8), until all members are stable at that epoch. Epochs that are
superseded before the group is stable belong to the same rebalance. A member's tombstones precede the epoch of
its leave, and those of a static member's former id precede the records of its new one, which need no epoch.

A group's state after some records can be written as JSON, and read again to continue with the next records.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Self

from groupwright.pipeline._transforms.generations import Generation, GroupMember

_STABLE = "stable"
_HIGHEST_FIRST_EPOCH = 2
"""A new group has epoch 1; with a broker of version 4.4, epoch 2."""
_PRECEDENCE = ("leave", "join", "subscription", "metadata")
"""Causes of an epoch: of those that apply, the first is the cause of the generation."""


@dataclass(slots=True)
class _Member:
    client_id: str | None
    subscription: tuple[tuple[str, ...], str | None]
    assignor: str | None
    instance_id: str | None = None
    epoch: int | None = None
    stable: bool = False
    assigned: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def has_reached(self, epoch: int) -> bool:
        # A static member that left temporarily has the epoch -2; the group does not wait for it (KIP-848).
        is_away = self.epoch is not None and self.epoch < 0
        return is_away or (self.epoch == epoch and self.stable)


@dataclass(slots=True)
class ConsumerGroup:
    """State of a group after some of its records.

    Attributes:
        names: Topic names by id; the id replaces a missing name.
        members: Its members by id, with their assigned partitions by topic id.
        patterns: The topics of each regular expression.
        topics: The topics with their numbers of partitions, if recorded.
        metadata_hash: Hash of the topics' metadata.
        epoch: The newest epoch, or -1.
        stable_epoch: The newest epoch that all members have reached, or -1.
        started: When the first epoch after the stable one was written.
        causes: The causes of the epochs after the stable one.
        leaving: Ids of members whose tombstones were written after the newest epoch; of static members, their
            instance ids.
        last: The last stable generation; None if there is none, or if it lacks members.
        is_whole: Whether the records begin with the group's first epoch, and none of a member is missing.
    """

    names: dict[str, str] = field(default_factory=dict)
    members: dict[str, _Member] = field(default_factory=dict)
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    topics: frozenset[tuple[str, int]] | None = None
    metadata_hash: int | None = None
    epoch: int = -1
    stable_epoch: int = -1
    started: datetime | None = None
    causes: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    last: Generation | None = None
    is_whole: bool = True

    def generations(self, records: Iterable[Mapping[str, Any]]) -> Iterator[Generation]:
        """Apply records, and yield the epochs in which the group was stable.

        While an epoch is yielded, `last` is still the one before it.

        Args:
            records: The next rows of `consumer_group_records` with their `log_time`, in log order.
        """
        for record in records:
            _apply(self, record)
            if self._is_stable():
                after = _generation(self, record["log_time"])
                yield after
                self.last = after
                self.stable_epoch, self.started = self.epoch, None
                self.causes.clear()

    def _is_stable(self) -> bool:
        """Return whether all members have reached a new epoch, which the next record does not supersede."""
        return (
            self.epoch > self.stable_epoch
            and not self.leaving
            and all(each.has_reached(self.epoch) for each in self.members.values())
        )

    def learn_names(self, names: Mapping[str, str]) -> None:
        """Add topic names by id, also to the last generation."""
        if names.items() <= self.names.items():
            return
        self.names = {**self.names, **names}
        if self.last:
            self.last = _renamed(self.last, self.names)

    def to_json(self) -> str | None:
        """Return the state as JSON; None for a group without records since its deletion."""
        parts = (self.members, self.patterns, self.topics, self.causes, self.leaving)
        if self.epoch < 0 and not any(parts):
            return None
        state = asdict(self)
        state["topics"] = None if self.topics is None else sorted(self.topics)
        state["causes"], state["leaving"] = sorted(self.causes), sorted(self.leaving)
        state["names"] = dict(sorted(state["names"].items()))  # equal states have equal JSON
        return json.dumps(state, default=datetime.isoformat, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> Self:
        """Return the state that `to_json` has returned."""
        if text is None:
            return cls()
        state = json.loads(text)
        members = {
            id_: _Member(
                each["client_id"],
                (tuple(each["subscription"][0]), each["subscription"][1]),
                each["assignor"],
                each["instance_id"],
                each["epoch"],
                each["stable"],
                _tuples(each["assigned"]),
            )
            for id_, each in state["members"].items()
        }
        topics, started, last = state["topics"], state["started"], state["last"]
        return cls(
            **{
                **state,
                "members": members,
                "patterns": _tuples(state["patterns"]),
                "topics": None if topics is None else frozenset((name, count) for name, count in topics),
                "started": started and datetime.fromisoformat(started),
                "causes": set(state["causes"]),
                "leaving": set(state["leaving"]),
                "last": last and _loaded_generation(last),
            }
        )


def consumer_generations(
    records: Iterable[Mapping[str, Any]], names: Mapping[str, str]
) -> Iterator[Generation]:
    """Yield the epochs in which a group was stable.

    Args:
        records: All of the group's rows of `consumer_group_records` with their `log_time`, in log order.
        names: Topic names by id; the id replaces a missing name.
    """
    return ConsumerGroup(names=dict(names)).generations(records)


def _apply(group: ConsumerGroup, record: Mapping[str, Any]) -> None:
    kind = record["record_kind"]
    value = record[kind] or {}
    is_tombstone = bool(record["tombstone"])
    match kind:
        case "consumer_group":
            _apply_epoch(group, value, record["log_time"], is_tombstone=is_tombstone)
        case "consumer_member":
            _apply_member(group, value, is_tombstone=is_tombstone)
        case "current_member":
            _apply_current_assignment(group, value, is_tombstone=is_tombstone)
        case "consumer_partition_metadata" if not is_tombstone:
            topics = frozenset((each["topic"], each["partitions"]) for each in value.get("topics") or ())
            if group.topics not in {None, topics}:
                group.causes.add("metadata")
            group.topics = topics
        case "regular_expression":
            regex = value.get("regex") or ""
            if is_tombstone:
                group.patterns.pop(regex, None)
            else:
                group.patterns[regex] = tuple(value.get("topics") or ())
        case _:
            pass  # target assignments: the rebalance ends when the current assignments have reached them


def _apply_epoch(
    group: ConsumerGroup, value: Mapping[str, Any], time: datetime, *, is_tombstone: bool
) -> None:
    if is_tombstone:
        # The group was deleted; a new group may have the same name.
        group.epoch, group.stable_epoch, group.is_whole = -1, -1, True
        group.topics = group.metadata_hash = group.started = group.last = None
        for each in (group.members, group.causes, group.leaving, group.patterns):
            each.clear()
        return
    metadata_hash = value.get("metadata_hash")
    if group.metadata_hash not in {None, 0, metadata_hash}:
        group.causes.add("metadata")
    group.metadata_hash = metadata_hash
    if group.leaving:
        group.causes.add("leave")
        group.leaving.clear()
    if group.epoch < 0:
        group.is_whole = group.is_whole and value["epoch"] <= _HIGHEST_FIRST_EPOCH
    if value["epoch"] > group.epoch:
        group.epoch = value["epoch"]
        group.started = group.started or time


def _apply_member(group: ConsumerGroup, value: Mapping[str, Any], *, is_tombstone: bool) -> None:
    id_ = value["member_id"]
    if is_tombstone:
        gone = group.members.pop(id_, None)
        if gone:
            group.leaving.add(gone.instance_id or id_)
        return
    subscription = (tuple(value.get("topics") or ()), value.get("regex") or None)
    member = group.members.get(id_)
    if member is None:
        instance_id = value.get("instance_id")
        if instance_id in group.leaving:
            group.leaving.remove(instance_id)
        else:
            group.causes.add("join")
        group.members[id_] = _Member(
            value.get("client_id"), subscription, value.get("server_assignor"), instance_id
        )
        return
    if member.subscription != subscription:
        group.causes.add("subscription")
    member.client_id, member.subscription = value.get("client_id"), subscription
    member.assignor, member.instance_id = value.get("server_assignor"), value.get("instance_id")


def _apply_current_assignment(group: ConsumerGroup, value: Mapping[str, Any], *, is_tombstone: bool) -> None:
    if is_tombstone:
        return  # the tombstone of `consumer_member` removes the member
    member = group.members.get(value["member_id"])
    if member is None:
        # The log begins after the record of the member, which the generations before therefore lack.
        member = group.members[value["member_id"]] = _Member(None, ((), None), None)
        group.last, group.is_whole = None, False
    member.epoch = value["epoch"]
    member.stable = value["state"] == _STABLE
    member.assigned = {each["topic_id"]: tuple(each["partitions"]) for each in value.get("assigned") or ()}


def _generation(group: ConsumerGroup, time: datetime) -> Generation:
    if group.last is None:
        cause = "first" if group.is_whole else "unknown"
    else:
        cause = next((cause for cause in _PRECEDENCE if cause in group.causes), "epoch")
    return Generation(
        number=group.epoch,
        completed=time,
        members={
            id_: GroupMember(id_, member.client_id, _subscribed(group, member), _by_name(group, member))
            for id_, member in group.members.items()
        },
        protocol=next((each.assignor for each in group.members.values() if each.assignor), None),
        started=group.started,
        cause=cause,
    )


def _subscribed(group: ConsumerGroup, member: _Member) -> tuple[str, ...]:
    topics, pattern = member.subscription
    return tuple(sorted({*topics, *group.patterns.get(pattern or "", ()), *_by_name(group, member)}))


def _by_name(group: ConsumerGroup, member: _Member) -> dict[str, tuple[int, ...]]:
    """Return a member's assigned partitions by the topics' names."""
    return {group.names.get(id_, id_): numbers for id_, numbers in member.assigned.items()}


def _renamed(generation: Generation, names: Mapping[str, str]) -> Generation:
    """Return a generation with the names of topics whose ids had none before."""
    members = {
        id_: replace(
            member,
            subscribed=tuple(sorted({names.get(topic, topic) for topic in member.subscribed})),
            assigned={names.get(topic, topic): numbers for topic, numbers in member.assigned.items()},
        )
        for id_, member in generation.members.items()
    }
    return replace(generation, members=members)


def _loaded_generation(loaded: Mapping[str, Any]) -> Generation:
    """Return a generation from its JSON."""
    started = loaded["started"]
    members = {
        id_: GroupMember(
            **{**each, "subscribed": tuple(each["subscribed"]), "assigned": _tuples(each["assigned"])}
        )
        for id_, each in loaded["members"].items()
    }
    return Generation(
        **{
            **loaded,
            "completed": datetime.fromisoformat(loaded["completed"]),
            "started": started and datetime.fromisoformat(started),
            "members": members,
        }
    )


def _tuples(lists: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(each) for name, each in lists.items()}
