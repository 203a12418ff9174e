"""Group of Groupwright's consumers under load, with short timeouts to detect silent nodes."""

from collections.abc import Collection
from typing import Any, Protocol

from groupwright.consumer import Consumer
from groupwright.testing import Kafka
from groupwright.testing.groups import ANY_END, End, LoadedGroup, Report, ThreadMember
from integration_tests.harness.patience import PATIENCE

_IMPATIENT = {
    # So that a request to a silent node times out soon, and another node is asked.
    "socket.timeout.ms": 3000,
    "socket.connection.setup.timeout.ms": 1500,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,  # librdkafka logs each connection that a fault breaks
}
_CONFIG = {
    "auto.commit.interval.ms": 200,
    "session.timeout.ms": 12_000,  # a coordinator that ends is replaced within four seconds or so
    "heartbeat.interval.ms": 300,
    "fetch.wait.max.ms": 50,
    **_IMPATIENT,
}


class FaultyGroup(LoadedGroup):
    """A group that consumes one topic while faults hit its brokers or members."""

    def __init__(self, kafka: Kafka, group: str, topic: str, partitions: int) -> None:
        super().__init__(
            kafka,
            {topic: partitions},
            Consumer,
            group_id=group,
            config=_CONFIG,
            messages_per_second=20 * partitions,
            producer_config={"acks": "all", "enable.idempotence": False, **_IMPATIENT},
            patience=PATIENCE,
        )
        self.kafka, self.topic = kafka, topic

    def join(self, name: str, **settings: Any) -> ThreadMember:
        """Add a member; settings are configuration keys, with underscores for dots."""
        member = self.start_member(name, {key.replace("_", "."): value for key, value in settings.items()})
        assert isinstance(member, ThreadMember)
        return member

    @property
    def threads(self) -> list[ThreadMember]:
        """The members, all running as threads."""
        return [member for member in self.members if isinstance(member, ThreadMember)]

    def finish(self, duplicates_after: Collection[End] = ANY_END) -> Report:
        """Check also that all is committed; commits may fail, so any change of owner may cause duplicates."""
        report = super().finish(duplicates_after)
        ends, committed = self.ledger.ends(), self.committed_offsets()
        # What was written twice, as its acknowledgement was lost, is committed too.
        assert all(committed[entry] >= end for entry, end in ends.items()), (committed, ends)
        return report


class NewFaultyGroup(Protocol):
    """Starts the load on a new topic, and returns the group that consumes it."""

    def __call__(self, partitions: int = 6) -> FaultyGroup:
        """Start the load on a number of partitions."""
