"""Clusters in containers, where there is an engine for them."""

import contextlib
import os
from collections.abc import Iterator

from groupwright.testing import ContainersUnavailableError, KafkaContainers
from groupwright.testing._kafka import engine
from harness.tools import REQUIRE_VARIABLE, lacking


def are_to_be_had() -> bool:
    """Return whether this machine has a container engine and Kafka's image; it must, where nothing may be missing."""
    if os.environ.get(REQUIRE_VARIABLE):
        return True
    try:
        engine.require_image(KafkaContainers().image)
    except ContainersUnavailableError:
        return False
    return True


@contextlib.contextmanager
def started(cluster: KafkaContainers) -> Iterator[KafkaContainers]:
    """Run a cluster; a test that cannot have one is skipped, or fails where nothing may be missing."""
    try:
        cluster.start_all()
    except ContainersUnavailableError as error:
        lacking(f"needs brokers in containers: {error}")
    with contextlib.closing(cluster):
        yield cluster
