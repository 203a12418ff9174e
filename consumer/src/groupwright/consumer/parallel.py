"""Work in parallel: several workers process the messages of one consumer, and no message is lost.

- `ParallelConsumer` with threads, `AIOParallelConsumer` with asyncio's tasks.
- `Order`: which messages are processed one after another.
- `Retry`: when a message is tried again whose function has raised.
- `MessageFailedError`: a message could not be processed, and stopped the consumer.
- `ParallelStatistics`: what is in flight.

Both create their consumer: Groupwright's, or any other with confluent-kafka's methods.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from confluent_kafka import Message

from groupwright.consumer._parallel.engine import (
    Engine,
    Limits,
    MessageFailedError,
    ParallelStatistics,
    name_of,
)
from groupwright.consumer._parallel.work import Order, Retry, Run, Work
from groupwright.consumer.consumer import Consumer

__all__ = [
    "AIOParallelConsumer",
    "MessageFailedError",
    "Order",
    "ParallelConsumer",
    "ParallelStatistics",
    "Retry",
]

_SLICE_SECONDS = 0.05
"""How long a worker keeps messages of the same lane, so that other lanes get their turn."""
_STOP = Retry(0)

_log = logging.getLogger("groupwright.parallel")


class _Parallel:
    """What threads and asyncio have in common."""

    _awaits = False
    """Whether coroutine functions process messages."""

    def __init__(
        self,
        config: Mapping[str, Any],
        process: Callable[[Message], Any],
        *,
        order: Order | str = Order.PARTITION,
        workers: int = 4,
        max_in_flight: int = 1000,
        commit_interval: float = 1.0,
        drain_timeout: float = 30.0,
        retry: Retry = _STOP,
        dead_letter: Callable[[Message, BaseException], Any] | None = None,
        create: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:
        """Create the consumer, without joining the group yet.

        Args:
            config: The consumer's configuration. The client itself commits nothing.
            process: Processes a message: a function, or for `AIOParallelConsumer` a coroutine function. A
                message is done when it returns.
            order: Which messages are processed one after another: `Order` or its value, such as ``"key"``.
            workers: The number of workers.
            max_in_flight: The number of messages that are held: received, and not done or behind one of their
                partition that is not. Each partition has an equal share of them, beyond which it is paused.
            commit_interval: Seconds between two commits.
            drain_timeout: Seconds for which a revocation, or the end, waits for messages that are being
                processed. Less than ``max.poll.interval.ms``.
            retry: When a message is tried again whose function has raised an exception. Meanwhile the worker
                has others; messages that must come after it wait.
            dead_letter: Called with a message that has failed for good, and its exception; then the message
                counts as done. Without it, or if it raises, `run` ends.
            create: Creates the consumer from its configuration: a class such as `confluent_kafka.Consumer`,
                or ``lambda config: create_instrumented(Consumer, config)``.

        Raises:
            ConfigurationError: The configuration is wrong.
            TypeError, ValueError: An option is.
        """
        if workers < 1 or max_in_flight < 1:
            raise ValueError(
                f"workers and max_in_flight must be at least 1, not {workers!r} and {max_in_flight!r}"
            )
        if not (0 <= commit_interval < math.inf and 0 <= drain_timeout < math.inf):
            raise ValueError(
                f"commit_interval and drain_timeout must be seconds, not {commit_interval!r} and "
                f"{drain_timeout!r}"
            )
        for name, value, wanted in (
            ("process", callable(process), "a function of a message"),
            (
                "dead_letter",
                dead_letter is None or callable(dead_letter),
                "a function of a message and an error",
            ),
            ("retry", isinstance(retry, Retry), "a Retry, such as Retry(attempts=3)"),
        ):
            if not value:
                raise TypeError(f"{name} must be {wanted}")
        if not self._awaits and any(map(inspect.iscoroutinefunction, (process, dead_letter))):
            raise TypeError("coroutine functions need AIOParallelConsumer")
        if order not in set(Order):
            raise ValueError(f"order must be one of {', '.join(map(repr, map(str, Order)))}, not {order!r}")
        order = Order(order)
        self._process = process
        self._dead_letter = dead_letter
        self._workers = workers
        self._engine = Engine(
            create,
            config,
            Work(order, workers, max_in_flight, retry),
            Limits(commit_interval, drain_timeout),
            looks_back=order is not Order.PARTITION,
        )

    @property
    def consumer(self) -> Any:
        """The consumer, for its metadata and metrics. Only `run` may poll, commit or close it."""
        return self._engine.consumer

    @property
    def group_id(self) -> str:
        """The group."""
        return self._engine.group_id

    @property
    def client_id(self) -> str:
        """The client's name, `rdkafka` by default."""
        return self._engine.client_id

    def stop(self) -> None:
        """Have `run` end: what is being processed is finished and committed, and the group is left.

        Any thread and any signal handler may call it, more than once.
        """
        self._engine.stop()

    def statistics(self) -> ParallelStatistics:
        """Return what is in flight, and what was done. Any thread may call it."""
        return self._engine.statistics()

    @staticmethod
    def _check(topics: Sequence[str]) -> None:
        if isinstance(topics, str):
            raise TypeError(f"topics must be a list: [{topics!r}]")

    def _failed(self, run: Run, message: Message, error: BaseException) -> None:
        _log.error("%s could not be processed", name_of(message), exc_info=error)
        self._engine.fail(run, message, error)


