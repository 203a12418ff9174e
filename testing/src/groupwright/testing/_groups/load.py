"""Producer at a constant rate, in its own thread, which reports acknowledged messages."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.events import Produced, now
from groupwright.testing._groups.offsets import spans_with_values
from groupwright.testing.errors import LoadedGroupError

_TICK = 0.02
_REPORT_SECONDS = 0.1
_JOIN_SECONDS = 60.0
_FLUSH_SECONDS = 1.0
_METADATA_SECONDS = 1.0
# UNKNOWN is a broker's response (-1) if its write fails by an error that Kafka has no code for, such as
# that of a mapped file on a full disk.
_MAY_BE_LOST = frozenset(
    {KafkaError._MSG_TIMED_OUT, KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError.UNKNOWN}  # noqa: SLF001
)


class Load:
    """Produces numbered messages to each partition in turn, from `start` until `stop`.

    Messages that time out (`message.timeout.ms`), or that a broker failed to write, are produced again by a
    new producer, because librdkafka may not reconnect to a broker that has restarted. Brokers may then have
    such a message twice, the first time unacknowledged.
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[TopicPartitionKey]],
        messages_per_second: float,
        config: Mapping[str, Any],
        record: Callable[[Produced], None],
        producer: Callable[[dict[str, Any]], Any] = Producer,
        *,
        values: bool = False,
    ) -> None:
        """Create the producer; `with` starts it.

        Args:
            partitions: Returns the partitions to produce to; called before each round of messages.
            messages_per_second: The rate, over all partitions.
            config: The producer's configuration; overrides `enable.idempotence=true` and `linger.ms=5`.
            record: Called with the acknowledged messages, ten times a second.
            producer: Creates the producer from its configuration.
            values: Whether to record the messages' values (`Produced.values`).
        """
        self.error: str | None = None
        """The error of the first message that could not be produced; the producer stops then."""
        self._partitions = partitions
        self._rate = messages_per_second
        self._record = record
        # Without idempotence, a retried message may be stored twice, the second time unacknowledged.
        self._config = {"enable.idempotence": True, "linger.ms": 5, "log_level": 0, **config}
        self._make = producer
        self._producer = producer(dict(self._config))
        self._values = values
        self._acknowledged: list[tuple[tuple[str, int, int], str]] = []
        self._undelivered: list[tuple[TopicPartitionKey, int]] = []
        self._stopping = threading.Event()
        self._discarding = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, and discard messages that have not been delivered."""
        self._discarding.set()
        self._stopping.set()
        self._producer.purge()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_SECONDS)

    @property
    def ended(self) -> bool:
        """True if the producer has stopped, and all its messages are delivered and recorded."""
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop producing; `ended` is true once all messages are delivered."""
        self._stopping.set()

    def raise_for_error(self) -> None:
        """Raise the error of the producer, if there is one.

        Raises:
            LoadedGroupError: A message could not be produced.
        """
        if self.error is not None:
            raise LoadedGroupError(f"a message could not be produced: {self.error}")

    def _run(self) -> None:
        try:
            self._produce()
            self._flush()
            while self._undelivered and self.error is None and not self._discarding.is_set():
                self._produce_again()
                self._flush()
        except KafkaException as error:
            self.error = str(error.args[0])
        self._report()

    def _produce(self) -> None:
        started = reported = now()
        sent, coming = 0, self._messages()
        message = next(coming)
        # The message is None while there are no partitions; messages due meanwhile are not made up for.
        while not self._stopping.is_set() and self.error is None:
            due = int((now() - started) * self._rate)
            while message is not None and sent < due and self._send(*message):
                sent, message = sent + 1, next(coming)
            if message is None:
                sent, message = due, next(coming)
            self._producer.poll(0)
            if self._undelivered:
                self._produce_again()
            if now() - reported >= _REPORT_SECONDS:
                reported = now()
                self._report()
            self._stopping.wait(_TICK)

    def _messages(self) -> Iterator[tuple[TopicPartitionKey, int] | None]:
        """Yield a partition and a number for each message; None if there are no partitions."""
        numbers = itertools.count()
        while True:
            partitions = self._partitions()
            if not partitions:
                yield None
            for partition in partitions:
                yield partition, next(numbers)

    def _send(self, partition: TopicPartitionKey, number: int) -> bool:
        topic, index = partition
        try:
            self._producer.produce(
                topic,
                value=str(number),
                key=f"key-{index}",
                partition=index,
                on_delivery=lambda error, message: self._on_delivery(error, message, partition, number),
            )
        except BufferError:
            return False  # the brokers are behind; the next tick tries again
        except KafkaException as error:
            if error.args[0].code() != KafkaError._UNKNOWN_PARTITION:  # noqa: SLF001 - librdkafka's public code
                raise
            # The topic has grown, and librdkafka refreshes its metadata every five minutes.
            with contextlib.suppress(KafkaException):
                self._producer.list_topics(topic, timeout=_METADATA_SECONDS)
            return False
        return True

    def _produce_again(self) -> None:
        """Replace the producer, and produce what the former one has not delivered."""
        self._producer.purge()
        self._flush()
        self._producer = self._make(dict(self._config))
        again, self._undelivered = self._undelivered, []
        self._undelivered += (message for message in again if not self._send(*message))

    def _flush(self) -> None:
        """Wait until each message is delivered or has failed, which it does within `message.timeout.ms`."""
        while self._producer.flush(_FLUSH_SECONDS):
            if self._discarding.is_set():
                self._producer.purge()

    def _on_delivery(
        self, error: KafkaError | None, message: Message, partition: TopicPartitionKey, number: int
    ) -> None:
        offset = message.offset()
        if error is None and offset is not None:
            self._acknowledged.append(((*partition, offset), str(number)))
        elif error is not None and error.code() in _MAY_BE_LOST:
            self._undelivered.append((partition, number))
        elif error is not None:
            self.error = self.error or error.str()

    def _report(self) -> None:
        acknowledged, self._acknowledged = self._acknowledged, []
        if acknowledged:
            joined, values = spans_with_values(acknowledged)
            self._record(Produced(now(), joined, values if self._values else ()))
