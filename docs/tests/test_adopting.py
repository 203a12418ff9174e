"""Calls of kafka-python and aiokafka beside what replaces them in docs/adopting.md, on one Kafka."""

import asyncio
import contextlib
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from confluent_kafka import Producer

from groupwright.consumer import AIOConsumer, Consumer, DeserializingConsumer
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

with warnings.catch_warnings():  # kafka-python calls deprecated functions while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer, TopicPartition
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

PAGE = (Path(__file__).parents[1] / "adopting.md").read_text(encoding="utf-8")
MESSAGES = 20
Config = dict[str, Any]


@pytest.fixture
def topic(local_kafka: LocalKafka, new_kafka_topic: Callable[..., str]) -> str:
    """A topic of two partitions with messages."""
    name = new_kafka_topic(partitions=2)
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    for number in range(MESSAGES):
        producer.produce(name, str(number), partition=number % 2)
    assert producer.flush(PATIENCE) == 0
    return name


@pytest.fixture
def config(local_kafka: LocalKafka, topic: str) -> Config:
    return {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "partition.assignment.strategy": "range",
    }


@contextlib.contextmanager
def kafka_python(config: Config, *topics: str, **options: Any) -> Iterator[KafkaConsumer]:
    """Create a consumer of kafka-python with the page's names of settings."""
    consumer = KafkaConsumer(
        *topics,
        bootstrap_servers=config["bootstrap.servers"],
        group_id=config["group.id"],
        auto_offset_reset=config["auto.offset.reset"],
        enable_auto_commit=config["enable.auto.commit"],
        partition_assignment_strategy=options.pop("assignors", [RangePartitionAssignor]),
        **options,
    )
    try:
        yield consumer
    finally:
        consumer.close()


@pytest.mark.kafka
def test_members_of_kafka_python_and_groupwright_share_a_group(topic: str, config: Config) -> None:
    with kafka_python(config, topic) as theirs, Consumer(config) as ours:
        ours.subscribe([topic])
        ended = threading.Event()

        def poll() -> None:
            while not ended.is_set():
                ours.poll(0.05)

        def share() -> bool:
            # A shorter poll may end while it joins, after which kafka-python 3.0 sends no heartbeats.
            theirs.poll(timeout_ms=5000, max_records=1)
            return len(theirs.assignment()) == len(ours.assignment()) == 1

        thread = threading.Thread(target=poll)
        thread.start()
        try:
            wait_until(share, "one partition each")
        finally:
            ended.set()
            thread.join()


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore:value_deserializer does not implement:DeprecationWarning")
def test_offsets_of_kafka_python_stay(topic: str, config: Config) -> None:
    with kafka_python(config, topic, value_deserializer=int) as theirs:
        first = next(iter(theirs))
        assert first.value == 2 * first.offset + first.partition
        (polled,) = theirs.poll(timeout_ms=PATIENCE * 1000, max_records=1).values()
        position = TopicPartition(topic, first.partition)
        theirs.seek_to_beginning(position)
        assert theirs.position(position) == 0
        theirs.seek(position, 5)
        theirs.commit()
        theirs.commit_async().add_errback(pytest.fail)
    assert [type(record.value) for record in polled] == [int]

    deserialized = config | {"value.deserializer": lambda data, _: int(data)}
    with DeserializingConsumer[bytes, int](deserialized) as ours:
        ours.subscribe([topic])
        while (message := ours.poll(1)) is None or message.partition() != first.partition:
            pass
        assert (message.offset(), message.value()) == (5, 10 + first.partition)
        ours.commit()  # asynchronous
        while (message := ours.poll(1)) is None:
            pass
        assert ours.commit(asynchronous=False)


@pytest.mark.kafka
def test_a_group_of_aiokafka_goes_on_with_groupwright(topic: str, config: Config) -> None:
    async def theirs() -> tuple[int, int]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=config["bootstrap.servers"],
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            message = await anext(aiter(consumer))
            assert isinstance(await consumer.getmany(timeout_ms=1000), dict)
            await consumer.commit({aiokafka.TopicPartition(topic, message.partition): message.offset + 1})
        finally:
            await consumer.stop()
        return message.partition, message.offset

    async def ours(partition: int) -> tuple[int, list[str]]:
        calls: list[str] = []

        async def on_assign(_: AIOConsumer, __: object) -> None:
            calls.append("assigned")

        async def on_revoke(_: AIOConsumer, __: object) -> None:
            calls.append("revoked")

        consumer = AIOConsumer(config)
        assert not hasattr(consumer, "start")
        await consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke)
        while True:
            polling = asyncio.ensure_future(consumer.poll(PATIENCE))
            await asyncio.sleep(0.01)
            polling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                message = await polling
                if message is not None and message.partition() == partition:
                    break
        await consumer.commit(asynchronous=False)
        assert isinstance(await consumer.consume(500, 1), list)
        await consumer.close()
        return message.offset(), calls

    partition, offset = asyncio.run(theirs())
    assert asyncio.run(asyncio.wait_for(ours(partition), PATIENCE)) == (offset + 1, ["assigned", "revoked"])


def test_each_name_of_kafka_python_exists() -> None:
    section = PAGE.partition("## From kafka-python")[2].partition("## From aiokafka")[0]
    named = set(re.findall(r"\b(?:enable|auto|security|sasl|ssl|partition)_\w+", section))

    assert {"enable_auto_commit", "auto_offset_reset", "ssl_cafile"} <= named
    assert named <= KafkaConsumer.DEFAULT_CONFIG.keys()
    assert {"commit", "commit_async", "poll", "seek_to_beginning"} <= set(dir(KafkaConsumer))
    assert issubclass(RoundRobinPartitionAssignor, AbstractPartitionAssignor)
