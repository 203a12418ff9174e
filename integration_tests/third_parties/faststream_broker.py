"""FastStream: subscribers of a broker whose consumers are ours.

FastStream looks its consumer up as `faststream.confluent.helpers.client.Consumer`.
"""

import asyncio
import logging
import threading
from typing import Any

import faststream.confluent.helpers.client as faststream_client
from faststream import AckPolicy
from faststream.confluent import KafkaBroker, KafkaMessage, TopicPartition

from integration_tests.third_parties.common import (
    PATIENCE,
    Warnings,
    committed,
    consumer_class,
    new_group,
    new_topic,
    numbers,
    produce,
)


class _Received:
    """The messages that came, and whether all have."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.values: list[str] = []
        self.all = asyncio.Event()

    def take(self, values: list[Any]) -> None:
        self.values.extend(map(str, values))
        if len(self.values) >= self._count:
            self.all.set()

    async def plain(self, value: Any) -> None:
        self.take([value])

    async def batch(self, values: list[Any]) -> None:
        self.take(values)

    async def manual(self, value: Any, message: KafkaMessage) -> None:
        await message.ack()
        self.take([value])

    async def refuse_once(self, value: Any) -> None:
        seen = str(value) in self.values
        self.take([value])
        if not seen and str(value) == "4":
            raise ValueError("refused once")


async def _run(which: str, bootstrap: str, count: int, handler: str = "plain", **subscriber: Any) -> Any:
    faststream_client.Consumer = consumer_class(which)
    topic, group = new_topic(bootstrap), new_group()
    produce(bootstrap, topic, numbers(count))
    warnings = Warnings()
    logger = logging.getLogger("faststream-check")
    logger.addHandler(warnings)
    logger.propagate = False
    broker = KafkaBroker(bootstrap, logger=logger)
    received = _Received(count)
    joined = threading.Event()
    options: dict[str, Any] = {"group_id": group, "auto_offset_reset": "earliest"} | subscriber
    topics = [topic]
    if handler == "nothing":
        options["on_assign"] = lambda *_: joined.set()
        handler = "plain"
    if "partitions" in options:
        topics, options["partitions"] = [], [TopicPartition(topic, number) for number in range(2)]
    broker.subscriber(*topics, **options)(getattr(received, handler))
    await broker.start()
    if count:
        await asyncio.wait_for(received.all.wait(), PATIENCE)
    else:
        await asyncio.to_thread(joined.wait, PATIENCE)
    await broker.stop()
    return {
        "messages": sorted(set(received.values), key=int),
        "committed": committed(bootstrap, group, topic),
        "logged": [line.replace(topic, "TOPIC").replace(group, "GROUP") for line in warnings.seen],
    }


def automatic(which: str, bootstrap: str) -> Any:
    """Acknowledge first, the default."""
    return asyncio.run(_run(which, bootstrap, 20))


def nothing_to_read(which: str, bootstrap: str) -> Any:
    """Stop without a message: its commit has no offset."""
    return asyncio.run(_run(which, bootstrap, 0, "nothing"))


def batch(which: str, bootstrap: str) -> Any:
    """Take batches."""
    return asyncio.run(_run(which, bootstrap, 20, "batch", batch=True, ack_policy=AckPolicy.ACK))


def manual_ack(which: str, bootstrap: str) -> Any:
    """Acknowledge by hand."""
    return asyncio.run(_run(which, bootstrap, 20, "manual", ack_policy=AckPolicy.MANUAL))


def ack(which: str, bootstrap: str) -> Any:
    """Acknowledge after each message."""
    return asyncio.run(_run(which, bootstrap, 20, ack_policy=AckPolicy.ACK))


def nack(which: str, bootstrap: str) -> Any:
    """Refuse a message once: FastStream seeks back to it."""
    return asyncio.run(_run(which, bootstrap, 20, "refuse_once", ack_policy=AckPolicy.NACK_ON_ERROR))


def workers(which: str, bootstrap: str) -> Any:
    """Handle messages concurrently."""
    return asyncio.run(_run(which, bootstrap, 20, max_workers=3))


def partitions(which: str, bootstrap: str) -> Any:
    """Read partitions assigned by hand."""
    return asyncio.run(_run(which, bootstrap, 20, partitions=True))
