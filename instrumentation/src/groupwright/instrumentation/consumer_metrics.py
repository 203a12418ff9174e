"""One consumer's metrics: counters and histograms of its events, and samples of its state at each scrape."""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from groupwright.core import (
    Kind,
    LoadCheckOutcome,
    LoadCheckResult,
    MembershipSnapshot,
    ObservableConsumer,
    Outcome,
    Partitions,
    Rebalance,
    RebalanceListener,
    TopicPartitionKey,
)
from groupwright.core.configuration import Configuration
from groupwright.core.locking import call_locked, locked
from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.log_ends import LogEnds
from groupwright.instrumentation._librdkafka.membership import MembershipStatistics
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics
from groupwright.instrumentation._metrics import samples as sample_readers
from groupwright.instrumentation._metrics.catalogue import (
    CALLBACK_DURATION,
    CLIENT_ERRORS,
    COMMIT_DURATION,
    COMMIT_FAILURES,
    COMMITS,
    CONSUMER_INFO,
    ERRORS,
    EVENTS,
    LAST_COMMIT_AGE,
    LEADER_MIN_MOVES,
    LEADER_MOVES,
    LEADER_UNDECODABLE_MEMBERS,
    LOAD_CHECK_MOVES,
    LOAD_CHECKS,
    PARTITIONS_ASSIGNED,
    PARTITIONS_LOST,
    PARTITIONS_REVOKED,
    PHASE_DURATION,
    REBALANCE_DURATION,
    REBALANCES,
    STATISTICS_AGE,
    WARNINGS,
)
from groupwright.instrumentation._metrics.consumer_state import ConsumerState, keys_of
from groupwright.instrumentation._metrics.families import ClientLabels, Families
from groupwright.instrumentation._metrics.labels import EVENT_OUTCOMES, NO_PROTOCOL
from groupwright.instrumentation._metrics.samples import CounterIncrements, Sample
from groupwright.instrumentation._metrics.spec import ClientSpec
from groupwright.instrumentation._tracking.callback_tracker import tracker_of
from groupwright.instrumentation._tracking.lag_tracker import LagTracker
from groupwright.instrumentation._tracking.round_merger import RoundMerger
from groupwright.instrumentation.advice import Finding, RunningAdvice, Severity, on_configuration
from groupwright.instrumentation.advice.running import RULES as RUNNING_RULES
from groupwright.instrumentation.events import Event, make_event, make_load_check_event
from groupwright.instrumentation.sinks import EventSink

T = TypeVar("T")

_REVOKE_MARGIN = 2.0
"""Seconds after a revocation for which statistics may still have the partition in fetch state `active`."""
_TIMER_MARGIN = 0.01
"""Seconds by which a timer may be early, from the resolution of its clock."""


@dataclass(frozen=True, slots=True)
class Options:
    """Optional measurements of one consumer."""

    events: Sequence[EventSink] = ()
    """Sinks that receive an event for each rebalance."""
    lag_by_partition: bool = False
    """Option to show the lag of each partition."""
    advise: bool = True
    """Option to look for the causes of rebalances, and log warnings."""
    load_checks: Sequence[EventSink] = ()
    """Sinks that receive an event for each load check."""


