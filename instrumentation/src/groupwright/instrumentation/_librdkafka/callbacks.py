"""librdkafka's `stats_cb` and `error_cb`, wrapped: a client's newest statistics and its errors.

confluent-kafka accepts these callbacks only in the constructor, so they are wrapped in the configuration. The
application's own callbacks still run, with the same arguments, and their exceptions propagate as before.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

STATISTICS_INTERVAL_MS = 15_000
"""A consumer's ``statistics.interval.ms`` by default: for 1,000 partitions, statistics are 1 MB of JSON.

Producers have no default: librdkafka queues statistics until the application polls or flushes, so the memory
of an idle producer would grow without limit.
"""


class TimedStatistics(Protocol):
    """Statistics with the time at which librdkafka took them."""

    @property
    def taken_at(self) -> float:
        """`ts` of the statistics: seconds by librdkafka's monotonic clock."""


S = TypeVar("S", bound=TimedStatistics)


class LibrdkafkaCallbacks(Generic[S]):
    """The newest statistics of a client, and its error counts by name.

    The polling thread writes (a producer's: the thread that polls or flushes); any thread may read. It lives
    as long as the client, whose callbacks hold it.
    """

    def __init__(self, read: Callable[[str], S], clock: Callable[[], float] = time.monotonic) -> None:
        """Start without statistics.

        Args:
            read: Parses the statistics' JSON; raises ValueError if it cannot.
            clock: A monotonic clock, in seconds.
        """
        self.statistics: S | None = None
        self.errors: Counter[str] = Counter()
        self.on_failure: Callable[[str, Exception], None] = _ignore
        """Called for each failure of the instrumentation, with the operation's name and the exception."""
        self.on_statistics: Callable[[S, float], None] = _ignore
        """Called with new statistics, and the time by `clock` at which librdkafka took them."""
        self.on_error: Callable[[Any], None] = _ignore
        """Called for each `confluent_kafka.KafkaError` that librdkafka reports."""
        self._read = read
        self._clock = clock
        self._clock_offset: float | None = None

    @property
    def age(self) -> float | None:
        """Seconds since librdkafka took the newest statistics; None without any."""
        if self.statistics is None or self._clock_offset is None:
            return None
        return max(0.0, self._clock() - self._clock_offset - self.statistics.taken_at)

    def configure(self, config: Mapping[str, Any], *, asynchronous: bool) -> dict[str, Any]:
        """Return a configuration with wrapped callbacks.

        Args:
            config: The client's configuration.
            asynchronous: Whether the client takes coroutine functions as callbacks.
        """
        configured = dict(config)
        configured["stats_cb"] = chain(
            self.record_statistics, config.get("stats_cb"), asynchronous=asynchronous
        )
        configured["error_cb"] = chain(self.record_error, config.get("error_cb"), asynchronous=asynchronous)
        return configured

    def record_statistics(self, text: str) -> None:
        """Keep statistics if they are the newest; after a stall, librdkafka delivers old ones first."""
        try:
            statistics = self._read(text)
            # librdkafka's clock has another origin. The smallest offset seen is that of a delivery without
            # delay.
            offset = self._clock() - statistics.taken_at
            self._clock_offset = offset if self._clock_offset is None else min(offset, self._clock_offset)
            if self.statistics is None or statistics.taken_at >= self.statistics.taken_at:
                self.statistics = statistics
                self.on_statistics(statistics, statistics.taken_at + self._clock_offset)
        except Exception as error:  # noqa: BLE001 - it must not propagate from poll
            self.on_failure("statistics", error)

    def record_error(self, error: Any) -> None:
        """Count an error by its name."""
        try:
            self.errors[str(error.name())] += 1
            self.on_error(error)
        except Exception as failure:  # noqa: BLE001 - as above
            self.on_failure("error_cb", failure)


def chain(
    first: Callable[..., None], application: Callable[..., Any] | None, *, asynchronous: bool
) -> Callable[..., Any]:
    """Return a callback that calls `first`, which must not raise, and then the application's."""

    def call(*arguments: Any) -> Any:
        first(*arguments)
        return None if application is None else application(*arguments)

    async def call_asynchronously(*arguments: Any) -> Any:
        first(*arguments)
        result: Awaitable[Any] | None = None if application is None else application(*arguments)
        return None if result is None else await result

    return call_asynchronously if asynchronous else call


@contextmanager
def token_errors(config: Mapping[str, Any]) -> Iterator[None]:
    """Raise confluent-kafka's exception if a constructor gets no token from the ``oauth_cb``.

    confluent-kafka 2.13 and later calls ``error_cb`` while this exception is pending, and then raises a
    SystemError.

    Raises:
        KafkaException: ``oauth_cb`` has given no token.
    """
    try:
        yield
    except SystemError as error:
        if config.get("oauth_cb") is None:
            raise
        text = "OAuth token not set within 10 seconds timeout"
        raise KafkaException(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, text)) from error


def _ignore(*_: object) -> None:
    """Do nothing."""
