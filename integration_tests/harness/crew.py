"""A group under load, held to what a group promises: no message lost, no partition with two owners, and recovery."""

import threading
from typing import TYPE_CHECKING, Any, Protocol, Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from groupwright.testing import Kafka
from harness.members import PATIENCE, RunningMember
from harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

Partition = tuple[str, int]

_STEP_SECONDS = 0.05
_IMPATIENT = {
    # So that a node that is silent is soon given up, and another is asked.
    "socket.timeout.ms": 3000,
    "socket.connection.setup.timeout.ms": 1500,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,  # librdkafka tells of each connection that a fault breaks
}


class Ownership:
    """Who owns which partition, by what the members' applications were told, in the order they were told it."""

    def __init__(self) -> None:
        self.conflicts: list[str] = []
        self._owners: dict[Partition, str] = {}
        self._lock = threading.Lock()

    def take(self, name: str, partitions: list[TopicPartition]) -> None:
        """Note that a member is told that it owns these."""
        with self._lock:
            for entry in _keys(partitions):
                if entry in self._owners:
                    self.conflicts.append(f"{entry} was given to {name} while {self._owners[entry]} had it")
                self._owners[entry] = name

    def give_up(self, name: str, partitions: list[TopicPartition]) -> None:
        """Note that a member is told that it owns these no more."""
        with self._lock:
            for entry in _keys(partitions):
                if self._owners.get(entry) == name:
                    del self._owners[entry]


class CrewMember(RunningMember):
    """A member that keeps the book of owners, and notes what was committed."""

    def __init__(self, config: dict[str, Any], topics: list[str], ownership: Ownership) -> None:
        self.committed: dict[Partition, int] = {}
        self.when_revoked: Callable[[], None] = lambda: None
        """What the application does when it is told; it may raise."""
        self._ownership = ownership
        super().__init__({**config, "on_commit": self._on_commit}, topics)

    def _on_assign(self, consumer: object, partitions: list[TopicPartition]) -> None:
        self._ownership.take(self.name, partitions)
        super()._on_assign(consumer, partitions)

    def _on_revoke(self, consumer: object, partitions: list[TopicPartition]) -> None:
        super()._on_revoke(consumer, partitions)
        self._ownership.give_up(self.name, partitions)
        self.when_revoked()

    def _on_lost(self, consumer: object, partitions: list[TopicPartition]) -> None:
        super()._on_lost(consumer, partitions)
        self._ownership.give_up(self.name, partitions)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is None:
            self.committed |= {
                (each.topic, each.partition): each.offset for each in partitions if not each.error
            }

    @property
    def losses(self) -> int:
        """How often it was told that it had lost partitions."""
        return sum(kind == "lost" for kind, _ in self.callbacks)


