"""What librdkafka's own callbacks tell of one client: its statistics and its errors.

confluent-kafka takes ``stats_cb`` and ``error_cb`` at construction alone, so they are wrapped in the configuration. The
application's own go on as they were: they are called with the same arguments, and what they raise goes where it went.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

STATISTICS_INTERVAL_MS = 15_000
"""Unless the application chose: at 1,000 partitions one set of statistics is 1 MB of JSON."""


class Timed(Protocol):
    """Statistics that know when they were taken."""

    @property
    def taken(self) -> float:
        """By librdkafka's clock, in seconds."""


Digest = TypeVar("Digest", bound=Timed)


class Signals(Generic[Digest]):
    """The newest statistics of a client, and its errors by name.

    Written by the thread that polls; read by any. Lives as long as the client, whose callbacks hold it.
    """

    def __init__(self, read: Callable[[str], Digest], clock: Callable[[], float] = time.monotonic) -> None:
        """Start without statistics.

        Args:
            read: makes of the statistics' JSON what is kept; raises ValueError if it cannot.
            clock: a monotonic clock, in seconds.
        """
        self.statistics: Digest | None = None
        self.errors: Counter[str] = Counter()
        self.failed: Callable[[str, Exception], None] = _ignore
        """Told of what goes wrong here: where, and what."""
        self.told: Callable[[Any], None] = _ignore
        """Told of each error (a `confluent_kafka.KafkaError`)."""
        self._read = read
        self._clock = clock
        self._behind: float | None = None

    @property
    def age(self) -> float | None:
        """Seconds since the newest statistics were taken; None if there are none."""
        if self.statistics is None or self._behind is None:
            return None
        return max(0.0, self._clock() - self._behind - self.statistics.taken)

    def configure(self, config: Mapping[str, Any], *, asynchronous: bool) -> dict[str, Any]:
        """Return a client's configuration with its callbacks wrapped, and with statistics if it has no say on them.

        Args:
            config: the client's configuration.
            asynchronous: whether the client wants coroutine functions as callbacks.
        """
        configured = {"statistics.interval.ms": STATISTICS_INTERVAL_MS, **config}
        configured["stats_cb"] = after(
            self.take_statistics, config.get("stats_cb"), asynchronous=asynchronous
        )
        configured["error_cb"] = after(self.take_error, config.get("error_cb"), asynchronous=asynchronous)
        return configured

    def take_statistics(self, text: str) -> None:
        """Keep them if they are the newest: after a stall, old ones come first."""
        try:
            digest = self._read(text)
            # librdkafka's clock is not ours. What arrives without a delay shows how far they are apart.
            behind = self._clock() - digest.taken
            self._behind = behind if self._behind is None else min(behind, self._behind)
            if self.statistics is None or digest.taken >= self.statistics.taken:
                self.statistics = digest
        except Exception as error:  # noqa: BLE001 - a poll must not end for it
            self.failed("statistics", error)

    def take_error(self, error: Any) -> None:
        """Count an error by its name."""
        try:
            self.errors[str(error.name())] += 1
            self.told(error)
        except Exception as failure:  # noqa: BLE001 - as above
            self.failed("error_cb", failure)


def after(
    ours: Callable[..., None], theirs: Callable[..., Any] | None, *, asynchronous: bool
) -> Callable[..., Any]:
    """Return a callback that calls ours, which does not raise, and then the application's, if it has one."""

    def call(*arguments: Any) -> Any:
        ours(*arguments)
        return None if theirs is None else theirs(*arguments)

    async def call_asynchronously(*arguments: Any) -> Any:
        ours(*arguments)
        result: Awaitable[Any] | None = None if theirs is None else theirs(*arguments)
        return None if result is None else await result

    return call_asynchronously if asynchronous else call


def _ignore(*_: object) -> None:
    """Nobody wants to know."""
