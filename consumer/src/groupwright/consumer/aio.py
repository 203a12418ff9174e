"""confluent-kafka's `AIOConsumer`, over this consumer's membership."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import functools
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import confluent_kafka
from confluent_kafka import TopicPartition

try:
    from confluent_kafka import aio
except ImportError as error:
    raise ImportError(
        f"AIOConsumer needs confluent_kafka.aio, which confluent-kafka {confluent_kafka.__version__} does "
        "not have; install confluent-kafka 2.13 or later"
    ) from error

from groupwright.consumer._membership.access import exclusive, never
from groupwright.consumer._membership.observable import Observable
from groupwright.consumer.consumer import Consumer

_CALLBACKS = ("error_cb", "throttle_cb", "stats_cb", "on_commit")
_REBALANCE_CALLBACKS = ("on_assign", "on_revoke", "on_lost")
_ON_POLLER = frozenset(  # for one thread at a time, as in `access.exclusive` and `access.between_polls`
    {
        "poll",
        "consume",
        "subscribe",
        "unsubscribe",
        "assign",
        "unassign",
        "incremental_assign",
        "incremental_unassign",
        "seek",
        "seek_to_beginning",
        "seek_to_end",
    }
)

_POLLS = frozenset({"poll", "consume"})

_callback_calls: contextvars.ContextVar[_CallbackCalls | None] = contextvars.ContextVar(
    "groupwright_callback_calls", default=None
)
"""In a callback's task, and in those that it creates: the consumer calls of the callback."""


