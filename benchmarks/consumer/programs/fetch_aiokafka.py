"""aiokafka's consumer consumes a filled topic."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from benchmarks.consumer.programs.harness import GROUP_TIMEOUT, report, say, settings, telling_failures
from benchmarks.consumer.programs.stopwatch import Stopwatch

_WAIT_MS = 1_000
_LOOKS = 1_000
"""After how many messages the clock is looked at."""


async def by_iteration(consumer: AIOKafkaConsumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume message by message."""
    first = await asyncio.wait_for(consumer.getone(), GROUP_TIMEOUT)
    count, size = 1, len(first.value)
    watch = Stopwatch(wanted, longest, count)
    async for record in consumer:
        count += 1
        size += len(record.value)
        if count == wanted or (count % _LOOKS == 0 and watch.is_over()):
            break
    return watch.stop(count, size)


async def by_getmany(consumer: AIOKafkaConsumer, wanted: int, longest: float) -> dict[str, object]:
    """Consume in batches of what is there."""
    batches = await consumer.getmany(timeout_ms=int(GROUP_TIMEOUT * 1000))
    count, size = _measure(batches)
    watch = Stopwatch(wanted, longest, count)
    while count < wanted and not watch.is_over():
        batches = await consumer.getmany(timeout_ms=_WAIT_MS)
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


async def main() -> None:
    """Consume the topic, and say how long it took."""
    given = settings()
    consumer = AIOKafkaConsumer(
        given["topic"],
        bootstrap_servers=given["servers"],
        group_id=given["group"],
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        say("ready")
        fetch = by_iteration if given["way"] == "iteration" else by_getmany
        report(await fetch(consumer, int(given["messages"]), float(given["longest"])))
    finally:
        await consumer.stop()


if __name__ == "__main__":
    with telling_failures():
        asyncio.run(main())
