"""Making commits: what the application asks for, what is due by itself, and what is told of their results."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer.ahead import Ahead
from groupwright.consumer.commits import NO_ANSWER, CommitResult, PendingCommit
from groupwright.consumer.config import ConsumerConfig
from groupwright.consumer.driver import Driver
from groupwright.consumer.errors import CommitError
from groupwright.consumer.events import Committed, Inbox
from groupwright.consumer.interceptors import Interceptors
from groupwright.consumer.offsets import OffsetTracker, from_message, from_partitions, to_partitions
from groupwright.consumer.polling_thread import PollingThread
from groupwright.consumer.protocol import ErrorCode, Offset, Offsets, TopicPartitionKey
from groupwright.consumer.rebalance import Listeners

Native = confluent_kafka.Consumer


class Committer:
    """Commits for one member. `commit` and `store` are for any thread, the rest for the one that polls."""

    def __init__(
        self,
        config: ConsumerConfig,
        offsets: OffsetTracker,
        ahead: Ahead,
        driver: Driver,
        inbox: Inbox,
        polling: PollingThread,
        interceptors: Interceptors,
        listeners: Listeners,
        note: Callable[[BaseException], None],
    ) -> None:
        """Send over `driver`; what on_commit raises is for `note`."""
        self.next_due = math.inf
        """Monotonic time of the next commit that is made without being asked for."""
        self._config = config
        self._offsets = offsets
        self._ahead = ahead
        self._driver = driver
        self._inbox = inbox
        self._polling = polling
        self._interceptors = interceptors
        self._listeners = listeners
        self._note = note
        self.restart()

    # --- By the application -------------------------------------------------------------------------

    def commit(
        self,
        consumer: Any,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit as `Consumer.commit` says."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            wanted = from_message(message)
        elif offsets is not None:
            wanted = from_partitions(offsets)
        else:
            wanted = self.pending(consumer)
        if not wanted:
            if asynchronous:
                return None
            raise CommitError(KafkaError._NO_OFFSET, "there is no offset to commit")  # noqa: SLF001 - public code
        timeout = self._config.network.request_timeout
        if asynchronous:
            self.send(wanted, timeout, repeat=False)
            return None
        # Its result is for the caller, and not for on_commit.
        began = time.monotonic()
        result = self.send(wanted, timeout, repeat=True, report=False).wait()
        error = self._take_result(wanted, result, time.monotonic() - began)
        if error is not None:
            raise error
        return to_partitions(wanted)

    def store(self, message: Message | None, offsets: list[TopicPartition] | None) -> None:
        """Store as `Consumer.store_offsets` says; what librdkafka itself stored would never be committed."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            wanted = from_message(message)
        elif offsets is not None:
            wanted = from_partitions(offsets)
        else:
            raise ValueError("expected either message or offsets")
        if not self._offsets.by_hand:
            detail = (
                "store_offsets needs enable.auto.offset.store=false; else what poll has returned is stored"
            )
            raise CommitError(KafkaError._INVALID_ARG, detail)  # noqa: SLF001 - public code
        if not self._offsets.store(wanted):
            names = ", ".join(f"{topic} [{number}]" for topic, number in wanted)
            detail = f"the offset of {names} cannot be stored: none of these partitions is assigned"
            raise CommitError(KafkaError._STATE, detail)  # noqa: SLF001 - public code

    # --- By itself ----------------------------------------------------------------------------------

    def restart(self) -> None:
        """Count the interval from now on: the assignment is new."""
        interval = self._config.auto_commit_interval
        self.next_due = time.monotonic() + interval if self._config.auto_commit else math.inf

    def auto_commit(self, consumer: Any) -> None:
        """Commit what was consumed, if ``enable.auto.commit``."""
        self.restart()
        offsets = self.pending(consumer) if self._config.auto_commit else {}
        if offsets:
            self.send(offsets, self._config.network.request_timeout, repeat=False)

    def last_commit(self, consumer: Any, timeout: float) -> PendingCommit | None:
        """Commit what was consumed before it is given up; None if there is nothing to wait for."""
        offsets = self.pending(consumer) if self._config.auto_commit else {}
        return self.send(offsets, timeout, repeat=True) if offsets else None

    # --- Parts --------------------------------------------------------------------------------------

    def pending(self, consumer: Any) -> dict[TopicPartitionKey, Offset]:
        """Return what was consumed or stored, and is not committed."""

        def position() -> list[TopicPartition]:
            with self._polling.beside():
                return self._ahead.positions(lambda: Native.position(consumer, Native.assignment(consumer)))

        return self._offsets.pending(position)

    def send(self, offsets: Offsets, timeout: float, *, repeat: bool, report: bool = True) -> PendingCommit:
        """Send a commit; with `report`, a later poll takes its result, and calls on_commit."""
        pending = PendingCommit(offsets, time.monotonic() + timeout)
        inbox = self._inbox
        began = time.monotonic()

        def done(result: CommitResult) -> None:
            pending.settle(result)
            if report:
                inbox.put(Committed(offsets, result, time.monotonic() - began))

        self._driver.commit(offsets, pending.deadline, done, repeat=repeat)
        return pending

    def finish(self, event: Committed) -> None:
        """Take the result of a commit that nobody waited for."""
        error = self._take_result(event.offsets, event.result, event.seconds)
        if self._config.on_commit is None:
            return
        try:
            self._config.on_commit(None if error is None else error.args[0], to_partitions(event.offsets))
        except BaseException as raised:  # noqa: BLE001 - leaves poll at the end, as a rebalance callback's does
            self._note(raised)

    def _take_result(
        self, offsets: Offsets, result: CommitResult, seconds: float | None
    ) -> CommitError | None:
        stored = {key: offset for key, offset in offsets.items() if result.errors.get(key) == ErrorCode.NONE}
        self._offsets.committed(stored)
        if stored:
            self._interceptors.on_commit(to_partitions(stored))
        error = _error_of(result)
        self._listeners.tell("commit_ended", seconds, None if error is None else error.args[0].name())
        return error


def _error_of(result: CommitResult) -> CommitError | None:
    failed: Mapping[TopicPartitionKey, int] = {key: code for key, code in result.errors.items() if code}
    if not failed:
        return None
    (topic, number), code = next(iter(failed.items()))
    if code == NO_ANSWER:
        text = result.message or "the coordinator did not answer"
        return CommitError(NO_ANSWER, f"the commit failed: {text}")
    text = result.message or KafkaError(code).str()
    return CommitError(code, f"the commit of {topic} [{number}] failed: {text}")