class _CallbackCalls:
    """The consumer calls of one callback.

    The thread that waits for the callback runs them: it is inside `poll`, so any other one would be refused.
    `submit` and `end` are called on the event loop.
    """

    def __init__(self) -> None:
        self.has_ended = False
        """True if nothing is taken any more: the callback has ended, and tasks that it has created go on."""
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def submit(self, task: Callable[[], Any]) -> concurrent.futures.Future[Any]:
        """Have the waiting thread run a task."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def make() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(task())
            except BaseException as error:  # noqa: BLE001 - it is the awaiting task's
                future.set_exception(error)

        self._calls.put(make)
        return future

    def end(self) -> None:
        """Take nothing more; what was submitted before still runs."""
        self.has_ended = True
        self._calls.put(None)

    def serve(self) -> None:
        """Run what is submitted, until the end."""
        while (made := self._calls.get()) is not None:
            made()


class AIOConsumer(Observable, aio.AIOConsumer):
    """A `confluent_kafka.aio.AIOConsumer` whose partitions are assigned by the assignors that you choose.

    Its methods and arguments are confluent-kafka's; callbacks are coroutines, and run on the event loop.
    One thread runs `poll`, `consume`, `subscribe`, `assign`, `seek` and the like, in order. Other threads run
    `commit`, `store_offsets`, `position`, `pause` and the like, so these do not wait for a poll to end. Calls
    that a callback makes run on the thread that waits for the callback.

    A `poll` or `consume` that is cancelled ends at once. The next call returns the messages that it had
    taken; with ``group.protocol=consumer`` they are lost, because librdkafka counts them as consumed.
    """

    def __init__(
        self,
        consumer_conf: dict[str, Any],
        max_workers: int = 100,
        executor: concurrent.futures.Executor | None = None,
    ) -> None:
        """Create a consumer; an event loop must be running.

        Args:
            consumer_conf: The configuration, which is not changed.
            max_workers: Largest number of threads for calls that do not wait for a poll.
            executor: Runs these calls instead of `max_workers` threads; `close` does not shut it down.
        """
        if max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        loop = asyncio.get_running_loop()
        config = dict(consumer_conf)
        for name in _CALLBACKS:
            if config.get(name) is not None:
                config[name] = self._on_loop(loop, config[name])
        self._closed = False
        self._owns_executor = executor is None
        consumer = Consumer(config)
        self._consumer: Consumer = consumer
        self._consumer_config = consumer._consumer_config  # noqa: SLF001 - its own
        self._member = consumer._member  # noqa: SLF001 - as above
        self._guard = consumer._guard  # noqa: SLF001 - as above
        self._poller = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="groupwright-poll")
        self.executor = executor or concurrent.futures.ThreadPoolExecutor(
            max_workers, thread_name_prefix="groupwright-aio"
        )

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Subscribe as `Consumer.subscribe` says; callbacks are coroutines, called with this object."""
        loop = asyncio.get_running_loop()
        kwargs |= dict(zip(("topics", *_REBALANCE_CALLBACKS), args, strict=False))
        for name in _REBALANCE_CALLBACKS:
            if kwargs.get(name) is not None:
                kwargs[name] = self._on_loop(loop, functools.partial(self._with_self, kwargs[name]))
        return await self._call(self._consumer.subscribe, **kwargs)

    async def subscription(self) -> list[str]:
        """Return what `Consumer.subscription` does."""
        topics: list[str] = await self._call(self._consumer.subscription)
        return topics

    async def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the next poll rejoin the group, as `Consumer.enforce_rebalance` says."""
        await self._call(self._consumer.enforce_rebalance, reason)

    async def paused(self) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        partitions: list[TopicPartition] = await self._call(self._consumer.paused)
        return partitions

    async def seek_to_beginning(self, partitions: list[TopicPartition] | None = None) -> None:
        """Continue at the first offset, as `Consumer.seek_to_beginning` says."""
        await self._call(self._consumer.seek_to_beginning, partitions)

    async def seek_to_end(self, partitions: list[TopicPartition] | None = None) -> None:
        """Continue after the last offset, as `Consumer.seek_to_end` says."""
        await self._call(self._consumer.seek_to_end, partitions)

    async def current_lag(self, partition: TopicPartition) -> int | None:
        """Return what `Consumer.current_lag` does."""
        lag: int | None = await self._call(self._consumer.current_lag, partition)
        return lag

    def wakeup(self) -> None:
        """Have the current poll, or else the next one, raise `WakeupError`; any thread may call it."""
        self._consumer.wakeup()

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close as `Consumer.close` says: a poll that is under way ends at once."""
        if self._closed:
            return
        try:
            await self._call(self._consumer.close, *args, **kwargs)
        finally:
            if self._guard.closing or self._guard.closed:  # else it was refused, and stays open
                self._closed = True
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(None, self._poller.shutdown, True)  # noqa: FBT003 - its `wait`
                if self._owns_executor:
                    await loop.run_in_executor(None, self.executor.shutdown, True)  # noqa: FBT003 - as above

    async def _call(self, blocking_task: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            raise RuntimeError("Consumer closed")
        loop = asyncio.get_running_loop()
        task = functools.partial(blocking_task, *args, **kwargs)
        inner = _callback_calls.get()
        if inner is not None and not inner.has_ended:
            return await asyncio.wrap_future(inner.submit(task))
        if blocking_task.__name__ in _POLLS:
            return await self._polled(task)
        executor = self._poller if blocking_task.__name__ in _ON_POLLER else self.executor
        return await loop.run_in_executor(executor, task)

    async def _polled(self, poll: Callable[[], Any]) -> Any:
        """Return the result of a poll; if this task is cancelled meanwhile, the next poll returns it."""
        abandoned = threading.Event()
        poller = self._poller
        consumer: Consumer = self._consumer
        result = poller.submit(_poll_unless, consumer, abandoned.is_set, poll)

        def take_back(_: object) -> None:
            # The polling thread had ended the call before `abandoned` was set.
            if result.cancelled():
                return
            error = result.exception()
            if error is not None:
                _record(consumer, error)
            elif result.result() is not None:
                with contextlib.suppress(RuntimeError):  # closed meanwhile
                    poller.submit(_put_back, consumer, result.result())

        try:
            return await asyncio.wrap_future(result)
        except asyncio.CancelledError:
            abandoned.set()
            result.add_done_callback(take_back)
            raise

    def _with_self(self, callback: Callable[..., Awaitable[Any]], _consumer: Any, partitions: Any) -> Any:
        return callback(self, partitions)

    @staticmethod
    def _on_loop(
        loop: asyncio.AbstractEventLoop, callback: Callable[..., Awaitable[Any]]
    ) -> Callable[..., Any]:
        """Return a function that runs the callback on the loop, and its calls on this thread."""

        def call(*args: Any) -> Any:
            inner = _CallbackCalls()

            async def run() -> Any:
                _callback_calls.set(inner)
                try:
                    return await callback(*args)
                finally:
                    inner.end()

            result = asyncio.run_coroutine_threadsafe(run(), loop)
            result.add_done_callback(lambda _result: inner.end())  # also if it was cancelled before it began
            inner.serve()
            return result.result()

        return call


@exclusive
def _poll_unless(consumer: Consumer, abandoned: Callable[[], bool], poll: Callable[[], Any]) -> Any:
    """Return the result of `poll`; if the call was `abandoned`, the next call returns or raises it."""
    guard = consumer._guard  # noqa: SLF001 - its own
    guard.abandoned = abandoned
    try:
        result = poll()
    finally:
        guard.abandoned = never
    if result is not None and abandoned():
        _put_back(consumer, result)
        return None
    return result


def _record(consumer: Consumer, error: BaseException) -> None:
    """Have the next call raise the error of a call that nobody waits for any more."""
    ended_by_close = consumer._guard.closing and isinstance(error, RuntimeError)  # noqa: SLF001 - its own
    if not ended_by_close:
        consumer._member.failures.record(error)  # noqa: SLF001 - as above


@exclusive
def _put_back(consumer: Consumer, result: Any) -> None:
    """Have the next call return this result of `poll` or `consume`."""
    consumer._put_back(result if isinstance(result, list) else [result])  # noqa: SLF001 - its own
