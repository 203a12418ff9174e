"""Numbered records: a feed that writes them, and a tally of what came of them."""

import threading
import time
from collections import Counter
from typing import Self

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from integration_tests.harness.patience import PATIENCE

_RECORDS_PER_STEP = 5
_STEP_SECONDS = 0.01


class Feed:
    """Writes the numbers 0, 1, 2, … to a topic, until it is stopped."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self.sent = 0
        self._producer = Producer(
            # A retry of what the broker had written already would count as a record too many.
            {"bootstrap.servers": bootstrap_servers, "linger.ms": 5, "enable.idempotence": True}
        )
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(_STEP_SECONDS):
            for number in range(self.sent, self.sent + _RECORDS_PER_STEP):
                self._producer.produce(self._topic, f"record {number}", str(number))
            self._producer.poll(0)
            self.sent += _RECORDS_PER_STEP

    def stop(self) -> int:
        """Stop; return how many records there are."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE) == 0
        return self.sent

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Tally:
    """Counts the records of a topic by key and value, from its beginning, as they become visible."""

    def __init__(
        self, bootstrap_servers: str, topic: str, partitions: int, isolation: str = "read_committed"
    ) -> None:
        self.counts: Counter[tuple[bytes | None, bytes | None]] = Counter()
        self._partitions = range(partitions)
        self._ends: set[int | None] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": "of no group",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": isolation,
                "fetch.wait.max.ms": 50,
            }
        )
        self._consumer.assign(
            [TopicPartition(topic, number, OFFSET_BEGINNING) for number in self._partitions]
        )

    def read(self) -> int:
        """Count what is new; return how many different records there are."""
        self._count(self._consumer.consume(10_000, timeout=0.1))
        return len(self.counts)

    def read_next(self) -> None:
        """Return at once when a record has become visible."""
        before, deadline = self.counts.total(), time.monotonic() + PATIENCE
        while self.counts.total() == before:
            if time.monotonic() > deadline:
                pytest.fail(f"another record: not within {PATIENCE:.0f} s")
            self._count(self._consumer.consume(1, timeout=0.1))

    def _count(self, messages: list[Message]) -> None:
        for message in messages:
            error = message.error()
            if error is None:
                self.counts[message.key(), message.value()] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                self._ends.add(message.partition())

    def read_to_the_end(self) -> Self:
        """Count everything there is; for a new tally."""
        deadline = time.monotonic() + PATIENCE
        while self._ends < set(self._partitions):
            if time.monotonic() > deadline:
                pytest.fail(f"the ends of all partitions: not within {PATIENCE:.0f} s, only of {self._ends}")
            self.read()
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
