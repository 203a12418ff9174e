"""The producer: a steady rate of messages to every partition in turn."""

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from groupwright.cli.demo.events import Events, FeedEnded, Produced
from groupwright.cli.demo.offsets import spans

_TICK = 0.02
_REPORT_SECONDS = 0.1
_DELIVERY_SECONDS = 20.0


class Feed:
    """Produces in a thread of its own from `start` until `stop`, or until the `with` block's end.

    What Kafka has acknowledged is told by `Produced` events; the last event is `FeedEnded`.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, *, partitions: int, per_second: int, events: Events
    ) -> None:
        """Describe it.

        Args:
            bootstrap_servers: Where Kafka is.
            topic: What to produce to.
            partitions: How many partitions the topic has.
            per_second: How many messages a second, over all partitions.
            events: Gets its events.
        """
        self._topic = topic
        self._partitions = partitions
        self._per_second = per_second
        self._events = events
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "producer",
                # A message that is sent again must not be there twice, or it would not be accounted for.
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(_DELIVERY_SECONDS * 1000),
                "log_level": 0,  # the terminal is the demo's; a message that is not delivered tells why
            }
        )
        self._acknowledged: list[tuple[int, int]] = []
        self._error: str | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, and drop what has not been delivered yet."""
        self.stop()
        self._producer.purge()
        self._thread.join(_DELIVERY_SECONDS)

    def stop(self) -> None:
        """Produce no more; `FeedEnded` comes when all has been delivered."""
        self._stopping.set()

    def _run(self) -> None:
        try:
            self._produce()
            self._producer.flush()  # ends: each message is delivered or given up in time
        except KafkaException as error:
            self._error = str(error.args[0])
        self._report()
        self._events.put(FeedEnded(self._error))

    def _produce(self) -> None:
        started = reported = time.monotonic()
        sent = 0
        while not self._stopping.is_set() and self._error is None:
            now = time.monotonic()
            due = int((now - started) * self._per_second)
            while sent < due and self._send(sent):
                sent += 1
            self._producer.poll(0)
            if now - reported >= _REPORT_SECONDS:
                reported = now
                self._report()
            self._stopping.wait(_TICK)

    def _send(self, number: int) -> bool:
        partition = number % self._partitions
        try:
            self._producer.produce(
                self._topic,
                key=f"order-{partition}",
                value=f"message {number}",
                partition=partition,
                on_delivery=self._delivered,
            )
        except BufferError:
            return False  # the broker is behind; the next tick tries again
        return True

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None:
            self._error = self._error or error.str()
        elif partition is not None and offset is not None:
            self._acknowledged.append((partition, offset))

    def _report(self) -> None:
        acknowledged, self._acknowledged = self._acknowledged, []
        if acknowledged:
            self._events.put(Produced(tuple(spans(acknowledged))))
