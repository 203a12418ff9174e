"""Events of rebalances and of load checks, as sinks receive them: plain values, ready for JSON.

`rebalance-event.schema.json` and `load-check-event.schema.json`, beside this module, are their schemas.
Consumers of events must ignore keys that they do not know: within one `version`, keys may be added, but no
key is removed or changes its meaning.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from groupwright.core import LoadCheckResult, Rebalance

VERSION = 1
"""Version of the schemas."""


@dataclass(frozen=True, slots=True)
class Event:
    """Common part of all events."""

    version: int
    id: str
    """Id of the event; the same if it is delivered twice."""
    group: str
    client_id: str

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the event as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class RebalanceEvent(Event):
    """One rebalance of one member."""

    member_id: str | None
    generation: int | None
    """None if the rebalance led to no generation."""
    protocol: str | None
    """The assignor that the group voted for; None if there was no vote."""
    kind: str | None
    """A `groupwright.core.Kind`; None if unknown."""
    outcome: str
    """A `groupwright.core.Outcome`."""
    trigger: str
    """A `groupwright.core.Trigger`."""
    reason: str | None
    """The reason in words; None if unknown."""
    started_at: str | None
    """ISO 8601 in UTC, to the microsecond; None if the beginning could not be observed."""
    ended_at: str
    duration_seconds: float | None
    phases: Mapping[str, float]
    """Seconds by `groupwright.core.Phase`, in the order in which the member went through them."""
    partitions_before: Mapping[str, Sequence[int]]
    partitions_after: Mapping[str, Sequence[int]]
    leader: Mapping[str, Any] | None
    """The fields of `Leadership`, if this member led the group."""
    undecodable: Mapping[str, str]
    """`Rebalance.undecodable`: reasons by member id."""
    assigned_by_broker: bool
    """`Rebalance.assigned_by_broker`."""
    error: str | None


@dataclass(frozen=True, slots=True)
class LoadCheckEvent(Event):
    """One load check of a group's leader. Loads are relative to the average, and None if the check failed."""

    generation: int
    """The generation whose assignment was checked."""
    outcome: str
    """A `groupwright.core.LoadCheckOutcome`."""
    ended_at: str
    """ISO 8601 in UTC, to the microsecond."""
    peak: float | None
    """The busiest member's load over capacity."""
    bound: float | None
    """A certified lower bound of `peak` and `expected`."""
    expected: float | None
    """The peak after a rebalance."""
    moves: int | None
    """Partitions that a rebalance would move."""
    partitions: int | None
    """Assigned partitions."""


def make_event(group: str, client_id: str, rebalance: Rebalance) -> RebalanceEvent:
    """Make the event of a rebalance.

    Args:
        group: The consumer's group, for the event.
        client_id: The consumer's client id, for the event.
        rebalance: The record of the rebalance.
    """
    duration = None if rebalance.duration is None else float(rebalance.duration)
    leadership = rebalance.leadership
    return RebalanceEvent(
        version=VERSION,
        id=str(uuid.uuid4()),
        group=group,
        client_id=client_id,
        member_id=rebalance.member_id or None,
        generation=rebalance.generation if rebalance.generation >= 0 else None,
        protocol=rebalance.protocol,
        kind=str(rebalance.kind),
        outcome=str(rebalance.outcome),
        trigger=str(rebalance.trigger),
        reason=rebalance.reason or None,
        started_at=None if duration is None else _time(rebalance.ended_at - duration),
        ended_at=_time(rebalance.ended_at),
        duration_seconds=duration,
        phases={str(phase): float(seconds) for phase, seconds in rebalance.phases.items()},
        partitions_before=_plain(rebalance.partitions_before),
        partitions_after=_plain(rebalance.partitions),
        leader=None if leadership is None else asdict(leadership),
        undecodable={str(id_): str(reason) for id_, reason in rebalance.undecodable.items()},
        assigned_by_broker=rebalance.assigned_by_broker,
        error=rebalance.error or None,
    )


def make_load_check_event(result: LoadCheckResult) -> LoadCheckEvent:
    """Make the event of a load check."""
    fields = asdict(result) | {"outcome": str(result.outcome), "ended_at": _time(result.ended_at)}
    return LoadCheckEvent(version=VERSION, id=str(uuid.uuid4()), **fields)


def schema(event: type[Event] = RebalanceEvent) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of events of a class."""
    name = "load-check-event" if event is LoadCheckEvent else "rebalance-event"
    text = resources.files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _plain(partitions: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    return {
        str(topic): sorted(int(number) for number in numbers)
        for topic, numbers in sorted(partitions.items())
        if len(numbers)
    }
