"""The same as `observed` for `AIOConsumer`, whose methods and callbacks are coroutine functions.

Imported only where one is made: it brings asyncio.
"""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.aio import AIOConsumer

from groupwright.instrumentation._tracking.callback_tracker import Observed
from groupwright.instrumentation._tracking.wrapped_consumer import commit_error, group_metadata

_CALLBACKS = ("on_assign", "on_revoke", "on_lost")
_ASYNCHRONOUS = 2


class ObservedAIOConsumer(Observed, AIOConsumer):
    """An `AIOConsumer` and an `ObservableConsumer`. Made by `observed.observe`."""

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Poll."""
        began = self._observer.poll_begins()
        try:
            message = await super().poll(*args, **kwargs)
        finally:
            self._observer.poll_ends(began)
        if message is not None and message.error() is not None:
            self._observer.error_told(message.error())
        return message

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """Consume."""
        began = self._observer.poll_begins()
        try:
            messages = await super().consume(*args, **kwargs)
        finally:
            self._observer.poll_ends(began)
        for message in messages:
            if message.error() is not None:
                self._observer.error_told(message.error())
        return messages

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Subscribe, with the application's callbacks inside ours."""
        topics, *positional = args or (kwargs.pop("topics"),)
        given = dict(zip(_CALLBACKS, positional, strict=False))
        # AIOConsumer calls those that are given by position as they are, on a worker's thread; so they stay.
        plain = [self._watched(name, given.get(name)) for name in given]
        # As without us: where there is no on_lost, on_revoke hears of lost partitions too.
        lost = kwargs.get("on_lost") or kwargs.get("on_revoke")
        callbacks = {
            name: self._watched_coroutine(name, lost if name == "on_lost" else kwargs.get(name))
            for name in _CALLBACKS
            if name not in given
        }
        if "on_lost" in callbacks and lost is None and given.get("on_revoke") is not None:
            plain.append(self._watched("on_lost", given["on_revoke"]))
            del callbacks["on_lost"]
        result = await super().subscribe(topics, *plain, **{**kwargs, **callbacks})
        self._observer.subscribed(topics)
        return result

    async def unsubscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Unsubscribe."""
        self._observer.leaving()
        return await super().unsubscribe(*args, **kwargs)

    async def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commit; of an asynchronous one ``on_commit`` tells."""
        asynchronous = args[_ASYNCHRONOUS] if len(args) > _ASYNCHRONOUS else kwargs.get("asynchronous", True)
        if asynchronous:
            return await super().commit(*args, **kwargs)
        began = time.monotonic()
        try:
            result = await super().commit(*args, **kwargs)
        except KafkaException as error:
            self._observer.commit_ended(time.monotonic() - began, commit_error(error))
            raise
        self._observer.commit_ended(time.monotonic() - began, None)
        return result

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close."""
        self._observer.closing()
        return await super().close(*args, **kwargs)

    def _watched(self, name: str, callback: Callable[..., Any] | None) -> Callable[..., None]:
        def call(consumer: Any, partitions: list[Any]) -> None:
            given, metadata, began = list(partitions), group_metadata(consumer), time.monotonic()
            try:
                if callback is not None:
                    callback(consumer, partitions)
            finally:
                self._tell(name, given, began, metadata, callback)

        return call

    def _watched_coroutine(self, name: str, callback: Callable[..., Any] | None) -> Callable[..., Any]:
        async def call(consumer: Any, partitions: list[Any]) -> None:
            # Within the call that serves this callback, so that the handle lets it in.
            given, metadata, began = list(partitions), group_metadata(self._consumer), time.monotonic()
            try:
                if callback is not None:
                    await callback(consumer, partitions)
            finally:
                self._tell(name, given, began, metadata, callback)

        return call

    def _tell(
        self,
        name: str,
        partitions: list[Any],
        began: float,
        metadata: bytes | None,
        callback: Callable[..., Any] | None,
    ) -> None:
        seconds = 0.0 if callback is None else time.monotonic() - began
        self._observer.rebalance_callback(name.removeprefix("on_"), partitions, began, seconds, metadata)
