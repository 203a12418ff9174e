"""Readiness of a started broker, determined by conditions instead of delays."""

import contextlib
import time
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from groupwright.testing._kafka.process import GuardedProcess
from groupwright.testing._kafka.settings import NODE_ID

ClientSetting = str | int | float | bool
"""The value of a librdkafka setting."""

QUIET: Mapping[str, ClientSetting] = {
    "log_level": 0,  # refused connections are part of a start
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
}
"""Settings of a client that does not log connection errors, and reconnects within 50 ms."""

_ANSWER_SECONDS = 0.5
_NAME = "groupwright.testing"


def becomes_ready(
    process: GuardedProcess, client_settings: Mapping[str, ClientSetting], deadline: float
) -> bool:
    """Wait until the broker is in its own metadata response, and coordinates groups.

    The second condition creates the offsets topic. Otherwise the first group would receive NOT_COORDINATOR,
    and librdkafka rejoins only with the next heartbeat, three seconds later.

    Args:
        process: The broker's process.
        client_settings: A client's configuration, with the broker's address.
        deadline: Deadline in seconds of `time.monotonic()`.

    Returns:
        False if the process ended or the deadline passed.
    """
    client = Consumer({**client_settings, "group.id": _NAME})

    def counts_itself() -> bool:
        return NODE_ID in client.list_topics(timeout=_ANSWER_SECONDS).brokers

    def coordinates_groups() -> bool:
        client.committed([TopicPartition(_NAME, 0)], timeout=_ANSWER_SECONDS)
        return True

    def comes_true(condition: Callable[[], bool]) -> bool:
        while process.running and time.monotonic() < deadline:
            with contextlib.suppress(KafkaException):  # no answer yet
                if condition():
                    return True
        return False

    try:
        return comes_true(counts_itself) and comes_true(coordinates_groups)
    finally:
        client.close()
