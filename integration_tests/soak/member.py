"""Application of a soak's member, run by `groupwright.testing.groups`: it commits, seeks and obeys signals.

The signals are those of `Order`, and SIGTERM for a clean shutdown.
"""

import contextlib
import dataclasses
import faulthandler
import logging
import queue
import random
import signal
import threading
from dataclasses import dataclass
from enum import IntEnum
from types import FrameType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer import Consumer, WakeupError
from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import Committed, Failed, Hooks, MemberLoop, Sought, WithDetails, now
from integration_tests.soak.events import Busy, Closing, Interrupted, Starved, WakeupRaised
from integration_tests.soak.schedule import Behavior
from integration_tests.soak.timing import Timing

BATCH = 20
"""The most messages of a call of `consume`."""
_ROLE = "soak.role"
"""The key of the role in a member's configuration."""
_PULSE_SECONDS = 0.1
_STARVED_SECONDS = 1.0
_BACK_BY = 3
_COMMITTED_SECONDS = 1.0
_INTERRUPTIONS = 30
_INTERRUPTION_SECONDS = 0.01
STACKS = signal.SIGRTMIN + 6
"""The signal at which a member writes each thread's stack to its log, also inside a native call."""


class Order(IntEnum):
    """Orders to a member, by signal number."""

    CLOSE = signal.SIGRTMIN
    """Close from another thread."""
    INTERRUPT = signal.SIGRTMIN + 1
    """Start a series of alarms whose handler raises in poll and consume."""
    ENFORCE = signal.SIGRTMIN + 2
    """Enforce a rebalance, from another thread."""
    WAKE = signal.SIGRTMIN + 3
    """Call wakeup from the signal handler."""
    BUSY = signal.SIGRTMIN + 4
    """Do not poll for `Timing.silence`."""


class InterruptedPollError(Exception):
    """Raised by the handler of SIGALRM."""


@dataclass(frozen=True, slots=True)
class Role:
    """Parameters of a member."""

    name: str
    """The ``client.id``, unique among all processes."""
    instance: str | None
    """The ``group.instance.id`` of a static member."""
    behavior: Behavior
    guest: bool = False
    """True if the member may not read the forbidden topic."""

    @property
    def signature(self) -> str:
        """Metadata of the member's manual commits: its ``group.instance.id`` or ``client.id``."""
        return self.instance or self.name

    def configuration(self) -> dict[str, Any]:
        """Return the member's configuration, for `make_member`."""
        static = {"group.instance.id": self.instance} if self.instance else {}
        return {
            _ROLE: dataclasses.asdict(self),
            "enable.auto.commit": self.behavior.commits == "auto",
            "enable.auto.offset.store": self.behavior.commits != "store",
            "enable.partition.eof": self.behavior.eof,
            **static,
        }

    def details(self) -> dict[str, str]:
        """Return the details that the checker and the report need."""
        static = {"instance": self.instance} if self.instance else {}
        return {"commits": self.behavior.commits, "guest": str(self.guest), **static}


def group_configuration(assignor: str, timing: Timing) -> dict[str, Any]:
    """Return the configuration that all members of a group share."""
    return {
        "partition.assignment.strategy": assignor,
        "session.timeout.ms": int(timing.session * 1000),
        "heartbeat.interval.ms": int(timing.heartbeat * 1000),
        "max.poll.interval.ms": int(timing.max_poll * 1000),
        "auto.commit.interval.ms": int(timing.commit * 1000),
        # A commit must time out within max.poll.interval.ms while the broker is away.
        "socket.timeout.ms": int(timing.max_poll * 500),
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 2000,
        # librdkafka takes a topic that it has known for less than this for existing after its deletion,
        # and never fetches the next one of that name if its leader epoch is lower.
        "topic.metadata.propagation.max.ms": 0,
        "fetch.wait.max.ms": 100,
        "log_level": 0,
    }


def make_member(config: dict[str, Any]) -> WithDetails:
    """Return a member's consumer and the hooks of its application."""
    logging.getLogger("groupwright").setLevel(logging.DEBUG)
    fields = config.pop(_ROLE)
    role = Role(**{**fields, "behavior": Behavior(**fields["behavior"])})
    return WithDetails(Consumer(config), role.details(), _Application(role, Timing()).hooks())


