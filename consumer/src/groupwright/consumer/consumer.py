"""`Consumer`: confluent-kafka's consumer, as a member that chooses its own assignors."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Sequence
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, Message, TopicPartition

from groupwright.consumer._config.config import read_config
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.fork_safety import leave_to_parent
from groupwright.consumer._membership import interceptor_chain
from groupwright.consumer._membership.access import AccessGuard, between_polls, shared
from groupwright.consumer._membership.callbacks import (
    RebalanceCallback,
    check_callbacks,
    check_topics,
    merge_config,
    read_async,
)
from groupwright.consumer._membership.collection_hook import CollectionHook
from groupwright.consumer._membership.handle import Native
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.observable import Observable
from groupwright.consumer._membership.offset_tracker import check_partitions
from groupwright.consumer._membership.polling import Polling
from groupwright.consumer._membership.prefetch import BATCH_SIZE, PrefetchBuffer
from groupwright.consumer._protocol.model import GroupMembershipOperation
from groupwright.consumer.errors import ConsumerError
from groupwright.core.locking import call_locked

_CLOSE_TIMEOUT = 10.0
"""Seconds for the last commit and for leaving; also to wait for another thread's call, and for librdkafka."""

_HANDLE_CLOSED = "Handle has been closed"
"""confluent-kafka's error of the methods that its consumer has in common with its producer."""

_COMMITTED_TIMEOUT = 1.0
"""Longest time in seconds for which `committed` waits for commits in flight."""


