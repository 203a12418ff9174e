"""`wrapped_consumer` for `AIOConsumer`, whose methods and callbacks are coroutine functions.

Imported on first use, since it imports asyncio.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.aio import AIOConsumer

from groupwright.instrumentation._tracking.callback_tracker import TrackedConsumer
from groupwright.instrumentation._tracking.wrapped_consumer import (
    ASYNCHRONOUS_POSITION,
    commit_error,
    group_metadata,
    tracking_callback,
)

_CALLBACKS = ("on_assign", "on_revoke", "on_lost")


class WrappedAIOConsumer(TrackedConsumer, AIOConsumer):
    """An `AIOConsumer` that is an `ObservableConsumer`. Made by `create_wrapped`."""

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Poll."""
        began = self._groupwright_tracker.on_poll_start()
        try:
            message = await super().poll(*args, **kwargs)
        finally:
            self._groupwright_tracker.on_poll_end(began)
        if message is not None and message.error() is not None:
            self._groupwright_tracker.on_error(message.error())
        return message

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """Consume."""
        began = self._groupwright_tracker.on_poll_start()
        try:
            messages = await super().consume(*args, **kwargs)
        finally:
            self._groupwright_tracker.on_poll_end(began)
        self._groupwright_tracker.on_messages(messages)
        return messages

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Subscribe, with the application's callbacks wrapped in tracking ones."""
        topics, *positional = args or (kwargs.pop("topics"),)
        given = dict(zip(_CALLBACKS, positional, strict=False))
        # AIOConsumer calls positional callbacks as plain functions on a worker thread, so they stay plain
        # functions.
        tracker = self._groupwright_tracker
        plain = [tracking_callback(tracker, _name(key), callback) for key, callback in given.items()]
        # As in confluent-kafka: without an on_lost, on_revoke is called for lost partitions too.
        lost = kwargs.get("on_lost") or kwargs.get("on_revoke")
        callbacks = {
            key: _tracking_coroutine(self, _name(key), lost if key == "on_lost" else kwargs.get(key))
            for key in _CALLBACKS
            if key not in given
        }
        if "on_lost" in callbacks and lost is None and given.get("on_revoke") is not None:
            # A positional on_revoke, a plain function, is called for lost partitions too.
            plain.append(tracking_callback(tracker, "lost", given["on_revoke"]))
            del callbacks["on_lost"]
        result = await super().subscribe(topics, *plain, **{**kwargs, **callbacks})
        tracker.on_subscribe(topics)
        return result

    async def unsubscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Unsubscribe."""
        self._groupwright_tracker.on_unsubscribe()
        return await super().unsubscribe(*args, **kwargs)

    async def assign(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> Any:
        """Assign."""
        await super().assign(partitions, *args, **kwargs)
        self._groupwright_tracker.on_assign(partitions, incremental=False)

    async def incremental_assign(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> Any:
        """Assign further partitions."""
        await super().incremental_assign(partitions, *args, **kwargs)
        self._groupwright_tracker.on_assign(partitions, incremental=True)

    async def unassign(self, *args: Any, **kwargs: Any) -> Any:
        """Unassign all partitions."""
        await super().unassign(*args, **kwargs)
        self._groupwright_tracker.on_unassign(None)

    async def incremental_unassign(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> Any:
        """Unassign these partitions."""
        await super().incremental_unassign(partitions, *args, **kwargs)
        self._groupwright_tracker.on_unassign(partitions)

    async def seek(self, partition: TopicPartition, *args: Any, **kwargs: Any) -> Any:
        """Continue at another offset."""
        await super().seek(partition, *args, **kwargs)
        self._groupwright_tracker.on_seek(partition)

    async def pause(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> Any:
        """Pause partitions."""
        await super().pause(partitions, *args, **kwargs)
        self._groupwright_tracker.on_pause(partitions, paused=True)

    async def resume(self, partitions: list[TopicPartition], *args: Any, **kwargs: Any) -> Any:
        """Resume partitions."""
        await super().resume(partitions, *args, **kwargs)
        self._groupwright_tracker.on_pause(partitions, paused=False)

    async def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commit; the end of an asynchronous commit is recorded by ``on_commit``."""
        asynchronous = (
            args[ASYNCHRONOUS_POSITION]
            if len(args) > ASYNCHRONOUS_POSITION
            else kwargs.get("asynchronous", True)
        )
        if asynchronous:
            return await super().commit(*args, **kwargs)
        began = time.monotonic()
        try:
            result = await super().commit(*args, **kwargs)
        except KafkaException as error:
            self._groupwright_tracker.on_commit_end(time.monotonic() - began, commit_error(error))
            raise
        self._groupwright_tracker.on_commit_end(time.monotonic() - began, None)
        return result

    async def consumer_group_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """Return the metadata for a producer, whose commits this consumer does not learn of."""
        self._groupwright_tracker.commits_by_producer = True
        return await super().consumer_group_metadata(*args, **kwargs)

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close."""
        self._groupwright_tracker.on_close()
        return await super().close(*args, **kwargs)


def _name(key: str) -> str:
    """Return a callback's name, one of `labels.CALLBACKS`."""
    return key.removeprefix("on_")


def _tracking_coroutine(
    client: WrappedAIOConsumer, name: str, callback: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Return a coroutine function; see `tracking_callback`."""
    tracker = client._groupwright_tracker  # noqa: SLF001 - of this package

    async def call(consumer: Any, partitions: list[Any]) -> None:
        # Read here: the poll or close that runs this callback has not returned, so the handle is open.
        metadata, began = group_metadata(client._consumer), time.monotonic()  # noqa: SLF001 - AIOConsumer has no other access
        called_with = list(partitions)
        try:
            if callback is not None:
                await callback(consumer, partitions)
        finally:
            seconds = 0.0 if callback is None else time.monotonic() - began
            tracker.on_rebalance_callback(name, called_with, began, seconds, metadata)

    return call
