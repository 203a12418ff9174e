"""A watched group: snapshots in, events and views out. Pure: no clock, no I/O."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupwright.cli._cluster.group_history import GroupHistory
from groupwright.cli._cluster.lag import GroupLag
from groupwright.cli._cluster.model import DescribedGroup, GroupMember, Partitions
from groupwright.cli.watch.events import (
    BrokersAvailable,
    BrokersUnavailable,
    Event,
    GroupSeen,
    LagReported,
    MemberJoined,
    MemberLeft,
    MemberRestarted,
    MemberView,
    Rebalanced,
    StateChanged,
)
from groupwright.cli.watch.names import MemberNames
from groupwright.cli.watch.ownership import Ownership, moves, ownership
from groupwright.cli.watch.progress import LagRate, Progress, Stalled
from groupwright.core import TopicPartitionKey, by_topic

_RECENT_SECONDS = 15.0
_HISTORY = 500
"""Rebalances that are kept."""
_STORM_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The group as it is shown.

    Attributes:
        time: The time of the last snapshot.
        protocol_type: As in `DescribedGroup`: empty if no member has joined it.
        watched_seconds: Time since the first snapshot. Durations are never longer; one that is as long is of
            something that began before, at a time that is not known.
        state_seconds: For how long the state has been seen, since its last rebalance.
        is_before_rebalance: Whether the members' partitions are those before the present rebalance.
        partitions: Number of assigned partitions; None if it is not known.
        rebalances: The rebalances that were seen, the newest first.
        rebalances_a_minute: Number of those that ended within the last minute.
        rebalancing_seconds: For how long the present rebalance has been seen; None if there is none.
        unavailable_since: The time of the last response, if brokers do not respond; else None.
        unavailable_reason: Why they do not respond.
    """

    group: str
    time: float
    type: str
    protocol_type: str
    state: str
    watched_seconds: float
    state_seconds: float
    assignor: str | None
    epoch: int | None
    members: tuple[MemberView, ...]
    is_before_rebalance: bool
    partitions: int | None
    lag: LagRate
    stalled: tuple[Stalled, ...]
    rebalances: tuple[Rebalanced, ...]
    rebalances_a_minute: int
    rebalancing_seconds: float | None
    unavailable_since: float | None
    unavailable_reason: str

    @property
    def exists(self) -> bool:
        """True if the group exists."""
        return self.state != "Dead"


@dataclass(slots=True)
class _Rebalance:
    """A rebalance that is not over.

    Attributes:
        before: The owners before it; None if they are not known.
    """

    began: float
    states: list[str]
    epoch: int | None
    before: Ownership | None
    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    stalled: list[Stalled] = field(default_factory=list)


