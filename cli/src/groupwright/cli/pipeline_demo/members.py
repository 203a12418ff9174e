"""Members of groups, and the messages that they consume: threads of this process."""

import itertools
import logging
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException, Producer
from prometheus_client import CollectorRegistry

from groupwright.assignors import GroupwrightError
from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument, to_kafka

_SLICE = 0.1
_PATIENCE_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Members:
    """Members that join and leave as they are told; each that is left at the end of the ``with`` block leaves then."""

    def __init__(self, bootstrap_servers: str) -> None:
        """Start with none."""
        self._servers = bootstrap_servers
        self._events = to_kafka({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._running: dict[str, _Member] = {}

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let all leave."""
        self.leave(list(self._running))
        self._events.close()

    def join(self, names: Iterable[str], group: str, topic: str, assignor: str) -> None:
        """Let members join, and wait until each has been in a rebalance that was completed.

        Raises:
            GroupwrightError: One cannot.
        """
        joining = {name: _Member(name) for name in names}
        for name, member in joining.items():
            consumer = Consumer(
                {
                    "bootstrap.servers": self._servers,
                    "client.id": name,
                    "group.id": group,
                    "partition.assignment.strategy": assignor,
                    "auto.offset.reset": "earliest",
                    "auto.commit.interval.ms": 500,
                    "heartbeat.interval.ms": 500,
                    "session.timeout.ms": 6000,
                    "log_level": 0,  # the terminal is the demo's
                }
            )
            instrument(consumer, CollectorRegistry(), events=[self._events], advise=False)
            member.start(consumer, topic)
            self._running[name] = member
        for member in joining.values():
            member.wait_for_messages(_PATIENCE_SECONDS)

    def leave(self, names: Iterable[str]) -> None:
        """Let members leave, and wait until they have."""
        leaving = [self._running.pop(name) for name in names]
        for member in leaving:
            member.leaving.set()
        for member in leaving:
            member.wait_for_end(_PATIENCE_SECONDS)


class _Member:
    def __init__(self, name: str) -> None:
        self.leaving = threading.Event()
        self._name = name
        self._consuming = threading.Event()
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def start(self, consumer: Consumer, topic: str) -> None:
        self._thread = threading.Thread(
            target=self._run, args=(consumer, topic), name=self._name, daemon=True
        )
        self._thread.start()

    def wait_for_messages(self, patience: float) -> None:
        if not self._consuming.wait(patience) or self._error:
            raise GroupwrightError(
                f"{self._name} has consumed nothing in {patience:g} s: {self._error or 'no error'}"
            )

    def wait_for_end(self, patience: float) -> None:
        if self._thread is not None:
            self._thread.join(patience)

    def _run(self, consumer: Consumer, topic: str) -> None:
        try:
            with consumer:
                consumer.subscribe([topic])
                while not self.leaving.is_set():
                    errors = [message.error() for message in consumer.consume(100, _SLICE)]
                    if None in errors:
                        self._consuming.set()
                    for error in filter(None, errors):
                        _log.warning("%s: %s", self._name, error)
        except (GroupwrightError, KafkaException) as error:
            self._error = error
            self._consuming.set()
            _log.warning("%s ends: %s", self._name, error)


class Feed:
    """Produces to every partition in turn, in a thread of its own, until the ``with`` block's end."""

    def __init__(self, bootstrap_servers: str, topics: dict[str, int], per_second: int) -> None:
        """Describe it.

        Args:
            bootstrap_servers: Where Kafka is.
            topics: What to produce to, each with its number of partitions.
            per_second: How many messages a second, to each topic.
        """
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 20, "log_level": 0})
        self._topics = topics
        self._per_second = per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop."""
        self._stopping.set()
        self._thread.join(_PATIENCE_SECONDS)
        self._producer.purge()

    def _run(self) -> None:
        began, numbers = time.monotonic(), itertools.count()
        sent = 0
        while not self._stopping.wait(0.02):
            due = int((time.monotonic() - began) * self._per_second)
            for number in itertools.islice(numbers, max(0, due - sent)):
                self._produce(number)
            sent = max(sent, due)
            self._producer.poll(0)

    def _produce(self, number: int) -> None:
        for topic, partitions in self._topics.items():
            try:
                self._producer.produce(topic, b"a message of the demo", partition=number % partitions)
            except BufferError:
                _log.info("Kafka is behind: a message is left out")
