"""Steps of a simulation: events as functions of a group, with the members' ids and names. Pure.

The members of each step do not depend on the assignor, so all assignors are simulated with the same steps.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from groupwright.assignors import Group, Member, Topic, with_weights
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import GroupMember
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._study.events import (
    ROLLING,
    AddPartitions,
    ChangeWeights,
    Event,
    Join,
    Leave,
    NewMember,
    Restart,
)
from groupwright.cli._study.model import StudiedGroup, find_member, find_topic

_MAX_PARTITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """An event of a group.

    Attributes:
        label: The event, in words.
        change: Returns the group after the event; None if the event causes no rebalance.
    """

    label: str
    change: Callable[[Group], Group] | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group and the steps to simulate.

    Attributes:
        study: The group at the beginning.
        steps: The events.
        names: The short names of all members, by member id. A member that restarts keeps its name.
        capacities: By member id, the capacities that are not 1.
        has_generated_ids: Whether a new member has a generated id.
        as_dynamic: Whether static members are simulated as dynamic ones.
    """

    study: StudiedGroup
    steps: tuple[Step, ...]
    names: Mapping[str, str]
    capacities: Mapping[str, float]
    has_generated_ids: bool
    as_dynamic: bool


def make_scenario(study: StudiedGroup, events: Iterable[Event], *, as_dynamic: bool = False) -> Scenario:
    """Turn events into steps.

    Args:
        study: The group.
        events: The events.
        as_dynamic: Whether static members are simulated as dynamic ones.

    Raises:
        CommandError: An event names a member or topic that does not exist, or is not possible.
    """
    names = member_names(study.members)
    if as_dynamic:
        members = tuple(replace(member, instance_id=None) for member in study.members)
        study = replace(study, members=members)
    planner = _Planner(study, names)
    for event in events:
        planner.add(event)
    return Scenario(
        study, tuple(planner.steps), planner.names, planner.capacities, planner.has_generated_ids, as_dynamic
    )


