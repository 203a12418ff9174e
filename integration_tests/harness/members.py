"""Members of real groups, each polled by a thread of its own."""

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer import Consumer, Rebalance
from groupwright.core import RebalanceListener

PATIENCE = float(os.environ.get("GROUPWRIGHT_TESTS_PATIENCE", "30"))
"""Seconds that a condition may take on a slow machine."""


class RunningMember(RebalanceListener):
    """A consumer in a loop of polls, and what happened to it."""

    def __init__(
        self, config: dict[str, Any], topics: list[str], make: Callable[[dict[str, Any]], Consumer] = Consumer
    ) -> None:
        self.name = config["client.id"]
        self.errors: list[KafkaException] = []
        self.rebalances: list[Rebalance] = []
        self.callbacks: list[tuple[str, list[tuple[str, int]]]] = []
        self.owned: set[tuple[str, int]] = set()
        self.consumed: list[tuple[str, int, int]] = []
        self.consumer = make(config)
        self.consumer.add_listener(self)
        self._subscribe(topics)
        self._stop = threading.Event()
        self._may_poll = threading.Event()
        self._may_poll.set()
        self._wanted: SimpleQueue[list[str]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"member {self.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._may_poll.wait()
            if not self._wanted.empty():
                self._subscribe(self._wanted.get())
            try:
                message = self.consumer.poll(0.2)
            except KafkaException as error:
                self.errors.append(error)
                continue
            if message is None:
                continue
            cause = message.error()
            if cause is not None:
                # The group's own; a topic's are what a test about topics does on purpose.
                if message.topic() is None and cause.code() != KafkaError._MAX_POLL_EXCEEDED:
                    self.errors.append(KafkaException(cause))
            else:
                topic, partition, offset = message.topic(), message.partition(), message.offset()
                assert topic is not None
                assert partition is not None
                assert offset is not None
                self.consumed.append((topic, partition, offset))
        self.consumer.close()

    def _subscribe(self, topics: list[str]) -> None:
        self.consumer.subscribe(
            topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def subscribe(self, topics: list[str]) -> None:
        """Subscribe to other topics, before the next poll."""
        self._wanted.put(topics)

    def stall(self) -> None:
        """Poll no more, until `go_on`; heartbeats go on."""
        self._may_poll.clear()

    def go_on(self) -> None:
        """Poll again."""
        self._may_poll.set()

    def close(self) -> None:
        """Leave the group, on the member's own thread, and wait until it has."""
        self._stop.set()
        self.go_on()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"{self.name} did not close in time"

    @property
    def generation(self) -> int:
        """The generation of the last rebalance that was completed, or -1."""
        return self.rebalances[-1].generation if self.rebalances else -1

    def _on_assign(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._note("assign", partitions)

    def _on_revoke(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._note("revoke", partitions)
        self.owned -= {(p.topic, p.partition) for p in partitions}

    def _on_lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._note("lost", partitions)
        self.owned -= {(p.topic, p.partition) for p in partitions}

    def _note(self, kind: str, partitions: list[TopicPartition]) -> None:
        self.callbacks.append((kind, sorted((p.topic, p.partition) for p in partitions)))

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)
        # Last, so that whoever waits for it finds the rest as well.
        self.owned = {
            (topic, number) for topic, numbers in rebalance.partitions.items() for number in numbers
        }


class Join(Protocol):
    """Adds a member to the test's group."""

    def __call__(self, name: str, topics: list[str], **settings: Any) -> RunningMember:
        """Start a member; settings are configuration keys, with underscores for dots."""
