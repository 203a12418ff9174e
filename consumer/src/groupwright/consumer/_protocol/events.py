"""Events that the membership delivers to the polling thread.

librdkafka's handle belongs to one thread at a time, and rebalance callbacks run inside `poll` (as users of
confluent-kafka expect). So the membership touches neither: it returns events, the network thread puts them
into an `Inbox`, and `Consumer` takes them between two native polls.
"""

from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import MemberIdentity, Offset, Partitions, TopicPartitionKey
from groupwright.consumer._protocol.rebalance import Timeline


@dataclass(frozen=True, slots=True)
class Revoke:
    """Revoke `partitions`; if `lost`, other members may own them already.

    The membership waits for `Membership.applied` with this ticket before it goes on.
    """

    ticket: int
    partitions: Partitions
    lost: bool
    identity: MemberIdentity = field(default_factory=MemberIdentity)
    """The identity that may still commit them; in a cooperative rebalance, that of the new generation."""
    cooperative: bool = False
    """Whether all other partitions stay assigned, and are consumed meanwhile."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Assign the partitions `gained`, each from its committed offset if it has one."""

    ticket: int
    gained: Partitions
    owned: Partitions
    """The whole assignment; in an eager rebalance the same as `gained`."""
    offsets: dict[TopicPartitionKey, Offset]
    """The committed offsets. Commits that succeed before the event is applied update them in place."""
    identity: MemberIdentity
    timeline: Timeline | None
    """The rebalance that this ends; None if it goes on in another round (KIP-429)."""
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class TopicUnavailable:
    """Return a topic's error from poll as a message.

    `topic` is a subscribed topic, or a regular expression that matches none.
    """

    topic: str
    error: int


@dataclass(frozen=True, slots=True)
class PollExceeded:
    """Report that the application exceeded `max.poll.interval.ms`, so that the member left the group."""

    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The member has left its group; the last event."""


Event = Revoke | Assign | TopicUnavailable | PollExceeded | Closed
