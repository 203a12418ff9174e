"""Log ends of partitions that librdkafka does not fetch, looked up by an admin client."""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from groupwright.core import TopicPartitionKey

UNKNOWN = -1
"""The end of a log that could not be looked up."""
_TIMEOUT = 10.0
_PREFIXES = ("sasl.", "ssl.", "security.", "socket.", "broker.address.", "client.", "reconnect.")
_KEYS = frozenset(
    {"bootstrap.servers", "metadata.broker.list", "enable.ssl.certificate.verification", "oauth_cb"}
)

_log = logging.getLogger("groupwright.instrumentation")


class LogEnds:
    """Looks up log ends without waiting.

    The first look-up creates the admin client on a thread of its own: with an ``oauth_cb``, confluent-kafka
    waits up to 10 s for the first token.
    """

    def __init__(self, config: Mapping[str, Any], *, read_uncommitted: bool) -> None:
        """Keep the settings of the consumer's connections.

        Args:
            config: The consumer's configuration.
            read_uncommitted: Whether the end is the high watermark, not the last stable offset.
        """
        self._config = {
            key: value for key, value in config.items() if key in _KEYS or key.startswith(_PREFIXES)
        }
        self._isolation = (
            IsolationLevel.READ_UNCOMMITTED if read_uncommitted else IsolationLevel.READ_COMMITTED
        )
        self._admin: Any = None
        self._pending = 0
        self._creating = False
        self._failed = False

    def look_up(
        self, keys: Iterable[TopicPartitionKey], on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        """Look up log ends, unless the last look-up still waits for brokers.

        Args:
            keys: The partitions.
            on_end: Called with each partition and its log's end, on a thread of the admin client. After a
                failure the end is `UNKNOWN`; the next statistics start another look-up.
        """
        if self._pending or self._creating:
            return
        if self._admin is not None:
            self._request(keys, on_end)
            return
        self._creating = True
        threading.Thread(
            target=self._create, args=(tuple(keys), on_end), name="groupwright-log-ends", daemon=True
        ).start()

    def _create(
        self, keys: Iterable[TopicPartitionKey], on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        try:
            self._admin = AdminClient(self._config)
            self._request(keys, on_end)
        except Exception as error:  # noqa: BLE001 - the next statistics start another look-up
            if not self._failed:
                self._failed = True
                _log.warning("the log ends of paused partitions cannot be looked up: %r", error)
        finally:
            self._creating = False

    def _request(
        self, keys: Iterable[TopicPartitionKey], on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(*key): latest for key in keys}
        futures = self._admin.list_offsets(wanted, isolation_level=self._isolation, request_timeout=_TIMEOUT)
        self._pending = len(futures)  # only now: after an exception the next statistics try again
        for partition, future in futures.items():
            future.add_done_callback(
                lambda done, key=(partition.topic, partition.partition): self._ended(done, key, on_end)
            )

    def _ended(
        self, done: Any, key: TopicPartitionKey, on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        self._pending -= 1
        on_end(key, UNKNOWN if done.exception() is not None else done.result().offset)
