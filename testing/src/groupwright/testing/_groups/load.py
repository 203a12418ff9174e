"""Producer at a constant rate, in its own thread, which reports acknowledged messages."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from groupwright.testing._groups.events import Partition, Produced, now
from groupwright.testing._groups.offsets import spans
from groupwright.testing.errors import LoadedGroupError

_TICK = 0.02
_REPORT_SECONDS = 0.1
_JOIN_SECONDS = 60.0


class Load:
    """Produces numbered messages to each partition in turn, from `start` until `stop`."""

    def __init__(
        self,
        partitions: Callable[[], Sequence[Partition]],
        messages_per_second: float,
        config: Mapping[str, Any],
        record: Callable[[Produced], None],
        producer: Callable[[dict[str, Any]], Any] = Producer,
    ) -> None:
        """Create the producer; `with` starts it.

        Args:
            partitions: Returns the partitions to produce to; called before each round of messages.
            messages_per_second: The rate, over all partitions.
            config: The producer's configuration; overrides `enable.idempotence=true` and `linger.ms=5`.
            record: Called with the acknowledged messages, ten times a second.
            producer: Creates the producer from its configuration.
        """
        self.error: str | None = None
        """The error of the first message that could not be produced; the producer stops then."""
        self._partitions = partitions
        self._rate = messages_per_second
        self._record = record
        # Without idempotence, a retried message may be stored twice, the second time unacknowledged.
        self._producer = producer({"enable.idempotence": True, "linger.ms": 5, "log_level": 0, **config})
        self._acknowledged: list[tuple[str, int, int]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)

    def __enter__(self) -> Self:
        """Start."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop, and discard messages that have not been delivered."""
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
            self._producer.flush()  # ends: each message is delivered or fails within message.timeout.ms
        except KafkaException as error:
            self.error = str(error.args[0])
        self._report()

    def _produce(self) -> None:
        started = reported = now()
        sent, coming = 0, self._messages()
        message = next(coming)
        while not self._stopping.is_set() and self.error is None:
            due = int((now() - started) * self._rate)
            while sent < due and self._send(*message):
                sent, message = sent + 1, next(coming)
            self._producer.poll(0)
            if now() - reported >= _REPORT_SECONDS:
                reported = now()
                self._report()
            self._stopping.wait(_TICK)

    def _messages(self) -> Iterator[tuple[Partition, int]]:
        numbers = itertools.count()
        while True:
            for partition in self._partitions():
                yield partition, next(numbers)

    def _send(self, partition: Partition, number: int) -> bool:
        topic, index = partition
        try:
            self._producer.produce(
                topic, value=str(number), key=f"key-{index}", partition=index, on_delivery=self._on_delivery
            )
        except BufferError:
            return False  # the brokers are behind; the next tick tries again
        return True

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is not None:
            purged = error.code() == KafkaError._PURGE_QUEUE  # noqa: SLF001 - librdkafka's public code
            self.error = self.error or (None if purged else error.str())
        elif topic is not None and partition is not None and offset is not None:
            self._acknowledged.append((topic, partition, offset))

    def _report(self) -> None:
        acknowledged, self._acknowledged = self._acknowledged, []
        if acknowledged:
            self._record(Produced(now(), spans(acknowledged)))
