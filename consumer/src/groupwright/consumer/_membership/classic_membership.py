"""Groupwright's own membership, as the polling thread applies it to a consumer's handle."""

import dataclasses
import functools
import time
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Any

import confluent_kafka.admin  # noqa: F401 - else list_topics imports it within a poll, where a signal handler's exception becomes an ImportError
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer._config.config import ConsumerConfig
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.diagnostics import explain_topic
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._coordinator.inbox import Failed, InboxEvent, Reported
from groupwright.consumer._membership.access import AccessGuard, WakingInbox
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import RebalanceCallback, guard_native_callbacks
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.group_membership import Native
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.librdkafka_stats import complete
from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.offset_tracker import OffsetTracker, check_partitions
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.snapshot import snapshot_of
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol import group_metadata
from groupwright.consumer._protocol.consumer_protocol import read_assignment, subscription_encoder
from groupwright.consumer._protocol.events import (
    Assign,
    Closed,
    PollExceeded,
    Revoke,
    TopicUnavailable,
)
from groupwright.consumer._protocol.membership import PATIENCE, Membership
from groupwright.consumer._protocol.model import (
    GroupMembershipOperation,
    MemberIdentity,
    TopicPartitionKey,
    keys,
)
from groupwright.consumer._protocol.rebalance import Kind
from groupwright.consumer._protocol.subscription import TopicSubscription, parse_subscription
from groupwright.consumer.errors import ConsumerError
from groupwright.core import MembershipSnapshot

_STOP_TIMEOUT = 2.0
_EAGER = (
    "Changes to the current assignment must be made using assign() when rebalance protocol type is EAGER, as this "
    "member's is: its partition.assignment.strategy is not cooperative"
)
_COOPERATIVE = (
    "Local: Erroneous state: this member rebalances cooperatively, so its assignment is changed with "
    "incremental_assign(partitions) and incremental_unassign(partitions)"
)
_FATAL = "Local: Fatal error: another consumer has taken this one's group.instance.id; close this one"
_UNASKED = -1
"""The ticket of a revocation that the membership has not asked for."""
_PATIENCE = 5.0
"""Seconds in which librdkafka connects, apart from its backoff."""


