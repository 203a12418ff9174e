"""Readiness of a started broker, determined by conditions instead of delays."""

import contextlib
import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from groupwright.testing._kafka.ports import PortTakenError
from groupwright.testing._kafka.process import GuardedProcess
from groupwright.testing._kafka.settings import NODE_ID

ClientSetting = str | int | float | bool
"""The value of a librdkafka setting."""

CLIENT_DEFAULTS: Mapping[str, ClientSetting] = {
    "log_level": 0,  # refused connections are expected during a start
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
}
"""Settings of a client that does not log connection errors, and reconnects within 50 ms."""

_REQUEST_SECONDS = 0.5
"""Timeout of one request, which is repeated until the deadline."""
_PAUSE_SECONDS = 0.05
"""Pause before a new client replaces one that knows no broker."""
_PROBE = "groupwright.testing"
"""Group id and topic of readiness checks; neither need exist."""


def becomes_ready(
    process: GuardedProcess,
    client_settings: Mapping[str, ClientSetting],
    deadline: float,
    *,
    cluster_id: str | None,
) -> bool:
    """Wait until the broker is in its own metadata response, and coordinates groups.

    The second condition creates the offsets topic. Otherwise the first group would receive NOT_COORDINATOR,
    and librdkafka rejoins only with the next heartbeat, three seconds later.

    Args:
        process: The broker's process.
        client_settings: A client's configuration, with the broker's address.
        deadline: Deadline in seconds of `time.monotonic()`.
        cluster_id: The id of the broker's cluster; None if unknown.

    Returns:
        False if the process ended or the deadline passed.

    Raises:
        PortTakenError: A broker of another cluster responds at the address.
    """
    while process.running and time.monotonic() < deadline:
        client = Consumer({**client_settings, "group.id": _PROBE})
        try:
            if _wait_with(client, process, deadline, cluster_id):
                return True
        finally:
            client.close()
        # A broker that the controller has fenced lists no brokers. A librdkafka client then knows none to ask
        # again, so the next attempt needs a new client.
        time.sleep(_PAUSE_SECONDS)
    return False


def _wait_with(client: Consumer, process: GuardedProcess, deadline: float, cluster_id: str | None) -> bool:
    """Wait with one client for a ready broker; return False once the broker does not list itself."""
    while process.running and time.monotonic() < deadline:
        with contextlib.suppress(KafkaException):  # no response yet
            found = client.list_topics(timeout=_REQUEST_SECONDS)
            _require_cluster(found.cluster_id, cluster_id)
            if NODE_ID not in found.brokers:
                return False
            client.committed([TopicPartition(_PROBE, 0)], timeout=_REQUEST_SECONDS)
            return True
    return False


def _require_cluster(found: str | None, expected: str | None) -> None:
    """Raise if another cluster responded: its broker has the same node id."""
    if found is not None and expected is not None and found != expected:
        raise PortTakenError(
            f"Another Kafka, with the cluster id {found!r}, listens on the port of the broker of the cluster "
            f"{expected!r}: end it, or choose another port"
        )
