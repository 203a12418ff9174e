"""Checks of the application's arguments, and a guard against exceptions of its callbacks."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from groupwright.consumer.errors import ConsumerError

RebalanceCallback = Callable[[Any, list[TopicPartition]], object]
"""Called with the consumer and partitions."""

_NATIVE_CALLBACKS = frozenset({"error_cb", "stats_cb", "throttle_cb"})


class Failures:
    """Exceptions of callbacks, until `poll` or `consume` raises them, one a call.

    Safe from any thread.
    """

    __slots__ = ("_kept", "_log", "_wake")

    def __init__(self, wake: Callable[[], object], log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Create it without an exception; `wake` makes the next poll take one."""
        self._kept: deque[BaseException] = deque()
        self._wake = wake
        self._log = log

    def __bool__(self) -> bool:
        """Return whether an exception is still to be raised."""
        return bool(self._kept)

    def record(self, error: BaseException) -> None:
        """Keep the exception; callable from any thread."""
        self._kept.append(error)
        self._wake()

    def record_repeated(self, error: BaseException) -> None:
        """Keep the exception of a callback that one native call may call many times; log all but the first.

        If each were raised, a poll might never return a message.
        """
        if self._kept:
            self.log(error)
        else:
            self.record(error)

    def take(self) -> BaseException | None:
        """Return the oldest exception, and forget it; KeyboardInterrupt and SystemExit come first."""
        kept = tuple(self._kept)
        error = next((each for each in kept if not isinstance(each, Exception)), kept[0] if kept else None)
        if error is not None:
            self._kept.remove(error)
        return error

    def log_all(self) -> None:
        """Log all exceptions, and forget them, because no call follows that could raise them."""
        while (error := self.take()) is not None:
            self.log(error)

    def log(self, error: BaseException) -> None:
        """Log an exception that is not raised."""
        self._log.error("a callback raised, beside another exception, which is raised", exc_info=error)


def guarded(callback: Callable[..., object], failures: Failures) -> Callable[..., object]:
    """Return a callback that records its exceptions, KeyboardInterrupt included, instead of raising them.

    An exception inside a native call would lose messages.
    """

    def call(*args: object) -> object:
        try:
            return callback(*args)
        except BaseException as error:  # noqa: BLE001 - poll raises it
            failures.record_repeated(error)
            return None

    return call


def guard_native_callbacks(config: Mapping[str, Any], failures: Failures) -> dict[str, Any]:
    """Return librdkafka's configuration with the callbacks that it calls inside `poll` guarded."""
    return {
        key: guarded(value, failures) if key in _NATIVE_CALLBACKS and callable(value) else value
        for key, value in config.items()
    }


def check_callbacks(**callbacks: object) -> None:
    """Check rebalance callbacks.

    Raises:
        TypeError: A callback is neither None nor callable.
    """
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} expects a callable, not {callback!r}")


def check_topics(topics: object) -> None:
    """Check the topics of a subscription.

    Raises:
        TypeError: `topics` is no list of strings.
        ConsumerError: The list or a name is empty, or a name is repeated (``_INVALID_ARG``).
    """
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise TypeError(f"expected list of topic unicode strings, not {topics!r}")
    if not topics:
        mistake = "the list of topics is empty; unsubscribe() leaves the group"
    elif "" in topics:
        mistake = "a topic's name is empty"
    elif len(set(topics)) < len(topics):
        mistake = f"a topic is in the list more than once: {topics!r}"
    else:
        return
    words = f"Failed to set subscription: Local: Invalid argument or configuration: {mistake}"
    raise ConsumerError(KafkaError._INVALID_ARG, words)  # noqa: SLF001 - librdkafka's public code


def read_async(asynchronous: bool, others: dict[str, bool]) -> bool:  # noqa: FBT001 - `commit`'s
    """Read `commit`'s argument by its old name, ``async``, which confluent-kafka still takes.

    Raises:
        TypeError: There are other arguments.
    """
    unknown = others.keys() - {"async"}
    if unknown:
        raise TypeError(f"commit() got an unexpected keyword argument {min(unknown)!r}")
    return others.get("async", asynchronous)


def merge_config(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration that a consumer was made with: a dict, keywords, or both."""
    if len(args) > 1 or (args and not isinstance(args[0], Mapping)) or not (args or kwargs):
        raise TypeError("expected configuration dict, keywords, or both")
    return {**(args[0] if args else {}), **kwargs}
