"""Consumers that a test polls by itself."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka

MakeConsumer = Callable[..., Consumer]


@pytest.fixture
def make_consumer(local_kafka: LocalKafka, group: str) -> Iterator[MakeConsumer]:
    """Make consumers of the test's group; all are closed at its end."""
    consumers: list[Consumer] = []

    def make(**settings: Any) -> Consumer:
        config: dict[str, Any] = {
            "bootstrap.servers": local_kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 50,
        }
        callbacks = {"on_commit"}
        config |= {
            key if key in callbacks else key.replace("_", "."): value for key, value in settings.items()
        }
        consumer = Consumer(config)
        consumers.append(consumer)
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()
