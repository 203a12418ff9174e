"""One consumer's instrumentation: what its rebalances add to the metrics, and what it shows when scraped."""

import logging
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from groupwright.core import (
    Kind,
    MembershipSnapshot,
    ObservableConsumer,
    Outcome,
    Partitions,
    Rebalance,
    RebalanceListener,
)
from groupwright.core.configuration import Configuration
from groupwright.instrumentation._librdkafka.callbacks import Signals
from groupwright.instrumentation._librdkafka.statistics import ConsumerStatistics
from groupwright.instrumentation._librdkafka.stats import NativeMembership
from groupwright.instrumentation._metrics import samples as readings
from groupwright.instrumentation._metrics.catalogue import (
    CALLBACK_DURATION,
    CLIENT_ERRORS,
    COMMIT_DURATION,
    COMMIT_FAILURES,
    COMMITS,
    ERRORS,
    EVENTS,
    LEADER_MOVES,
    LEADER_MOVES_NEEDED,
    PARTITIONS_ASSIGNED,
    PARTITIONS_LOST,
    PARTITIONS_REVOKED,
    PHASE_DURATION,
    REBALANCE_DURATION,
    REBALANCES,
    STATISTICS_AGE,
    WARNINGS,
)
from groupwright.instrumentation._metrics.consumer_state import Standing
from groupwright.instrumentation._metrics.families import Families, Identity
from groupwright.instrumentation._metrics.labels import EVENT_OUTCOMES
from groupwright.instrumentation._metrics.samples import Growth, Reading
from groupwright.instrumentation._metrics.spec import Spec
from groupwright.instrumentation._tracking.callback_tracker import Observed
from groupwright.instrumentation._tracking.round_merger import Rounds
from groupwright.instrumentation.advice import Finding, RunningAdvice, Severity, on_configuration
from groupwright.instrumentation.events import RebalanceEvent, make_event
from groupwright.instrumentation.sinks import EventSink

_MARGIN = 0.01
"""Seconds; a timer may be early by its clock's grain."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured of one consumer besides the usual."""

    events: Sequence[EventSink] = ()
    """Where the record of each rebalance goes."""
    lag_by_partition: bool = False
    advise: bool = True
    """Whether to look for what causes rebalances, and warn of it in the log."""


