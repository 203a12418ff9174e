"""Readiness of a started broker, determined by conditions instead of delays."""

import contextlib
import time
from collections.abc import Mapping

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
_PAUSE_SECONDS = 0.05
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
    while process.running and time.monotonic() < deadline:
        client = Consumer({**client_settings, "group.id": _NAME})
        try:
            if _answers(client, process, deadline):
                return True
        finally:
            client.close()
        # A broker that the controller has fenced lists no brokers. Then librdkafka has none to ask again.
        time.sleep(_PAUSE_SECONDS)
    return False


def _answers(client: Consumer, process: GuardedProcess, deadline: float) -> bool:
    """Return whether the broker lists itself and coordinates groups; False if its answer lists no broker."""
    while process.running and time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):  # no answer yet
            if NODE_ID not in client.list_topics(timeout=_ANSWER_SECONDS).brokers:
                return False
            client.committed([TopicPartition(_NAME, 0)], timeout=_ANSWER_SECONDS)
            return True
    return False
