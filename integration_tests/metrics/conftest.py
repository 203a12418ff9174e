"""Members whose metrics are looked at, and what the coordinator knows of the same things."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Consumer
from groupwright.instrumentation import create_instrumented
from groupwright.testing import Kafka
from integration_tests.harness.members import RunningMember


class Value(Protocol):
    """Looks at a sample in the registry."""

    def __call__(self, member: str, metric: str, **labels: str) -> float | None:
        """Return the metric's value of the member of that name; None if it has no such sample."""


MeasuredMember = Callable[..., RunningMember]


@pytest.fixture
def registry() -> CollectorRegistry:
    """Registry of the test's metrics."""
    return CollectorRegistry()


@pytest.fixture
def value(registry: CollectorRegistry, group: str) -> Value:
    """A look at a sample of the test's group."""

    def look(member: str, metric: str, **labels: str) -> float | None:
        return registry.get_sample_value(
            f"groupwright_{metric}", {"group": group, "client_id": member, **labels}
        )

    return look


@pytest.fixture
def new_instrumented(
    kafka: Kafka, group: str, registry: CollectorRegistry
) -> Iterator[Callable[..., Consumer]]:
    """Make instrumented consumers of the test's group, which the test polls by itself."""
    consumers: list[Consumer] = []

    def make(name: str, **settings: Any) -> Consumer:
        consumer = create_instrumented(Consumer, _config(kafka, group, name, settings), registry=registry)
        consumers.append(consumer)
        return consumer

    yield make
    for consumer in consumers:
        consumer.close()


@pytest.fixture
def measured(kafka: Kafka, group: str, registry: CollectorRegistry) -> Iterator[MeasuredMember]:
    """Start instrumented members of the test's group; all are closed at its end."""
    members: list[RunningMember] = []

    def start(name: str, topics: list[str], **settings: Any) -> RunningMember:
        config = _config(kafka, group, name, settings)
        member = RunningMember(
            config, topics, make=lambda config: create_instrumented(Consumer, config, registry=registry)
        )
        members.append(member)
        return member

    yield start
    for member in members:
        member.close()


def _config(kafka: Kafka, group: str, name: str, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "client.id": name,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 100,
        "topic.metadata.refresh.interval.ms": 200,
        "fetch.wait.max.ms": 50,
        "statistics.interval.ms": 100,
        **{key.replace("_", "."): setting for key, setting in settings.items()},
    }
