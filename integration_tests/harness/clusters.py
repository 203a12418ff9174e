"""Clusters in containers, if a container engine is available."""

import contextlib
import os
from collections.abc import Iterator

from groupwright.testing import ContainersUnavailableError, KafkaContainers
from groupwright.testing._kafka import engine
from groupwright.testing._kafka.settings import Setting
from integration_tests.harness.tools import REQUIRE_VARIABLE, lacking

PATIENT: dict[str, Setting] = {
    "broker.session.timeout.ms": 60_000,
    "controller.quorum.fetch.timeout.ms": 30_000,
    "controller.quorum.request.timeout.ms": 30_000,
}
"""Settings with which no node is missed because it has been without a processor for seconds."""


def are_to_be_had() -> bool:
    """Return whether a container engine and Kafka's image are present, or required by the environment."""
    if os.environ.get(REQUIRE_VARIABLE):
        return True
    try:
        engine.require_image(KafkaContainers().image)
    except ContainersUnavailableError:
        return False
    return True


@contextlib.contextmanager
def started(cluster: KafkaContainers) -> Iterator[KafkaContainers]:
    """Run a cluster; without an engine the test is skipped, or fails if the environment requires it."""
    try:
        cluster.start_all()
    except ContainersUnavailableError as error:
        lacking(f"needs brokers in containers: {error}")
    with contextlib.closing(cluster):
        yield cluster