class _Planner:
    """The members, partitions and names after the events so far, and their steps."""

    def __init__(self, study: StudiedGroup, names: Mapping[str, str]) -> None:
        self._study = study
        self._members = {member.id: member for member in study.members}
        self._partitions = {name: topic.partitions for name, topic in study.topics.items()}
        self._new = 0
        self.steps: list[Step] = []
        self.names = dict(names)
        self.capacities = dict(study.capacities)
        self.has_generated_ids = False

    def add(self, event: Event) -> None:
        match event:
            case Join(members):
                self._join(members)
            case Leave(members):
                self._leave(list(dict.fromkeys(self._find(name) for name in members)))
            case AddPartitions():
                self._grow(event)
            case ChangeWeights(weights):
                self._change_weights(weights)
            case Restart(name):
                ids = list(self._members) if name == ROLLING else [self._find(name)]
                for id_ in ids:
                    self._restart(id_)

    def _find(self, name: str) -> str:
        return find_member(self._members.values(), self.names, name)

    def _join(self, members: Sequence[NewMember]) -> None:
        created = [self._create_member(member) for member in members]
        for member, new in zip(created, members, strict=True):
            if new.capacity != 1:
                self.capacities[member.id] = new.capacity
        joined = _in_words([self.names[member.id] for member in created])
        self._add(created, f"{joined} {'joins' if len(created) == 1 else 'join'}")

    def _create_member(self, new: NewMember) -> GroupMember:
        self._new += 1
        clients = Counter(member.client_id for member in self._study.members)
        client_id = new.client_id or max(clients, key=lambda each: clients[each], default="consumer")
        id_ = new.id or self._generated_id(client_id, f"join {self._new}")
        name = new.instance_id or new.client_id or new.id or f"new-{self._new}"
        if id_ in self._members or name in [self.names[known] for known in self._members]:
            raise CommandError(
                f"a member {name!r} is in the group already; choose another name for the one that joins",
                ExitStatus.USAGE,
            )
        self.names[id_] = name
        topics = self._study.member_topics() if new.topics is None else new.topics
        rack = new.rack or self._smallest_rack()
        member = GroupMember(id_, client_id, "", new.instance_id, rack, topics)
        self._members[id_] = member
        return member

    def _smallest_rack(self) -> str | None:
        """Return the rack with the fewest members, since deployments spread them; None without racks."""
        racks = Counter(member.rack for member in self._members.values() if member.rack)
        return min(sorted(racks), key=lambda rack: racks[rack], default=None)

    def _generated_id(self, client_id: str, what: str) -> str:
        self.has_generated_ids = True
        return f"{client_id}-{uuid.uuid5(uuid.NAMESPACE_OID, f'{self._study.id} {client_id} {what}')}"

    def _add(self, members: Sequence[GroupMember], label: str) -> None:
        added = [
            Member(each.id, each.topics, instance_id=each.instance_id, rack=each.rack) for each in members
        ]

        def change(group: Group) -> Group:
            return Group([*group.members, *added], group.topics)

        self.steps.append(Step(label, change))

    def _leave(self, ids: Sequence[str], label: str | None = None) -> None:
        left = _in_words([self.names[id_] for id_ in ids])
        for id_ in ids:
            del self._members[id_]

        def change(group: Group) -> Group:
            return Group([member for member in group.members if member.id not in ids], group.topics)

        self.steps.append(Step(label or f"{left} {'leaves' if len(ids) == 1 else 'leave'}", change))

    def _restart(self, id_: str) -> None:
        member, name = self._members[id_], self.names[id_]
        if member.instance_id is not None:
            self.steps.append(Step(f"{name} restarts, as a static member", None))
            return
        self._leave([id_], f"{name} restarts: it leaves")
        # The ordinal makes ids of several restarts of one member differ.
        new = replace(
            member, id=self._generated_id(member.client_id, f"restart {len(self.steps)} of {member.id}")
        )
        self._members[new.id] = new
        self.names[new.id] = name
        if id_ in self.capacities:
            self.capacities[new.id] = self.capacities[id_]
        self._add([new], f"{name} restarts: it joins")

    def _grow(self, event: AddPartitions) -> None:
        name = find_topic(self._partitions, event.topic)
        before = self._partitions[name]
        after = before + event.partitions if event.is_increment else event.partitions
        if after <= before:
            raise CommandError(
                f"{name} has {before} partitions already, and cannot get {after}: write a larger total, or "
                f"{name}=+N for N more",
                ExitStatus.USAGE,
            )
        if after > _MAX_PARTITIONS:
            raise CommandError(
                f"{name} cannot get {after} partitions: write at most {_MAX_PARTITIONS}", ExitStatus.USAGE
            )
        self._partitions[name] = after

        def change(group: Group) -> Group:
            return Group(group.members, {**group.topics, name: _grown(name, group.topics[name], after)})

        self.steps.append(Step(f"{name} grows from {before} to {after} partitions", change))

    def _change_weights(self, weights: Mapping[str, Sequence[float]]) -> None:
        for name, of_topic in weights.items():
            partitions = self._partitions[find_topic(self._partitions, name)]
            if len(of_topic) != partitions:
                raise CommandError(
                    f"the event has {len(of_topic)} weights of {name}, which has {partitions} partitions "
                    "at that step",
                    ExitStatus.USAGE,
                )

        def change(group: Group) -> Group:
            topics = {name: group.topics[name] for name in weights}
            return Group(group.members, {**group.topics, **with_weights(topics, weights)})

        self.steps.append(Step(f"the weights of {_in_words(list(weights))} change", change))


def _grown(name: str, topic: Topic, partitions: int) -> Topic:
    """Return a topic with more partitions, which have the median weight and the racks of the first ones."""
    racks = topic.racks
    if racks:
        racks = tuple(racks[number % len(racks)] for number in range(partitions))
    grown = Topic(partitions, racks)
    if topic.weights is None:
        return grown
    weights = [*topic.weights.tolist(), *[float("nan")] * (partitions - topic.partitions)]
    return with_weights({name: grown}, {name: weights})[name]


def _in_words(names: Sequence[str]) -> str:
    shown = 3
    if len(names) > shown:
        return f"{', '.join(names[:shown])} and {len(names) - shown} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
