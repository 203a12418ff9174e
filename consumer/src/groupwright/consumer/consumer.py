"""`Consumer`: confluent-kafka's consumer, as a member that chooses its own assignors."""

import dataclasses
import functools
import logging
import math
import os
import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer import group_metadata
from groupwright.consumer.commits import NO_ANSWER, CommitResult, PendingCommit
from groupwright.consumer.config import ConsumerConfig, read_config
from groupwright.consumer.driver import Driver, PollClock
from groupwright.consumer.errors import CommitError, ConsumerError, FencedInstanceError
from groupwright.consumer.events import Assign, Closed, Committed, Event, Failed, Inbox, PollExceeded, Revoke
from groupwright.consumer.handover import Callback, Handover, HeldRevoke
from groupwright.consumer.log import GroupLog
from groupwright.consumer.membership import Membership
from groupwright.consumer.network import Network
from groupwright.consumer.offsets import OffsetTracker, from_message, from_partitions, to_partitions
from groupwright.consumer.protocol import ErrorCode, Identity, Offset, Offsets, TopicPartitionKey
from groupwright.consumer.rebalance import Listener
from groupwright.consumer.subscription import read_assignment, subscription_encoder

_SLICE = 0.05
"""Seconds of one native poll: how late, at most, a rebalance reaches a caller that waits."""

