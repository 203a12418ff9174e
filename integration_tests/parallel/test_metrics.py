"""The metrics of workers, as Prometheus sees them while a message is held and after it was done."""

import threading

import pytest
from confluent_kafka import Consumer, Message, Producer
from prometheus_client import CollectorRegistry

from groupwright.consumer.parallel import ParallelConsumer, Retry
from groupwright.instrumentation import create_instrumented, instrument_parallel
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka


def test_the_metrics_of_workers_are_those_of_their_messages(
    kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic
) -> None:
    topic, registry, release = new_kafka_topic(), CollectorRegistry(), threading.Event()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(6):
        producer.produce(topic, str(number))
    assert producer.flush(PATIENCE) == 0

    def process(message: Message) -> None:
        if message.value() == b"2":
            assert release.wait(PATIENCE)
        elif message.value() == b"4":
            raise ValueError("no order")

    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
    }
    parallel = ParallelConsumer(
        config,
        process,
        order="none",
        retry=Retry(1, backoff=0.0),
        dead_letter=lambda *_: None,
        create=lambda config: create_instrumented(Consumer, config, registry=registry),
    )
    shown = instrument_parallel(parallel, registry)
    assert instrument_parallel(parallel, registry) is shown

    def value(name: str) -> float | None:
        of_client = {"group": group, "client_id": "rdkafka"}
        return registry.get_sample_value(f"groupwright_parallel_{name}", of_client)

    thread = threading.Thread(target=parallel.run, args=([topic],))
    thread.start()
    try:
        wait_until(lambda: value("in_flight") == 1, "all but one to be done")
        assert (value("running"), value("done_beyond")) == (1, 3)
        assert (value("oldest_seconds") or 0) > 0
        assert value("messages_total") == 5
        assert (value("retries_total"), value("dead_letters_total")) == (1, 1)
    finally:
        release.set()
        wait_until(lambda: value("messages_total") == 6, "all to be done")
        parallel.stop()
        thread.join(PATIENCE)
    assert (value("running"), value("done_beyond"), value("oldest_seconds")) == (0, 0, 0)
    owned = {"group": group, "client_id": "rdkafka", "topic": topic}
    assert registry.get_sample_value("groupwright_partitions_owned", owned) == 0, "it has left"
    shown.remove()
    assert value("running") is None