class _Application:
    """Callbacks; one thread, apart from the orders that need a second one."""

    _loop: MemberLoop

    def __init__(self, role: Role, timing: Timing) -> None:
        self._role = role
        self._commits = role.behavior.commits
        self._timing = timing
        # Signal handlers set flags, not an Event: one that interrupts Event.wait would deadlock on its lock.
        self._busy = False
        self._closing = False
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._interruptions = 0
        self._dice = random.Random(role.name)  # noqa: S311 - repeatable faults, no secret
        self._processed: dict[TopicPartitionKey, int] = {}
        self._last: dict[TopicPartitionKey, Message] = {}
        self._floors: dict[TopicPartitionKey, int] = {}
        """Position of each partition before its seek back: no commit goes below it."""
        self._owned: set[TopicPartitionKey] = set()
        self._gained: list[TopicPartitionKey] = []
        self._commit_at = now()

    def hooks(self) -> Hooks:
        # `process` precedes the record of the messages: on_revoke, which another thread's close may call
        # meanwhile, then commits every message that was recorded before it.
        return Hooks(
            on_start=self._on_start,
            on_assign=self._on_assign,
            on_revoke=self._give_up,
            on_lost=self._give_up,
            process=self._process,
            on_messages=self._take_turn,
            on_exception=self._on_exception,
            value=lambda message: (message.value() or b"").decode(),
        )

    def _on_start(self, loop: MemberLoop) -> None:
        self._loop = loop
        faulthandler.register(STACKS, all_threads=True)
        for order in Order:
            signal.signal(order, self._on_order)
        signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=self._carry_out, name="orders", daemon=True).start()
        threading.Thread(target=self._watch_for_starvation, name="starvation", daemon=True).start()

    # --- Orders -------------------------------------------------------------------------------------

    def _on_order(self, number: int, _frame: FrameType | None) -> None:
        match Order(number):
            case Order.BUSY:
                self._busy = True
            case Order.INTERRUPT:
                self._interruptions = _INTERRUPTIONS
                signal.setitimer(signal.ITIMER_REAL, _INTERRUPTION_SECONDS, _INTERRUPTION_SECONDS)
            case Order.WAKE:
                self._loop.consumer.wakeup()
            case order:
                self._orders.put(order)  # SimpleQueue.put is reentrant

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        self._interruptions -= 1
        if self._interruptions <= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if MemberLoop.is_polling(frame):
            raise InterruptedPollError

    def _carry_out(self) -> None:
        while True:
            order = self._orders.get()
            try:
                if order is Order.CLOSE:
                    self._closing = True
                    self._loop.record(Closing(now()))
                    self._loop.consumer.close()
                elif not self._ends:
                    self._loop.consumer.enforce_rebalance("the soak enforces one")
            except Exception as error:
                if not self._ends or order is Order.CLOSE:
                    logging.getLogger("soak").exception("an order failed")
                    self._loop.record(Failed(now(), f"{order.name}: {error!r}"))

    @property
    def _ends(self) -> bool:
        return self._closing or self._loop.is_leaving

    def _watch_for_starvation(self) -> None:
        """Record each time in which this process did not run; never returns."""
        pause, last = threading.Event(), now()
        while True:
            pause.wait(_PULSE_SECONDS)
            before, last = last, now()
            if last - before > _STARVED_SECONDS:
                self._loop.record(Starved(last, before))

    # --- Messages -----------------------------------------------------------------------------------

    def _process(self, _consumer: Consumer, messages: list[Message]) -> None:
        for message in messages:
            topic, number, offset = message.topic(), message.partition(), message.offset()
            assert topic is not None
            assert number is not None
            assert offset is not None
            key = (topic, number)
            # After a seek back, commits stay at the highest offset, so that no commit goes back.
            if offset >= max(self._processed.get(key, 0), self._floors.get(key, 0)):
                self._processed[key] = offset + 1
                self._last[key] = message

    def _take_turn(self, consumer: Consumer, _messages: list[Message]) -> None:
        if self._role.behavior.seeks != "none" and self._gained:
            self._seek(consumer)
        if self._commits != "auto" and now() >= self._commit_at:
            self._commit_at = now() + self._timing.commit
            self._commit(self._processed, asynchronous=self._commits in {"async", "message"})
        if self._busy:
            self._busy = False
            begun = now()
            self._loop.record(Busy(begun, begun))
            threading.Event().wait(self._timing.silence)
            self._loop.record(Busy(now(), begun))

    def _on_exception(self, error: Exception, polled: float) -> bool:
        match error:
            case InterruptedPollError():
                self._loop.record(Interrupted(now(), polled))
            case WakeupError():
                self._loop.record(WakeupRaised(now()))
            case RuntimeError() if self._closing and str(error) == "Consumer closed":
                self._loop.leave()  # which also waits for the close on the other thread
                return True
            case _:
                return False
        try:
            self._take_turn(self._loop.consumer, [])
        except RuntimeError as later:
            return self._on_exception(later, polled)
        return True

    def _seek(self, consumer: Consumer) -> None:
        """Seek in newly assigned partitions: to the current position, or back by a few messages."""
        gained, self._gained = [key for key in self._gained if key in self._owned], []
        begun = now()
        self._loop.record(Busy(begun, begun))
        try:
            found = consumer.committed([TopicPartition(*key) for key in gained], _COMMITTED_SECONDS)
        except KafkaException:
            found = []  # the broker is away
        self._loop.record(Busy(now(), begun))
        for partition in found:
            key = (partition.topic, partition.partition)
            if partition.error is not None or key not in self._owned:
                continue
            offset = self._floors[key] = max(0, self._processed.get(key, partition.offset))
            if self._role.behavior.seeks == "back":
                offset = max(0, offset - self._dice.randint(0, _BACK_BY))
            try:
                consumer.seek(TopicPartition(*key, offset))
            except KafkaException as error:
                self._loop.record(Failed(now(), f"seek: {error!r}"))
            else:
                self._loop.record(Sought(now(), key, offset))

    # --- Commits ------------------------------------------------------------------------------------

    def _commit(self, offsets: dict[TopicPartitionKey, int], *, asynchronous: bool) -> None:
        """Commit, also unchanged offsets: the commit of an expelled member must be rejected."""
        consumer, wanted = self._loop.consumer, dict(offsets)
        if not wanted:
            return
        partitions = [
            TopicPartition(*key, offset, metadata=self._role.signature) for key, offset in wanted.items()
        ]
        match self._commits:
            case "store":
                self._commit_stored(partitions, wanted)
            case "message":
                for key in wanted:
                    with contextlib.suppress(KafkaException):  # the loop records it, as it does below
                        consumer.commit(message=self._last[key], asynchronous=asynchronous)
            case _:
                with contextlib.suppress(KafkaException):
                    consumer.commit(offsets=partitions, asynchronous=asynchronous)

    def _commit_stored(self, partitions: list[TopicPartition], wanted: dict[TopicPartitionKey, int]) -> None:
        begun = now()
        try:
            self._loop.consumer.store_offsets(offsets=partitions)
            self._loop.consumer.commit(asynchronous=False)
        except KafkaException as error:
            # _NO_OFFSET: everything stored is committed already.
            if error.args[0].code() != KafkaError._NO_OFFSET:
                self._loop.record(Committed(now(), wanted, begun, str(error)))

    # --- Rebalances ---------------------------------------------------------------------------------

    def _on_assign(self, partitions: list[TopicPartition]) -> None:
        keys = [(each.topic, each.partition) for each in partitions]
        self._owned.update(keys)
        self._gained += keys

    def _give_up(self, partitions: list[TopicPartition]) -> None:
        keys = [(each.topic, each.partition) for each in partitions]
        processed = {key: self._processed.pop(key) for key in keys if key in self._processed}
        self._owned.difference_update(keys)
        for key in keys:
            self._floors.pop(key, None)
        if self._commits != "auto":
            # Lost partitions are committed too: the coordinator must reject that.
            self._commit(processed, asynchronous=False)
