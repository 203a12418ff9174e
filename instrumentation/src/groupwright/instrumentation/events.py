"""The event of one rebalance, as sinks receive it: plain values, ready for JSON.

`rebalance-event.schema.json`, beside this module, is its schema. Consumers of events must ignore keys that
they do not know: within one `version`, keys may be added, but no key is removed or changes its meaning.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from groupwright.core import Rebalance

VERSION = 1
"""Version of the event's schema."""


@dataclass(frozen=True, slots=True)
class RebalanceEvent:
    """One rebalance of one member."""

    version: int
    id: str
    """Id of the event; the same if it is delivered twice."""
    group: str
    client_id: str
    member_id: str | None
    generation: int | None
    """None if the rebalance led to no generation."""
    protocol: str | None
    """The assignor that the group voted for; None if there was no vote."""
    kind: str | None
    """A `groupwright.core.Kind`; None if unknown."""
    outcome: str
    """A `groupwright.core.Outcome`."""
    trigger: str | None
    """Why it began, in words: `Rebalance.reason`, not `Rebalance.trigger`. None if unknown."""
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
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a dict, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the event as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


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
        trigger=rebalance.reason or None,
        started_at=None if duration is None else _time(rebalance.ended_at - duration),
        ended_at=_time(rebalance.ended_at),
        duration_seconds=duration,
        phases={str(phase): float(seconds) for phase, seconds in rebalance.phases.items()},
        partitions_before=_plain(rebalance.partitions_before),
        partitions_after=_plain(rebalance.partitions),
        leader=None if leadership is None else asdict(leadership),
        error=rebalance.error or None,
    )


def schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of events."""
    text = resources.files(__package__).joinpath("rebalance-event.schema.json").read_text(encoding="utf-8")
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