class Instrumentation(RebalanceListener):
    """One consumer's metrics; returned by `instrument`.

    The consumer tells it of rebalances, as a `RebalanceListener`. It holds the consumer weakly. None of its methods
    raises: what goes wrong is logged once for each kind of event, and counted in
    ``groupwright_instrumentation_errors_total``.
    """

    def __init__(
        self,
        consumer: ObservableConsumer,
        families: Families,
        forget: Callable[["Instrumentation"], None],
        logger: logging.Logger,
        options: Options | None = None,
        signals: Signals[ConsumerStatistics] | None = None,
    ) -> None:
        """Use `Metrics.watch`, which makes it known to the collector and to the consumer."""
        self.identity = Identity(consumer.group_id, consumer.client_id)
        self.standing = Standing()
        self._consumer = weakref.ref(consumer)
        self._families = families
        self._forget = forget
        self._logger = logger
        self._options = options or Options()
        self._signals = signals
        self._settings = consumer.settings
        settings = Configuration(self._settings)
        heartbeat_interval = settings.seconds("heartbeat.interval.ms")
        self._advice = RunningAdvice(heartbeat_interval, settings.seconds("max.poll.interval.ms"))
        observed = isinstance(consumer, Observed)
        self._client = "librdkafka" if observed or settings.kind is Kind.CONSUMER else "groupwright"
        self._kind = "" if self._client == "groupwright" else str(settings.kind)
        # An observed consumer completes its snapshots by itself.
        self._native = NativeMembership() if settings.kind is Kind.CONSUMER and not observed else None
        # An observed consumer joins rounds by itself.
        self._rounds = Rounds(2 * heartbeat_interval) if self._client == "groupwright" else None
        self._growth = Growth()
        self._logged: set[str] = set()
        self._removed = False
        # Reentrant: a signal handler may call `remove` while it interrupts an event.
        self._lock = threading.RLock()
        if signals is not None:
            signals.failed = self.observation_failed

    def remove(self) -> None:
        """Take this consumer's series out of the registry, and hear no more of it; again is no error.

        Series that it shares with another consumer of the same group and client id stay, for that one. Sinks stay
        open: they are whose who made them.
        """
        with self._lock:
            if self._rounds is not None:
                for each in self._rounds.end():
                    self._guarded("rebalanced", self._count_rebalance, each)
            self._removed = True
            self._forget(self)

    # --- For the collector --------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether the consumer has not been collected."""
        return self._consumer() is not None

    def watches(self, consumer: ObservableConsumer) -> bool:
        """Whether this is the instrumentation of that very consumer."""
        return self._consumer() is consumer

    def start(self) -> None:
        """Begin counters at 0 that are known to come: an increase from nothing is none to `rate()`. Give advice."""
        self._families.add(ERRORS, self.identity, 0)
        self._families.add(COMMITS, self.identity, 0)
        self._start_outcomes("")
        for sink in self._options.events:
            for outcome in EVENT_OUTCOMES:
                self._families.add(EVENTS, self.identity, 0, sink=sink.name, outcome=outcome)
        if self._options.advise and self._settings:
            self._guarded("advice", self._advise, on_configuration(self._settings))

    def readings(self) -> list[Reading]:
        """Read what is shown at a scrape; what cannot be read is left out, and counted."""
        self._settle()
        return [*self._read("standing", self._of_standing), *self._of_client()]

    def count_growth(self, read: Iterable[Reading]) -> None:
        """Count how much the totals among these readings have grown."""
        with self._lock:
            if not self._removed:
                for spec, labels, growth in self._growth.increments(read):
                    self._families.add_values(spec, self.identity, growth, labels)

    @property
    def whose(self) -> tuple[str, str]:
        """Whose the membership is, and the kind of its rebalances: the values of `labels.LABELS`' client and kind."""
        return self._client, self.standing.kind or self._kind

    # --- What the consumer tells --------------------------------------------------------------------

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        """Count partitions gained."""
        self._guarded("partitions_assigned", self._on_assigned, partitions, seconds)

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        """Count partitions given up in good order."""
        self._guarded("partitions_revoked", self._on_gone, PARTITIONS_REVOKED, "revoke", partitions, seconds)

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        """Count partitions lost."""
        self._guarded("partitions_lost", self._on_gone, PARTITIONS_LOST, "lost", partitions, seconds)

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Count and time a rebalance that has ended, and tell the sinks of it."""
        self._guarded("rebalanced", self._on_rebalanced, rebalance)

    def commit_ended(self, seconds: float | None, error: str | None) -> None:
        """Count and time a commit."""
        self._guarded("commit_ended", self._on_commit, seconds, error)

    def observation_failed(self, where: str, error: Exception) -> None:
        """Count what went wrong in watching the consumer."""
        self._failed(where, error)

    # --- Parts --------------------------------------------------------------------------------------

    def _on_assigned(self, partitions: Partitions, seconds: float) -> None:
        # What is owned then, `rebalanced` tells: it follows, and knows what was owned before as well.
        self._count(PARTITIONS_ASSIGNED, "assign", _numbers(partitions), seconds)

    def _on_gone(self, spec: Spec, callback: str, partitions: Partitions, seconds: float) -> None:
        gone = _numbers(partitions)
        self._count(spec, callback, gone, seconds)
        self.standing = self.standing.without(gone)

    def _on_rebalanced(self, rebalance: Rebalance) -> None:
        standing = replace(self.standing, kind=str(rebalance.kind))
        self.standing = (
            standing
            if rebalance.outcome is Outcome.FAILED
            else standing.owning(rebalance.partitions, rebalance.generation)
        )
        told = [rebalance] if self._rounds is None else self._rounds.add(rebalance, time.monotonic())
        for each in told:
            self._count_rebalance(each)
        if self._rounds is not None and self._rounds.settles_at < math.inf and self._options.events:
            # Metrics are asked for, and that ends what has settled; events are not.
            timer = threading.Timer(self._rounds.settles_at - time.monotonic() + _MARGIN, self._settle)
            timer.daemon = True
            timer.start()

    def _settle(self) -> None:
        """Count a rebalance whose first round was the only one."""
        self._guarded("rebalanced", self._on_settled)

    def _on_settled(self) -> None:
        for each in () if self._rounds is None else self._rounds.settle(time.monotonic()):
            self._count_rebalance(each)

    def _count_rebalance(self, ended: Rebalance) -> None:
        event = make_event(*self.identity, ended)
        protocol = ended.protocol or ""
        self._start_outcomes(protocol)
        self._families.add(REBALANCES, self.identity, protocol=protocol, outcome=ended.outcome)
        if ended.duration is not None:
            # So that a slow rebalance can be found in the log or among the events.
            exemplar = {"generation": str(ended.generation)}
            self._families.observe(
                REBALANCE_DURATION, self.identity, ended.duration, exemplar, protocol=protocol
            )
        for phase, seconds in ended.phases.items():
            self._families.observe(PHASE_DURATION, self.identity, seconds, protocol=protocol, phase=phase)
        if ended.leadership is not None:
            self._families.add(LEADER_MOVES, self.identity, ended.leadership.moved)
            self._families.add(LEADER_MOVES_NEEDED, self.identity, ended.leadership.moves_needed)
        self.standing = replace(
            self.standing, ended_at=ended.ended_at, duration=ended.duration, leadership=ended.leadership
        )
        self._offer(event)
        if self._options.advise:
            self._advise(self._advice.rebalanced(ended.outcome, time.monotonic()))

    def _on_commit(self, seconds: float | None, error: str | None) -> None:
        self._families.add(COMMITS, self.identity)
        if error is not None:
            self._families.add(COMMIT_FAILURES, self.identity, error=error)
        if seconds is not None:
            self._families.observe(COMMIT_DURATION, self.identity, float(seconds))

    def _count(self, spec: Spec, callback: str, numbers: Mapping[str, int], seconds: float) -> None:
        self._families.observe(CALLBACK_DURATION, self.identity, float(seconds), callback=callback)
        for topic, number in numbers.items():
            for each in (PARTITIONS_ASSIGNED, PARTITIONS_REVOKED, PARTITIONS_LOST):
                self._families.add(each, self.identity, number if each is spec else 0, topic=topic)
        if self._options.advise:
            self._advise(self._advice.called_back(callback, seconds, time.monotonic()))

    def _start_outcomes(self, protocol: str) -> None:
        for outcome in Outcome:
            self._families.add(REBALANCES, self.identity, 0, protocol=protocol, outcome=outcome)

    def _offer(self, event: RebalanceEvent) -> None:
        for sink in self._options.events:
            name = sink.name
            sink.offer(event, lambda outcome, name=name: self._event_ended(name, outcome))  # type: ignore[misc] # mypy cannot infer a lambda with a default

    def _event_ended(self, sink: str, outcome: str) -> None:
        self._guarded("event", lambda: self._families.add(EVENTS, self.identity, sink=sink, outcome=outcome))

    def _advise(self, findings: Iterable[Finding]) -> None:
        for finding in findings:
            if finding.severity is Severity.WARNING:
                self._families.add(WARNINGS, self.identity, rule=finding.rule)
                self._logger.warning("[%s in %s] %s", self.identity.client_id, self.identity.group, finding)

    # --- Reading ------------------------------------------------------------------------------------

    def _of_standing(self) -> Iterator[Reading]:
        return readings.of_standing(self.standing)

    def _of_client(self) -> Iterator[Reading]:
        consumer = self._consumer()
        if consumer is None:
            return
        snapshot: MembershipSnapshot | None = None
        try:
            snapshot = consumer.membership_snapshot
            if self._native is not None and self._signals is not None:
                snapshot = self._native.complete(snapshot, self._signals.statistics)
        except Exception as error:  # noqa: BLE001 - a scrape goes on with what can be read
            self._failed("membership_snapshot", error)
        if snapshot is not None:
            yield from self._read("membership", lambda: readings.of_membership(snapshot))
        yield from self._read("poll_age", lambda: self._of_polling(consumer, snapshot))
        if self._signals is not None:
            yield from self._read("statistics", lambda: self._of_signals(self._signals, snapshot))

    def _of_polling(
        self, consumer: ObservableConsumer, snapshot: MembershipSnapshot | None
    ) -> Iterator[Reading]:
        age = consumer.poll_age
        age = None if age is None else float(age)
        if self._options.advise and age is not None and snapshot is not None:
            self._guarded("advice", lambda: self._advise(self._advice.not_polled_for(age, time.monotonic())))
        return readings.of_polling(age, snapshot)

    def _of_signals(
        self, signals: Signals[ConsumerStatistics] | None, snapshot: MembershipSnapshot | None
    ) -> Iterator[Reading]:
        if signals is None:
            return
        yield from readings.of_signals(STATISTICS_AGE, signals.age, CLIENT_ERRORS, dict(signals.errors))
        if signals.statistics is not None:
            yield from readings.of_lag(
                signals.statistics, snapshot, by_partition=self._options.lag_by_partition
            )

    def _read(self, what: str, read: Callable[[], Iterator[Reading]]) -> list[Reading]:
        try:
            return list(read())
        except Exception as error:  # noqa: BLE001 - a scrape goes on with what can be read
            self._failed(what, error)
            return []

    # --- Failing ------------------------------------------------------------------------------------

    def _guarded(self, event: str, record: Callable[..., None], *arguments: object) -> None:
        with self._lock:
            if self._removed:
                return
            try:
                record(*arguments)
            except Exception as error:  # noqa: BLE001 - measuring must not break what is measured
                self._failed(event, error)

    def _failed(self, event: str, error: Exception) -> None:
        with self._lock:
            if self._removed:
                return
            self._families.add(ERRORS, self.identity)
            if event in self._logged:
                return
            self._logged.add(event)
        self._logger.warning(
            "[%s in %s] the instrumentation failed at %s: %r. The consumer goes on; further failures of this kind "
            "are only counted, in %s",
            self.identity.client_id,
            self.identity.group,
            event,
            error,
            ERRORS.name,
            exc_info=error,
        )


def _numbers(partitions: Partitions) -> dict[str, int]:
    return {str(topic): len(numbers) for topic, numbers in partitions.items()}
