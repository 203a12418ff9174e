"""Events that the membership delivers to the polling thread.

Rebalance callbacks run inside `poll`, as in confluent-kafka, and the polling thread owns librdkafka's handle.
So the membership uses neither: it returns events, the network thread puts them into an `Inbox`, and
`EventServer` takes them between two native polls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import MemberIdentity, Offsets
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.core import Partitions


@dataclass(frozen=True, slots=True)
class Revoke:
    """Revoke `partitions`; if `lost`, other members may own them already.

    The membership sends no JoinGroup before `Membership.applied` was called with this ticket.
    """

    ticket: int
    partitions: Partitions
    lost: bool
    identity: MemberIdentity = field(default_factory=MemberIdentity)
    """The identity for the last commit of the partitions.

    In a cooperative rebalance, that of the new generation.
    """
    cooperative: bool = False
    """True if all other partitions stay assigned and are fetched meanwhile (KIP-429)."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Assign the partitions `gained`, each from its committed offset if it has one."""

    ticket: int
    gained: Partitions
    owned: Partitions
    """The whole assignment; in an eager rebalance it equals `gained`."""
    offsets: Offsets
    """The offsets that were committed when the event was delivered."""
    identity: MemberIdentity
    timeline: Timeline | None
    """The rebalance that this completes; None if another round follows (KIP-429)."""
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class TopicUnavailable:
    """Return a topic's error from poll as a message.

    `topic` is a subscribed topic, or a regular expression that matches none.
    """

    topic: str
    error: int


@dataclass(frozen=True, slots=True)
class MaxPollExceeded:
    """Report that the application exceeded `max.poll.interval.ms`, so that the member left the group."""

    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The membership has ended; the last event."""


Event = Revoke | Assign | TopicUnavailable | MaxPollExceeded | Closed
