"""Groupwright's consumer, or confluent-kafka's, consumes a filled topic."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

from benchmarks.consumer.programs.harness import (
    GROUP_TIMEOUT,
    consumer_class,
    report,
    say,
    settings,
    telling_failures,
)
from benchmarks.consumer.programs.stopwatch import Stopwatch

if TYPE_CHECKING:
    import confluent_kafka

_WAIT = 1.0
_LOOKS = 10_000
"""After how many messages the clock is looked at."""


def by_poll(consumer: confluent_kafka.Consumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume message by message."""
    first = _first(consumer, 1)
    count, size = len(first), _size(first)
    watch = Stopwatch(wanted, longest, count)
    poll = consumer.poll
    while count < wanted and not (count % _LOOKS == 0 and watch.is_over()):
        message = poll(_WAIT)
        if message is None:
            raise TimeoutError(f"no message for {_WAIT} s after {count}")
        if error := message.error():
            raise RuntimeError(error.str())
        count += 1
        size += len(message.value() or b"")
    return watch.stop(count, size)


def by_consume(consumer: confluent_kafka.Consumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume in batches of a thousand."""
    first = _first(consumer, 1000)
    count, size = len(first), _size(first)
    watch = Stopwatch(wanted, longest, count)
    while count < wanted and not watch.is_over():
        messages = consumer.consume(1000, _WAIT)
        if not messages:
            raise TimeoutError(f"no message for {_WAIT} s after {count}")
        for message in messages:
            if error := message.error():
                raise RuntimeError(error.str())
            count += 1
            size += len(message.value() or b"")
    return watch.stop(count, size)


def _first(consumer: confluent_kafka.Consumer, most: int) -> list[confluent_kafka.Message]:
    """Return the first messages, as soon as there are any."""
    deadline = time.monotonic() + GROUP_TIMEOUT
    while time.monotonic() < deadline:
        if most == 1:
            message = consumer.poll(_WAIT)
            messages = [] if message is None else [message]
        else:
            messages = consumer.consume(most, 0.01)
        if messages:
            return messages
    raise TimeoutError(f"no first message in {GROUP_TIMEOUT} s")


def _size(messages: list[confluent_kafka.Message]) -> int:
    return sum(len(message.value() or b"") for message in messages)


def main() -> None:
    """Consume the topic, and say how long it took."""
    given = settings()
    config = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "earliest",
        **{name: value for name, value in given.items() if "." in name},
    }
    consumer = consumer_class(given["client"])(config)
    try:
        consumer.subscribe([given["topic"]])
        if "freeze" in given:
            gc.collect()
            gc.freeze()
        say("ready")
        fetch = by_poll if given["way"] == "poll()" else by_consume
        report(fetch(consumer, int(given["messages"]), float(given["longest"])))
    finally:
        consumer.close()


if __name__ == "__main__":
    with telling_failures():
        main()
