"""pytest plugin: the fixtures `local_kafka`, `local_kafka_config` and `new_kafka_topic`.

pytest loads this module wherever Groupwright is installed, so it imports only pytest; other imports follow
with the first fixture.
"""

import re
import sys
import uuid
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from groupwright.testing._kafka.kafka import Kafka
    from groupwright.testing._kafka.local_kafka import LocalKafka
    from groupwright.testing._kafka.settings import Setting

_VERSION_INI = "groupwright_kafka_version"
_LOG_LINES = 15
"""Lines of each broker's log in a report: few enough that the failure itself stays in sight."""


class NewKafkaTopic(Protocol):
    """Creates a topic for one test, and returns its name."""

    def __call__(self, partitions: int = 1, config: "Mapping[str, Setting] | None" = None) -> str:
        """Create the topic with this number of partitions and these topic settings."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting of the broker's version."""
    parser.addini(_VERSION_INI, "the version of Kafka that the fixture local_kafka starts", default="")


@pytest.fixture(scope="session")
def local_kafka_config() -> "Mapping[str, Setting]":
    """Broker settings of `local_kafka`; define this fixture in a conftest.py to change them."""
    return {}


@pytest.fixture(scope="session")
def local_kafka(
    pytestconfig: pytest.Config, local_kafka_config: "Mapping[str, Setting]"
) -> "Iterator[LocalKafka]":
    """A running broker, shared by the session's tests and started for the first that asks for it.

    Under pytest-xdist each worker has its own.
    """
    from groupwright.testing._kafka.local_kafka import LocalKafka

    version = pytestconfig.getini(_VERSION_INI) or None
    with LocalKafka(version=version, config=local_kafka_config) as kafka:
        yield kafka


@pytest.fixture
def new_kafka_topic(local_kafka: "LocalKafka", request: pytest.FixtureRequest) -> NewKafkaTopic:
    """A function that creates a topic in `local_kafka`, named after the test and unique."""
    test = re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name)[:80]

    def create(partitions: int = 1, config: "Mapping[str, Setting] | None" = None) -> str:
        name = f"{test}-{uuid.uuid4().hex[:8]}"
        local_kafka.create_topic(name, partitions, config)
        return name

    return create


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the end of the brokers' logs to the report of a failed test that used them, from any fixture."""
    report = yield
    if report.failed and "groupwright.testing._kafka.kafka" in sys.modules:
        from groupwright.testing._kafka.kafka import Kafka

        used = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Kafka)]
        for kafka in dict.fromkeys(used):
            report.sections.append(("Kafka's log", _log_tail(kafka)))
    return report


def _log_tail(kafka: "Kafka") -> str:
    """Return the end of the brokers' logs, or why it cannot be read: an exception would end the session."""
    try:
        return kafka.log_tail(_LOG_LINES)
    except Exception as error:  # noqa: BLE001 - also the container engine's
        return f"The log cannot be read: {error!r}"
