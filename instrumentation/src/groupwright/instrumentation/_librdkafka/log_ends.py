"""Log ends of partitions that librdkafka does not fetch, looked up by an admin client."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from groupwright.core import TopicPartitionKey
from groupwright.core.configuration import without_secrets

UNKNOWN = -1
"""The end of a log that could not be looked up."""
IDLE = 20.0
"""Seconds without a look-up after which the admin client is closed; statistics arrive every 15 s."""
_TIMEOUT = 10.0
_PREFIXES = ("sasl.", "ssl.", "security.", "socket.", "broker.address.", "client.", "reconnect.")
_KEYS = frozenset(
    {"bootstrap.servers", "metadata.broker.list", "enable.ssl.certificate.verification", "oauth_cb"}
)

_log = logging.getLogger("groupwright.instrumentation")

OnEnd = Callable[[TopicPartitionKey, int], None]


class LogEnds:
    """Looks up log ends without waiting.

    A thread of this class creates and destroys the admin client. Creation may block: confluent-kafka waits
    up to 10 s for the first token of an ``oauth_cb``. librdkafka's threads, which call `on_end`, must not
    destroy it.
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
        self._condition = threading.Condition()
        self._wanted: tuple[tuple[TopicPartitionKey, ...], OnEnd] | None = None
        self._pending = 0
        self._is_running = False
        self._is_closed = False
        self._has_warned = False

    def look_up(self, keys: Iterable[TopicPartitionKey], on_end: OnEnd) -> None:
        """Look up log ends, unless the last look-up still waits for brokers, or `close` was called.

        Args:
            keys: The partitions.
            on_end: Called with each partition and its log's end, on a thread of the admin client. After a
                failure the end is `UNKNOWN`; the next statistics start another look-up.
        """
        wanted = tuple(keys)
        with self._condition:
            if self._pending or self._is_closed:
                return
            if not self._is_running:
                threading.Thread(target=self._run, name="groupwright-log-ends", daemon=True).start()
                self._is_running = True
            self._pending, self._wanted = len(wanted), (wanted, on_end)
            self._condition.notify()

    def close(self) -> None:
        """Close the admin client, without waiting for it."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()

    def _run(self) -> None:
        admin: Any = None
        while (wanted := self._next()) is not None:
            try:
                if admin is None:
                    admin = AdminClient(self._config)
                admin.poll(0)  # calls `oauth_cb`, which confluent-kafka 2.8 does nowhere else
                self._request(admin, *wanted)
            except Exception as error:  # noqa: BLE001 - the next statistics start another look-up
                keys, on_end = wanted
                for key in keys:
                    self._on_end(key, UNKNOWN, on_end)
                if not self._has_warned:
                    self._has_warned = True
                    _log.warning(
                        "log ends of partitions that are not fetched cannot be looked up: %s",
                        without_secrets(repr(error), self._config),
                    )

    def _next(self) -> tuple[tuple[TopicPartitionKey, ...], OnEnd] | None:
        """Return the next look-up; None after `IDLE` seconds without one, or after `close`."""
        with self._condition:
            self._condition.wait_for(lambda: self._wanted is not None or self._is_closed, IDLE)
            wanted, self._wanted = self._wanted, None
            if wanted is None or self._is_closed:
                self._is_running = False
                return None
            return wanted

    def _request(self, admin: Any, keys: Iterable[TopicPartitionKey], on_end: OnEnd) -> None:
        latest: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        specs = {TopicPartition(*key): latest for key in keys}
        futures = admin.list_offsets(specs, isolation_level=self._isolation, request_timeout=_TIMEOUT)
        for partition, future in futures.items():
            future.add_done_callback(
                lambda done, key=(partition.topic, partition.partition): self._on_end(
                    key, UNKNOWN if done.exception() is not None else done.result().offset, on_end
                )
            )

    def _on_end(self, key: TopicPartitionKey, end: int, on_end: OnEnd) -> None:
        # Called by a thread of librdkafka, and by this class's own for a look-up that has already ended.
        with self._condition:
            self._pending -= 1
        on_end(key, end)
