"""What a share consumer acquires and acknowledges (KIP-932), told by its calls."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.core.configuration import Configuration
from groupwright.instrumentation._metrics import share_catalogue as metrics
from groupwright.instrumentation._metrics.samples import Sample

_ACCEPT = "accept"
_Record = tuple[str, int, int]
"""Topic, partition and offset."""


class ShareTracker:
    """Counts of one share consumer. Its polling thread writes; any thread may read."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Start with nothing acquired."""
        settings = Configuration(config)
        self.group_id = settings.text("group.id")
        self.client_id = settings.text("client.id")
        self.acquired = self.redelivered = 0
        self.acknowledged: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.is_closed = False
        self.in_poll = False
        self.last_poll = time.monotonic()
        self.in_flight: dict[_Record, str] = {}
        """The records that were acquired and not answered, and the type of their acknowledgement."""

    @property
    def poll_age(self) -> float | None:
        """Seconds since the application was last inside poll; None once it is closed."""
        if self.is_closed:
            return None
        return 0.0 if self.in_poll else time.monotonic() - self.last_poll

    def on_poll_start(self) -> None:
        """Record that poll begins."""
        self.in_poll = True

    def on_poll_end(self, messages: Iterable[Message]) -> None:
        """Record that poll has returned messages."""
        self.in_poll, self.last_poll = False, time.monotonic()
        for message in messages:
            if message.error() is not None:
                continue
            self.acquired += 1
            self.redelivered += (message.delivery_count() or 1) > 1
            self.in_flight[record_of(message)] = _ACCEPT

    def on_acknowledge(self, record: _Record, kind: str) -> None:
        """Record the type of an acknowledgement, which is not sent yet."""
        if record in self.in_flight:
            self.in_flight[record] = kind

    def on_answer(self, offsets: Mapping[TopicPartition, Iterable[int]], error: Any) -> None:
        """Record the broker's answer to acknowledgements. It does not raise."""
        for partition, numbers in offsets.items():
            for offset in numbers:
                kind = self.in_flight.pop((partition.topic, partition.partition, offset), _ACCEPT)
                if error is None:
                    self.acknowledged[kind] += 1
                else:
                    self.refused[_name_of(error)] += 1

    def on_error(self, error: KafkaError) -> None:
        """Count an error of the client."""
        self.errors[error.name()] += 1


def of_share_consumer(tracker: ShareTracker, consumer: object | None) -> Iterator[Sample]:
    """Yield the samples of a share consumer; the totals alone if it no longer exists."""
    yield Sample(metrics.SHARE_ACQUIRED, (), tracker.acquired)
    yield Sample(metrics.SHARE_REDELIVERED, (), tracker.redelivered)
    for spec, counts in (
        (metrics.SHARE_ACKNOWLEDGED, tracker.acknowledged),
        (metrics.SHARE_REFUSED, tracker.refused),
        (metrics.SHARE_CLIENT_ERRORS, tracker.errors),
    ):
        for label, number in counts.copy().items():
            yield Sample(spec, (label,), number)
    age = tracker.poll_age
    if consumer is not None and age is not None:
        yield Sample(metrics.SHARE_IN_FLIGHT, (), len(tracker.in_flight))
        yield Sample(metrics.SHARE_POLL_AGE, (), age)


def record_of(message: Message) -> _Record:
    """Return where a message stands."""
    return message.topic() or "", message.partition() or 0, message.offset() or 0


def _name_of(error: Any) -> str:
    cause = error.args[0] if getattr(error, "args", ()) else error
    return str(cause.name()) if isinstance(cause, KafkaError) else type(error).__name__
