"""A member with the consumer's real code: a process, and an application that does what services do."""

import contextlib
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer import Consumer, WakeupError
from groupwright.testing._simulation.messages import TopicPartition as Key
from groupwright.testing._simulation.scheduler import SECOND, Scheduler
from simulation import runtime
from simulation.runtime import MemberProcess, SignalError, VirtualThread
from simulation.scenario import Commits, MemberPlan, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_POLL = 2.0
"""Seconds."""
_UNKNOWN_SHARE = 0.05
"""Chance of a commit of an unknown topic after a poll, of a member that makes them."""


class CallbackError(Exception):
    """Raised by a callback of the application."""


class Observer(Protocol):
    """Receives what happens to members, as their applications see it."""

    def assigned(self, member: "RealMember", partitions: list[Key]) -> None:
        """`on_assign` is called."""

    def revoked(self, member: "RealMember", partitions: list[Key], *, lost: bool) -> None:
        """`on_revoke` or `on_lost` has returned."""

    def delivered(self, member: "RealMember", topic_id: int, key: Key, offset: int) -> None:
        """A message was returned."""

    def reached_end(self, member: "RealMember", key: Key, offset: int, *, paused: bool) -> None:
        """The end of a partition was returned."""

    def sought(self, member: "RealMember", key: Key, offset: int) -> None:
        """The application has sought."""

    def moved(self, member: "RealMember", key: Key, offset: int) -> None:
        """A late response to librdkafka's own ListOffsets has moved a partition."""

    def start_of(self, key: Key) -> int:
        """Return the offset that the group has committed."""

    def asked(self, member: "RealMember") -> None:
        """The application has asked for an asynchronous commit."""

    def committed_unknown(self, member: "RealMember", error: str | None, duration: int) -> None:
        """A synchronous commit of a topic that does not exist has ended, after so many microseconds."""

    def committed(self, member: "RealMember", offsets: dict[Key, int], error: str | None) -> None:
        """`on_commit` was called, or a synchronous commit has returned."""

    def said(self, member: "RealMember", words: str) -> None:
        """Something else happened, for the story."""

    def closed(self, member: "RealMember", error: str | None) -> None:
        """`close` has returned, or the application has ended with an error."""