class Instrumentation(RebalanceListener):
    """One consumer's metrics; returned by `instrument`.

    It receives the consumer's rebalances, commits and load checks as a `RebalanceListener`, and holds the
    consumer weakly. Of a wrapped consumer it observes the tracker, which it holds. None of its methods
    raises: a failure is counted in ``groupwright_instrumentation_errors_total``, and logged once for each
    operation. Safe to use from any thread.
    """

    def __init__(
        self,
        consumer: ObservableConsumer,
        families: Families,
        on_removed: Callable[[Instrumentation], None],
        logger: logging.Logger,
        options: Options | None = None,
        callbacks: LibrdkafkaCallbacks[ConsumerStatistics] | None = None,
        ends: LogEnds | None = None,
    ) -> None:
        """Use `Metrics.add_consumer`, which adds it to the collector."""
        self._tracker = tracker_of(consumer)
        observed = self._tracker or consumer
        self.client_labels = ClientLabels(observed.group_id, observed.client_id)
        self.state = ConsumerState()
        self._consumer = weakref.ref(consumer)
        self._families = families
        self._on_removed = on_removed
        self._logger = logger
        self._options = options or Options()
        self._callbacks = callbacks
        self._settings = observed.settings
        settings = Configuration(self._settings)
        heartbeat_interval = settings.seconds("heartbeat.interval.ms")
        self._advice = RunningAdvice(heartbeat_interval, settings.seconds("max.poll.interval.ms"))
        tracked = self._tracker is not None
        broker_assigned = settings.kind is Kind.CONSUMER
        self._client = "librdkafka" if tracked or broker_assigned else "groupwright"
        # Groupwright's members learn the vote for one of these; others do not, so their label is the setting.
        self._protocols = settings.strategies if self._client == "groupwright" else [settings.protocol]
        self._kind = "" if self._client == "groupwright" else str(settings.kind)
        # A `CallbackTracker` completes its snapshots and merges rounds itself.
        self._membership_statistics = MembershipStatistics() if broker_assigned and not tracked else None
        self._round_merger = RoundMerger(2 * heartbeat_interval) if self._client == "groupwright" else None
        self._increments = CounterIncrements()
        self._committed_at: float | None = None
        """When the last commit succeeded, by the monotonic clock."""
        self._logged: set[str] = set()
        self._removed = False
        # Reentrant: a signal handler may call `remove` while it interrupts an event, or scrape in a scrape.
        self._lock = threading.RLock()
        # Held while totals are read and added: of two scrapes, the one that reads first must add first. It is
        # taken before the locks of the tracker and of this object.
        self._sampling = threading.RLock()
        self._lag = LagTracker(self._settings)
        self._log_ends = ends
        if callbacks is not None:
            callbacks.on_failure = self._record_failure
            callbacks.on_statistics = self._on_statistics
        if self._tracker is not None:
            self._tracker.start_observers.append(self._on_starts)
        observed.add_listener(self)

    @locked
    def remove(self) -> None:
        """Remove this consumer's series from the registry, and stop measuring; a second call does nothing.

        Series that it shares with another consumer of the same group and client id stay. Sinks stay open.
        """
        if self._round_merger is not None:
            for each in self._round_merger.end():
                self._guarded("rebalanced", self._count_rebalance, each)
        self._removed = True
        self._on_removed(self)

    # --- For the collector --------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """True if the consumer still exists."""
        return self._consumer() is not None

    def instruments(self, consumer: ObservableConsumer) -> bool:
        """Return whether this is the instrumentation of a consumer."""
        return self._consumer() is consumer

    def start(self) -> None:
        """Create series of known labels at 0, so that `rate()` sees their first increase; log advice."""
        self._families.add(ERRORS, self.client_labels, 0)
        self._families.add(COMMITS, self.client_labels, 0)
        for protocol in (NO_PROTOCOL, *self._protocols):
            self._start_outcome_counters(protocol)
        for protocol in self._protocols:
            self._families.start(REBALANCE_DURATION, self.client_labels, protocol=protocol)
        if self._options.advise:
            for rule in RUNNING_RULES:
                self._families.add(WARNINGS, self.client_labels, 0, rule=rule)
        for sink in (*self._options.events, *self._options.load_checks):
            for outcome in EVENT_OUTCOMES:
                self._families.add(EVENTS, self.client_labels, 0, sink=sink.name, outcome=outcome)
        if self._options.advise and self._settings:
            self._guarded("advice", self._log_findings, on_configuration(self._settings))

    @property
    def last_rebalance(self) -> float:
        """The end of the last rebalance, in seconds since the epoch; 0 before the first."""
        return self.state.ended_at or 0.0

    def samples(self) -> list[Sample]:
        """Return the samples of a scrape, and add the increments of their totals to the counters.

        A closed consumer has counters and the gauges of its last rebalance. Samples that cannot be read are
        counted as failures.
        """
        self._settle()
        return call_locked(self._sampling, self._sample)

    def _sample(self) -> list[Sample]:
        state = self._read("state", lambda: sample_readers.of_consumer_state(self.state))
        observed = self._observed()
        age = None if observed is None else self._attempt("poll_age", lambda: observed.poll_age)
        samples = [*state, *self._client_samples(observed, age)]
        self._add_increments(samples)
        return state if age is None else samples

    @locked
    def _add_increments(self, samples: list[Sample]) -> None:
        if not self._removed:
            self._families.add_increments(self.client_labels, self._increments.increments(samples))

    # --- RebalanceListener --------------------------------------------------------------------------

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Count assigned partitions."""
        self._guarded("partitions_assigned", self._on_assigned, partitions, seconds)

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Count revoked partitions."""
        self._guarded(
            "partitions_revoked", self._on_revoked_or_lost, PARTITIONS_REVOKED, "revoke", partitions, seconds
        )

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Count lost partitions."""
        self._guarded(
            "partitions_lost", self._on_revoked_or_lost, PARTITIONS_LOST, "lost", partitions, seconds
        )

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Count and time a rebalance, and send its event to the sinks."""
        self._guarded("rebalanced", self._on_rebalanced, rebalance)

    def load_checked(self, result: LoadCheckResult) -> None:
        """Count a load check, and the moves that it leads to."""
        self._guarded("load_checked", self._on_load_check, result)

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """Count and time a commit."""
        self._guarded("commit_ended", self._on_commit, seconds, error)

    # --- Events of the consumer ---------------------------------------------------------------------

    def _on_assigned(self, partitions: Partitions, seconds: float) -> None:
        self.state = self.state.after_addition(partitions)
        self._lag.forget(keys_of(partitions), time.monotonic())
        self._count_partitions(PARTITIONS_ASSIGNED, "assign", _sizes(partitions), seconds)

    def _on_revoked_or_lost(
        self, spec: ClientSpec, callback: str, partitions: Partitions, seconds: float
    ) -> None:
        removed = _sizes(partitions)
        self._count_partitions(spec, callback, removed, seconds)
        self.state = self.state.after_removal(partitions)
        self._lag.forget(keys_of(partitions), time.monotonic() + _REVOKE_MARGIN)

    def _on_rebalanced(self, rebalance: Rebalance) -> None:
        # librdkafka's rebalances are reported late; partitions have been assigned and revoked since.
        state = replace(self.state, kind=str(rebalance.kind))
        if rebalance.outcome is not Outcome.FAILED:
            state = replace(state, generation=rebalance.generation)
            if self._round_merger is not None:
                state = state.after_assignment(rebalance.partitions)
        self.state = state
        merger = self._round_merger
        ended = [rebalance] if merger is None else merger.add(rebalance, time.monotonic())
        for each in ended:
            self._count_rebalance(each)
        if merger is not None and merger.settles_at < math.inf and self._options.events:
            # A scrape also ends a settled rebalance, but its event must not wait for the next scrape.
            timer = threading.Timer(merger.settles_at - time.monotonic() + _TIMER_MARGIN, self._settle)
            timer.daemon = True
            timer.start()

    def _settle(self) -> None:
        """Count a held rebalance that has settled."""
        self._guarded("rebalanced", self._on_settled)

    def _on_settled(self) -> None:
        for each in () if self._round_merger is None else self._round_merger.settle(time.monotonic()):
            self._count_rebalance(each)

    def _count_rebalance(self, ended: Rebalance) -> None:
        # First, since it reads the whole record: if that fails, no counter may have been incremented.
        event = make_event(*self.client_labels, ended)
        protocol = ended.protocol or NO_PROTOCOL
        self._start_outcome_counters(protocol)
        client = self.client_labels
        self._families.add(REBALANCES, client, protocol=protocol, outcome=ended.outcome)
        if ended.duration is not None:
            # The exemplar leads from a slow rebalance to its log line and its event.
            exemplar = {"generation": str(ended.generation)}
            self._families.observe(REBALANCE_DURATION, client, ended.duration, exemplar, protocol=protocol)
        for phase, seconds in ended.phases.items():
            self._families.observe(PHASE_DURATION, client, seconds, protocol=protocol, phase=phase)
        if ended.leadership is not None:
            self._families.add(LEADER_MOVES, self.client_labels, ended.leadership.moved)
            self._families.add(LEADER_MIN_MOVES, self.client_labels, ended.leadership.min_moves)
            if ended.leadership.load is not None:
                self._start_load_counters()
        if ended.leadership is not None or ended.undecodable:
            self._families.add(LEADER_UNDECODABLE_MEMBERS, self.client_labels, len(ended.undecodable))
        self.state = replace(
            self.state, ended_at=ended.ended_at, duration=ended.duration, leadership=ended.leadership
        )
        self._send_event(event, self._options.events)
        if self._options.advise:
            self._log_findings(self._advice.on_rebalance(ended.outcome, time.monotonic(), ended.kind))

    def _on_load_check(self, result: LoadCheckResult) -> None:
        self._start_load_counters()
        self._families.add(LOAD_CHECKS, self.client_labels, outcome=result.outcome)
        if result.outcome is LoadCheckOutcome.REBALANCED and result.moves is not None:
            self._families.add(LOAD_CHECK_MOVES, self.client_labels, result.moves)
        if result.outcome is not LoadCheckOutcome.FAILED:
            self.state = replace(self.state, load_check=result)
        self._send_event(make_load_check_event(result), self._options.load_checks)

    def _on_commit(self, seconds: float | None, error: str | None) -> None:
        self._families.add(COMMITS, self.client_labels)
        if error is not None:
            self._families.add(COMMIT_FAILURES, self.client_labels, error=error)
        else:
            self._committed_at = time.monotonic()
        if seconds is not None:
            self._families.observe(COMMIT_DURATION, self.client_labels, float(seconds))

    def _count_partitions(
        self, spec: ClientSpec, callback: str, numbers: Mapping[str, int], seconds: float
    ) -> None:
        self._families.observe(CALLBACK_DURATION, self.client_labels, float(seconds), callback=callback)
        for topic, number in numbers.items():
            # The topic's other counters start at 0, so that `rate()` sees their first increase.
            for each in (PARTITIONS_ASSIGNED, PARTITIONS_REVOKED, PARTITIONS_LOST):
                self._families.add(each, self.client_labels, number if each is spec else 0, topic=topic)
        if self._options.advise:
            self._log_findings(self._advice.on_callback(callback, seconds, time.monotonic()))

    def _start_outcome_counters(self, protocol: str) -> None:
        for outcome in Outcome if protocol != NO_PROTOCOL else (Outcome.FAILED,):
            self._families.add(REBALANCES, self.client_labels, 0, protocol=protocol, outcome=outcome)

    def _start_load_counters(self) -> None:
        self._families.add(LOAD_CHECK_MOVES, self.client_labels, 0)
        for outcome in LoadCheckOutcome:
            self._families.add(LOAD_CHECKS, self.client_labels, 0, outcome=outcome)

    def _send_event(self, event: Event, sinks: Iterable[EventSink]) -> None:
        for sink in sinks:
            name = sink.name
            sink.offer(event, lambda outcome, name=name: self._on_event_outcome(name, outcome))  # type: ignore[misc] # mypy cannot infer a lambda with a default

    def _on_event_outcome(self, sink: str, outcome: str) -> None:
        labels = self.client_labels
        self._guarded("event", lambda: self._families.add(EVENTS, labels, sink=sink, outcome=outcome))

    def _log_findings(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if finding.severity is Severity.WARNING:
                group, client_id = self.client_labels
                self._families.add(WARNINGS, self.client_labels, rule=finding.rule)
                self._logger.warning("[%s in %s] %s", client_id, group, finding)

    # --- Samples ------------------------------------------------------------------------------------

    def _observed(self) -> ObservableConsumer | None:
        """Return what shows the consumer's state; None if that no longer exists."""
        return self._tracker or self._consumer()

    def _client_samples(self, observed: ObservableConsumer | None, age: float | None) -> Iterator[Sample]:
        callbacks = self._callbacks
        if callbacks is not None:
            yield from self._read("statistics", lambda: self._callback_samples(callbacks))
        if observed is None:
            return
        snapshot = self._attempt(
            "membership_snapshot", lambda: self._complete(observed.membership_snapshot, age)
        )
        if snapshot is not None:
            yield from self._read("membership", lambda: sample_readers.of_membership(snapshot))
        yield from self._read("poll_age", lambda: self._polling_samples(age, snapshot))
        yield from self._read("lag", lambda: self._lag_samples(snapshot))

    def _complete(self, snapshot: MembershipSnapshot, age: float | None) -> MembershipSnapshot:
        """Return the snapshot, completed by what librdkafka's statistics and the last poll show."""
        if self._membership_statistics is not None and self._callbacks is not None:
            snapshot = self._membership_statistics.complete(snapshot, self._callbacks.statistics)
        interval = snapshot.max_poll_interval
        if self.state.owned and interval and age is not None and age >= interval:
            # librdkafka has left the group, but reports that only at the next poll.
            snapshot = replace(snapshot, state="unjoined")
        return snapshot

    def _polling_samples(self, age: float | None, snapshot: MembershipSnapshot | None) -> Iterator[Sample]:
        is_checked = snapshot is not None and snapshot.max_poll_interval is not None
        if self._options.advise and self.alive and age is not None and is_checked:
            findings = self._advice.on_poll_age(age, time.monotonic())
            self._guarded("advice", self._log_findings, findings)
        if not (snapshot is not None and snapshot.fenced):
            # A fenced consumer is no member, so it has no info.
            yield Sample(CONSUMER_INFO, (self._client, self.state.kind or self._kind), 1)
        if self._committed_at is not None:
            yield Sample(LAST_COMMIT_AGE, (), time.monotonic() - self._committed_at)
        yield from sample_readers.of_polling(age, snapshot)

    def _callback_samples(self, callbacks: LibrdkafkaCallbacks[ConsumerStatistics]) -> Iterator[Sample]:
        errors = dict(callbacks.errors)
        yield from sample_readers.of_callbacks(STATISTICS_AGE, callbacks.age, CLIENT_ERRORS, errors)
        if callbacks.statistics is not None:
            yield from sample_readers.of_fetching(callbacks.statistics)

    def _lag_samples(self, snapshot: MembershipSnapshot | None) -> Iterator[Sample]:
        lag, uncommitted = call_locked(
            self._lock, lambda: (self._lag.lag.copy(), self._lag.uncommitted.copy())
        )
        if snapshot is not None and snapshot.state == "unjoined":
            # The member has left the group, and its successors have the partitions; the application has not
            # polled since.
            lag = {key: offsets for key, offsets in lag.items() if key not in self.state.owned}
        if snapshot is not None and snapshot.commits_by_producer:
            uncommitted = {}
        return sample_readers.of_lag(lag, uncommitted, by_partition=self._options.lag_by_partition)

    def _on_statistics(self, statistics: ConsumerStatistics, taken_at: float) -> None:
        observed = self._observed()
        if observed is not None:
            # Before the lock is taken: the snapshot may report a settled rebalance.
            snapshot = observed.membership_snapshot
            self._guarded("lag", self._update_lag, statistics, taken_at, snapshot)

    def _update_lag(
        self, statistics: ConsumerStatistics, taken_at: float, snapshot: MembershipSnapshot
    ) -> None:
        unfetched = self._lag.update(statistics, taken_at, snapshot.start_offsets, snapshot.paused)
        if unfetched and self._log_ends is not None:
            self._log_ends.look_up(unfetched, self._on_end)

    def _on_starts(self, keys: Iterable[TopicPartitionKey]) -> None:
        self._guarded("lag", self._lag.forget, keys, time.monotonic())

    def _on_end(self, key: TopicPartitionKey, end: int) -> None:
        self._guarded("lag", self._lag.set_ends, {key: end})

    def _read(self, operation: str, read: Callable[[], Iterator[Sample]]) -> list[Sample]:
        return self._attempt(operation, lambda: list(read())) or []

    def _attempt(self, operation: str, read: Callable[[], T | None]) -> T | None:
        """Return the value, or None if reading it fails: a scrape continues without it."""
        try:
            return read()
        except Exception as error:  # noqa: BLE001 - measuring must not break the application
            self._record_failure(operation, error)
            return None

    # --- Failures -----------------------------------------------------------------------------------

    @locked
    def _guarded(self, operation: str, record: Callable[..., None], *arguments: object) -> None:
        if self._removed:
            return
        try:
            record(*arguments)
        except Exception as error:  # noqa: BLE001 - measuring must not break the application
            self._record_failure(operation, error)

    @locked
    def _count_failure(self, operation: str) -> bool:
        """Count a failure; return whether it is the first of its kind."""
        if self._removed:
            return False
        self._families.add(ERRORS, self.client_labels)
        is_first = operation not in self._logged
        self._logged.add(operation)
        return is_first

    def _record_failure(self, operation: str, error: Exception) -> None:
        if not self._count_failure(operation):
            return
        self._logger.warning(
            "[%s in %s] the instrumentation failed at %s: %r. The consumer is not affected; further failures "
            "of this kind are only counted, in %s",
            self.client_labels.client_id,
            self.client_labels.group,
            operation,
            error,
            ERRORS.name,
            exc_info=error,
        )


def _sizes(partitions: Partitions) -> dict[str, int]:
    """Return the number of partitions by topic."""
    return {str(topic): len(numbers) for topic, numbers in partitions.items()}