class ParallelConsumer(_Parallel):
    """A consumer whose messages are processed by threads.

    ::

        def process(message): ...

        consumer = ParallelConsumer({"bootstrap.servers": ..., "group.id": "billing"}, process, order="key")
        signal.signal(signal.SIGTERM, lambda *_: consumer.stop())
        consumer.run(["orders"])

    Of each partition, the offset is committed below which everything is done. So no message is lost, whatever
    happens. After a crash, those come a second time that were done since the last commit, or behind one that
    was not.
    """

    def run(self, topics: Sequence[str]) -> None:
        """Consume topics until `stop` is called or a message fails; then close the consumer.

        Args:
            topics: Names, or regular expressions that begin with ``^``.

        Raises:
            MessageFailedError: A message failed; its exception is the cause.
            KafkaException: The consumer cannot go on.
        """
        self._check(topics)
        for number in range(self._workers):
            # Daemons, since a function that never returns must not keep the program from ending.
            threading.Thread(target=self._work, name=f"groupwright-worker-{number}", daemon=True).start()
        self._engine.run(topics)

    def _work(self) -> None:
        try:
            while (run := self._engine.take(waits=True)) is not None:
                self._process_run(run)
        except BaseException as error:  # noqa: BLE001 - without a worker, messages would wait forever
            self._engine.break_off(error)

    def _process_run(self, run: Run) -> None:
        process, end = self._process, time.monotonic() + _SLICE_SECONDS
        for message in run.messages.copy():
            try:
                if (result := process(message)) is not None:
                    _refuse_awaitable(result)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the message is not done
                if not self._is_done_nevertheless(run, message, error):
                    return
            run.done += 1
            if run.is_cut or time.monotonic() >= end:
                break
        self._engine.finish(run)

    def _is_done_nevertheless(self, run: Run, message: Message, error: BaseException) -> bool:
        """Return whether a failed message counts as done; if not, the run was taken back."""
        if self._engine.retries(run, message, error):
            return False
        if self._dead_letter is not None and isinstance(error, Exception):
            try:
                _refuse_awaitable(self._dead_letter(message, error))
            except BaseException as failure:  # noqa: BLE001 - as above
                error = failure
            else:
                self._engine.count_dead_letter(message, error)
                return True
        self._failed(run, message, error)
        return False


def _refuse_awaitable(result: object) -> None:
    if inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("a coroutine function processes nothing here: use AIOParallelConsumer")


