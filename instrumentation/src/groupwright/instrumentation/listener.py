"""One consumer's instrumentation: what its rebalances add to the metrics, and how it stands now."""

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from groupwright.instrumentation.catalogue import (
    CALLBACK_DURATION,
    ERRORS,
    FAILED,
    OUTCOMES,
    PARTITIONS_ASSIGNED,
    PARTITIONS_LOST,
    PARTITIONS_REVOKED,
    PHASE_DURATION,
    REBALANCE_DURATION,
    REBALANCES,
    Spec,
)
from groupwright.instrumentation.families import Families, Identity
from groupwright.instrumentation.observable import ObservableConsumer, Partitions, RebalanceRecord


@dataclass(frozen=True, slots=True)
class Standing:
    """What a consumer's gauges tell. Never changed but replaced, so that a scrape needs no lock."""

    owned: Mapping[str, int] = field(default_factory=dict)
    """Numbers of partitions by topic; a topic that was owned once stays, with 0."""
    generation: int | None = None
    ended_at: float | None = None
    """When the last rebalance ended, in seconds since the epoch."""
    duration: float = 0.0
    """How long it took, in seconds."""

    def without(self, gone: Mapping[str, int]) -> "Standing":
        """Return the standing after partitions were given up or lost."""
        left = {topic: max(0, self.owned.get(topic, 0) - number) for topic, number in gone.items()}
        return replace(self, owned={**self.owned, **left})

    def owning(self, owned: Mapping[str, int], generation: int) -> "Standing":
        """Return the standing after an assignment was applied."""
        return replace(self, owned={**dict.fromkeys(self.owned, 0), **owned}, generation=generation)


class Instrumentation:
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
    ) -> None:
        """Use `Metrics.watch`, which makes it known to the collector and to the consumer."""
        self.identity = Identity(consumer.group_id, consumer.client_id)
        self.standing = Standing()
        self._consumer = weakref.ref(consumer)
        self._families = families
        self._forget = forget
        self._logger = logger
        self._logged: set[str] = set()
        self._removed = False
        # Reentrant: a signal handler may call `remove` while it interrupts an event.
        self._lock = threading.RLock()

    def remove(self) -> None:
        """Take this consumer's series out of the registry, and hear no more of it; again is no error.

        Series that it shares with another consumer of the same group and client id stay, for that one.
        """
        with self._lock:
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

    def start_counters(self) -> None:
        """Begin at 0 what is known to come: an increase from nothing is none to `rate()`."""
        self._families.add(ERRORS, self.identity, 0)
        self._start_outcomes("")

    def poll_age(self) -> float | None:
        """Return the seconds since the last poll, or None if there is nobody to poll any more."""
        try:
            consumer = self._consumer()
            age = None if consumer is None else consumer.poll_age
            return None if age is None else float(age)
        except Exception as error:  # noqa: BLE001 - a scrape goes on with what can be read
            self._failed("poll_age", error)
            return None

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

    def rebalanced(self, rebalance: RebalanceRecord) -> None:
        """Count and time a rebalance that has ended."""
        self._guarded("rebalanced", self._on_rebalanced, rebalance)

    # --- Parts --------------------------------------------------------------------------------------

    def _on_assigned(self, partitions: Partitions, seconds: float) -> None:
        # What is owned then, `rebalanced` tells: it follows at once, and knows what was owned before as well.
        self._count(PARTITIONS_ASSIGNED, "assign", _numbers(partitions), seconds)

    def _on_gone(self, spec: Spec, callback: str, partitions: Partitions, seconds: float) -> None:
        gone = _numbers(partitions)
        self._count(spec, callback, gone, seconds)
        self.standing = self.standing.without(gone)

    def _on_rebalanced(self, rebalance: RebalanceRecord) -> None:
        # Everything is read before anything is recorded: a record that cannot be read leaves no half of it behind.
        outcome = str(rebalance.outcome)
        protocol = rebalance.protocol or ""
        duration = float(rebalance.duration)
        phases = [(str(phase), float(seconds)) for phase, seconds in rebalance.phases.items()]
        ended_at = float(rebalance.ended_at)
        owned = _numbers(rebalance.partitions)
        generation = int(rebalance.generation)

        self._start_outcomes(protocol)
        self._families.add(REBALANCES, self.identity, protocol=protocol, outcome=outcome)
        self._families.observe(REBALANCE_DURATION, self.identity, duration, protocol=protocol)
        for phase, seconds in phases:
            self._families.observe(PHASE_DURATION, self.identity, seconds, protocol=protocol, phase=phase)
        standing = replace(self.standing, ended_at=ended_at, duration=duration)
        self.standing = standing if outcome == FAILED else standing.owning(owned, generation)

    def _count(self, spec: Spec, callback: str, numbers: Mapping[str, int], seconds: float) -> None:
        self._families.observe(CALLBACK_DURATION, self.identity, float(seconds), callback=callback)
        for topic, number in numbers.items():
            for each in (PARTITIONS_ASSIGNED, PARTITIONS_REVOKED, PARTITIONS_LOST):
                self._families.add(each, self.identity, number if each is spec else 0, topic=topic)

    def _start_outcomes(self, protocol: str) -> None:
        for outcome in OUTCOMES:
            self._families.add(REBALANCES, self.identity, 0, protocol=protocol, outcome=outcome)

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
