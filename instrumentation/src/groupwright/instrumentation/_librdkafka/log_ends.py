"""Log ends of partitions that librdkafka does not fetch, looked up by an admin client."""

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


class LogEnds:
    """Looks up log ends without waiting. The admin client is created at the first look-up."""

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

    def look_up(
        self, keys: Iterable[TopicPartitionKey], on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        """Look up log ends, unless the last look-up still waits for brokers.

        Args:
            keys: The partitions.
            on_end: Called with each partition and its log's end, on a thread of the admin client. After a
                failure the end is `UNKNOWN`; the next statistics start another look-up.
        """
        if self._pending:
            return
        if self._admin is None:
            self._admin = AdminClient(self._config)
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(*key): latest for key in keys}
        self._pending = len(wanted)
        futures = self._admin.list_offsets(wanted, isolation_level=self._isolation, request_timeout=_TIMEOUT)
        for partition, future in futures.items():
            future.add_done_callback(
                lambda done, key=(partition.topic, partition.partition): self._ended(done, key, on_end)
            )

    def _ended(
        self, done: Any, key: TopicPartitionKey, on_end: Callable[[TopicPartitionKey, int], None]
    ) -> None:
        self._pending -= 1
        on_end(key, UNKNOWN if done.exception() is not None else done.result().offset)
