"""Chain of the consumer's interceptors (KIP-42)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from confluent_kafka import Message, TopicPartition

from groupwright.consumer._membership.messages import PlainMessage
from groupwright.consumer.errors import ConfigurationError
from groupwright.consumer.interceptors import ConsumerInterceptor

KEY = "interceptors"


class InterceptorChain:
    """A chain of interceptors, whose exceptions are logged only (Java's `ConsumerInterceptors`)."""

    def __init__(self, chain: object, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Check the configuration's value.

        Raises:
            ConfigurationError: It is no list of interceptors.
        """
        if not isinstance(chain, Sequence) or not all(isinstance(one, ConsumerInterceptor) for one in chain):
            raise ConfigurationError(f"{KEY} takes a list of ConsumerInterceptor objects, not {chain!r}")
        self._chain: Sequence[ConsumerInterceptor] = tuple(chain)
        self._log = log
        self._logged: set[tuple[int, str]] = set()

    def __bool__(self) -> bool:
        """Return whether there is any interceptor."""
        return bool(self._chain)

    def on_consume(self, messages: list[Message]) -> list[Message]:
        """Return the messages that the chain returns; errors are kept, and not passed to interceptors."""
        for index, interceptor in enumerate(self._chain):
            shown = [message for message in messages if message.error() is None]
            if not shown:
                return messages
            try:
                kept = list(interceptor.on_consume(list(shown)))
                if len(kept) > len(shown) or not all(
                    isinstance(one, (Message, PlainMessage)) for one in kept
                ):
                    raise TypeError(f"it made {kept!r} of {len(shown)} messages")  # noqa: TRY301 - as raised
            except Exception as error:  # noqa: BLE001 - an interceptor's failure is not the consumer's
                self._failed(index, "on_consume", error)
            else:
                messages = [message for message in messages if message.error() is not None] + kept
        return messages

    def on_commit(self, offsets: list[TopicPartition]) -> None:
        """Call `on_commit` of each interceptor."""
        self._notify("on_commit", lambda interceptor: interceptor.on_commit(list(offsets)))

    def close(self) -> None:
        """Call `close` of each interceptor."""
        self._notify("close", lambda interceptor: interceptor.close())

    def _notify(self, method: str, call: Callable[[ConsumerInterceptor], None]) -> None:
        for index, interceptor in enumerate(self._chain):
            try:
                call(interceptor)
            except Exception as error:  # noqa: BLE001 - as above
                self._failed(index, method, error)

    def _failed(self, index: int, method: str, error: Exception) -> None:
        level = logging.DEBUG if (index, method) in self._logged else logging.ERROR
        self._logged.add((index, method))
        message = "%s of the interceptor %r raised; the call continues without it"
        self._log.log(level, message, method, self._chain[index], exc_info=error)
