"""Member process of a soak: one consumer that writes its history and obeys signals (see `Order`).

SIGTERM makes it leave with a clean shutdown.
"""

import dataclasses
import faulthandler
import json
import logging
import queue
import random
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from groupwright.consumer import Consumer, Rebalance, WakeupError
from groupwright.core import RebalanceListener
from soak import events
from soak.events import HistoryWriter, Key, now
from soak.member_history import PROCESS
from soak.timing import Timing

_PULSE_SECONDS = 0.1
_STARVED_SECONDS = 1.0
_BATCH = 20
_BACK_BY = 3
_COMMITTED_SECONDS = 1.0
_INTERRUPTIONS = 30
_INTERRUPTION_SECONDS = 0.01
STACKS = signal.SIGRTMIN + 4
"""The signal at which a member writes each thread's stack to its log, also inside a native call."""


class Order(IntEnum):
    """Orders to a member, by signal number."""

    LEAVE = signal.SIGTERM
    """Close between two polls."""
    BUSY = signal.SIGUSR1
    """Do not poll for `Timing.silence`."""
    CLOSE = signal.SIGRTMIN
    """Close from another thread."""
    INTERRUPT = signal.SIGRTMIN + 1
    """Start a series of alarms whose handler raises in poll and consume."""
    ENFORCE = signal.SIGRTMIN + 2
    """Enforce a rebalance, from another thread."""
    WAKE = signal.SIGRTMIN + 3
    """Call wakeup from the signal handler."""


class InterruptedPollError(Exception):
    """Raised by the handler of SIGALRM."""


@dataclass(frozen=True, slots=True)
class Role:
    """Parameters of a member process."""

    bootstrap_servers: str
    group: str
    topics: list[str]
    name: str
    """The ``client.id``, unique among all processes."""
    instance: str | None
    assignor: str
    commits: str
    """auto, sync, async, store or message."""
    history: str
    """The path of the history file."""
    eof: bool = False
    seeks: str = "none"
    calls: str = "poll"
    secured: dict[str, str] = field(default_factory=dict)
    """Connection settings of a guest, who may not read the forbidden topic; empty for other members."""

    @property
    def signature(self) -> str:
        """Metadata of the member's manual commits: its ``group.instance.id`` or ``client.id``."""
        return self.instance or self.name

    def command(self) -> list[str]:
        """Return the command line that starts the member."""
        return [sys.executable, "-m", "soak.member", json.dumps(dataclasses.asdict(self))]

    def configuration(self, timing: Timing) -> dict[str, Any]:
        """Return the consumer's configuration."""
        static = {"group.instance.id": self.instance} if self.instance else {}
        return {
            "bootstrap.servers": self.bootstrap_servers,
            **self.secured,
            "group.id": self.group,
            "client.id": self.name,
            "partition.assignment.strategy": self.assignor,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": int(timing.session * 1000),
            "heartbeat.interval.ms": int(timing.heartbeat * 1000),
            "max.poll.interval.ms": int(timing.max_poll * 1000),
            "enable.auto.commit": self.commits == "auto",
            "enable.auto.offset.store": self.commits != "store",
            "enable.partition.eof": self.eof,
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
            **static,
        }


