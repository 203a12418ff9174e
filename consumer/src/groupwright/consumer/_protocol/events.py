"""Events of the membership, which the polling thread applies.

librdkafka's handle belongs to one thread at a time, and rebalance callbacks run inside `poll` (as users of
confluent-kafka expect). So the membership touches neither: it returns events, the network thread puts them into an
`Inbox`, and `Consumer` takes them between two native polls.
"""

from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import MemberIdentity, Offset, Partitions, TopicPartitionKey
from groupwright.consumer._protocol.rebalance import Timeline


@dataclass(frozen=True, slots=True)
class Revoke:
    """Give `partitions` up; when `lost`, they may have another owner already.

    The membership waits for `Membership.applied` with this ticket before it goes on.
    """

    ticket: int
    partitions: Partitions
    lost: bool
    identity: MemberIdentity = field(default_factory=MemberIdentity)
    """Who may still commit them; in a cooperative rebalance, the member of the new generation."""
    cooperative: bool = False
    """Whether what is owned besides stays, and is consumed all the while."""


@dataclass(frozen=True, slots=True)
class Assign:
    """Own what was `gained` from now on, each partition starting at its committed offset where it has one."""

    ticket: int
    gained: Partitions
    owned: Partitions
    """All that is owned with it; in an eager rebalance nothing else."""
    offsets: dict[TopicPartitionKey, Offset]
    """The committed offsets. Commits that succeed before the event is applied update them in place."""
    identity: MemberIdentity
    timeline: Timeline | None
    """That of the rebalance which this ends; None if it goes on in another round (KIP-429)."""
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class TopicUnavailable:
    """Return the error of a subscribed topic, or of a regular expression that matches none, from poll as a message."""

    topic: str
    error: int


@dataclass(frozen=True, slots=True)
class PollExceeded:
    """The application did not poll for `max.poll.interval.ms`, and the member has left the group."""

    message: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The member is out of its group; nothing more will come."""


Event = Revoke | Assign | TopicUnavailable | PollExceeded | Closed
