"""Events of a watched group. Pure.

The fields of an event are those of its JSON document, of which `watch.schema.json` is the reference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from groupwright.cli._cluster.model import Partitions
from groupwright.cli.watch.progress import LagRate, Stalled


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event.

    Attributes:
        kind: Its name.
        time: When it was seen, in seconds since the epoch.
    """

    kind: ClassVar[str]
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """A member as it is shown.

    Attributes:
        name: A short name, which no other present member has.
        assigned: Its partitions; those before the rebalance, while they are not known. Empty if those are not
            known either.
        recent: Those of them that it gained recently.
        lag: Lag of its partitions; None if it is not known, such as without the end of a log.
        is_behind: Whether it has not reached its target assignment (KIP-848).
    """

    name: str
    id: str
    client_id: str
    instance_id: str | None
    host: str
    rack: str | None
    epoch: int | None
    assigned: Partitions
    recent: Partitions
    lag: int | None
    is_behind: bool

    @property
    def count(self) -> int:
        """Number of partitions."""
        return sum(map(len, self.assigned.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSeen(Event):
    """The group at the first snapshot.

    Attributes:
        epoch: The epoch; None in classic groups, of which brokers do not return the generation.
        partitions: Number of assigned partitions; None if it is not known.
        stalled: Partitions that lag, and whose committed offset has not moved for some time.
    """

    kind = "group"
    type: str
    state: str
    assignor: str | None
    epoch: int | None
    members: tuple[MemberView, ...]
    partitions: int | None
    lag: LagRate
    stalled: tuple[Stalled, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged(Event):
    """The state of the group has changed.

    Attributes:
        seconds: For how long the state before was seen.
    """

    kind = "state"
    before: str
    after: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEvent(Event):
    """An event of one member."""

    member: str
    id: str
    client_id: str
    instance_id: str | None
    host: str
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberJoined(MemberEvent):
    """A member joined.

    Attributes:
        again: Whether a member with its name and host has left before.
    """

    kind = "joined"
    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLeft(MemberEvent):
    """A member left, or was removed by the coordinator.

    Attributes:
        stalled: Those of its partitions that lagged, and whose committed offset had not moved for some time.
    """

    kind = "left"
    stalled: tuple[Stalled, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRestarted(MemberEvent):
    """A static member has a new member id: it restarted, or another process has its `group.instance.id`."""

    kind = "restarted"
    host_before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced(Event):
    """A rebalance is over; several that followed each other without a stable moment are one.

    Attributes:
        began: When it was first seen.
        seconds: Its duration as observed; None if it began and ended between two snapshots.
        states: The states that were seen, from that before it to that after it.
        epoch_before: Epoch before it (KIP-848).
        epoch: Epoch after it.
        joined: Names of members that joined.
        left: Names of members that left.
        stalled: Partitions of members that left, as in `MemberLeft`.
        moved: Number of partitions with other owners than before; None if the owners before are not known.
        lost: Partitions that members lost, by names.
        gained: Partitions that members gained, by names.
    """

    kind = "rebalance"
    began: float
    seconds: float | None
    states: tuple[str, ...]
    epoch_before: int | None
    epoch: int | None
    joined: tuple[str, ...]
    left: tuple[str, ...]
    stalled: tuple[Stalled, ...]
    moved: int | None
    lost: Mapping[str, Partitions]
    gained: Mapping[str, Partitions]


@dataclass(frozen=True, slots=True, kw_only=True)
class LagReported(Event):
    """The lag, at an interval."""

    kind = "lag"
    lag: LagRate
    stalled: tuple[Stalled, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersUnavailable(Event):
    """Brokers do not answer."""

    kind = "unavailable"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersAvailable(Event):
    """Brokers answer again.

    Attributes:
        seconds: Time without an answer.
    """

    kind = "available"
    seconds: float
