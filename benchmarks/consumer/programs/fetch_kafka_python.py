"""kafka-python's consumer consumes a filled topic."""

import time

from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from benchmarks.consumer.programs.harness import GROUP_TIMEOUT, report, say, settings, telling_failures
from benchmarks.consumer.programs.stopwatch import Stopwatch

_WAIT_MS = 1_000
_LOOKS = 1_000
"""After how many messages the clock is looked at."""


def by_iteration(consumer: KafkaConsumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume message by message."""
    first = next(consumer)
    count, size = 1, len(first.value)
    watch = Stopwatch(wanted, longest, count)
    for record in consumer:
        count += 1
        size += len(record.value)
        if count == wanted or (count % _LOOKS == 0 and watch.is_over()):
            break
    return watch.stop(count, size)


def by_poll(consumer: KafkaConsumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume in batches of what is there."""
    deadline = time.monotonic() + GROUP_TIMEOUT
    while not (batches := consumer.poll(_WAIT_MS)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"no first message in {GROUP_TIMEOUT} s")
    count, size = _measure(batches)
    watch = Stopwatch(wanted, longest, count)
    while count < wanted and not watch.is_over():
        batches = consumer.poll(_WAIT_MS)
        if not batches:
            raise TimeoutError(f"no message for {_WAIT_MS} ms after {count}")
        more, bytes_more = _measure(batches)
        count += more
        size += bytes_more
    return watch.stop(count, size)


def _measure(batches: dict[TopicPartition, list[ConsumerRecord]]) -> tuple[int, int]:
    """Return how many messages there are, and the bytes of their values."""
    values = [record.value for records in batches.values() for record in records]
    return len(values), sum(map(len, values))


def main() -> None:
    """Consume the topic, and say how long it took."""
    given = settings()
    consumer = KafkaConsumer(
        given["topic"],
        bootstrap_servers=given["servers"],
        group_id=given["group"],
        auto_offset_reset="earliest",
        consumer_timeout_ms=int(GROUP_TIMEOUT * 1000),
        max_poll_records=int(given["batch"]),
    )
    try:
        say("ready")
        fetch = by_iteration if given["way"] == "iteration" else by_poll
        report(fetch(consumer, int(given["messages"]), float(given["longest"])))
    finally:
        consumer.close()


if __name__ == "__main__":
    with telling_failures():
        main()