class WatchedGroup:
    """A watched group, from its first snapshot on.

    Rebalances are detected as by `GroupHistory`.
    """

    def __init__(
        self, *, interval: float = 1.0, lag_seconds: float = 10.0, stalled_seconds: float = 15.0
    ) -> None:
        """Start before the first snapshot.

        Args:
            interval: Seconds between snapshots.
            lag_seconds: Seconds between reports of the lag.
            stalled_seconds: Seconds without progress after which a partition is stalled.
        """
        self._history = GroupHistory()
        self._names = MemberNames()
        self._progress = Progress(interval, stalled_seconds)
        self._recent_seconds = max(_RECENT_SECONDS, 2 * interval)
        self._lag_seconds = lag_seconds
        self._lag: GroupLag | None = None
        self._began = self._time = 0.0
        self._state_since = 0.0
        self._reported = 0.0
        self._members: dict[str, GroupMember] = {}
        self._owned: Ownership | None = None
        """The last owners that are known; None before."""
        self._gained_at: dict[tuple[str, TopicPartitionKey], float] = {}
        self._rebalance: _Rebalance | None = None
        self._rebalances: deque[Rebalanced] = deque(maxlen=_HISTORY)
        self._unavailable_reason = ""

    # --- Snapshots ----------------------------------------------------------------------------------

    def appear(self) -> None:
        """Record that the group did not exist before its first snapshot: no member owned a partition."""
        self._owned = {}

    @property
    def time(self) -> float | None:
        """The time of the last snapshot; None before the first."""
        return None if self._lag is None else self._time

    def update(self, lag: GroupLag, time: float) -> list[Event]:
        """Take the group's next snapshot, and return the events since the last one.

        Args:
            lag: The group with its lag.
            time: The time of the snapshot, in seconds since the epoch.
        """
        events: list[Event] = self._available(time)
        before, self._lag = self._lag, lag
        epoch_before, count = self._history.generation, self._history.rebalances
        self._history.update(lag, None, time)
        self._progress.update(lag, time)
        self._time = time
        if before is None:
            return self._start(lag.group, time)
        events += self._state_changes(before.group, lag.group, time)
        members = self._member_changes(lag.group, time)
        events += members
        owned = ownership(lag.group)
        differs = owned is not None and self._owned is not None and bool(moves(self._owned, owned).partitions)
        if self._rebalance is None and (self._history.rebalances > count or differs):
            self._rebalance = _Rebalance(time, [before.group.state], epoch_before, self._owned)
        if owned is not None:
            self._update_owned(owned, time)
        if self._rebalance is not None:
            events += self._update_rebalance(self._rebalance, lag.group, members, time)
        if lag.group.exists and time - self._reported >= self._lag_seconds:
            self._reported = time
            events.append(LagReported(time=time, lag=self._progress.rate(), stalled=self._stalled(time)))
        return events

    def miss(self, reason: str, time: float) -> list[Event]:
        """Record a snapshot that failed or is late; return an event for the first one in a row.

        Args:
            reason: Why there is no answer.
            time: The time.
        """
        is_new, self._unavailable_reason = not self._unavailable_reason, reason
        return [BrokersUnavailable(time=time, reason=reason)] if is_new and self._lag is not None else []

    def _available(self, time: float) -> list[Event]:
        was_unavailable, self._unavailable_reason = bool(self._unavailable_reason), ""
        return (
            [BrokersAvailable(time=time, seconds=time - self._time)]
            if was_unavailable and self._lag is not None
            else []
        )

    def _start(self, group: DescribedGroup, time: float) -> list[Event]:
        self._names.learn(group.members)
        self._members = {member.identity: member for member in group.members}
        owned, before = ownership(group), self._owned
        self._owned = before if owned is None else owned
        self._began = self._state_since = self._reported = time
        if group.is_rebalancing:
            self._rebalance = _Rebalance(
                time, [group.state], group.epoch, owned if before is None else before
            )
        view = self.view(time)
        return [
            GroupSeen(
                time=time,
                type=view.type,
                state=view.state,
                assignor=view.assignor,
                epoch=view.epoch,
                members=view.members,
                partitions=view.partitions,
                lag=view.lag,
                stalled=view.stalled,
            )
        ]

    def _state_changes(self, before: DescribedGroup, after: DescribedGroup, time: float) -> list[Event]:
        if before.state == after.state:
            return []
        seconds, self._state_since = time - self._state_since, time
        return [StateChanged(time=time, before=before.state, after=after.state, seconds=seconds)]

    def _member_changes(self, group: DescribedGroup, time: float) -> list[Event]:
        before, self._members = self._members, {member.identity: member for member in group.members}
        left = [member for identity, member in before.items() if identity not in self._members]
        for member in left:
            self._names.forget(member)
        stalled = self._stalled(time)
        events: list[Event] = [
            MemberLeft(
                time=time,
                **self._member_fields(member),
                stalled=tuple(each for each in stalled if each.member == self._names[member.identity]),
            )
            for member in left
        ]
        self._names.learn(group.members)
        for identity, member in self._members.items():
            known = before.get(identity)
            if known is None:
                again = self._names.returns(member)
                events.append(MemberJoined(time=time, again=again, **self._member_fields(member)))
            elif known.id != member.id:
                events.append(
                    MemberRestarted(time=time, host_before=known.host, **self._member_fields(member))
                )
        return events

    def _update_owned(self, owned: Ownership, time: float) -> None:
        if self._owned is not None:
            for identity, partitions in moves(self._owned, owned).gained.items():
                self._gained_at |= {(identity, each): time for each in partitions}
        self._gained_at = {
            key: at
            for key, at in self._gained_at.items()
            if time - at < self._recent_seconds and key[1] in owned.get(key[0], ())
        }
        self._owned = owned

    def _update_rebalance(
        self, rebalance: _Rebalance, group: DescribedGroup, members: list[Event], time: float
    ) -> list[Event]:
        if rebalance.states[-1] != group.state:
            rebalance.states.append(group.state)
        for event in members:
            match event:
                case MemberJoined():
                    rebalance.joined.append(event.member)
                case MemberLeft():
                    rebalance.left.append(event.member)
                    rebalance.stalled += event.stalled
                case _:
                    pass
        if group.is_rebalancing:
            return []
        self._rebalance = None
        is_known = rebalance.before is not None and self._owned is not None
        change = moves(rebalance.before or {}, self._owned or {}) if is_known else None
        event = Rebalanced(
            time=time,
            began=rebalance.began,
            seconds=None if rebalance.began == time else time - rebalance.began,
            states=tuple(rebalance.states),
            epoch_before=rebalance.epoch,
            epoch=group.epoch,
            joined=tuple(rebalance.joined),
            left=tuple(rebalance.left),
            stalled=tuple(rebalance.stalled),
            moved=None if change is None else len(change.partitions),
            lost={} if change is None else self._by_name(change.lost),
            gained={} if change is None else self._by_name(change.gained),
        )
        self._rebalances.appendleft(event)
        return [event]

    # --- The view -----------------------------------------------------------------------------------

    def view(self, now: float) -> GroupView:
        """Return the group as it is shown, after the first snapshot.

        Args:
            now: The time, in seconds since the epoch.
        """
        if self._lag is None:
            raise ValueError("the group has no snapshot yet")
        group, lags, unknown = self._lag.group, self._progress.lags(), self._progress.unknown()
        members = [self._member(member, lags, unknown) for member in group.members]
        rebalanced = self._rebalances[0].time if self._rebalances else self._began
        return GroupView(
            group=group.id,
            time=self._time,
            type=group.type.value,
            protocol_type=group.protocol_type,
            state=group.state,
            watched_seconds=self._time - self._began,
            state_seconds=self._time - max(self._state_since, rebalanced),
            assignor=group.assignor or None,
            epoch=group.epoch,
            members=tuple(sorted(members, key=lambda each: each.name)),
            is_before_rebalance=ownership(group) is None,
            partitions=None if self._owned is None else len(frozenset().union(*self._owned.values())),
            lag=self._progress.rate(),
            stalled=self._stalled(self._time),
            rebalances=tuple(self._rebalances),
            rebalances_a_minute=sum(now - each.time < _STORM_SECONDS for each in self._rebalances),
            rebalancing_seconds=None if self._rebalance is None else self._time - self._rebalance.began,
            unavailable_since=self._time if self._unavailable_reason else None,
            unavailable_reason=self._unavailable_reason,
        )

    def _member(
        self,
        member: GroupMember,
        lags: Mapping[TopicPartitionKey, int],
        unknown: frozenset[TopicPartitionKey],
    ) -> MemberView:
        owned = (self._owned or {}).get(member.identity, frozenset())
        known = [] if owned & unknown else [lags[each] for each in owned if each in lags]
        return MemberView(
            name=self._names[member.identity],
            id=member.id,
            client_id=member.client_id,
            instance_id=member.instance_id,
            host=member.host,
            rack=member.rack,
            epoch=member.epoch,
            assigned=by_topic(owned),
            recent=by_topic(each for each in owned if (member.identity, each) in self._gained_at),
            lag=sum(known) if known else None,
            is_behind=member.target is not None and member.target != member.assigned,
        )

    def _stalled(self, time: float) -> tuple[Stalled, ...]:
        owned = self._owned or {}
        owners: dict[TopicPartitionKey, str | None] = {}
        for identity, some in owned.items():
            for each in some:
                owners[each] = None if each in owners else self._names[identity]  # None if members share it
        return self._progress.stalled(time, owners)

    def _member_fields(self, member: GroupMember) -> dict[str, Any]:
        return {
            "member": self._names[member.identity],
            "id": member.id,
            "client_id": member.client_id,
            "instance_id": member.instance_id,
            "host": member.host,
            "rack": member.rack,
        }

    def _by_name(self, owned: Ownership) -> dict[str, Partitions]:
        """Return partitions by the names of members; a member that joined again has one name."""
        found: dict[str, frozenset[TopicPartitionKey]] = {}
        for identity, partitions in owned.items():
            name = self._names[identity]
            found[name] = found.get(name, frozenset()) | partitions
        return {name: by_topic(found[name]) for name in sorted(found)}