class AIOParallelConsumer(_Parallel):
    """As `ParallelConsumer`, with coroutines: each worker is a task of the running event loop.

    Polling has a thread of its own, so it goes on whatever the event loop does. When a partition is lost, or
    is revoked and not drained in time, the coroutines that process messages of it are cancelled.
    """

    _awaits = True

    async def run(self, topics: Sequence[str]) -> None:
        """Consume topics until `stop` is called, a message fails, or this task is cancelled.

        The consumer is closed then. A cancelled call, also one that is cancelled again, ends when what is
        being processed is finished, within `drain_timeout`.

        Args:
            topics: Names, or regular expressions that begin with ``^``.

        Raises:
            MessageFailedError: A message failed; its exception is the cause.
            KafkaException: The consumer cannot go on.
        """
        self._check(topics)
        loop = asyncio.get_running_loop()
        self._tasks: dict[Run, asyncio.Task[None]] = {}
        self._cancelled: set[Run] = set()
        self._waiting = 0
        self._ready = asyncio.Event()
        self._engine.on_ready = lambda: self._waiting and loop.call_soon_threadsafe(self._wake)
        self._engine.on_given_up = lambda runs: loop.call_soon_threadsafe(self._cancel, runs)
        workers = [loop.create_task(self._work()) for _ in range(self._workers)]
        executor = ThreadPoolExecutor(1, thread_name_prefix="groupwright-poll")
        polling = loop.run_in_executor(executor, self._engine.run, topics)
        executor.shutdown(wait=False)  # after this call; the event loop does not wait for it
        try:
            await asyncio.shield(polling)
        except asyncio.CancelledError:
            self.stop()
            while not polling.done():
                with contextlib.suppress(asyncio.CancelledError):  # one that comes while it ends
                    await asyncio.wait([polling])
            raise
        finally:
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        try:
            while not self._engine.has_ended:
                run = await self._take()
                if run is not None:
                    await self._process_run(run)
                    await asyncio.sleep(0)  # the turn of others, also if the coroutines never wait
        except asyncio.CancelledError:
            self.stop()  # all tasks of the event loop are being cancelled
            raise
        except BaseException as error:
            self._engine.break_off(error)  # without a worker, messages would wait forever
            raise

    async def _take(self) -> Run | None:
        """Return what there is to process, or None after a wait for it."""
        self._waiting += 1
        ready = self._ready
        try:
            run = self._engine.take(waits=False)
            if run is None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(ready.wait(), self._engine.seconds_to_retry())
            return run
        finally:
            self._waiting -= 1

    def _wake(self) -> None:
        self._ready.set()
        self._ready = asyncio.Event()

    def _cancel(self, runs: Sequence[Run]) -> None:
        for run in runs:
            if run in self._tasks:
                self._cancelled.add(run)
                self._tasks[run].cancel()

    async def _process_run(self, run: Run) -> None:
        task = asyncio.current_task()
        assert task is not None, "within a task"  # noqa: S101 - for mypy
        self._tasks[run] = task
        try:
            await self._process_messages(run)
        except asyncio.CancelledError:
            self._engine.finish(run)
            if run not in self._cancelled or task.cancelling() > 1:  # by others than `_cancel`
                raise
        finally:
            del self._tasks[run]
            if run in self._cancelled:  # also if the coroutine has not let itself be cancelled
                self._cancelled.remove(run)
                task.uncancel()

    async def _process_messages(self, run: Run) -> None:
        end = time.monotonic() + _SLICE_SECONDS
        for message in run.messages.copy():
            try:
                result = self._process(message)
                if inspect.isawaitable(result):
                    await result
            except BaseException as error:
                if _cancels_this_task(error):
                    raise
                if not await self._is_done_nevertheless(run, message, error):
                    return
            run.done += 1
            if run.is_cut or time.monotonic() >= end:
                break
        self._engine.finish(run)

    async def _is_done_nevertheless(self, run: Run, message: Message, error: BaseException) -> bool:
        """Return whether a failed message counts as done; if not, the run was taken back."""
        if self._engine.retries(run, message, error):
            return False
        if self._dead_letter is not None and isinstance(error, Exception):
            try:
                result = self._dead_letter(message, error)
                if inspect.isawaitable(result):
                    await result
            except BaseException as failure:
                if _cancels_this_task(failure):
                    raise
                error = failure
            else:
                self._engine.count_dead_letter(message, error)
                return True
        self._failed(run, message, error)
        return False


def _cancels_this_task(error: BaseException) -> bool:
    """Return whether an exception is that of a cancelled task, and not of a future that it has awaited."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