_CLOSE_TIMEOUT = 10.0
_STOP_TIMEOUT = 2.0

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def _checked(
    method: Callable[Concatenate[Any, _Arguments], _Result],
) -> Callable[Concatenate[Any, _Arguments], _Result]:
    """Return a method of librdkafka's handle that is refused where it would fail, or hang, natively."""

    @functools.wraps(method)
    def checked(consumer: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        consumer._check_usable()  # noqa: SLF001 - the class's own
        return method(consumer, *args, **kwargs)

    return checked


class Consumer(confluent_kafka.Consumer):
    """A `confluent_kafka.Consumer` whose partitions are assigned by the assignors that you choose.

    It takes confluent-kafka's configuration and has its methods and callbacks; librdkafka fetches, as ever. Its
    membership in the group (join, sync, heartbeats, commits, leave) is Groupwright's own, so that
    ``partition.assignment.strategy`` may hold, besides the names of known assignors, `Assignor` objects of your
    own, in order of preference: the coordinator chooses the first that all members have.

    Rebalance callbacks run inside `poll`, `consume` and `close`, on the caller's thread. What they raise leaves that
    call, after the rebalance has been dealt with.

    Raises:
        ConfigurationError: a setting cannot be honoured; the message says which, and what to write.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create a consumer from a dict, from keywords, or from both; nothing is joined before `subscribe`."""
        config = _merge(args, kwargs)
        self._config: ConsumerConfig = read_config(config)
        network = self._config.network
        logger: logging.Logger | None = config.get("logger")
        log = GroupLog(
            logger or logging.getLogger("groupwright.consumer"),
            network.client_id,
            network.group_id,
        )
        self._offsets = OffsetTracker(by_hand=self._config.store_by_hand)
        self._handover = Handover(
            network.group_id, network.client_id, self._config.offset_reset, self._offsets, log
        )
        super().__init__(self._handover.guard_callbacks(self._config.native))
        self._pid = os.getpid()
        self._inbox = Inbox()
        self._poll_clock = PollClock()
        self._membership = Membership(
            self._config.timing,
            subscription_encoder(self._config.assignors, self._config.rack, log),
            read_assignment,
            static=network.group_instance_id is not None,
        )
        self._driver = Driver(
            self._membership, Network(network), self._config.assignors, self._inbox, self._poll_clock, log
        )
        self._identity = Identity()
        """Who the member was when it was assigned what it has been consuming since."""
        self._held: HeldRevoke | None = None
        self._fatal: ConsumerError | None = None
        self._resume = False
        self._subscribed = False
        self._closing = self._left = self._closed = False
        self._quiet_until = 0.0
        """Until then nothing is due, unless an event comes or a callback raises."""
        self._next_auto_commit = time.monotonic() + self._config.auto_commit_interval
        # The driver knows nothing of this object, so that one dropped without close() can be collected.
        self._finalizer = weakref.finalize(self, self._driver.abandon, _STOP_TIMEOUT)
        self._driver.start()

    # --- Subscribing --------------------------------------------------------------------------------

    def subscribe(
        self,
        topics: list[str],
        on_assign: Callback | None = None,
        on_revoke: Callback | None = None,
        on_lost: Callback | None = None,
    ) -> None:
        """Join the group with these topics; they replace earlier ones, and the callbacks earlier ones too.

        Args:
            topics: names of topics. One that does not exist yet is no error.
            on_assign: called with (consumer, partitions) that were gained. It may call `assign` with offsets of
                its own choice; otherwise each partition starts at its committed offset.
            on_revoke: called with the partitions to be given up, while they are still owned: the place to
                commit.
            on_lost: called with partitions that others may own already; without it, `on_revoke` is.

        Raises:
            TypeError: `topics` is not a list of strings, or a callback is no function.
            ConsumerError: a topic is a regular expression, which is not served yet.
        """
        self._check_usable()
        wanted = _check_topics(topics)
        _check_callbacks(on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        handover = self._handover
        handover.on_assign, handover.on_revoke, handover.on_lost = on_assign, on_revoke, on_lost
        if wanted:
            self._subscribed = True
            self._driver.call(self._membership.subscribe, wanted)
        else:
            self.unsubscribe()

    def unsubscribe(self) -> None:
        """Leave the group; the next poll gives the partitions up, callbacks included.

        As with confluent-kafka, partitions that were assigned by hand stay.
        """
        self._check_usable()
        if self._subscribed:
            self._subscribed = False
            self._driver.call(self._membership.unsubscribe)

    def add_listener(self, listener: Listener) -> None:
        """Tell `listener` of every rebalance, on the thread that polls."""
        self._handover.listeners.append(listener)

    # --- Polling ------------------------------------------------------------------------------------

    def poll(self, timeout: float = -1) -> Message | None:
        """Return the next message or None after `timeout` seconds (-1: wait for ever).

        Rebalances are dealt with here. As with confluent-kafka, a message may be an error: test its `error()`.

        Raises:
            GroupError: the coordinator refuses this member, or its assignor failed.
            RuntimeError: the consumer is closed, or this is called from a rebalance callback.
        """
        now = self._poll_clock.last = time.monotonic()
        if (
            now < self._quiet_until
            and not self._inbox.events
            and self._handover.error is None
            and os.getpid() == self._pid
        ):
            # What nearly every call finds; each further step here would be felt at 200,000 messages a second.
            short = 0 <= timeout <= _SLICE
            message = super().poll(timeout if short else _SLICE)
            if short or message is not None:
                return message
        return self._poll(math.inf if timeout < 0 else now + timeout)

    def _poll(self, deadline: float) -> Message | None:
        self._check_may_poll()
        while True:
            error_message = self._serve()
            if error_message is not None:
                return error_message
            remaining = deadline - time.monotonic()
            if self._held is not None:
                self._held.wait(min(_SLICE, remaining))
            else:
                message = super().poll(max(0.0, min(_SLICE, remaining)))
                if message is not None:
                    return message
            if remaining <= _SLICE:
                return None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Return up to `num_messages` messages, fewer after `timeout` seconds (-1: wait for ever).

        It returns early, with what it has, when a rebalance waits: the next call deals with that.

        Raises:
            GroupError: the coordinator refuses this member, or its assignor failed.
            RuntimeError: the consumer is closed, or this is called from a rebalance callback.
        """
        self._check_may_poll()
        deadline = _deadline(timeout)
        messages: list[Message] = []
        while True:
            # What is due waits until the messages in hand have been returned: their partitions may be given up by it,
            # and what it raises would lose them.
            if not messages:
                error_message = self._serve()
                if error_message is not None:
                    return [error_message]
            elif self._inbox or self._handover.error is not None:
                return messages
            self._poll_clock.last = time.monotonic()
            remaining = deadline - time.monotonic()
            if self._held is not None:
                self._held.wait(min(_SLICE, remaining))
            else:
                wanted = num_messages - len(messages)
                messages += super().consume(wanted, max(0.0, min(_SLICE, remaining)))
            if len(messages) >= num_messages or remaining <= _SLICE:
                return messages

    # --- Committing ---------------------------------------------------------------------------------

    def commit(  # type: ignore[override] # the stub's overloads; the C method takes these three, in this order
        self,
        message: Message | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,  # noqa: FBT001, FBT002 - confluent-kafka's signature
    ) -> list[TopicPartition] | None:
        """Commit a message's offset + 1, the given offsets, or what was consumed (or stored) so far.

        The commit carries this member's generation: one that was overtaken by a rebalance is refused, not stored.

        Returns:
            None if asynchronous (the ``on_commit`` of the configuration hears of it in a later poll), else the
            offsets that were committed.

        Raises:
            CommitError: a synchronous commit failed, or there was nothing to commit.
            ValueError: both `message` and `offsets` are given.
        """
        self._check_usable()
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        if message is not None:
            wanted = from_message(message)
        elif offsets is not None:
            wanted = from_partitions(offsets)
        else:
            wanted = self._offsets.pending(self._position)
        if not wanted:
            if asynchronous:
                return None
            raise CommitError(KafkaError._NO_OFFSET, "there is no offset to commit")  # noqa: SLF001 - public code
        timeout = self._config.network.request_timeout
        if asynchronous:
            self._commit(wanted, timeout, repeat=False)
            return None
        # Its result is for the caller, and not for on_commit.
        result = self._commit(wanted, timeout, repeat=True, report=False).wait()
        error = self._note_commit(wanted, result)
        if error is not None:
            raise error
        return to_partitions(wanted)

    def store_offsets(
        self, message: Message | None = None, offsets: list[TopicPartition] | None = None
    ) -> None:
        """Store offsets for a later commit; needs ``enable.auto.offset.store=false``."""
        self._check_usable()
        if message is not None:
            super().store_offsets(message=message)
            self._offsets.store(from_message(message))
        elif offsets is not None:
            super().store_offsets(offsets=offsets)
            assigned = self._assigned()
            self._offsets.store({k: v for k, v in from_partitions(offsets).items() if k in assigned})
        else:
            super().store_offsets()

    # --- Assigning by hand --------------------------------------------------------------------------

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Assign partitions by hand; in `on_assign`, choose the offsets of those that were gained."""
        self._check_usable()
        if self._handover.in_callback:
            self._handover.assign_in_callback(self, partitions)
        else:
            assigned = self._assigned()
            self._commit_by_hand()
            super().assign(partitions)
            self._offsets.dropped(assigned)
            self._note_own_choice()

    def unassign(self) -> None:
        """Give up all partitions assigned by hand, or in a callback."""
        self._check_usable()
        assigned = self._assigned()
        self._commit_by_hand()
        super().unassign()
        self._offsets.dropped(assigned)
        self._handover.note_applied()

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Add partitions to the assignment."""
        self._check_usable()
        if self._handover.in_callback:
            self._handover.incremental_assign(self, partitions)
        else:
            super().incremental_assign(partitions)
            self._note_own_choice()

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Take partitions out of the assignment."""
        self._check_usable()
        self._commit_by_hand()
        super().incremental_unassign(partitions)
        self._offsets.dropped((p.topic, p.partition) for p in partitions)
        self._handover.note_applied()

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Stop delivering these partitions until `resume`, or until they are given up."""
        self._check_usable()
        self._handover.pause(self, partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Deliver these partitions again."""
        self._check_usable()
        self._handover.resume(self, partitions)

    def _commit_by_hand(self) -> None:
        """Do what librdkafka does before partitions are given up by hand: commit what was consumed of them."""
        if self._config.auto_commit and not self._handover.in_callback:
            self._auto_commit(time.monotonic())

    def _note_own_choice(self) -> None:
        if not self._subscribed:
            self._identity = Identity()  # what is consumed from now on was assigned by no group

    # --- librdkafka's own ---------------------------------------------------------------------------

    assignment = _checked(confluent_kafka.Consumer.assignment)
    cluster_id = _checked(confluent_kafka.Consumer.cluster_id)
    committed = _checked(confluent_kafka.Consumer.committed)
    get_watermark_offsets = _checked(confluent_kafka.Consumer.get_watermark_offsets)
    list_topics = _checked(confluent_kafka.Consumer.list_topics)
    offsets_for_times = _checked(confluent_kafka.Consumer.offsets_for_times)
    position = _checked(confluent_kafka.Consumer.position)
    seek = _checked(confluent_kafka.Consumer.seek)
    set_sasl_credentials = _checked(confluent_kafka.Consumer.set_sasl_credentials)

    # --- Who it is ----------------------------------------------------------------------------------

    def memberid(self) -> str | None:  # type: ignore[override] # the stub omits that it may be None
        """Return the member id that the coordinator gave, or None outside a group."""
        self._check_usable()
        return self._membership.identity.member_id or None

    def consumer_group_metadata(self) -> bytes:
        """Return what `Producer.send_offsets_to_transaction` wants, so that it fences a zombie.

        It holds the member id and the generation of the last assignment, also after that was lost: the broker then
        refuses the offsets. (Without any, it would take them.)
        """
        self._check_usable()
        network = self._config.network
        return group_metadata.encode(self._identity, network.group_id, network.group_instance_id)

    @property
    def group_id(self) -> str:
        """The group, ``group.id``."""
        return self._config.network.group_id

    @property
    def client_id(self) -> str:
        """The client, ``client.id``."""
        return self._config.network.client_id

    @property
    def poll_age(self) -> float:
        """Seconds since the application was last inside `poll` or `consume`; any thread may ask."""
        return time.monotonic() - self._poll_clock.last

    # --- Closing ------------------------------------------------------------------------------------

    def close(self) -> None:
        """Commit if ``enable.auto.commit``, give the partitions up (callbacks run), leave the group, stop.

        It takes 10 s at most if the coordinator does not answer. A second call does nothing, and neither does one in
        a forked child: the member is its parent's.
        """
        if self._closed:
            return
        if os.getpid() != self._pid:
            self._closed = True
            return
        if self._handover.in_callback:
            raise RuntimeError("close() cannot be called from a rebalance callback; return from it first")
        self._closing = True
        self._quiet_until = 0.0
        try:
            self._leave(time.monotonic() + _CLOSE_TIMEOUT)
        finally:
            self._closed = True
            self._finalizer.detach()
            self._driver.stop(_STOP_TIMEOUT)
            super().close()
        self._raise_callback_error()

    def __enter__(self) -> Self:
        """Return the consumer itself."""
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close; the C method of this name would call the C close, and skip the membership."""
        self.close()

    def _leave(self, deadline: float) -> None:
        if self._config.auto_commit and not self._subscribed:
            # Partitions assigned by hand: nothing revokes them.
            offsets = self._offsets.pending(self._position)
            if offsets:
                self._commit(offsets, deadline - time.monotonic(), repeat=True).wait()
        self._driver.call(self._membership.close)
        while not self._left and time.monotonic() < deadline:
            self._serve_events()
            remaining = deadline - time.monotonic()
            if self._held is not None:
                self._held.wait(remaining)
            elif not self._left:
                self._inbox.wait(remaining)
        if self._held is not None:
            self._finish_revoke(self._held.event)

    # --- The membership's events --------------------------------------------------------------------

    def _serve(self) -> Message | None:
        """Do what is due before messages are handed out; return an error to hand out instead."""
        self._quiet_until = 0.0
        now = self._poll_clock.last = time.monotonic()
        if self._resume:
            self._resume = False
            self._driver.call(self._membership.resume)
        message = self._serve_events() if self._inbox or self._held is not None else None
        if message is not None:
            return message
        if self._handover.error is not None:
            self._raise_callback_error()
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)  # else it would grow with every poll
        if now >= self._next_auto_commit:
            self._auto_commit(now)
        if self._held is None:
            self._quiet_until = self._next_auto_commit
        return None

    def _serve_events(self) -> Message | None:
        """Take events until the inbox is empty, one has to wait, or one has to be told to the caller."""
        if self._held is not None:
            if not self._held.ready:
                return None
            self._finish_revoke(self._held.event)
        while self._held is None and (event := self._inbox.take()) is not None:
            message = self._serve_event(event)
            if message is not None:
                return message
        return None

    def _serve_event(self, event: Event) -> Message | None:
        match event:
            case Assign() if self._closing:
                self._driver.call(self._membership.withdrawn, event.ticket)
            case Assign():
                self._identity = event.identity
                self._handover.assign(self, event)
                self._next_auto_commit = time.monotonic() + self._config.auto_commit_interval
                self._driver.call(self._membership.applied, event.ticket)
            case Revoke():
                self._start_revoke(event)
            case Committed():
                self._finish_commit(event)
            case PollExceeded():
                self._driver.call(self._membership.resume)
                return Message(error=KafkaError(KafkaError._MAX_POLL_EXCEEDED, event.message))  # noqa: SLF001 - public code
            case Failed():
                self._handover.failed(event)
                if not self._closing:
                    self._resume = True
                    self._fatal = event.error if isinstance(event.error, FencedInstanceError) else None
                    raise event.error
            case Closed():
                self._left = True
        return None

    def _start_revoke(self, event: Revoke) -> None:
        """Commit what was consumed, then give it up. Nothing is delivered in between, so nothing runs ahead."""
        offsets = self._offsets.pending(self._position) if self._config.auto_commit and not event.lost else {}
        if offsets:
            pending = self._commit(offsets, self._config.timing.session_timeout, repeat=True)
            self._held = HeldRevoke(event, pending)
        else:
            self._finish_revoke(event)

    def _finish_revoke(self, event: Revoke) -> None:
        self._held = None
        if not self._membership.identity.valid:
            event = dataclasses.replace(event, lost=True)  # meanwhile, and too late to be taken back
        self._handover.revoke(self, event)
        self._driver.call(self._membership.applied, event.ticket)

    def _raise_callback_error(self) -> None:
        error = self._handover.take_error()
        if error is not None:
            raise error

    # --- Commits ------------------------------------------------------------------------------------

    def _auto_commit(self, now: float) -> None:
        self._next_auto_commit = now + self._config.auto_commit_interval
        if not self._config.auto_commit:
            self._next_auto_commit = math.inf
            return
        offsets = self._offsets.pending(self._position)
        if offsets:
            self._commit(offsets, self._config.network.request_timeout, repeat=False)

    def _commit(
        self, offsets: Offsets, timeout: float, *, repeat: bool, report: bool = True
    ) -> PendingCommit:
        """Send a commit; with `report`, a later poll notes what came of it, and calls on_commit."""
        pending = PendingCommit(offsets, time.monotonic() + timeout)
        inbox = self._inbox

        def done(result: CommitResult) -> None:
            pending.settle(result)
            if report:
                inbox.put(Committed(offsets, result))

        self._driver.commit(offsets, pending.deadline, done, repeat=repeat)
        return pending

    def _finish_commit(self, event: Committed) -> None:
        error = self._note_commit(event.offsets, event.result)
        if self._config.on_commit is not None:
            self._call_on_commit(error, event.offsets)

    def _note_commit(self, offsets: Offsets, result: CommitResult) -> CommitError | None:
        stored = {key: offset for key, offset in offsets.items() if result.errors.get(key) == ErrorCode.NONE}
        self._offsets.committed(stored)
        return self._error_of(result)

    def _call_on_commit(self, error: CommitError | None, offsets: Mapping[TopicPartitionKey, Offset]) -> None:
        assert self._config.on_commit is not None  # noqa: S101 - for the type checker
        try:
            self._config.on_commit(None if error is None else error.args[0], to_partitions(offsets))
        except BaseException as raised:  # noqa: BLE001 - leaves poll at the end, as a rebalance callback's does
            self._handover.error = self._handover.error or raised

    @staticmethod
    def _error_of(result: CommitResult) -> CommitError | None:
        failed = {key: code for key, code in result.errors.items() if code}
        if not failed:
            return None
        (topic, number), code = next(iter(failed.items()))
        if code == NO_ANSWER:
            text = result.message or "the coordinator did not answer"
            return CommitError(NO_ANSWER, f"the commit failed: {text}")
        text = result.message or KafkaError(code).str()
        return CommitError(code, f"the commit of {topic} [{number}] failed: {text}")

    def _position(self) -> list[TopicPartition]:
        return super().position(super().assignment())

    def _assigned(self) -> set[TopicPartitionKey]:
        return {(p.topic, p.partition) for p in super().assignment()}

    # --- Guards -------------------------------------------------------------------------------------

    def _check_may_poll(self) -> None:
        self._check_usable()
        if self._handover.in_callback:
            raise RuntimeError("poll() and consume() cannot be called from a rebalance callback")

    def _check_usable(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")
        if os.getpid() != self._pid:
            raise RuntimeError("this consumer was made before a fork; make a new one in the child process")


def _merge(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    if len(args) > 1 or (args and not isinstance(args[0], Mapping)):
        raise TypeError("Consumer takes one configuration dict, keywords, or both")
    return {**(args[0] if args else {}), **kwargs}


def _check_topics(topics: object) -> tuple[str, ...]:
    """Return a subscription's topics, sorted."""
    if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
        raise TypeError(f"subscribe takes a list of topic names, not {topics!r}")
    for topic in topics:
        if topic.startswith("^"):
            message = f"subscribing to the regular expression {topic!r} is not served yet: name the topics"
            raise ConsumerError(KafkaError._INVALID_ARG, message)  # noqa: SLF001 - librdkafka's public code
        if not topic:
            raise ConsumerError(KafkaError._INVALID_ARG, "a topic's name is empty")  # noqa: SLF001 - as above
    return tuple(sorted(set(topics)))


def _check_callbacks(**callbacks: object) -> None:
    for name, callback in callbacks.items():
        if callback is not None and not callable(callback):
            raise TypeError(f"{name} takes a function, not {callback!r}")


def _deadline(timeout: float) -> float:
    return math.inf if timeout < 0 else time.monotonic() + timeout
