"""Settings of a simulated member, and the differences between Java's consumer and librdkafka."""

from dataclasses import dataclass
from enum import Enum

from groupwright.assignors import Assignor, RebalanceProtocol
from groupwright.testing._simulation.scheduler import MS, SECOND


class Behaviour(Enum):
    """Client library of a member; each property is one difference."""

    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"

    @property
    def rebalances_in_poll(self) -> bool:
        """True if JoinGroup is sent, and its response is handled, only while the application polls.

        librdkafka does so on a thread of its own; only revocations and assignments wait for a poll. A
        cooperative Java member goes on consuming while its JoinGroup is in flight, and sends no heartbeats
        until the response is handled. So its session can expire while its application processes.
        """
        return self is Behaviour.JAVA

    @property
    def commits_at_cooperative_revocation(self) -> bool:
        """True if a cooperative member commits the partitions that it revokes.

        Java commits before JoinGroup instead, and goes on consuming until the revocation. What it consumes
        in between is consumed twice.
        """
        return self is Behaviour.LIBRDKAFKA

    @property
    def loses_expired_session(self) -> bool:
        """True if a member without heartbeat responses for a session timeout loses its partitions.

        Java looks for the coordinator again instead, and keeps its partitions until that answers with an
        error.
        """
        return self is Behaviour.LIBRDKAFKA

    @property
    def heartbeats_while_syncing(self) -> bool:
        """True if heartbeats are sent between JoinGroup's and SyncGroup's response."""
        return self is Behaviour.JAVA

    @property
    def every_eager_member_watches_topics(self) -> bool:
        """True if each eager member rejoins when its topics change, not only the leader."""
        return self is Behaviour.LIBRDKAFKA

    @property
    def join_interval(self) -> int:
        """Shortest time between two JoinGroups, in microseconds."""
        return 1 * SECOND if self is Behaviour.LIBRDKAFKA else 0

    @property
    def retries_refused_join(self) -> bool:
        """True if a JoinGroup that was refused for its content, such as its timeout, is sent again."""
        return self is Behaviour.LIBRDKAFKA


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """A member's settings. Times are in microseconds; defaults are Kafka's.

    Attributes:
        topics: The subscribed topics.
        assignors: `partition.assignment.strategy`, in order of preference. Each member copies them.
        group_id: `group.id`.
        group_instance_id: `group.instance.id`; None for a dynamic member.
        behaviour: The client library.
        cooperative: Whether the member rebalances cooperatively (KIP-429); None if all assignors support it.
            With an assignor that does not, the leader withholds partitions that another member owns.
        session_timeout: `session.timeout.ms`.
        heartbeat_interval: `heartbeat.interval.ms`.
        max_poll_interval: `max.poll.interval.ms`.
        auto_commit_interval: `auto.commit.interval.ms`; None for no commits.
        max_poll_records: `max.poll.records`.
        processing: Shortest and longest time between two polls that return messages.
        metadata_max_age: `metadata.max.age.ms`.
        retry_backoff: `retry.backoff.ms`.
        request_timeout: `request.timeout.ms`.
    """

    topics: tuple[str, ...]
    assignors: tuple[Assignor, ...]
    group_id: str = "group"
    group_instance_id: str | None = None
    behaviour: Behaviour = Behaviour.JAVA
    cooperative: bool | None = None
    session_timeout: int = 45 * SECOND
    heartbeat_interval: int = 3 * SECOND
    max_poll_interval: int = 300 * SECOND
    auto_commit_interval: int | None = 5 * SECOND
    max_poll_records: int = 500
    processing: tuple[int, int] = (1 * MS, 20 * MS)
    metadata_max_age: int = 300 * SECOND
    retry_backoff: int = 100 * MS
    request_timeout: int = 30 * SECOND

    @property
    def is_cooperative(self) -> bool:
        """True if the member keeps its partitions while it joins."""
        if self.cooperative is not None:
            return self.cooperative
        return all(RebalanceProtocol.COOPERATIVE in assignor.protocols for assignor in self.assignors)