class Member(RebalanceListener):
    """Consumer, callbacks and history; one thread, apart from the orders that need a second one."""

    def __init__(self, role: Role, timing: Timing, history: HistoryWriter) -> None:
        """Create the consumer, without a subscription."""
        self._role = role
        self._timing = timing
        self._history = history
        # Signal handlers set flags, not an Event: one that interrupts Event.wait would deadlock on its lock.
        self._leaving = False
        self._busy = False
        self._closing = False
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._interruptions = 0
        self._dice = random.Random(role.name)  # noqa: S311 - repeatable faults, no secret
        self._processed: dict[Key, int] = {}
        self._last: dict[Key, Message] = {}
        self._floors: dict[Key, int] = {}
        """Position of each partition before its seek back: no commit goes below it."""
        self._owned: set[Key] = set()
        self._gained: list[Key] = []
        self._commit_at = now()
        self._consumer = Consumer(role.configuration(timing), on_commit=self._on_commit)
        self._consumer.add_listener(self)

    def run(self) -> None:
        """Consume until ordered to leave, then close."""
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self._consumer.subscribe(self._role.topics, **callbacks)
        try:
            while not self._leaving:
                self._take_turn()
        except RuntimeError as error:
            if not self._closing or str(error) != "Consumer closed":
                raise
        self._consumer.close()  # also waits for a close on another thread

    def _take_turn(self) -> None:
        self._receive()
        if self._role.seeks != "none" and self._gained:
            self._seek()
        if self._role.commits != "auto" and now() >= self._commit_at:
            self._commit_at = now() + self._timing.commit
            self._commit(self._processed, asynchronous=self._role.commits in {"async", "message"})
        if self._busy:
            self._busy = False
            begun = now()
            self._history.write(events.Busy(begun, begun))
            threading.Event().wait(self._timing.silence)
            self._history.write(events.Busy(now(), begun))

    # --- Orders -------------------------------------------------------------------------------------

    def obey(self) -> None:
        """Install the signal handlers, and start a thread for the orders that need one."""
        for order in Order:
            signal.signal(order, self._on_order)
        signal.signal(signal.SIGALRM, self._on_alarm)
        threading.Thread(target=self._carry_out, name="orders", daemon=True).start()

    def _on_order(self, number: int, _frame: FrameType | None) -> None:
        match Order(number):
            case Order.LEAVE:
                self._leaving = True
            case Order.BUSY:
                self._busy = True
            case Order.INTERRUPT:
                self._interruptions = _INTERRUPTIONS
                signal.setitimer(signal.ITIMER_REAL, _INTERRUPTION_SECONDS, _INTERRUPTION_SECONDS)
            case Order.WAKE:
                self._consumer.wakeup()
            case order:
                self._orders.put(order)  # SimpleQueue.put is reentrant

    def _on_alarm(self, _number: int, frame: FrameType | None) -> None:
        self._interruptions -= 1
        if self._interruptions <= 0:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if _is_inside(frame, Member._take):
            raise InterruptedPollError

    def _carry_out(self) -> None:
        while True:
            order = self._orders.get()
            try:
                if order is Order.CLOSE:
                    self._closing = True
                    self._history.write(events.Closing(now()))
                    self._consumer.close()
                elif not self._closing and not self._leaving:
                    self._consumer.enforce_rebalance("the soak enforces one")
            except Exception as error:
                if not (self._closing or self._leaving) or order is Order.CLOSE:
                    logging.getLogger("soak").exception("an order failed")
                    self._history.write(events.Failed(now(), order.name, repr(error)))

    # --- Messages -----------------------------------------------------------------------------------

    def _receive(self) -> None:
        polled = now()
        try:
            messages = self._take()
        except InterruptedPollError:
            self._history.write(events.Interrupted(now(), polled))
        except WakeupError:
            self._history.write(events.WakeupRaised(now()))
        except KafkaException as error:
            self._history.write(events.Failed(now(), "poll", repr(error)))
        else:
            # Processed first: on_revoke, which another thread's close may call meanwhile, then commits every
            # message that was recorded before it.
            self._process(message for message in messages if message.error() is None)
            self._history.write(*(_event_of(message, polled) for message in messages))

    def _take(self) -> list[Message]:
        if self._role.calls == "consume":
            return self._consumer.consume(_BATCH, self._timing.poll)
        message = self._consumer.poll(self._timing.poll)
        return [] if message is None else [message]

    def _process(self, messages: Iterable[Message]) -> None:
        for message in messages:
            key, offset = _place(message)
            # After a seek back, commits stay at the highest offset, so that no commit goes back.
            if offset >= max(self._processed.get(key, 0), self._floors.get(key, 0)):
                self._processed[key] = offset + 1
                self._last[key] = message

    def _seek(self) -> None:
        """Seek in newly assigned partitions: to the current position, or back by a few messages."""
        gained, self._gained = [key for key in self._gained if key in self._owned], []
        begun = now()
        self._history.write(events.Busy(begun, begun))
        try:
            found = self._consumer.committed([TopicPartition(*key) for key in gained], _COMMITTED_SECONDS)
        except KafkaException:
            found = []  # the broker is away
        self._history.write(events.Busy(now(), begun))
        for partition in found:
            key = (partition.topic, partition.partition)
            if partition.error is not None or key not in self._owned:
                continue
            offset = self._floors[key] = max(0, self._processed.get(key, partition.offset))
            if self._role.seeks == "back":
                offset = max(0, offset - self._dice.randint(0, _BACK_BY))
            try:
                self._consumer.seek(TopicPartition(*key, offset))
            except KafkaException as error:
                self._history.write(events.Failed(now(), "seek", repr(error)))
            else:
                self._history.write(events.Sought(now(), key, offset))

    # --- Commits ------------------------------------------------------------------------------------

    def _commit(self, offsets: dict[Key, int], *, asynchronous: bool) -> None:
        """Commit, also unchanged offsets: the commit of an expelled member must be rejected."""
        wanted = dict(offsets)
        if not wanted:
            return
        partitions = [
            TopicPartition(*key, offset, metadata=self._role.signature) for key, offset in wanted.items()
        ]
        match self._role.commits:
            case "store":
                self._commit_stored(partitions)
            case "message":
                for partition in partitions:
                    message = self._last[partition.topic, partition.partition]
                    self._commit_one(partition, message, asynchronous=asynchronous)
            case _:
                begun = now()
                try:
                    taken = self._consumer.commit(offsets=partitions, asynchronous=asynchronous)
                except KafkaException as error:
                    self._history.write(events.Committed(now(), begun, wanted, str(error)))
                else:
                    self._record_commit(begun, taken or [])

    def _commit_stored(self, partitions: list[TopicPartition]) -> None:
        begun = now()
        try:
            self._consumer.store_offsets(offsets=partitions)
            taken = self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            # _NO_OFFSET: everything stored is committed already.
            if error.args[0].code() != KafkaError._NO_OFFSET:
                wanted = {(each.topic, each.partition): each.offset for each in partitions}
                self._history.write(events.Committed(now(), begun, wanted, str(error)))
        else:
            self._record_commit(begun, taken or [])

    def _commit_one(self, partition: TopicPartition, message: Message, *, asynchronous: bool) -> None:
        begun = now()
        try:
            taken = self._consumer.commit(message=message, asynchronous=asynchronous)
        except KafkaException as error:
            wanted = {(partition.topic, partition.partition): partition.offset}
            self._history.write(events.Committed(now(), begun, wanted, str(error)))
        else:
            self._record_commit(begun, taken or [])

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        self._record_commit(None, partitions, error)

    def _record_commit(
        self, begun: float | None, partitions: list[TopicPartition], error: KafkaError | None = None
    ) -> None:
        """Record a commit's result; each partition may have its own error."""
        answers: dict[str | None, dict[Key, int]] = {}
        for each in partitions:
            met = each.error or error
            if each.offset >= 0:
                answer = answers.setdefault(None if met is None else str(met), {})
                answer[each.topic, each.partition] = each.offset
        time = now()
        self._history.write(
            *(events.Committed(time, begun, offsets, met) for met, offsets in answers.items())
        )

    # --- Rebalances ---------------------------------------------------------------------------------

    def _on_assign(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        keys = _keys(partitions)
        self._history.write(events.Assigned(now(), keys))
        self._owned.update(keys)
        self._gained += keys

    def _on_revoke(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, lost=False)

    def _on_lost(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._give_up(partitions, lost=True)

    def _give_up(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        begun, keys = now(), _keys(partitions)
        processed = {key: self._processed.pop(key) for key in keys if key in self._processed}
        self._owned.difference_update(keys)
        for key in keys:
            self._floors.pop(key, None)
        if self._role.commits != "auto":
            # Lost partitions are committed too: the coordinator must reject that.
            self._commit(processed, asynchronous=False)
        self._history.write(events.Revoked(now(), begun, keys, lost))

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Record the end of a rebalance."""
        ended = events.Rebalanced(now(), rebalance.generation, rebalance.reason, str(rebalance.outcome))
        self._history.write(ended)

    def partitions_assigned(self, partitions: object, seconds: float) -> None:
        """Do nothing: `on_assign` records the event."""

    def partitions_revoked(self, partitions: object, seconds: float) -> None:
        """Do nothing: `on_revoke` records the event."""

    def partitions_lost(self, partitions: object, seconds: float) -> None:
        """Do nothing: `on_lost` records the event."""


def watch_for_starvation(history: HistoryWriter) -> None:
    """Record each time in which this process did not run; never returns."""
    pause, last = threading.Event(), now()
    while True:
        pause.wait(_PULSE_SECONDS)
        before, last = last, now()
        if last - before > _STARVED_SECONDS:
            history.write(events.Starved(last, before))


def main(role: Role) -> int:
    """Run the member until SIGTERM; return the exit status."""
    _log_to_stderr()
    faulthandler.register(STACKS, all_threads=True)
    history = HistoryWriter(Path(role.history))
    member = Member(role, Timing(), history)
    member.obey()
    threading.Thread(target=watch_for_starvation, args=(history,), daemon=True).start()
    history.write(
        events.Started(
            now(), role.group, role.name, role.instance, role.assignor, role.commits, guest=bool(role.secured)
        )
    )
    try:
        member.run()
    except Exception as error:
        logging.getLogger("soak").exception("the member ends")
        history.write(events.Failed(now(), PROCESS, repr(error)))
        return 1
    history.write(events.Ended(now()))
    return 0


def _event_of(message: Message, polled: float) -> events.Event:
    """Return the event for a polled message, partition end or error."""
    error = message.error()
    if error is None:
        key, offset = _place(message)
        return events.Consumed(now(), polled, key, offset, (message.value() or b"").decode())
    if error.code() == KafkaError._PARTITION_EOF:
        return events.EndReached(now(), polled, *_place(message))
    return events.ErrorReturned(now(), error.name(), message.topic(), error.str())


def _place(message: Message) -> tuple[Key, int]:
    topic, number, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert number is not None
    assert offset is not None
    return (topic, number), offset


def _is_inside(frame: FrameType | None, caller: Any) -> bool:
    """Return whether a frame runs inside a call made by `caller`, and not in a callback of this module."""
    outer = None if frame is None or frame.f_code is caller.__code__ else frame
    while outer is not None and outer.f_code.co_filename != caller.__code__.co_filename:
        outer = outer.f_back
    return outer is not None and outer.f_code is caller.__code__


def _keys(partitions: list[TopicPartition]) -> tuple[Key, ...]:
    return tuple((p.topic, p.partition) for p in partitions)


def _log_to_stderr() -> None:
    def stamp(record: logging.LogRecord) -> bool:
        record.monotonic = now()
        return True

    handler = logging.StreamHandler()
    handler.addFilter(stamp)
    handler.setFormatter(logging.Formatter("%(monotonic).3f %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("groupwright").setLevel(logging.DEBUG)


if __name__ == "__main__":
    sys.exit(main(Role(**json.loads(sys.argv[1]))))