class Consumer(Observable, Polling, confluent_kafka.Consumer):
    """A `confluent_kafka.Consumer` whose partitions are assigned by the assignors that you choose.

    It takes confluent-kafka's configuration, and has its methods and callbacks; librdkafka fetches the
    messages. The membership in the group (join, sync, heartbeats, commits, leave) is Groupwright's own, so
    ``partition.assignment.strategy`` may contain `Assignor` objects of your own beside the names of known
    assignors, in order of preference: the coordinator chooses the first that all members support. With
    ``group.protocol=consumer`` (KIP-848) the broker assigns, and the membership is librdkafka's.

    Rebalance callbacks run inside `poll`, `consume` and `close`, on the caller's thread. Their exceptions
    propagate from that call, after the rebalance has been applied.

    One thread at a time may poll and consume; for a second one, `ConcurrentAccessError` is raised. Any thread
    may call the other methods meanwhile.

    Raises:
        ConfigurationError: A setting cannot be applied; the message says which, and what to write.
    """

    _keys_of_bases: tuple[str, ...] = ()
    """Configuration keys that are passed on to another base class."""
    _guard = AccessGuard.of_a_closed_consumer()
    """Until ``__init__`` has succeeded, the consumer counts as closed, as confluent-kafka's does."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Look up `super().poll` and `super().consume`.

        Raises:
            TypeError: The subclass has a method or attribute that this class uses itself.
        """
        super().__init_subclass__(**kwargs)
        for name in _OWN_NAMES.intersection(vars(cls)):
            raise TypeError(f"{cls.__qualname__}.{name} would replace what Consumer uses itself: rename it")
        cls._native_poll = super().poll
        cls._native_consume = super().consume

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a consumer from a dict, keywords, or both; it joins no group before `subscribe`.

        Raises:
            RuntimeError: It is called again before `close`.
        """
        if not self._guard.closed:  # before the first call, and after `close`, it is
            raise RuntimeError("Consumer already initialized")
        config = merge_config(args, kwargs)
        chain = config.pop(interceptor_chain.KEY, ())
        of_bases = {key: config.pop(key) for key in self._keys_of_bases if key in config}
        self._consumer_config = read_config(config)
        network = self._consumer_config.network
        logger: logging.Logger | None = config.get("logger")
        log = GroupLog(
            logger or logging.getLogger("groupwright.consumer"), network.client_id, network.group_id
        )
        self._group_log = log
        self._interceptors = InterceptorChain(chain, log)
        self._guard = AccessGuard()
        self._close_lock = threading.RLock()  # a signal handler may close
        self._subscribed: list[str] = []
        # Prefetching must be off in two cases: librdkafka's own membership commits what librdkafka has
        # returned, and another base class may override poll.
        own_poll = type(self)._native_poll is Native.poll  # noqa: SLF001 - the class's own
        prefetches = own_poll and not self._consumer_config.broker_assigned
        self._prefetch = PrefetchBuffer(BATCH_SIZE if prefetches else 0)
        self._waiting = self._prefetch.waiting
        if self._consumer_config.broker_assigned:
            from groupwright.consumer._membership.librdkafka_membership import LibrdkafkaMembership

            native = LibrdkafkaMembership(self._consumer_config, self._guard, self._interceptors, log)
            self._member, self._on_native_error = native, native.on_native_error
        else:
            # Imported when it is needed, as the other is.
            from groupwright.consumer._membership.wiring import classic_membership

            self._member = classic_membership(
                self._consumer_config, self._guard, self._prefetch, self._interceptors, log
            )
        leave_to_parent(self)
        rejected: confluent_kafka.KafkaException | None = None
        try:
            super().__init__({**self._member.native_config, **of_bases})
        except BaseException as error:
            self._member.stop()
            del self._guard  # the class's is that of a closed consumer
            if not isinstance(error, (confluent_kafka.KafkaException, SystemError)):
                raise
            from groupwright.consumer.configuration import rejection  # for errors alone

            rejected = rejection(error, config, network.security.tokens)
        if rejected is not None:
            raise rejected  # outside of `except`: librdkafka's own error, which may show a key, is no context
        # The function does not refer to this object, so that one dropped without close() can be collected.
        self._collection_hook = CollectionHook(self._member.start(self))

    # --- Subscribing --------------------------------------------------------------------------------

    @between_polls
    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Join the group with these topics, which replace the former ones; so do the callbacks.

        An eager member rebalances even if the topics are the same.

        Args:
            topics: Names of topics, which need not exist yet, and regular expressions, which begin with
                ``^``.
            on_assign: Called with (consumer, assigned partitions). It may call `assign` with offsets of its
                own choice; otherwise each partition starts at its committed offset.
            on_revoke: Called with the revoked partitions while they are still owned: the place to commit.
            on_lost: Called with partitions that other members may own already; by default `on_revoke` is.

        Raises:
            TypeError: `topics` is not a list of strings, or a callback is not callable.
            ConsumerError: There is no topic, a name is empty or given twice, or a regular expression is
                invalid (``_INVALID_ARG``); another consumer has taken this consumer's ``group.instance.id``
                (``_FATAL``).
        """
        check_topics(topics)
        check_callbacks(on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        self._member.subscribe(self, topics, on_assign, on_revoke, on_lost)
        self._subscribed = list(topics)

    @between_polls
    def unsubscribe(self) -> None:
        """Leave the group; the next poll revokes the partitions and calls the callbacks.

        As in confluent-kafka, partitions that were assigned by hand stay assigned.
        """
        self._member.unsubscribe(self)
        self._subscribed = []

    def subscription(self) -> list[str]:
        """Return the topics and regular expressions of the subscription, as given to `subscribe`."""
        self._guard.check_usable()
        return list(self._subscribed)

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Have the next poll rejoin the group (KIP-568): for assignments that depend on more than the topics.

        The coordinator rebalances the group if this member leads it, or joins with other data than before:
        other topics, or other `user_data` of its assignor. Otherwise it confirms the current generation.

        Args:
            reason: Reason, which the broker logs (KIP-800) and the `Rebalance` for listeners contains.

        Raises:
            ConsumerError: There is no subscription, or the broker decides (``group.protocol=consumer``).
        """
        self._guard.check_usable()
        self._member.enforce_rebalance(reason or "the application enforced a rebalance")

    # --- Polling ------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next message, or None after `timeout` seconds (-1: wait forever).

        Rebalances are applied here. As in confluent-kafka, a message may be an error: test its `error()`.
        Errors of the coordinator and of unavailable topics are returned in this way.

        Raises:
            GroupError: This member leads the group, and its assignor failed.
            ConcurrentAccessError: Another thread is inside `poll` or `consume`.
            WakeupError: `wakeup` was called.
            RuntimeError: The consumer is closed, perhaps by another thread, or the caller is a rebalance
                callback.
        """
        guard = self._guard
        guard.last = now = monotonic()
        # Nearly every call returns here, without a lock: see `access`. A bytecode costs 10 to 50 ns a poll.
        if now < guard.fast_path_until and self._waiting and not guard.inside:  # an IndexError costs 500 ns
            try:
                return self._waiting.popleft()
            except IndexError:  # another thread has dropped the messages meanwhile
                pass
        return self._poll(math.inf if timeout < 0 else now + float(timeout))

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to `num_messages` messages, fewer after `timeout` seconds (-1: wait forever).

        It returns early with the messages that it has if a rebalance is due, which the next call applies, if
        the group has an error, which the next call returns alone, as a list of one message, or if a callback
        has raised an exception, which the next call raises.

        Raises:
            GroupError: This member leads the group, and its assignor failed.
            ConcurrentAccessError: Another thread is inside `poll` or `consume`.
            WakeupError: `wakeup` was called.
            RuntimeError: The consumer is closed, perhaps by another thread, or the caller is a rebalance
                callback.
        """
        self._guard.last = now = monotonic()
        return self._consume(num_messages, math.inf if timeout < 0 else now + float(timeout))

    def wakeup(self) -> None:
        """Have the current `poll` or `consume`, or else the next one, raise `WakeupError`, once.

        Any thread and any signal handler may call it. A poll ends within 0.2 s; `consume` first returns the
        messages that it has. Several calls before a poll count as one.
        """
        self._guard.request_wakeup()

    def measure_work(self, working: Callable[[], Sequence[Message]]) -> None:
        """Have `ProcessingTime` count the time of workers, for an application that hands messages to some.

        `groupwright.consumer.parallel` does so by itself. Otherwise it counts the time between two polls.

        Args:
            working: Returns the messages that are being worked on at this moment. The network thread calls it
                some fifty times a second, so it must be quick.
        """
        self._member.measure_work(working)

    # --- Committing ---------------------------------------------------------------------------------

    def commit(  # type: ignore[override] # the stub's overloads; the C method takes these three
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 - confluent-kafka's signature
        **others: bool,
    ) -> list[TopicPartition] | None:
        """Commit a message's offset + 1, the given offsets, or all that was consumed (or stored) so far.

        The commit carries this member's generation, so the broker rejects it once a rebalance has made it
        stale. Any thread may commit; it does not wait for a poll.

        Args:
            message: Commit the offset after this message.
            offsets: Commit these offsets.
            asynchronous: Whether to return at once; ``on_commit`` is called in a later poll, synchronous
                commit or close.
            others: ``async``, the former name of `asynchronous`.

        Returns:
            None if asynchronous. Otherwise the given partitions, or all assigned ones, with their committed
            offsets.

        Raises:
            CommitError: A synchronous commit failed, or there was nothing to commit.
            TypeError: `message` is not a message, or `offsets` is not a list of partitions.
            ValueError: Both `message` and `offsets` are given.
        """
        self._guard.check_usable()
        if others:
            asynchronous = read_async(asynchronous, others)
        return self._member.commit(self, message, offsets, asynchronous=asynchronous)

    def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> None:
        """Store offsets for a later commit, from any thread; needs ``enable.auto.offset.store=false``.

        Raises:
            CommitError: librdkafka stores the offsets, or none of the partitions is assigned.
            ValueError: Both `message` and `offsets` are given, or neither.
        """
        self._guard.check_usable()
        self._member.store_offsets(self, message, offsets)

    # --- Assigning by hand --------------------------------------------------------------------------

    @between_polls
    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions by hand; in `on_assign`, choose the offsets of the assigned partitions.

        Raises:
            ConsumerError: This member rebalances cooperatively (``_STATE``).
        """
        check_partitions(partitions)
        self._member.assign(self, partitions)

    @between_polls
    def unassign(self) -> None:
        """Remove all partitions from the assignment.

        Raises:
            ConsumerError: This member rebalances cooperatively (``_STATE``).
        """
        self._member.unassign(self)

    @between_polls
    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Add partitions to the assignment.

        Raises:
            ConsumerError: This member rebalances eagerly (``_STATE``).
        """
        check_partitions(partitions)
        self._member.incremental_assign(self, partitions)

    @between_polls
    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Remove partitions from the assignment.

        Raises:
            ConsumerError: This member rebalances eagerly (``_STATE``).
        """
        check_partitions(partitions)
        self._member.incremental_unassign(self, partitions)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Return no messages of these partitions until `resume`, also after a reassignment."""
        self._guard.check_usable()
        check_partitions(partitions)
        self._member.pause(self, partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Return messages of these partitions again."""
        self._guard.check_usable()
        check_partitions(partitions)
        self._member.resume(self, partitions)

    def paused(self) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        self._guard.check_usable()
        return self._member.paused(self)

    # --- librdkafka's own ---------------------------------------------------------------------------

    if hasattr(confluent_kafka.Consumer, "cluster_id"):  # confluent-kafka 2.16 or later
        cluster_id = shared(confluent_kafka.Consumer.cluster_id, _HANDLE_CLOSED)
    _native_committed = shared(Native.committed)
    get_watermark_offsets = shared(Native.get_watermark_offsets)
    list_topics = shared(Native.list_topics, _HANDLE_CLOSED)
    offsets_for_times = shared(Native.offsets_for_times)

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions with the offsets they were assigned with, or OFFSET_STORED."""
        self._guard.check_usable()
        return self._member.assignment(self)

    def committed(self, partitions: list[TopicPartition], timeout: float = -1) -> list[TopicPartition]:
        """Return committed offsets, those of earlier asynchronous commits included.

        confluent-kafka sends a commit and this request over one connection, in order. Here they use two
        connections, so this method first waits for commits in flight: for half of `timeout`, but at most 1 s.
        """
        if not self._guard.closed:
            self._member.await_commits(
                _COMMITTED_TIMEOUT if timeout < 0 else min(_COMMITTED_TIMEOUT, timeout / 2)
            )
        return self._native_committed(partitions, timeout)

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the offset after the last returned message of each partition."""
        self._guard.check_usable()
        check_partitions(partitions)
        found = self._prefetch.positions_of(self, partitions, self._guard)
        self._member.on_position_read(partitions)
        return found

    @between_polls
    def seek(self, partition: TopicPartition) -> None:
        """Continue at another offset; the partition must be assigned."""
        self._member.seek(self, partition)
        self._prefetch.drop([(partition.topic, partition.partition)])
        self._prefetch.set_start_offsets([partition])

    @between_polls
    def seek_to_beginning(self, partitions: list[TopicPartition] | None = None) -> None:
        """Continue at the first offset of these partitions; by default, of all that are assigned."""
        self._seek_all(partitions, OFFSET_BEGINNING)

    @between_polls
    def seek_to_end(self, partitions: list[TopicPartition] | None = None) -> None:
        """Continue after the last offset of these partitions; by default, of all that are assigned."""
        self._seek_all(partitions, OFFSET_END)

    def _seek_all(self, partitions: list[TopicPartition] | None, offset: int) -> None:
        wanted = self.assignment() if partitions is None else partitions
        check_partitions(wanted)
        for partition in wanted:
            self.seek(TopicPartition(partition.topic, partition.partition, offset))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of offsets between an assigned partition's position and its end (KIP-695).

        No request is sent: the end is the high watermark of the last fetch. (With
        ``isolation.level=read_committed`` Java takes the last stable offset, which librdkafka does not
        report.)

        Returns:
            The lag; None until something was fetched, or if the partition's first offset is not known yet.

        Raises:
            ConsumerError: The partition is not assigned.
        """
        self._guard.check_usable()
        check_partitions([partition])
        with self._guard.shared():
            assigned = Native.assignment(self)
            _low, end = Native.get_watermark_offsets(self, partition, cached=True)
        start = next((each.offset for each in assigned if each == partition), None)
        if start is None:
            name = f"{partition.topic} [{partition.partition}]"
            detail = f"current_lag() needs an assigned partition, which {name} is not: assign it first"
            raise ConsumerError(KafkaError._STATE, detail)  # noqa: SLF001 - librdkafka's public code
        position = self.position([partition])[0].offset
        if position < 0:
            sought = self._member.sought((partition.topic, partition.partition))
            position = start if sought is None else sought
        return max(0, end - position) if end >= 0 and position >= 0 else None

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Authenticate new connections with these credentials."""
        self._guard.check_usable(_HANDLE_CLOSED)
        self._member.set_sasl_credentials(self, username, password)

    # --- The member's identity ----------------------------------------------------------------------

    def memberid(self) -> str | None:  # type: ignore[override] # the stub omits that it may be None
        """Return the member id that the coordinator gave, or None outside a group."""
        self._guard.check_usable()
        return self._member.member_id(self)

    def consumer_group_metadata(self) -> bytes:
        """Return the metadata for `Producer.send_offsets_to_transaction`, so that the broker fences a zombie.

        It contains the member id and the generation of the last assignment, also after that was lost: the
        broker then rejects the offsets. (Without a generation, it would accept them.)
        """
        self._guard.check_usable()
        self._commits_by_producer = True
        return self._member.group_metadata(self)

    # --- Closing ------------------------------------------------------------------------------------

    def close(
        self,
        *,
        timeout: float | None = None,
        leave: GroupMembershipOperation = GroupMembershipOperation.DEFAULT,
    ) -> None:
        """Commit if ``enable.auto.commit``, revoke the partitions (callbacks run), leave the group, and stop.

        Any thread may close. The poll of another thread ends at once: it raises RuntimeError, or returns the
        messages that it has. Then everything, callbacks included, runs on the closing thread. A second call
        does nothing, and neither does a call in a forked child: the member belongs to the parent.

        If callbacks raise, the consumer is closed nevertheless. `close` then raises the first exception, and
        logs the others at ERROR.

        Args:
            timeout: Seconds to wait for the last commit and for leaving, if the coordinator does not respond;
                10 by default. Time in callbacks does not count: `on_revoke`, and `on_commit` of each
                asynchronous commit, are called however short it is, and the member leaves afterwards. If it
                could not leave, a warning says until when its partitions have no owner.
            leave: Whether to leave the group (KIP-1092). By default a static member stays, and a dynamic one
                leaves.

        Raises:
            ConsumerError: ``group.protocol=consumer``, and librdkafka does not support `leave`; the consumer
                stays open.
            RuntimeError: The caller is a callback, or another thread has been inside one for 10 s; the
                consumer stays open.
        """
        if self._guard.closed or self._guard.forked:
            self._guard.closed = True
            return
        if self._guard.ident == get_ident():
            raise RuntimeError(
                "close() cannot be called by a thread that is inside another method of the consumer, such as "
                "a callback or a signal handler that interrupts poll(): return from it first. A handler may "
                "set a flag, or raise an exception"
            )
        if not isinstance(leave, GroupMembershipOperation):
            raise TypeError(f"close(leave=...) takes a GroupMembershipOperation, not {leave!r}")
        self._member.check_may_leave(leave)
        seconds = _CLOSE_TIMEOUT if timeout is None else float(timeout)
        call_locked(self._close_lock, self._close_once, seconds, leave)
        error = self._member.failures.take()
        self._member.failures.log_all()
        if error is not None:
            raise error

    def _close_once(self, timeout: float, leave: GroupMembershipOperation) -> None:
        if self._guard.closed:
            return
        me = get_ident()
        try:
            self._guard.end(me, _CLOSE_TIMEOUT)
            if not self._guard.closed:  # by a signal handler
                self._close(timeout, leave)
        except BaseException:
            if self._guard.closed:
                self._member.failures.log_all()
            raise
        finally:
            try:
                if self._guard.inside["thread"] == me:
                    del self._guard.inside["thread"]
            except KeyError:
                pass

    def _close(self, timeout: float, leave: GroupMembershipOperation) -> None:
        try:
            self._member.leave(self, timeout, leave)
        finally:
            self._collection_hook.detach()
            try:
                self._member.stop()
            finally:
                try:
                    self._close_handle()
                finally:
                    self._interceptors.close()

    def _close_handle(self) -> None:
        """Close librdkafka's handle once no other thread uses it: confluent-kafka before 2.16 would crash."""
        with self._guard.exclusive(_CLOSE_TIMEOUT) as alone:
            try:
                if not alone:
                    self._group_log.warning(
                        "another thread is still inside a call of this consumer %.0f s after its close; "
                        "librdkafka's handle is freed once that call has returned",
                        _CLOSE_TIMEOUT,
                    )
                elif not self._member.close_handle(super().close, _CLOSE_TIMEOUT):
                    self._group_log.warning(
                        "librdkafka has not closed within %g s, and is left to itself (see its issues 4362 "
                        "and 4519). The member has left its group, and its commits have ended",
                        _CLOSE_TIMEOUT,
                    )
            finally:
                self._guard.closed = True

    def __enter__(self) -> Self:
        """Return the consumer itself."""
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; the C method of this name would call the C `close`, and skip the membership."""
        self.close()


_OWN_NAMES = frozenset(
    name for part in (Consumer, Polling) for name in vars(part) if name[0] == "_" != name[1]
) - {"_keys_of_bases"}
"""Names that a subclass must not use for its own methods and attributes."""