class RealMember:
    """A consumer and its application, in a process of its own."""

    def __init__(
        self, plan: MemberPlan, scenario: Scenario, scheduler: Scheduler, observer: Observer
    ) -> None:
        """Create the process; `start` starts it."""
        self.plan = plan
        self.name = plan.name
        self.process = MemberProcess(plan.name, scheduler)
        self.consumer: Any = None
        self.ended = False
        """Whether the application has ended, or was killed."""
        self.closing = False
        self.orders: deque[Callable[[], object]] = deque()
        """What the application does next, one between two polls."""
        self._scenario = scenario
        self._scheduler = scheduler
        self._observer = observer
        self._random = scheduler.stream(f"application {plan.name}")
        self._topics = list(plan.topics)
        self._stop: tuple[int, int] | None = None
        self._owned: set[Key] = set()
        self._last: dict[Key, int] = {}
        self._paused: set[Key] = set()
        self.calm = False
        """Whether the application works at once, and seeks and pauses no more."""
        self._is_automatic = plan.commits in {Commits.AUTO, Commits.STORE}

    # --- By the troubles

    def start(self) -> None:
        """Start the process."""
        self.process.main = VirtualThread(self.process, self._run)
        self.process.main.start()

    def kill(self) -> None:
        """Kill the process."""
        self.ended = True
        self.process.kill()
        if self.consumer is not None:
            self.consumer._finalizer.detach()

    def close(self) -> None:
        """Have the application close its consumer."""
        self.closing = True

    def close_by_other_thread(self) -> None:
        """Close the consumer by another thread of the process."""
        if self.consumer is not None and not self.closing:
            VirtualThread(self.process, self._close).start()

    def be_busy(self, duration: int) -> None:
        """Have the application process for so long."""
        self.orders.append(lambda: _sleep(duration))

    def enforce_rebalance(self) -> None:
        """Have the consumer rejoin; for the application."""
        self.consumer.enforce_rebalance()

    def stop_after_assignment(self, duration: int, readings: int) -> None:
        """Have the process stopped soon after its next `on_assign`, after so many readings of the clock."""
        self._stop = (duration, readings)

    def interrupt(self, readings: int) -> None:
        """Have a signal handler raise within a poll, after so many readings of the clock.

        A third of the signals are followed by another one, while the first exception is handled.
        """
        self.process.signals = [readings // 3, readings % 5] if readings % 3 == 0 else [readings // 3]

    def subscribe_to(self, topics: list[str]) -> None:
        """Have the application subscribe to these topics."""
        self._topics = topics
        self.orders.append(self._subscribe)

    def unsubscribe(self, duration: int) -> None:
        """Have the application unsubscribe, and subscribe again after a while."""

        def order() -> None:
            self.consumer.unsubscribe()
            self._observer.said(self, "has unsubscribed")
            until = self._scheduler.now + duration

            def again() -> None:
                if self._scheduler.now >= until:
                    self._subscribe()
                else:
                    self.orders.append(again)

            self.orders.append(again)

        self.orders.append(order)

    @property
    def topics(self) -> list[str]:
        """The present subscription."""
        return list(self._topics)

    @property
    def session_until(self) -> int | None:
        """End of its session as the member knows it, in microseconds; None if it has none."""
        ends = self.consumer._member._membership.session_until
        return None if ends == math.inf else int((ends - runtime.BEGINNING) * SECOND)

    def _wake(self) -> None:
        self.consumer.librdkafka.wake()  # not looked up before: the handle may be created again

    # --- The application

    def _run(self) -> None:
        error: str | None = None
        try:
            self.consumer = consumer = Consumer(self._config())
            self.process.on_wake = self._wake
            self._subscribe()
            while not self.closing:
                self._poll(consumer)
                self._act(consumer)
                if self.plan.processing and not self.calm:
                    _sleep(self._random.random() ** 2 * self.plan.processing)
        except RuntimeError as raised:
            if str(raised) != "Consumer closed":
                error = repr(raised)
        except Exception as raised:  # noqa: BLE001 - an application does not survive what it does not expect
            error = repr(raised)
        self._close(error)

    def _close(self, error: str | None = None) -> None:
        self.closing = True
        try:
            while self.consumer is not None:
                try:
                    self.consumer.close()
                except RuntimeError as raised:  # another thread is inside a callback, which commits
                    if not str(raised).startswith("close() waited"):
                        raise
                else:
                    break
        except CallbackError:
            pass
        except Exception as raised:  # noqa: BLE001 - as above
            error = error or repr(raised)
        if not self.ended:
            self.ended = True
            self._observer.closed(self, error)

    def _config(self) -> dict[str, Any]:
        scenario, plan = self._scenario, self.plan
        config: dict[str, Any] = {
            "bootstrap.servers": "simulated:9092",
            "group.id": "group",
            "client.id": plan.name,
            "partition.assignment.strategy": ",".join(plan.strategy),
            "auto.offset.reset": "earliest",
            "session.timeout.ms": scenario.session_timeout // 1000,
            "heartbeat.interval.ms": scenario.heartbeat_interval // 1000,
            "max.poll.interval.ms": scenario.max_poll_interval // 1000,
            "topic.metadata.refresh.interval.ms": 10_000,
            "enable.auto.commit": self._is_automatic,
            "auto.commit.interval.ms": scenario.auto_commit_interval // 1000,
            "enable.auto.offset.store": plan.commits is not Commits.STORE,
            "enable.partition.eof": plan.ends,
            "on_commit": self._on_commit,
        }
        if plan.static:
            config["group.instance.id"] = plan.name
        return config

    def _subscribe(self) -> None:
        self.consumer.subscribe(
            list(self._topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _poll(self, consumer: Any) -> None:
        timeout = self._random.random() ** 2 * _LONGEST_POLL
        librdkafka = consumer.librdkafka
        librdkafka.poll_until = runtime.present().monotonic() + timeout
        librdkafka.idle_until = self._idle_until
        librdkafka.on_late_answer = lambda key, offset: self._observer.moved(self, key, offset)
        self.process.takes_signals = True
        try:
            if self.plan.batch:
                messages = consumer.consume(self.plan.batch, timeout)
            else:
                message = consumer.poll(timeout)
                messages = [] if message is None else [message]
        except (CallbackError, WakeupError, SignalError) as error:
            self._observer.said(self, f"poll raised {type(error).__name__}")
            return
        finally:
            self.process.takes_signals = False
        for message in messages:
            problem = message.error()
            key = (message.topic(), message.partition())
            if problem is not None and problem.code() == KafkaError._PARTITION_EOF:
                self._observer.reached_end(self, key, message.offset(), paused=key in self._paused)
                continue
            if problem is not None:
                self._observer.said(self, f"poll returned {problem.name()}")
                continue
            self._last[key] = message.offset()
            self._observer.delivered(self, int(message.value()), key, message.offset())
            if self.plan.commits is Commits.STORE and key in self._owned:
                with contextlib.suppress(KafkaException):  # it may be revoked within this batch
                    consumer.store_offsets(message)

    def _idle_until(self) -> float:
        until: float = self.consumer._member.fast_path_until
        return until

    def _act(self, consumer: Any) -> None:
        if self.orders:
            try:
                self.orders.popleft()()
            except KafkaException as error:
                self._observer.said(self, f"is refused: {error.args[0].name()}")
        plan, chance = self.plan, self._random.random
        if plan.commits in {Commits.SYNC, Commits.ASYNC} and chance() < 0.3:
            self._commit(consumer, synchronous=plan.commits is Commits.SYNC)
        if plan.commits_unknown and not self.calm and chance() < _UNKNOWN_SHARE:
            self._commit_unknown(consumer)
        owned = sorted(self._owned)
        if owned and not self.calm and chance() < plan.seeks:
            self._seek(consumer, self._random.choice(owned))
        if owned and not self.calm and chance() < plan.pauses:
            self._pause(consumer, self._random.choice(owned))

    def _commit(self, consumer: Any, *, synchronous: bool) -> None:
        if not synchronous:
            self._observer.asked(self)
            consumer.commit(asynchronous=True)
            return
        try:
            done = consumer.commit(asynchronous=False)
        except KafkaException as error:
            self._observer.committed(self, {}, error.args[0].name())
        else:
            self._observer.committed(self, _offsets(done), None)

    def _commit_unknown(self, consumer: Any) -> None:
        began, error = self._scheduler.now, None
        try:
            consumer.commit(offsets=[TopicPartition("unknown", 0, 1)], asynchronous=False)
        except KafkaException as raised:
            error = raised.args[0].name()
        self._observer.committed_unknown(self, error, self._scheduler.now - began)

    def _seek(self, consumer: Any, key: Key) -> None:
        last = self._last.get(key)
        if last is None:
            return
        offset = self._random.randint(max(0, last - 10), last)
        try:
            consumer.seek(TopicPartition(*key, offset))
        except KafkaException as error:
            self._observer.said(self, f"seek raised {error.args[0].name()}")
        else:
            self._last.pop(key, None)
            self._observer.sought(self, key, offset)

    def _pause(self, consumer: Any, key: Key) -> None:
        if key in self._paused:
            self._paused.discard(key)
            consumer.resume([TopicPartition(*key)])
        else:
            self._paused.add(key)
            consumer.pause([TopicPartition(*key)])

    def resume_all(self) -> None:
        """Have the application resume what it has paused, and pause and seek no more."""
        self.calm = True
        consumer, paused = self.consumer, [TopicPartition(*key) for key in sorted(self._paused)]
        self._paused.clear()
        if paused and consumer is not None:
            self.orders.append(lambda: consumer.resume(paused))

    # --- Callbacks

    def _on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        keys = _keys(partitions)
        self._owned.update(keys)
        self._observer.assigned(self, keys)
        if self._stop is not None:
            self.process.stop_at_reading(*self._stop)
            self._stop = None
        self._work_in_callback()
        if self.plan.assigns and "cooperative-sticky" in self.plan.strategy:
            consumer.incremental_assign(partitions)
        elif self.plan.assigns:
            consumer.assign(partitions)
        if self.plan.seeks_at_start:
            self.orders.appendleft(lambda: self._seek_to_starts(keys))
        self._maybe_raise()

    def _seek_to_starts(self, keys: list[Key]) -> None:
        """Seek to where the partitions start, as an application does that keeps its own offsets."""
        for key in keys:
            if key in self._owned and key not in self._last:
                offset = self._observer.start_of(key)
                try:
                    self.consumer.seek(TopicPartition(*key, offset))
                except KafkaException as error:
                    raise RuntimeError(f"a seek after the assignment was refused: {error}") from error
                self._observer.sought(self, key, offset)

    def _on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        try:
            self._work_in_callback()
            if self.plan.commits_in_revoke:
                self._commit(consumer, synchronous=True)
        finally:
            self._revoked(partitions, lost=False)

    def _on_lost(self, _consumer: Any, partitions: list[TopicPartition]) -> None:
        self._work_in_callback()
        self._revoked(partitions, lost=True)

    def _revoked(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        keys = _keys(partitions)
        self._observer.revoked(self, keys, lost=lost)
        self._owned.difference_update(keys)
        for key in keys:
            self._last.pop(key, None)
        self._maybe_raise()

    def _on_commit(self, error: Any, partitions: list[TopicPartition]) -> None:
        self._observer.committed(self, _offsets(partitions), None if error is None else error.name())

    def _work_in_callback(self) -> None:
        if self.plan.callback and not self.calm:
            _sleep(self._random.random() ** 2 * self.plan.callback)

    def _maybe_raise(self) -> None:
        if self._random.random() < self.plan.raises:
            raise CallbackError("the application's callback")


def _keys(partitions: list[TopicPartition]) -> list[Key]:
    return [(p.topic, p.partition) for p in partitions]


def _offsets(partitions: list[TopicPartition]) -> dict[Key, int]:
    return {(p.topic, p.partition): p.offset for p in partitions if p.offset >= 0 and p.error is None}


def _sleep(microseconds: float) -> None:
    runtime.current().block(microseconds / SECOND)