class Load:
    """Numbered messages, some to each partition several times a second, and what became of them."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int) -> None:
        self.refused: list[KafkaError] = []
        self._delivered: set[tuple[str, int, int]] = set()
        self._lock = threading.Lock()
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", **_IMPATIENT})
        self._topic, self._partitions = topic, partitions
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(_STEP_SECONDS):
            for partition in range(self._partitions):
                self._producer.produce(
                    self._topic, str(number), partition=partition, on_delivery=self._on_delivery
                )
                number += 1
            self._producer.poll(0)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(error)
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        with self._lock:
            self._delivered.add((topic, partition, offset))

    @property
    def delivered(self) -> set[tuple[str, int, int]]:
        """Topic, partition and offset of all messages that brokers have acknowledged so far."""
        with self._lock:
            return set(self._delivered)

    def stop(self) -> set[tuple[str, int, int]]:
        """Stop; return all that was delivered, which is all that was sent."""
        self._stop.set()
        self._thread.join(PATIENCE)
        assert self._producer.flush(PATIENCE) == 0, "messages that were not delivered in time"
        assert self.refused == []
        return self.delivered


class Crew:
    """Members of one group that consume a topic to which messages are being written."""

    def __init__(self, kafka: Kafka, group: str, topic: str, partitions: int) -> None:
        self.kafka, self.group, self.topic = kafka, group, topic
        self.members: list[CrewMember] = []
        self.ownership = Ownership()
        self._gone: list[CrewMember] = []
        self._all = {(topic, partition) for partition in range(partitions)}
        self._load = Load(kafka.bootstrap_servers, topic, partitions)

    def join(self, name: str, **settings: Any) -> CrewMember:
        """Add a member; settings are configuration keys, with underscores for dots."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": self.group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            "session.timeout.ms": 12_000,  # a coordinator that ends is replaced within four seconds or so
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 50,
            **_IMPATIENT,
        }
        config |= {key.replace("_", "."): value for key, value in settings.items()}
        member = CrewMember(config, [self.topic], self.ownership)
        self.members.append(member)
        return member

    def leave(self, member: CrewMember) -> None:
        """Let a member leave in good order."""
        self.members.remove(member)
        self._gone.append(member)
        member.close()

    def is_settled(self) -> bool:
        """Whether each partition has one owner, and all members are of one generation."""
        owned = [entry for member in self.members for entry in member.owned]
        return sorted(owned) == sorted(self._all) and len({member.generation for member in self.members}) == 1

    def settle(self) -> None:
        """Wait until each partition has one owner, in one generation."""
        wait_until(self.is_settled, "one owner for each partition")

    def progress(self) -> None:
        """Wait until what is being written now is consumed, and committed, in each partition."""
        before = _latest(self._load.delivered)

        def has_come() -> bool:
            latest = _latest(self._load.delivered)
            return all(latest.get(entry, -1) > before.get(entry, -1) for entry in self._all)

        wait_until(has_come, "new messages in each partition")
        written = self._load.delivered
        self._wait_for_all(written)
        ends = _latest(written)
        wait_until(
            lambda: all(self._committed(entry) > end for entry, end in ends.items()),
            "the commits of what was consumed",
        )

    def finish(self) -> None:
        """Stop the load, and hold the group to its promises; no member may have raised an error that was not taken."""
        written = self._load.stop()
        self._wait_for_all(written)
        for member in list(self.members):
            self.leave(member)
        assert self.ownership.conflicts == []
        assert {member.name: member.errors for member in self._gone if member.errors} == {}
        ends = {entry: offset + 1 for entry, offset in _latest(written).items()}
        # What was written twice, as its acknowledgement was lost, is committed too.
        committed = self._stored()
        assert all(committed[entry] >= end for entry, end in ends.items()), (committed, ends)

    def close(self) -> None:
        """Stop what still runs, without asking how it went."""
        self._load._stop.set()
        for member in self.members:
            member.close()

    def _everyone(self) -> list[CrewMember]:
        return [*self.members, *self._gone]

    def _wait_for_all(self, written: set[tuple[str, int, int]]) -> None:
        def missing() -> set[tuple[str, int, int]]:
            return written.difference(*(list(member.consumed) for member in self._everyone()))

        wait_until(lambda: not missing(), "every message that was written")

    def _stored(self) -> dict[Partition, int]:
        """Return what the coordinator has stored.

        An admin client is not asked for it: librdkafka's crashes where the coordinator has moved meanwhile
        (`rd_kafka_handle_OffsetFetch` tells a consumer group that such a client does not have).
        """
        reader = Consumer(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": self.group, "log_level": 0}
        )
        try:
            found = reader.committed([TopicPartition(*entry) for entry in self._all], timeout=PATIENCE)
        finally:
            reader.close()
        return {(each.topic, each.partition): each.offset for each in found}

    def _committed(self, entry: Partition) -> int:
        return max((member.committed.get(entry, -1) for member in self._everyone()), default=-1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class NewCrew(Protocol):
    """Starts the load on a topic of the test's own, and gives the crew that is to consume it."""

    def __call__(self, partitions: int = 6) -> Crew:
        """Start on so many partitions."""


def _latest(written: set[tuple[str, int, int]]) -> dict[Partition, int]:
    """Return the last offset of each partition."""
    latest: dict[Partition, int] = {}
    for topic, partition, offset in written:
        latest[topic, partition] = max(offset, latest.get((topic, partition), offset))
    return latest


def _keys(partitions: list[TopicPartition]) -> list[Partition]:
    return [(each.topic, each.partition) for each in partitions]
