"""Event sinks: each has a bounded queue and a thread of its own, so that none delays a poll.

An event is dropped if the queue is full, and fails if the sink raises an exception. Both are counted, and the
first failure is logged. After a fork, the child starts with an empty queue and a thread of its own.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException, Producer

from groupwright.core.locking import locked
from groupwright.instrumentation.events import Event, LoadCheckEvent, RebalanceEvent

TOPIC = "groupwright.rebalances"
"""Default topic of `to_kafka`."""

Callback = Callable[[RebalanceEvent], object] | Callable[[LoadCheckEvent], object]
"""An application's function, for rebalance events or for load-check events."""

OnOutcome = Callable[[str], None]
"""Called with the outcome of an event: one of `labels.EVENT_OUTCOMES`."""

_log = logging.getLogger("groupwright.instrumentation")
_EXIT_TIMEOUT = 2.0  # seconds


class EventSink:
    """Passes events to a function one by one, on a thread that starts with the first event. Thread-safe.

    One sink may serve any number of consumers. `close` it at the end, or use it in a ``with`` block. At the
    interpreter's exit, queued events have 2 s left.
    """

    def __init__(
        self,
        name: str,
        write: Callback,
        *,
        capacity: int = 1000,
        release: Callable[[], object] | None = None,
    ) -> None:
        """Create a sink.

        Args:
            name: The sink's name, a label of its metrics.
            write: Called with each event; an exception counts as a failure.
            capacity: Maximum number of queued events.
            release: Called at the end of `close`, on the sink's thread if it was started.

        Raises:
            ValueError: The capacity is not positive.
        """
        if capacity < 1:
            raise ValueError(f"the capacity of a sink is {capacity}: set it to 1 or more")
        self.name = name
        self._write: Callable[[Any], object] = write
        self._capacity = capacity
        self._release = release
        self._lock = threading.RLock()  # a signal handler may close
        self._queue: queue.Queue[tuple[Event, OnOutcome] | None] = queue.Queue(capacity)
        self._thread: threading.Thread | None = None
        self._closed = False
        self._failed_before = False
        self._pid = os.getpid()
        atexit.register(_close_at_exit, weakref.ref(self))

    def offer(self, event: Event, on_outcome: OnOutcome) -> None:
        """Queue an event, or drop it if the queue is full or the sink closed. It never blocks.

        Args:
            event: The event.
            on_outcome: Called with the outcome, on this thread or the sink's.
        """
        if not self._start():
            on_outcome("dropped")
            return
        try:
            self._queue.put_nowait((event, on_outcome))
        except queue.Full:
            on_outcome("dropped")

    @locked
    def _start(self) -> bool:
        """Start the thread if it does not run in this process yet; return False if the sink is closed."""
        if os.getpid() != self._pid:
            self._queue, self._thread, self._pid = queue.Queue(self._capacity), None, os.getpid()
        if self._closed:
            return False
        if self._thread is None:
            # A daemon, since a hanging sink must not keep the process alive.
            self._thread = threading.Thread(
                target=self._run, name=f"groupwright-events-{self.name}", daemon=True
            )
            self._thread.start()
        return True

    @locked
    def _start_no_more(self) -> bool:
        """Let no event in any more; return False if the sink was closed before."""
        was_open, self._closed = not self._closed, True
        return was_open

    def close(self, timeout: float = 10.0) -> None:
        """Write the queued events, for at most `timeout` seconds; later events are dropped."""
        if not self._start_no_more():
            return
        thread = self._thread
        if thread is None:
            self._release_resources()
            return
        deadline = time.monotonic() + timeout
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            _log.warning("the event sink %r hangs; its queued events are dropped", self.name)
            return
        thread.join(max(0.0, deadline - time.monotonic()))

    def __enter__(self) -> Self:
        """Return the sink itself."""
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            event, on_outcome = item
            try:
                self._write(event)
            except Exception as error:  # noqa: BLE001 - a sink's failure is its own
                on_outcome("failed")
                if not self._failed_before:
                    self._failed_before = True
                    _log.warning(
                        "the event sink %r failed: %r; further failures are only counted",
                        self.name,
                        error,
                        exc_info=error,
                    )
            else:
                on_outcome("sent")
        self._release_resources()

    def _release_resources(self) -> None:
        if self._release is not None:
            self._release()


def to_logging(logger: logging.Logger | None = None, level: int = logging.INFO) -> EventSink:
    """Return a sink that logs each event as JSON, by default to the logger ``groupwright.rebalances``."""
    target = logger or logging.getLogger("groupwright.rebalances")
    return EventSink("logging", lambda event: target.log(level, "%s", event.to_json()))


def to_callback(callback: Callback, name: str = "callback") -> EventSink:
    """Return a sink that calls a function with each event, on the sink's thread."""
    return EventSink(name, callback)


def to_file(path: str | os.PathLike[str]) -> EventSink:
    """Return a sink that appends each event to a file as one line of JSON. The file may be rotated."""
    target = Path(path)

    def append(event: Event) -> None:
        with target.open("a", encoding="utf-8") as file:
            file.write(event.to_json() + "\n")

    return EventSink("file", append)


def to_kafka(config: Mapping[str, Any], topic: str = TOPIC, delivery_timeout: float = 10.0) -> EventSink:
    """Return a sink that produces each event to a topic, with the group as key and JSON as value.

    An event counts as sent once the broker has acknowledged it; the sink waits for each acknowledgement.

    Args:
        config: The configuration of a confluent-kafka producer.
        topic: The topic.
        delivery_timeout: Seconds after which an event counts as failed.
    """
    milliseconds = max(1, int(delivery_timeout * 1000))
    producer = Producer({"linger.ms": 0, **config, "message.timeout.ms": milliseconds})

    def produce(event: Event) -> None:
        errors: list[Any] = []
        producer.produce(
            topic,
            key=event.group.encode(),
            value=event.to_json().encode(),
            on_delivery=lambda error, _message: errors.append(error),
        )
        producer.flush(delivery_timeout + 1)
        if not errors:
            raise TimeoutError(f"the broker did not acknowledge an event in {delivery_timeout:g} s")
        if errors[0] is not None:
            raise KafkaException(errors[0])

    return EventSink("kafka", produce, release=lambda: producer.flush(delivery_timeout))


def _close_at_exit(sink: weakref.ref[EventSink]) -> None:
    alive = sink()
    if alive is not None:
        alive.close(_EXIT_TIMEOUT)
