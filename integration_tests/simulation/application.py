"""An application with the consumer's real code: it polls, commits, seeks and pauses, as services do."""

import contextlib
import math
from collections import deque
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from greenlet import getcurrent

from groupwright.consumer import Consumer, WakeupError
from groupwright.consumer._protocol.transitions import PARKED
from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation.scheduler import SECOND, Scheduler
from integration_tests.simulation import runtime
from integration_tests.simulation.calls import CallChecks
from integration_tests.simulation.observer import Observer
from integration_tests.simulation.request_checks import RequestChecks
from integration_tests.simulation.runtime import MemberProcess, SignalError, VirtualThread
from integration_tests.simulation.scenario import GROUP, Commits, MemberPlan, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_POLL = 2.0
"""Seconds."""
_LONGEST_CALL = SECOND
"""Time after a close in which the calls of other threads have ended, which it has made fail."""
_UNKNOWN_SHARE = 0.05
"""Chance of a commit of an unknown topic after a poll, of a member that makes them."""


class CallbackError(Exception):
    """Raised by a callback of the application."""


class Application:
    """A consumer and its application, in a process of its own."""

    def __init__(
        self, plan: MemberPlan, scenario: Scenario, scheduler: Scheduler, observer: Observer
    ) -> None:
        """Create the process; `start` starts it."""
        self.plan = plan
        self.name = plan.name
        self.process = MemberProcess(plan.name, scheduler)
        self.process.on_stop = lambda duration: observer.stopped(self, duration)
        self.process.requests = RequestChecks(self)
        self.consumer: Any = None
        self.ended = False
        """True if the application has ended, or was killed."""
        self.closing = False
        self.commits_late = False
        """True if it has asked for an asynchronous commit while another thread closed the consumer."""
        self._is_closed_elsewhere = False
        """True if another thread than the application's is closing the consumer."""
        self.orders: deque[Callable[[], object]] = deque()
        """The actions of the application to come; it takes one between two polls."""
        self._scenario = scenario
        self._scheduler = scheduler
        self._observer = observer
        self._random = scheduler.stream(f"application {plan.name}")
        self._topics = list(plan.topics)
        self._in_on_assign: Callable[[], object] = _nothing
        """An act of the application within the next `on_assign`."""
        self._owned: set[Key] = set()
        self._last: dict[Key, int] = {}
        self._newest: Any = None
        """The last message."""
        self._paused: set[Key] = set()
        self.calm = False
        """True if the application works at once, and seeks and pauses no more."""
        self._is_automatic = plan.commits in {Commits.AUTO, Commits.STORE}
        self._commits_itself = not (self._is_automatic or plan.own_store)
        self._is_cooperative = "cooperative-sticky" in plan.strategy
        self._has_left = False
        """True once it has unsubscribed."""
        self._checks = CallChecks(self, scenario.max_poll_interval)
        self._threads: list[VirtualThread] = []
        """Other threads, which commit."""
        self.missing: set[str] = set()
        """Topics that polls have reported as missing."""

    @property
    def group(self) -> str:
        """Its `group.id`."""
        return GROUP

    @property
    def session_timeout(self) -> int:
        """Its `session.timeout.ms`, in microseconds."""
        return self._scenario.session_timeout

    @property
    def topics(self) -> list[str]:
        """The present subscription."""
        return list(self._topics)

    @property
    def session_until(self) -> int | None:
        """End of its session as the member knows it, in microseconds; None if it has none."""
        ends = self.consumer._member.membership.session_until
        return None if ends == math.inf else int((ends - runtime.BEGINNING) * SECOND)

    @property
    def generation(self) -> int:
        """Its present generation; -1 outside of any."""
        return int(self.consumer._member.membership.identity.generation)

    @property
    def is_in_round(self) -> bool:
        """True while its JoinGroup or SyncGroup is under way."""
        return bool(self.consumer._member.membership.facts.step in PARKED)

    @property
    def is_parked(self) -> bool:
        """True while the coordinator holds that request back: JoinGroup waits for commits first."""
        return bool(self.consumer._member.membership.facts.parked)

    @property
    def is_unconfirmed(self) -> bool:
        """True if it lost the coordinator in a round that gave it its member id."""
        facts = self.consumer._member.membership.facts
        return bool(facts.unconfirmed_id == facts.identity.member_id != "")

    @property
    def is_replaced(self) -> bool:
        """True if another process has taken its `group.instance.id`."""
        return self._observer.is_replaced(self)

    @property
    def needs_coordinator(self) -> bool:
        """True if its consumer has to look up the coordinator, and does not now."""
        membership = self.consumer._member.membership
        return bool(membership.facts.needs_coordinator and membership.coordinator.needs_lookup)

    def broken(self, guarantee: str, detail: str) -> None:
        """Report a guarantee that a call has broken."""
        self._observer.broken(self, guarantee, detail)

    def must_return(self, why: str, since: int | None = None) -> None:
        """Expect a revocation before the next message of what is owned now; see `Observer`."""
        self._observer.must_return(self, why, since)

    def _wake(self) -> None:
        self.consumer.librdkafka.wake()  # not looked up before: the handle may be created again

    # --- The application

    def _run(self) -> None:
        error: str | None = None
        try:
            self.consumer = consumer = Consumer(self._config())
            if self.plan.listens:
                consumer.add_listener(self._checks.lost)
            self.process.on_wake = self._wake
            self._subscribe()
            while not self.closing:
                self._poll(consumer)
                self._act(consumer)
                if self.plan.processing and not self.calm:
                    sleep(self._random.random() ** 2 * self.plan.processing)
        except RuntimeError as raised:
            if str(raised) != "Consumer closed":
                error = repr(raised)
        except Exception as raised:  # noqa: BLE001 - an application does not survive what it does not expect
            error = repr(raised)
        self._close(error)

    def _close(self, error: str | None = None) -> None:
        self._is_closed_elsewhere = getcurrent() is not self.process.main
        self.closing = True
        self.process.stays = self.plan.static and not self._has_left
        try:
            while self.consumer is not None:
                try:
                    self.consumer.close(timeout=self.plan.close_timeout)
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
            self._check_threads()

    def _check_threads(self) -> None:
        """Check after a while that no call of another thread outlives its consumer."""
        stops = self.process.stops

        def check() -> None:
            if stops != self.process.stops:
                self._check_threads()
            elif not all(thread.ended for thread in self._threads):
                self._observer.call_never_ended(self)

        self.process.call_in(_LONGEST_CALL, check)

    def _config(self) -> dict[str, Any]:
        scenario, plan = self._scenario, self.plan
        config: dict[str, Any] = {
            "bootstrap.servers": ",".join(f"boot-{number}" for number in range(scenario.bootstrap)),
            "group.id": self.group,
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
            config["group.instance.id"] = plan.instance or plan.name
        return config

    def _subscribe(self) -> None:
        self.consumer.subscribe(
            list(self._topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        if not self._is_cooperative:
            self.must_return("nothing comes after an eager member has subscribed again")

    def _poll(self, consumer: Any, *, at_once: bool = False) -> bool:
        """Poll; return whether there was neither a message nor an exception."""
        timeout = 0.0 if at_once else self._random.random() ** 2 * _LONGEST_POLL
        self._checks.poll_begins()
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
            self._checks.is_interrupted = True
            return False
        finally:
            self.process.takes_signals = False
            self._checks.poll_ended()
        self._checks.is_interrupted = False
        for message in messages:
            problem = message.error()
            key = (message.topic(), message.partition())
            if problem is not None and problem.code() == KafkaError._PARTITION_EOF:
                self._observer.reached_end(self, key, message.offset(), paused=key in self._paused)
                continue
            if problem is not None:
                self._observer.said(self, f"poll returned {problem.name()}")
                if problem.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and message.topic() is not None:
                    self.missing.add(message.topic())
                elif problem.code() == KafkaError._MAX_POLL_EXCEEDED:
                    self._checks.poll_interval_exceeded()
                elif problem.code() == KafkaError._FATAL:
                    self.closing = True  # another process has taken its group.instance.id
                continue
            self._last[key], self._newest = message.offset(), message
            paused = key in self._paused
            self._observer.delivered(self, int(message.value()), key, message.offset(), paused=paused)
            if self.plan.commits is Commits.STORE and key in self._owned:
                with contextlib.suppress(KafkaException):  # it may be revoked within this batch
                    consumer.store_offsets(message)
        return not messages

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
        if self._commits_itself and chance() < 0.3:
            self._commit(consumer, synchronous=plan.commits is Commits.SYNC)
        if plan.commits_unknown and not self.calm and chance() < _UNKNOWN_SHARE:
            self._commit_unknown(consumer)
        owned = sorted(self._owned)
        if owned and plan.changes_wrongly and chance() < _UNKNOWN_SHARE:
            self._checks.assignment_returned(consumer.assignment(), self._owned)
            self._checks.change_wrongly(consumer, owned, cooperative=self._is_cooperative)
        if owned and not self.calm and chance() < plan.seeks:
            self._seek(consumer, self._random.choice(owned))
        if owned and not self.calm and chance() < plan.pauses:
            self._pause(consumer, self._random.choice(owned))

    def _commit(self, consumer: Any, *, synchronous: bool, **what: Any) -> str | None:
        """Commit; return the error's name if a synchronous commit has failed."""
        if not synchronous:
            self.commits_late |= self._is_closed_elsewhere
            self._observer.asked(self, _asked(**what))
            consumer.commit(asynchronous=True, **what)
            return None
        before, is_lost = set(self._owned), not what and consumer._member.membership.has_lost_partitions
        done: list[TopicPartition] = []
        failure: str | None = None
        try:
            done = consumer.commit(asynchronous=False, **what)
        except KafkaException as error:
            failure = error.args[0].name()
        if failure == "_DESTROY" and self.closing:
            self._observer.said(self, "another thread has closed the consumer, which has ended the commit")
            return failure
        self._observer.asked(self, {})
        self._observer.committed(self, _offsets(done), failure)
        if failure is not None and is_lost:
            self._checks.lost_commit_ended(failure)
        elif failure is None and not what and not consumer._member.in_callback:
            self._checks.commit_returned(done, before, self._owned)
        return failure

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
        self._in_on_assign, act = _nothing, self._in_on_assign
        act()
        self._work_in_callback()
        if self.plan.assigns or self.plan.own_store:
            assign = consumer.incremental_assign if self._is_cooperative else consumer.assign
            assign(partitions)
        if self.plan.own_store:
            self._seek_to_store(keys)
        if self.plan.seeks_at_start:
            self.orders.appendleft(lambda: self._seek_to_starts(keys))
        self._maybe_raise()

    def _seek_to_store(self, keys: list[Key]) -> None:
        """Seek within `on_assign`, as an application does that commits its offsets with its results."""
        takes_signals = self.process.takes_signals  # not within a call other than poll and consume
        self.process.takes_signals = False  # an exception would leave it open whether it has sought
        for key in keys:
            offset = self._observer.start_of(key)
            try:
                self.consumer.seek(TopicPartition(*key, offset))
            except KafkaException:
                if not self.consumer._member.membership.fenced:
                    raise
                break  # fenced within the callback: as with librdkafka, nothing is assigned
            self._observer.sought(self, key, offset)
        self.process.takes_signals = takes_signals

    def _seek_to_starts(self, keys: list[Key]) -> None:
        """Seek to where the partitions start, as an application does that keeps its own offsets."""
        for key in keys:
            if key in self._owned and key not in self._last:
                offset = self._observer.start_of(key)
                try:
                    self.consumer.seek(TopicPartition(*key, offset))
                except KafkaException as error:
                    if self.closing:
                        return  # fenced, or closed by another thread, so that nothing is assigned
                    raise RuntimeError(f"a seek after the assignment was refused: {error}") from error
                self._observer.sought(self, key, offset)

    def _on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        if consumer._member.membership.has_lost_partitions:
            self.broken("on_lost is called for partitions that are lost", "on_revoke was called")
        try:
            self._work_in_callback()
            if self.plan.commits_in_revoke:
                self._commit(consumer, synchronous=True)
        finally:
            self._revoked(partitions, lost=False)

    def _on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self._checks.lost.called += len(partitions) if self.plan.listens else 0
        self._work_in_callback()
        if self.plan.commits_in_revoke:
            self._checks.commit_lost(consumer)
        self._revoked(partitions, lost=True)

    def _revoked(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        keys = _keys(partitions)
        self._observer.revoked(self, keys, lost=lost)
        self._owned.difference_update(keys)
        for key in keys:
            self._last.pop(key, None)
        self._maybe_raise()

    def _on_commit(self, error: Any, partitions: list[TopicPartition]) -> None:
        self._checks.commit_ended(error, partitions)
        self._observer.committed(self, _offsets(partitions), None if error is None else error.name())

    def _work_in_callback(self) -> None:
        if self.plan.callback and not self.calm:
            sleep(self._random.random() ** 2 * self.plan.callback)

    def _maybe_raise(self) -> None:
        if self._random.random() < self.plan.raises:
            raise CallbackError("the application's callback")


def _keys(partitions: list[TopicPartition]) -> list[Key]:
    return [(p.topic, p.partition) for p in partitions]


def _offsets(partitions: list[TopicPartition]) -> dict[Key, int]:
    return {(p.topic, p.partition): p.offset for p in partitions if p.offset >= 0 and p.error is None}


def _nothing() -> None:
    pass


def _asked(message: Any = None, offsets: list[TopicPartition] | None = None) -> dict[Key, int] | None:
    """Return the offsets that a commit names; None if it names none."""
    if message is not None:
        return {(message.topic(), message.partition()): message.offset() + 1}
    return None if offsets is None else _offsets(offsets)


def sleep(microseconds: float) -> None:
    runtime.current().block(microseconds / SECOND)