class ClassicMembership:
    """A `GroupMembership` that joins, beats, commits and leaves by itself, and leaves fetching to librdkafka."""

    def __init__(
        self,
        config: ConsumerConfig,
        polling: AccessGuard,
        ahead: PrefetchBuffer,
        interceptors: InterceptorChain,
        log: GroupLog,
    ) -> None:
        """Wire the parts; `start` sets them going."""
        network = config.network
        self._config = config
        self._inbox = inbox = WakingInbox(polling)
        self._guard = polling
        self._prefetch = ahead
        self._offsets = OffsetTracker(by_hand=config.store_by_hand)
        self._applier = AssignmentApplier(
            network.group_id,
            network.client_id,
            config.offset_reset,
            self._offsets,
            ahead,
            log,
            kind=Kind.COOPERATIVE if config.cooperative else Kind.EAGER,
        )
        self.listeners = self._applier.listeners
        self._membership = Membership(
            config.timing,
            subscription_encoder(config.assignors, config.rack, log),
            read_assignment,
            static=network.group_instance_id is not None,
            cooperative=config.cooperative,
            racks=config.rack is not None,
        )
        self._network = Network(network)
        membership = self._membership
        self._recovery = HandleRecovery(
            lambda: membership.coordinator.known,
            self._offsets,
            ahead,
            polling,
            log,
            patience=2 * network.transport["reconnect_backoff_max_ms"] / 1000 + _PATIENCE,
        )
        self._driver = Driver(
            membership,
            self._network,
            config.assignors,
            inbox,
            polling,
            log,
            self._recovery.begin,
            cooperative=config.cooperative,
            session_timeout=config.timing.session_timeout,
        )
        self._committer = Committer(
            config,
            self._offsets,
            ahead,
            self._driver,
            membership,
            polling,
            interceptors,
            self.listeners,
            self._record_error,
        )
        self._identity = MemberIdentity()
        """Who the member was when it was assigned what it has been consuming since."""
        self._resume = False
        self._subscribed = False
        self._departing = False
        """Whether the application has unsubscribed, or an eager member subscribed anew, so that all partitions are revoked."""
        self._closing = self._left = False

    # --- Running ------------------------------------------------------------------------------------

    def start(self) -> Callable[[], None]:
        """Start the membership's thread; return what ends it when the consumer was dropped without `close`."""
        self._driver.start()
        if self._config.auto_commit:
            self._driver.repeat(self._committer.busy.look)
        driver = self._driver  # and nothing that refers to the consumer or to its callbacks
        return lambda: driver.abandon(_STOP_TIMEOUT)

    def stop(self) -> None:
        """End the membership's thread; commits that have not ended fail."""
        self._driver.stop(_STOP_TIMEOUT)
        self._committer.finish()

    @property
    def native_config(self) -> dict[str, Any]:
        """What librdkafka's handle is made with."""
        native = dict(self._config.native)
        if callable(native.get("stats_cb")):
            native["stats_cb"] = self._completing(native["stats_cb"])
        return guard_native_callbacks(native, self._record_error)

    def _completing(self, stats_cb: Callable[[str], object]) -> Callable[[str], object]:
        read_uncommitted = self._config.native.get("isolation.level") == "read_uncommitted"

        def call(text: str) -> object:
            membership = self._membership
            return stats_cb(
                complete(
                    text,
                    membership.state,
                    sum(map(len, membership.owned.values())),
                    self._offsets.all_committed(),
                    self._prefetch.first_offsets(),
                    read_uncommitted=read_uncommitted,
                )
            )

        return call

    @property
    def snapshot(self) -> MembershipSnapshot:
        """The membership at this moment."""
        return snapshot_of(
            self._membership,
            self._network.traffic,
            self._guard,
            self._prefetch,
            self._offsets.begins,
            self._config.timing,
        )

    @property
    def in_callback(self) -> bool:
        """Whether a rebalance callback is running."""
        return self._applier.in_callback

    @property
    def due(self) -> bool:
        """Whether an event or an exception waits to be served."""
        return bool(self._inbox) or bool(self._committer.ended) or self._applier.error is not None

    @property
    def fast_path_until(self) -> float:
        """Monotonic time until which nothing is due, unless an event comes or a callback raises."""
        if self._departs:
            return 0.0
        return min(self._committer.clock.next_due, self._membership.owned_until, self._recovery.next_look)

    def hold(self, seconds: float) -> bool:
        """Wait, if nothing may be delivered: before a revocation that is awaited, and after the session's end."""
        if self._departs:
            self._inbox.wait(seconds)
            return True
        if self._slept_through_session or self.session_expired:
            self._inbox.wait(seconds, but_for_gains=True)
            return True
        return False

    @property
    def session_expired(self) -> bool:
        """Whether the session may be over: the process was stopped, say, and the membership's thread has yet to notice."""
        return time.monotonic() >= self._membership.owned_until

    @property
    def _departs(self) -> bool:
        """Whether all partitions that the group has assigned are about to be revoked, since the application has said so."""
        return self._departing and self._applier.holds_partitions

    @property
    def _slept_through_session(self) -> bool:
        """Whether an assignment waits whose session is over: a process that was stopped, say, wakes.

        Others may own its partitions by now. The membership's thread is about to take it back.
        """
        return self._inbox.next_gains is not None and self._session_over

    @property
    def _session_over(self) -> bool:
        """Whether the coordinator may have expelled this member, even if the membership's thread has yet to notice."""
        return time.monotonic() >= self._membership.session_until

    def take_error(self) -> BaseException | None:
        """Return what a callback has raised, once."""
        return self._applier.take_error()

    def _record_error(self, error: BaseException) -> None:
        self._applier.error = self._applier.error or error
        self._guard.wake()

    # --- The application's wishes -------------------------------------------------------------------

    def subscribe(
        self,
        consumer: Any,
        topics: list[str],
        on_assign: RebalanceCallback | None,
        on_revoke: RebalanceCallback | None,
        on_lost: RebalanceCallback | None,
    ) -> None:
        """Join the group with these topics."""
        self._check_not_fenced("Failed to set subscription")
        selection = _read_topics(topics, self._config)
        handover = self._applier
        handover.on_assign, handover.on_revoke, handover.on_lost = on_assign, on_revoke, on_lost
        if not self._subscribed:
            self._connect(consumer)
        self._subscribed = True
        self._departing = not self._config.cooperative and handover.holds_partitions
        # As librdkafka's: a revocation that this calls for comes before any further message.
        self._driver.call_and_wait(self._membership.subscribe, selection)
        self._guard.wake()

    @staticmethod
    def _connect(consumer: Any) -> None:
        """Have librdkafka connect now, as its own `subscribe` does; by itself it would a second later."""
        with suppress(KafkaException):  # which no time to wait always raises
            Native.list_topics(consumer, timeout=0)

    def enforce_rebalance(self, reason: str) -> None:
        """Have the next poll join the group anew."""
        self._check_not_fenced("Failed to enforce a rebalance")
        if not self._subscribed:
            detail = "enforce_rebalance() needs a group to join anew: call subscribe() first"
            raise ConsumerError(KafkaError._STATE, detail)  # noqa: SLF001 - librdkafka's public code
        self._driver.call(self._membership.enforce_rebalance, reason)

    def unsubscribe(self, _consumer: Any) -> None:
        """Leave the group; the next poll gives the partitions up."""
        self._check_not_fenced("Failed to remove subscription")
        if self._subscribed:
            self._subscribed = False
            self._departing = self._applier.holds_partitions
            self._driver.call_and_wait(self._membership.unsubscribe)
            self._guard.wake()

    def _check_not_fenced(self, words: str) -> None:
        if self._membership.fenced:
            raise ConsumerError(KafkaError._FATAL, f"{words}: {_FATAL}")  # noqa: SLF001 - librdkafka's public code

    def assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Assign by hand; in a callback, choose offsets."""
        if not self._may_change(consumer, "Failed to set assignment", whole=True):
            return
        if self._applier.in_callback:
            self._applier.assign_in_callback(consumer, partitions)
            return
        before = _keys(Native.assignment(consumer))
        self._commit_by_hand(consumer, before)
        partitions = self._committer.resumed(partitions)
        Native.assign(consumer, partitions)
        self._forget(before)
        self._record_manual_assignment(partitions)

    def unassign(self, consumer: Any) -> None:
        """Give up all that was assigned by hand, or in a callback."""
        if self._may_change(consumer, "Failed to remove assignment", whole=True):
            self._unassign(consumer)

    def incremental_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Add to the assignment."""
        if not self._may_change(consumer, _EAGER, whole=False):
            return
        if self._applier.in_callback:
            self._applier.incremental_assign(consumer, partitions)
        else:
            partitions = self._committer.resumed(partitions)
            Native.incremental_assign(consumer, partitions)
            self._record_manual_assignment(partitions)

    def incremental_unassign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Take out of the assignment."""
        if not self._may_change(consumer, _EAGER, whole=False):
            return
        unassigned = _keys(partitions)
        self._commit_by_hand(consumer, unassigned)
        Native.incremental_unassign(consumer, partitions)
        self._forget(unassigned)
        self._applier.note_applied()

    def assignment(self, consumer: Any) -> list[TopicPartition]:
        """Return what is assigned; a partition that was given no offset is at OFFSET_STORED."""
        with self._guard.shared():
            return self._applier.assignment(consumer)

    def pause(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Stop delivering until `resume`, also where the partition is revoked and assigned again."""
        with self._guard.shared():
            self._applier.pause(consumer, partitions)

    def resume(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """Deliver again."""
        with self._guard.shared():
            self._applier.resume(consumer, partitions)

    def paused(self, consumer: Any) -> list[TopicPartition]:
        """Return the assigned partitions that are paused."""
        with self._guard.shared():
            assigned = _keys(Native.assignment(consumer))
        return [TopicPartition(*key) for key in sorted(self._prefetch.paused & assigned)]

    def sought(self, key: TopicPartitionKey) -> int | None:
        """Return where a partition was last sought since it was assigned."""
        return self._offsets.sought(key)

    def seek(self, consumer: Any, partition: TopicPartition) -> None:
        """Go on at another offset."""
        check_partitions([partition])
        key = (partition.topic, partition.partition)
        if key not in _keys(Native.assignment(consumer)):
            # Reading its position would make librdkafka create the partition, and then refuse with another code.
            Native.seek(consumer, partition)
            return
        before = self._committer.positions(consumer, [partition])
        Native.seek(consumer, partition)
        self._offsets.seek(key, partition.offset, before[0])

    def _may_change(self, consumer: Any, words: str, *, whole: bool) -> bool:
        """Check that the assignment may be changed so; where librdkafka means to unassign everything, do that instead.

        From its first assignment on, also after `unsubscribe`, an eager member replaces the whole assignment, and a
        cooperative one changes parts of it (KIP-429).

        Returns:
            Whether the change is still to be made.

        Raises:
            ConsumerError: it may not, with librdkafka's code and words.
        """
        if self._closing or self._membership.fenced:
            self._unassign(consumer)
            return False
        if whole is self._applier.cooperative:
            hint = f"{words}: {_COOPERATIVE}" if whole else words
            raise ConsumerError(KafkaError._STATE, hint)  # noqa: SLF001 - librdkafka's public code
        return True

    def _unassign(self, consumer: Any) -> None:
        before = _keys(Native.assignment(consumer))
        self._commit_by_hand(consumer, before)
        Native.unassign(consumer)
        self._forget(before)
        self._applier.note_applied()

    def _forget(self, keys: set[TopicPartitionKey]) -> None:
        self._offsets.dropped(keys)
        self._prefetch.drop(keys)
        self._applier.forget(keys)

    def _commit_by_hand(self, consumer: Any, unassigned: set[TopicPartitionKey]) -> None:
        """Commit what was consumed of partitions that the application is about to unassign, as librdkafka does."""
        if not self._applier.in_callback:
            self._committer.last_commit(consumer, unassigned, self._config.network.request_timeout)
        elif not self._membership.lost:
            self._commit_last(consumer, unassigned)

    def _record_manual_assignment(self, partitions: list[TopicPartition]) -> None:
        self._offsets.assigned(_keys(partitions), {})
        self._offsets.begin(partitions)
        self._prefetch.begin(partitions)
        if not self._subscribed:
            self._identity = MemberIdentity()  # what is consumed from now on was assigned by no group
            self._driver.call(self._membership.assigned_by_hand)

    # --- Committing ---------------------------------------------------------------------------------

    def commit(
        self,
        consumer: Any,
        message: Message | None,
        offsets: list[TopicPartition] | None,
        *,
        asynchronous: bool,
    ) -> list[TopicPartition] | None:
        """Commit with this member's generation."""
        return self._committer.commit(consumer, message, offsets, asynchronous=asynchronous)

    def await_commits(self, seconds: float) -> None:
        """Wait until commits under way have ended."""
        self._committer.wait(seconds)

    def store_offsets(
        self, _consumer: Any, message: Message | None, offsets: list[TopicPartition] | None
    ) -> None:
        """Store offsets for a later commit."""
        self._committer.store(message, offsets)

    def member_id(self, _consumer: Any) -> str | None:
        """Return the id that the coordinator gave."""
        return self._membership.identity.member_id or None

    def group_metadata(self, _consumer: Any) -> bytes:
        """Return who this member was when it was last assigned anything."""
        network = self._config.network
        return group_metadata.encode(self._identity, network.group_id, network.group_instance_id)

    def set_sasl_credentials(self, consumer: Any, username: str, password: str) -> None:
        """Hand them to librdkafka and to the membership's connections."""
        with self._guard.shared():
            Native.set_sasl_credentials(consumer, username, password)
            self._recovery.credentials = (username, password)
        self._network.set_sasl_credentials(username, password)

    # --- The membership's events --------------------------------------------------------------------

    def serve(self, consumer: Any) -> Message | None:
        """Do what is due before messages are handed out; return an error to hand out instead."""
        self._committer.thread = get_ident()
        self._committer.busy.attend(consumer)
        if self._resume:
            self._resume = False
            self._driver.call(self._membership.resume)
        if self._committer.ended:
            self._committer.finish()  # before the events: on_revoke may rely on what on_commit has said
        message = self._serve_events(consumer) if self._inbox else None
        if message is not None:
            return message
        error = self.take_error()
        if error is not None:
            raise error
        now = time.monotonic()
        if now >= self._committer.clock.next_due:
            self._committer.auto_commit(consumer)
        if now >= self._recovery.next_look:
            self._recovery.check(consumer, lambda: self.native_config)
        return None

    def _serve_events(self, consumer: Any) -> Message | None:
        """Take events until the inbox is empty, or one is a message for the caller."""
        while self._may_take(consumer) and (event := self._inbox.take()) is not None:
            message = self._serve_event(consumer, event)
            if message is not None:
                return message
        return None

    def _may_take(self, consumer: Any) -> bool:
        """Prepare for what comes next, and return whether it may be taken. The process may be stopped meanwhile."""
        coming = self._inbox.next_gains
        if coming is not None and not self._closing:
            self._applier.prefetch_metadata(consumer, coming)
        return not self._slept_through_session

    def _serve_event(self, consumer: Any, event: InboxEvent) -> Message | None:
        match event:
            case Revoke():
                self._revoke(consumer, event)
                return None
            case Assign() if self._closing:
                self._driver.call(self._membership.withdrawn, event.ticket)
            case Assign():
                self._identity = event.identity
                self._applier.assign(consumer, event)
                self._committer.restart()
                self._driver.call(self._membership.applied, event.ticket)
            case PollExceeded():
                self._driver.call(self._membership.resume)
                self._inbox.done(event)
                return _error(KafkaError(KafkaError._MAX_POLL_EXCEEDED, event.message))  # noqa: SLF001 - public code
            case TopicUnavailable():
                self._inbox.done(event)
                return _error(explain_topic(event.topic, event.error), event.topic)
            case Reported():
                self._inbox.done(event)
                return self._report(event)
            case Failed():
                self._inbox.done(event)
                self._fail(event)
            case Closed():
                self._left = True
        self._inbox.done(event)
        return None

    def _report(self, event: Reported) -> Message | None:
        self._applier.failed(event.timeline, event.error.str())
        if self._closing:
            return None
        self._resume = True
        return None if event.repeated else _error(event.error)

    def _fail(self, event: Failed) -> None:
        self._applier.failed(event.timeline, str(event.error))
        if not self._closing:
            self._resume = True
            raise event.error

    def _revoke(self, consumer: Any, event: Revoke) -> None:
        """Call on_revoke, commit what was consumed or stored, and unassign, in librdkafka's order.

        The membership joins or leaves once the commit has ended.
        """
        asked = event.ticket != _UNASKED  # else the membership may have left meanwhile, which loses nothing
        lost = event.lost or (asked and not self._membership.identity.valid) or self._session_over
        if not lost:
            self._identity = event.identity  # a cooperative member's is that of the new generation
        self._applier.revoke(
            consumer,
            dataclasses.replace(event, lost=lost),
            lambda _: self._commit_last(consumer, set(keys(event.partitions))),
        )
        self._departing = self._departs
        self._driver.call(self._membership.applied, event.ticket)
        self._inbox.done(event)

    def _commit_last(self, consumer: Any, unassigned: set[TopicPartitionKey]) -> None:
        self._committer.last_commit(consumer, unassigned, self._config.timing.session_timeout)

    # --- Leaving ------------------------------------------------------------------------------------

    def check_may_leave(self, operation: GroupMembershipOperation) -> None:
        """Leave or stay: both can be done."""

    def leave(self, consumer: Any, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, give the partitions up (callbacks run), leave the group or stay in it; by `timeout` seconds."""
        self._closing = True
        deadline = time.monotonic() + timeout
        self._committer.busy.end(timeout)
        if self._committer.ended:
            self._committer.finish()
        if not self._subscribed:
            # Partitions assigned by hand: nothing revokes them. The membership waits for the commit before it ends.
            self._committer.last_commit(consumer, _keys(Native.assignment(consumer)), timeout)
        patience = min(PATIENCE, timeout / 2)
        self._driver.call(functools.partial(self._membership.close, operation=operation, patience=patience))
        while True:
            self._serve_events(consumer)
            remaining = deadline - time.monotonic()
            if self._left or remaining <= 0:
                break
            self._inbox.wait(remaining)
        self._revoke_the_rest(consumer)

    def _revoke_the_rest(self, consumer: Any) -> None:
        """Call on_revoke where the time was over before the membership has asked for that; commits are not awaited then."""
        given = self._applier.given
        if given:
            lost = self._session_over or self._membership.lost
            self._revoke(consumer, Revoke(_UNASKED, given, lost, self._identity))


def _error(error: KafkaError, topic: str | None = None) -> Message:
    """Return an error as librdkafka hands it out: a message whose value is the error's text."""
    return new_message(topic=topic, partition=0, value=error.str().encode(), error=error)


def _keys(partitions: list[TopicPartition]) -> set[TopicPartitionKey]:
    return {(p.topic, p.partition) for p in partitions}


def _read_topics(topics: list[str], config: ConsumerConfig) -> TopicSubscription:
    """Read a subscription's topics: names, and regular expressions, which begin with ``^``."""
    try:
        return parse_subscription(topics, config.ignored_topics)
    except ValueError as error:
        words = f"Failed to set subscription: Local: Invalid argument or configuration: {error}"
        raise ConsumerError(KafkaError._INVALID_ARG, words) from error  # noqa: SLF001 - librdkafka's public code
