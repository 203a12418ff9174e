"""Committer: makes the application's and automatic commits, and reports their results."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from confluent_kafka import OFFSET_INVALID, OFFSET_STORED, KafkaError, Message, TopicPartition

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._membership.access import AccessGuard
from groupwright.consumer._membership.auto_commit import AutoCommitClock, BusyCommits
from groupwright.consumer._membership.callbacks import Failures
from groupwright.consumer._membership.handle import Handle
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.listeners import Listeners
from groupwright.consumer._membership.offset_tracker import (
    OffsetTracker,
    check_message,
    check_partitions,
    from_message,
    from_partitions,
    reported,
    to_partitions,
)
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._protocol.commit_queue import DESTROYED, NO_ANSWER, CommitResult, PendingCommit
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import Offset, Offsets
from groupwright.consumer.errors import CommitError
from groupwright.core import ErrorCode, TopicPartitionKey

_UNSET = frozenset({OFFSET_INVALID, OFFSET_STORED})
_ASSIGNMENT_LOST, _FATAL, _NO_OFFSET = (
    KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001 - librdkafka's public codes
    KafkaError._FATAL,  # noqa: SLF001 - as above
    KafkaError._NO_OFFSET,  # noqa: SLF001 - as above
)

_UNDER_WAY_TIMEOUT = 1.0
"""Longest time in seconds for which an assignment waits for a commit of its partitions that is under way."""


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """An asynchronous commit that has ended, for which ``on_commit`` is still to be called."""

    partitions: list[TopicPartition]
    """Partitions of the commit, those without an offset included, for ``on_commit``."""
    offsets: Offsets
    result: CommitResult
    seconds: float | None
    """Duration of the commit; None if nothing was sent."""


class Committer:
    """Commits for one member.

    Any thread may call `commit`, `store` and `wait`; the rest is for the polling thread.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        offsets: OffsetTracker,
        prefetch: PrefetchBuffer,
        driver: Driver,
        membership: Membership,
        guard: AccessGuard,
        interceptors: InterceptorChain,
        listeners: Listeners,
        failures: Failures,
    ) -> None:
        """Create it with no commit under way.

        Args:
            config: Settings of commits, and ``on_commit``.
            offsets: Offsets to commit.
            prefetch: Prefetched messages, which the application has not consumed.
            driver: Sends commits, on the network thread.
            membership: State of the member; only read here.
            guard: Hands over librdkafka's handle, and wakes the polling thread.
            interceptors: Called with committed offsets.
            listeners: Called with the result of each commit.
            failures: Receives exceptions of ``on_commit``.
        """
        self.clock = AutoCommitClock(config.auto_commit_interval if config.auto_commit else math.inf)
        self.thread = 0
        """Identifier of the polling thread, on which ``on_commit`` is called; 0 before the first poll."""
        self.in_on_lost = False
        """True while `on_lost` is called: other members may own its partitions."""
        self.ended: deque[CommitEnded] = deque()
        """Asynchronous commits whose results `report_results` has to report, oldest first."""
        self._config = config
        self._offsets = offsets
        self._prefetch = prefetch
        self._driver = driver
        self._membership = membership
        self._guard = guard
        self._interceptors = interceptors
        self._listeners = listeners
        self._failures = failures
        self._is_reporting = False
        # The commits that have not ended, oldest first. A later one may fail before an earlier one ends.
        # Any thread may change and copy it, each by one atomic call.
        self._under_way: dict[PendingCommit, None] = {}
        self.busy = BusyCommits(self.clock, self, guard)
        self.restart_interval()

    # --- By the application -------------------------------------------------------------------------

    def commit(
        self,
        handle: Handle,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit as `Consumer.commit` says."""
        partitions, wanted, (code, detail) = self._to_commit(handle, message, offsets)
        if self._membership.fenced:
            code, detail = _FATAL, "another member has taken this member's group.instance.id"
            partitions, wanted = [], {}
        timeout = self._config.network.request_timeout
        if asynchronous and wanted:
            self._send(partitions, wanted, timeout)
        elif asynchronous:
            self.ended.append(CommitEnded(partitions, {}, CommitResult({("", 0): code}, detail), None))
            self._guard.wake()
        else:
            return self._commit_and_wait(partitions, wanted, timeout, code, detail)
        return None

    def _to_commit(
        self, handle: Handle, message: Message | None, offsets: list[TopicPartition] | None
    ) -> tuple[list[TopicPartition], dict[TopicPartitionKey, Offset], tuple[int, str]]:
        """Return what `commit` commits.

        Returns:
            The partitions, their offsets, and the error code and message for a commit without any offset.
        """
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        no_offset = _NO_OFFSET, "none of these partitions has an offset"
        if message is not None:
            _check_no_error(message, "commit")
            wanted = from_message(message)
            return to_partitions(wanted), wanted, no_offset
        if offsets is not None:
            check_partitions(offsets)
            return offsets, from_partitions(offsets), no_offset
        if self._membership.has_lost_partitions or self.in_on_lost:
            return [], {}, (_ASSIGNMENT_LOST, "other members may own these partitions")
        return *self._all_pending(handle), (_NO_OFFSET, "nothing was consumed since the last commit")

    def _commit_and_wait(
        self, partitions: list[TopicPartition], offsets: Offsets, timeout: float, code: int, detail: str
    ) -> list[TopicPartition]:
        """Commit and wait; the caller gets the result, and on_commit is not called for it."""
        if not offsets:
            raise CommitError(code, _words(code, detail))
        began = time.monotonic()
        result = self._send(partitions, offsets, timeout, report=False).wait()
        error = self._take_result(offsets, result, time.monotonic() - began)
        if self.thread in {0, threading.get_ident()}:
            # As in Java's commitSync, callbacks of earlier asynchronous commits run before it returns.
            self.report_results()
        if error is not None:
            raise CommitError(error.code(), f"Commit failed: {error.str()}")
        return reported(partitions, {})

    def store(self, message: Message | None, offsets: list[TopicPartition] | None) -> None:
        """Store as `Consumer.store_offsets` says; here, and not in librdkafka, which never commits."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            _check_no_error(message, "store")
            wanted = from_message(message)
        elif offsets is not None:
            check_partitions(offsets)
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
            known = any(self._offsets.knows(topic) for topic, _ in wanted)
            code = KafkaError._STATE if known else KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - public
            raise CommitError(code, detail)

    def with_pending_offsets(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions, once the commits of those without an offset have ended.

        Otherwise librdkafka could fetch the committed offset before that commit succeeds, and messages would
        be delivered twice. A partition whose commit does not end in time starts at the offset of that commit.
        """
        unset = {(p.topic, p.partition) for p in partitions if p.offset in _UNSET}
        if not unset.isdisjoint(self.offsets_under_way()):
            self.wait(_UNDER_WAY_TIMEOUT)  # a commit that is rejected changes no start
        newest = self.offsets_under_way()
        found = []
        for p in partitions:
            offset = newest.get((p.topic, p.partition)) if p.offset in _UNSET else None
            if offset is not None:
                p = TopicPartition(  # noqa: PLW2901 - the same partition, with an offset
                    p.topic, p.partition, offset.offset, leader_epoch=offset.leader_epoch
                )
            found.append(p)
        return found

    def offsets_under_way(self) -> dict[TopicPartitionKey, Offset]:
        """Return the newest offset of each partition whose commit has not ended."""
        return {key: offset for pending in self._not_ended() for key, offset in pending.offsets.items()}

    @property
    def is_committing(self) -> bool:
        """True if a commit has not ended."""
        return bool(self._not_ended())

    def _not_ended(self) -> list[PendingCommit]:
        """Return the commits that have not ended, oldest first.

        An exception of a signal handler may keep one from being sent. It ends with its deadline.
        """
        for pending in list(self._under_way):
            if pending.ready:
                self._under_way.pop(pending, None)
        return list(self._under_way)

    def wait(self, seconds: float) -> None:
        """Wait until the commits that are in flight now have ended, for `seconds` at most."""
        deadline = time.monotonic() + seconds
        for pending in list(self._under_way):
            pending.wait(max(0.0, deadline - time.monotonic()))

    # --- Automatic commits --------------------------------------------------------------------------

    def restart_interval(self) -> None:
        """Start a new interval of automatic commits."""
        self.clock.restart(time.monotonic())

    def auto_commit(self, handle: Handle) -> None:
        """Commit what was consumed, if ``enable.auto.commit``; for any thread."""
        self.restart_interval()
        if self._config.auto_commit:
            partitions, offsets = self._all_pending(handle)
            if offsets:
                self._send(partitions, offsets, self._config.network.request_timeout)

    def last_commit(
        self,
        handle: Handle,
        keys: Collection[TopicPartitionKey] | None,
        timeout: float,
        sent: Offsets = MappingProxyType({}),
    ) -> Offsets:
        """Commit what was consumed of partitions that are about to be unassigned, if ``enable.auto.commit``.

        As in librdkafka, offsets that are committed already are included, so that `on_commit` gets the final
        offsets of the assignment.

        Args:
            handle: The consumer's handle.
            keys: The partitions; None for all that are assigned.
            timeout: Seconds after which the commit has failed.
            sent: Offsets that the last commit of this assignment has contained already; not sent again.

        Returns:
            The offsets that were sent.
        """
        if not self._config.auto_commit:
            return {}
        pending = self._offsets.pending(
            lambda: self._prefetch.positions_of(handle, None, self._guard), last=True
        )
        offsets = {
            key: offset
            for key, offset in pending.items()
            if (keys is None or key in keys) and sent.get(key) != offset
        }
        if offsets:
            # The application may have unassigned some.
            assigned = (key for key in self._offsets.keys if keys is None or key in keys)
            without_offset = dict.fromkeys(assigned, Offset(OFFSET_INVALID))
            self._send(to_partitions(without_offset | offsets), offsets, timeout)
        return offsets

    # --- Results ------------------------------------------------------------------------------------

    def report_results(self, *, closing: bool = False) -> None:
        """Report the asynchronous commits that have ended; on_commit is called.

        If it raises, the others are reported once that was raised, unless the consumer is `closing`.
        """
        if self._is_reporting:
            return  # on_commit itself commits
        self._is_reporting = True
        try:
            while self.ended:
                # Removed after the report, because KeyboardInterrupt may end this loop between any two
                # bytecodes.
                self._report(self.ended[0])
                self.ended.popleft()
                if self._failures and not closing:
                    break
        finally:
            self._is_reporting = False

    def _report(self, ended: CommitEnded) -> None:
        if ended.offsets:
            error = self._take_result(ended.offsets, ended.result, ended.seconds)
        else:
            error = _error_of(ended.result)
        if self._config.on_commit is None:
            return
        try:
            self._config.on_commit(error, reported(ended.partitions, ended.result.errors))
        except BaseException as raised:  # noqa: BLE001 - poll raises it
            self._failures.record(raised)

    def _take_result(
        self, offsets: Offsets, result: CommitResult, seconds: float | None
    ) -> KafkaError | None:
        committed = _succeeded(offsets, result)
        if committed:
            self._interceptors.on_commit(to_partitions(committed))
        error = _error_of(result)
        self._listeners.notify("commit_ended", seconds, None if error is None else error.name())
        return error

    # --- Parts --------------------------------------------------------------------------------------

    def _all_pending(self, handle: Handle) -> tuple[list[TopicPartition], dict[TopicPartitionKey, Offset]]:
        """Return all assigned partitions, and the offsets to commit."""
        offsets = self._offsets.pending(lambda: self._prefetch.positions_of(handle, None, self._guard))
        assigned = dict.fromkeys(self._offsets.keys, Offset(OFFSET_INVALID))
        return to_partitions(assigned | offsets), offsets

    def _send(
        self, partitions: list[TopicPartition], offsets: Offsets, timeout: float, *, report: bool = True
    ) -> PendingCommit:
        """Send a commit; with `report`, a later `report_results` takes its result, and calls on_commit."""
        began = time.monotonic()
        deadline = began + timeout
        pending = PendingCommit(offsets, deadline)
        self._under_way[pending] = None
        self._guard.calm_until = 0.0

        def done(result: CommitResult) -> None:
            # Not in `report_results`: another commit may come before the next poll.
            self._offsets.committed(_succeeded(offsets, result))
            self._under_way.pop(pending, None)
            if report:
                self.ended.append(CommitEnded(partitions, offsets, result, time.monotonic() - began))
            pending.complete(result)
            self._guard.wake()

        self._driver.commit(offsets, deadline, done)
        return pending


def _check_no_error(message: Message, what: str) -> None:
    """Check that the argument is a message, and no error that poll has returned in place of one.

    Raises:
        TypeError: It is no message.
        CommitError: It is an error; with confluent-kafka's code and words.
    """
    check_message(message)
    error = message.error()
    if error is not None:
        words = f"Cannot {what} offsets for message with error: '{error.str()}'"
        raise CommitError(KafkaError._INVALID_ARG, words)  # noqa: SLF001 - librdkafka's public code


def _succeeded(offsets: Offsets, result: CommitResult) -> Offsets:
    """Return the offsets that the coordinator has committed."""
    return {key: offset for key, offset in offsets.items() if result.errors.get(key) == ErrorCode.NONE}


def _error_of(result: CommitResult) -> KafkaError | None:
    failed: Mapping[TopicPartitionKey, int] = {key: code for key, code in result.errors.items() if code}
    if not failed:
        return None
    (topic, number), code = next(iter(failed.items()))
    where = f"{topic} [{number}]" if topic and code not in {NO_ANSWER, DESTROYED} else ""
    detail = ": ".join(filter(None, (where, result.message)))
    return KafkaError(code, _words(code, detail, prefix=""))


def _words(code: int, detail: str, prefix: str = "Commit failed: ") -> str:
    """Return librdkafka's text for a code, which applications may parse, and the detail."""
    words = prefix + KafkaError(code).str()
    return f"{words}: {detail}" if detail else words
